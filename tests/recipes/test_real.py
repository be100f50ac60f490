"""What is done to real text before training and after, on a few sentences made for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from recipes.real import links, measure, prepare, results, runs, train
from regard.tasks import config, model
from regard.tasks.metrics import Gold


def test_an_english_side_is_in_training_or_held_out_in_every_language() -> None:
    english = [f"Tom bought {n} books." for n in range(400)]
    french, french_dev = prepare.split([(text, f"f {text}") for text in english], kept=set())
    german, german_dev = prepare.split([(text.replace(".", " !"), "g") for text in english], kept=set())
    keys = [{prepare.key(text) for text, _ in part} for part in (french, french_dev, german, german_dev)]
    assert keys[0] == keys[2]
    assert keys[1] == keys[3]
    assert keys[1]
    assert not keys[0] & keys[1]


def test_what_is_measured_or_shown_is_not_trained_on() -> None:
    kept = {prepare.key("Where IS it?")}
    train, dev = prepare.split(
        [("Where is it?", "Où ?"), ("The black cat ate the mouse.", "Le chat"), ("Why?", "Pourquoi\u202f?")], kept
    )
    assert train + dev == [("Why?", "Pourquoi ?")]


def test_rare_characters_cost_their_pairs() -> None:
    pairs = [("a", "猫"), ("b", "猫狗"), ("c", "猫")]
    assert prepare.without_rare(pairs, 2) == [("a", "猫"), ("c", "猫")]


def test_a_word_with_several_pronunciations_is_wholly_on_one_side(tmp_path: Path) -> None:
    import lzma

    lines = [f"w{n} W AH{n % 3} # a note" for n in range(200)] + ["w7(2) V IY1", "w7(3) V IY2"]
    (tmp_path / "cmudict").mkdir()
    with lzma.open(tmp_path / "cmudict" / "cmudict.dict.xz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    prepare.pronunciation(tmp_path, tmp_path)
    sides = [(tmp_path / f"cmudict.{part}.tsv").read_text().splitlines() for part in ("train", "dev")]
    words = [{line.split("\t")[0] for line in side} for side in sides]
    assert not words[0] & words[1]
    assert len(words[0] | words[1]) == 200
    assert len(words[1]) > 0
    assert [line for line in sides[0] + sides[1] if line.startswith("w 7\t")] == ["w 7\tW AH", "w 7\tV IY"]


def test_gold_words_are_read_as_people_write_them() -> None:
    text, spans = links.natural(["le", "chat", "de", "le", "homme", ",", "qui", "il", "aime"], french=True)
    assert text == "Le chat de l'homme, qui il aime"
    assert [text[a:b] for a, b in spans] == ["Le", "chat", "de", "l'", "homme", ",", "qui", "il", "aime"]
    text, spans = links.natural(["il", "parle", "de", "le", "chat"], french=True)
    assert text == "Il parle du chat"
    assert spans[2] == spans[3]
    assert links.apart("L'homme parle du chat.", french=True) == ["le", "homme", "parle", "de", "le", "chat", "."]


def test_links_grow_from_what_both_say() -> None:
    both, one = frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 2), (5, 5), (0, 1)})
    assert links.grown(both, one) == {(0, 0), (1, 1), (2, 2)}
    gold = [Gold(sure=frozenset({(0, 0), (1, 1), (2, 2)}), possible=frozenset())]
    found = links.errors(([both], [one]), gold)
    assert found["grown"] == 0.0
    assert found["intersection"] == pytest.approx(1 - 4 / 5)


@pytest.mark.parametrize("name", runs.RUNS)
def test_every_run_is_a_configuration(name: str) -> None:
    run = runs.RUNS[name].run()
    assert run.schedule.minutes is not None
    assert run.schedule.minutes <= 14
    assert config.resolve(config.Run, config.tomllib.loads(config.to_toml(run))) == run


def test_what_comes_back_in_parts_is_what_was_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    monkeypatch.setattr(train, "MODELS", there)
    monkeypatch.setattr(train, "PART", 5_000)
    for name, size in (("small", 1000), ("large", 40_000), ("unfinished", 0)):
        (there / name).mkdir(parents=True)
        (there / name / "log.txt").write_text(f"{name}\n")
        if size:
            save_file({"w": torch.arange(size) / size, "n": torch.arange(3)}, there / name / model.WEIGHTS)
    assert train.pack(["small", "large", "unfinished"], tmp_path / "out", most=60_000) == ["large"]
    assert len(list((tmp_path / "out").iterdir())) > 1
    here.mkdir()
    monkeypatch.setattr(train, "MODELS", here)
    train.unpack(tmp_path / "out")
    assert {path.parent.name for path in here.glob("*/log.txt")} == {"small", "large", "unfinished"}
    found = load_file(here / "small" / model.WEIGHTS)
    assert found["w"].dtype == torch.float16
    assert found["n"].dtype == torch.int64
    assert not (here / "large" / model.WEIGHTS).exists()


def test_a_run_without_weights_is_as_good_as_its_best_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "MODELS", tmp_path)
    (tmp_path / "ewt").mkdir()
    rows = [{"valid loss": 0.5, "valid accuracy": 0.9}, {"loss": 0.1}, {"valid loss": 0.6, "valid accuracy": 0.95}]
    (tmp_path / "ewt" / measure.HISTORY).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert measure.accuracy("ewt", "cpu") == {"loss": 0.5, "accuracy": 0.9}


def test_by_length_each_caption_stands_in_one_bucket() -> None:
    every = [("a b c", "x y z w", "x y z w"), ("a " * 30, "x y z w", "p q r s t")]
    found = measure.by_length(every)
    assert list(found) == ["1-8", "19-40"]
    assert found["1-8"] == pytest.approx(100)
    assert found["19-40"] < 10


def test_the_page_says_what_was_missed() -> None:
    found = {
        "sst": {"accuracy": 0.85, "loss": 0.4, "parameters": 1_000_000, "seconds": 9, "steps": 3, "command": "c"},
        "cmudict": {"word accuracy": 0.75, "words": 10, "parameters": 1, "seconds": 9, "steps": 3, "command": "d"},
    }
    page = results.written(found, ["Hello."])
    assert "| SST-2, dev | 85.00 | 86.0 | no |" in page
    assert "| CMUdict, words of a 5% split | 75.00 | 72.0 | yes |" in page
    assert "| EWT, parts of speech without, dev | — | 94.5 |  |" in page
