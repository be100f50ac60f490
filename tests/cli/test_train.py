"""A new user with a file of twenty sentences; a run that is stopped and goes on; what is wrong, in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.learned import DATA, SENTENCES, conllu

SMALL = ("model.d=32", "model.heads=2", "model.layers=1", "data.tokenizer=word", "optim.dropout=0", "optim.lr=1e-2")
SHORT = (*SMALL, "schedule.steps=4")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder with a file of one's own."""
    monkeypatch.chdir(tmp_path)
    Path("mine.conllu").write_text(conllu())
    Path("pairs.tsv").write_text(DATA["translate"])
    return tmp_path


def test_a_tagger_in_three_commands(regard):
    assert len(SENTENCES) == 20
    ran = regard(
        "train", "tag", "mine.conllu", "--valid", "mine.conllu", "--out", "tagger", *SMALL, "schedule.steps=60"
    )
    assert ran.code == 0
    assert ran.out.startswith("tagger: a transformer that can tag, ")
    assert 'try it: regard tag "The cat sleeps." --model tagger' in ran.out
    assert re.search(r"step 60 of 60  loss 0\.\d+  valid loss 0\.\d+  accuracy 100\.0%", ran.err)
    assert re.search(r"^accuracy +100\.0%", regard("evaluate", "tagger", "mine.conllu").out, re.M)
    assert (
        regard("tag", "the dog likes a cat", "--model", "tagger").out == "the/DET dog/NOUN likes/VERB a/DET cat/NOUN\n"
    )


def test_a_translator_in_three_commands(regard):
    assert regard("train", "translate", "pairs.tsv", "--out", "capitals", *SMALL, "schedule.steps=80").code == 0
    assert "BLEU" in regard("evaluate", "capitals", "pairs.tsv").out
    assert regard("translate", "b d", "--model", "capitals").out == "B D\n"


def test_a_configuration_with_keys_over_it(regard, folder):
    Path("run.toml").write_text('task = "tag"\n[data]\ntrain = ["mine.conllu"]\n[model]\nd = 64\n')
    ran = regard("train", "run.toml", "--out", "tagger", "--valid", "mine.conllu", *SHORT)
    assert ran.code == 0
    saved = tomllib.loads((folder / "tagger" / "run.toml").read_text())
    assert (saved["model"]["d"], saved["data"]["valid"], saved["schedule"]["steps"]) == (32, ["mine.conllu"], 4)


def test_two_files_that_are_aligned(regard):
    Path("a.en").write_text("a b\nc d\n")
    Path("a.fr").write_text("A B\nC D\n")
    assert regard("train", "translate", "a.en", "a.fr", "--out", "m", *SHORT).code == 0


def test_figures_as_json(regard):
    found = json.loads(
        regard("train", "tag", "mine.conllu", "--valid", "mine.conllu", "--out", "m", *SHORT, "--json").out
    )
    assert found["task"] == "tag"
    assert {"loss", "accuracy"} <= found.keys()


def test_a_finished_run_is_not_trained_again(regard):
    regard("train", "tag", "mine.conllu", "--out", "m", *SHORT)
    before = Path("m/model.safetensors").read_bytes()
    ran = regard("train", "m")
    assert "it had finished before" in ran.out
    assert Path("m/model.safetensors").read_bytes() == before


def test_a_stopped_run_says_how_to_go_on(folder):
    keys = [*SMALL, "schedule.steps=100000", "optim.accumulate=1"]
    command = [sys.executable, "-c", "from regard.cli import main; main()"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    running = subprocess.Popen(
        [*command, "train", "tag", "mine.conllu", "--out", "my run", *keys],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    assert "step      1 of 100000" in running.stderr.readline()
    running.send_signal(signal.SIGINT)
    said = running.stderr.read()
    assert running.wait(60) == 130
    last = said.strip().splitlines()[-1]
    found = re.fullmatch(r"regard: stopped at step (\d+) of 100000, and saved; go on: regard train 'my run'", last)
    assert found, said
    assert list(Path("my run/checkpoints").glob(f"step-{int(found[1]):06d}"))
    again = subprocess.Popen([*command, "train", "my run"], env=environment, stderr=subprocess.PIPE, text=True)
    assert again.stderr is not None
    first = re.match(r"step +(\d+) of 100000", again.stderr.readline())
    again.send_signal(signal.SIGINT)
    again.communicate(timeout=60)
    assert first
    assert int(first[1]) == int(found[1]) + 1


def test_all_keys(regard):
    out = regard("train", "--keys").out
    assert re.search(r"^optim\.lr +0\.0005 +a number", out, re.M)
    assert re.search(r"^data\.train +\(must be given\) +texts, between commas", out, re.M)


WRONG = [
    ("", r"train what\? one of tag, classify, translate, fill, denoise, generate, a \.toml file, or a run's folder"),
    ("tagg mine.conllu", r"'tagg' is no task.*did you mean tag\?"),
    ("tag", r"train tag: on which files\? give one or more: CoNLL-U files"),
    ("tag mine.conllu", r"where to\? give the folder of the new model: --out tag-model"),
    ("tag nope.conllu --out m", r"nope\.conllu: No such file or directory"),
    ("tag mine.conllu --out mine.conllu", r"mine\.conllu: Not a directory"),
    ("tag mine.conllu --out .", r"\.: not empty, and no run is in it; expected a new folder"),
    ("tag mine.conllu --out m optim.lrr=1", r"optim\.lrr: unknown key; did you mean optim\.lr\?"),
    ("tag mine.conllu --out m lr=1", r"lr: unknown key; did you mean optim\.lr\?"),
    ("tag mine.conllu --out m optim.lr=fast", r"optim\.lr = 'fast': expected a number"),
    ("tag mine.conllu --out m model.kind=lstm", r"model\.kind = 'lstm': expected one of"),
    ("tag mine.conllu --out m model.d=30 model.heads=4", r"model\.d=30 does not divide into model\.heads=4"),
    ("optim.lr=1 tag", r"optim\.lr=1: first say what to train"),
    ("tag pairs.tsv --out m", r"pairs\.tsv, row 1 \(byte 0\): 2 columns, expected the 10 of CoNLL-U"),
    ("tag empty --out m", r"empty: the file is empty"),
    ("tag latin --out m", r"latin, row 1 \(byte 3\): not UTF-8: byte 0xe9"),
    ("tag mine.conllu --valid other.conllu --out m", r"other\.conllu, row 1 \(byte 0\): unknown tag 'X'; expected one of DET, NOUN, VERB"),
    ("translate one two --out m", r"one has 1 lines, two has 2; expected as many"),
    ("translate one two pairs.tsv --out m", r"3 files; expected two files, aligned line by line, or one table"),
    ("classify one --out m", r"one, row 1 \(byte 0\): 'a' is one field, expected label<TAB>text"),
    ("run.toml", r"run\.toml: No such file or directory; expected a configuration"),
    ("here", r"here: no run is in this folder \(no run\.toml\); to begin one: regard train TASK FILE --out here"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[arguments for arguments, _ in WRONG])
def test_one_line_and_status_2(regard, arguments, message):
    Path("empty").touch()
    Path("latin").write_bytes(b"1\tH\xe9\n")
    Path("other.conllu").write_text("1\tthe\t_\tX\t_\t_\t_\t_\t_\t_\n")
    Path("one").write_text("a\n")
    Path("two").write_text("a\nb\n")
    Path("here").mkdir()
    ran = regard("train", *arguments.split())
    assert (ran.code, ran.out) == (2, "")
    assert re.fullmatch(rf"regard: .*{message}.*\n", ran.err)
    assert not Path("m").exists()
