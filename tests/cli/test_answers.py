"""The six task verbs: a text, lines, or a prompt; what is said on stdout, on stderr and as JSON."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest

from tests.cli.learned import learned


@pytest.fixture
def stdin(monkeypatch):
    """Lines, as a pipe would give them; or as a person would type them."""

    def give(content: bytes | str, terminal: bool = False) -> None:
        raw = content if isinstance(content, bytes) else content.encode()
        stream = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8")
        stream.isatty = lambda: terminal  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stdin", stream)

    return give


TOLD = [
    ("tag", "a cat sees the bird", "a/DET cat/NOUN sees/VERB the/DET bird/NOUN"),
    ("classify", "the play is awful", "bad"),
    ("translate", "c a", "C A"),
    ("fill", "the cat drinks ____", "the cat drinks milk"),
    ("denoise", "one three", "one two three"),
]


@pytest.mark.parametrize(("verb", "text", "output"), TOLD, ids=[verb for verb, *_ in TOLD])
def test_a_text_as_an_argument(regard, verb, text, output):
    ran = regard(verb, text, "--model", learned(verb))
    assert (ran.code, ran.out) == (0, output + "\n")
    assert ran.err.startswith("confidence ")


def test_a_text_goes_on(regard):
    ran = regard("generate", "one two three", "--model", learned("generate"), "--temperature", 0)
    assert ran.out == "one two three four five\n"


def test_the_same_seed_draws_the_same_text(regard):
    drawn = [
        regard("generate", "one", "--model", learned("generate"), "--temperature", 3, "--top-p", 1, "--seed", seed).out
        for seed in (1, 1, 2, 3, 4)
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1


def test_words_without_quotes_are_one_text(regard):
    assert regard("translate", "c", "a", "--model", learned("translate")).out == "C A\n"


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_a_line_for_a_line_in_order(regard, stdin, batch):
    stdin("a b\n\nc c c\nb\r\ne d")
    ran = regard("translate", "--model", learned("translate"), "--batch", batch)
    lines = ran.out.split("\n")
    assert [lines[0], lines[1], lines[3][0], lines[4]] == ["A B", "", "B", "E D"]
    assert len(lines) == 6
    assert (ran.code, ran.err) == (0, "")


def test_a_line_separator_inside_a_line_is_no_new_line(regard, stdin):
    stdin("a\u2028b\nc d\n")
    ran = regard("tag", "--model", learned("tag"))
    assert ran.out.count("\n") == 2


def test_the_number_of_the_row_stands_before_several_answers(regard, stdin):
    stdin("a b\nc d\n")
    rows = [
        line.split("\t")
        for line in regard("translate", "--model", learned("translate"), "--n-best", 2).out.splitlines()
    ]
    assert [row[0] for row in rows] == ["1", "1", "2", "2"]
    assert [rows[0][2], rows[2][2]] == ["A B", "C D"]
    assert float(rows[0][1]) >= float(rows[1][1])


def test_classes_with_their_probabilities(regard):
    rows = [
        line.split("\t")
        for line in regard(
            "classify", "the book is great", "--model", learned("classify"), "--n-best", 2
        ).out.splitlines()
    ]
    assert [label for _, label in rows] == ["good", "bad"]
    assert sum(float(p) for p, _ in rows) == pytest.approx(1, abs=1e-3)


def test_json_says_what_is_doubtful(regard, stdin):
    stdin("a zorblax\nthe cat\n")
    first, second = map(json.loads, regard("tag", "--model", learned("tag"), "--json").out.splitlines())
    assert first["unknown"] == ["zorblax"]
    assert second["unknown"] == []
    assert [(word["word"], word["tag"]) for word in second["words"]] == [("the", "DET"), ("cat", "NOUN")]
    assert 0 < first["confidence"] < second["confidence"] <= 1


def test_doubts_about_a_text_and_about_many_lines(regard, stdin):
    model = learned("translate")
    assert "training never saw: zorblax" in regard("translate", "a zorblax", "--model", model).err
    stdin("a b\na zorblax\nq\n" + "a " * 40 + "\n")
    assert regard("translate", "--model", model).err == (
        "regard: 2 of 4 lines with words that training never saw (row 2: 'zorblax'); "
        "1 of 4 lines longer than the model reads, and cut (row 4); --json says it of each\n"
    )


def test_candidates_for_each_blank(regard):
    said = regard("fill", "the ____ drinks ____", "--model", learned("fill")).err
    assert "blank 1: " in said
    assert "blank 2: " in said


def test_a_prompt_goes_on_after_what_it_cannot_answer(regard, stdin):
    stdin("the cat drinks ____\nno blank here\n\nthe car drinks ____\n", terminal=True)
    ran = regard("fill", "--model", learned("fill"))
    assert "fill> the cat drinks milk\n" in ran.out
    assert "the car drinks oil\n" in ran.out
    assert "regard: 'no blank here' has no blank; write ____ where a word is missing" in ran.err
    assert ran.code == 0


def test_show_draws_rows_and_columns(regard):
    first, title, columns, *rows = regard(
        "translate", "d e", "--model", learned("translate"), "--show"
    ).out.splitlines()
    assert (first, title) == ("D E", "d e → D E · layer 1")
    assert columns.split() == ["d", "e"]
    assert [row.split()[0] for row in rows[:2]] == ["D", "E"]
    assert rows[2].startswith("Attention of the model translate")


def test_show_as_json(regard):
    found = json.loads(regard("translate", "d e", "--model", learned("translate"), "--show", "--json").out)
    attention = found["attention"][0]
    assert (attention["rows"], attention["columns"]) == (["D", "E"], ["d", "e"])
    assert all(0 < sum(row) <= 1.001 for row in attention["weights"])


@pytest.mark.parametrize("name", ["seen.html", "seen.png", "seen.svg"])
def test_a_picture_in_a_file(regard, tmp_path, name):
    ran = regard("translate", "d e", "--model", learned("translate"), "--out", tmp_path / name)
    assert "drawn into" in ran.err
    head = (tmp_path / name).read_bytes()[:300]
    assert {"html": b"<!DOCTYPE html>", "png": b"\x89PNG", "svg": b"<svg"}[name[5:]] in head


def test_an_rnn_without_attention_says_that_there_is_none(regard):
    model = learned("translate", model__kind="rnn", schedule__steps=4, schedule__evaluate=4)
    ran = regard("translate", "d e", "--model", model, "--show")
    assert ran.code == 0
    assert "this model has no attention that could be shown" in ran.err


WRONG = [
    ("translate", ("hi", "--to", "tlh"), r"translate into tlh: which model\? none is shipped for it \(there is .*fr.*\); --model"),
    ("tag", ("hi", "--model", "nope"), r"no model 'nope': no such folder here, and no such name"),
    ("tag", ("hi", "--model", "TRANSLATE"), r"this model cannot tag, it can translate: regard translate --model"),
    ("translate", ("a", "--model", "TRANSLATE", "--to", "fr"), r"--to fr: this model translates into one language only"),
    ("translate", ("a", "--model", "TRANSLATE", "--out", "x.gif"), r"x\.gif: expected a name that ends in \.html"),
    ("translate", ("--model", "TRANSLATE", "--out", "x.png"), r"--out x\.png: one picture is of one text"),
    ("translate", ("a", "--model", "TRANSLATE", "--device", "tpu"), r"--device tpu: there is no such device"),
    ("fill", ("no blank", "--model", "FILL"), r"'no blank' has no blank; write ____ where a word is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "arguments", "message"), WRONG)
def test_one_line_and_status_2(regard, monkeypatch, tmp_path, verb, arguments, message):
    monkeypatch.chdir(tmp_path)
    ran = regard(verb, *(learned(a.lower()) if a.isupper() else a for a in arguments))
    assert (ran.code, ran.out) == (2, "")
    assert re.fullmatch(rf"regard: .*{message}.*\n", ran.err)


def test_a_bad_line_is_named_and_those_before_it_are_answered(regard, stdin):
    stdin(b"a b\nc d\n\xff\n")
    ran = regard("translate", "--model", learned("translate"), "--batch", 100)
    assert (ran.code, ran.out) == (2, "A B\nC D\n")
    assert ran.err == "regard: standard input, row 3 (byte 8): not UTF-8: byte 0xff; convert it to UTF-8\n"


def test_a_line_that_cannot_be_answered_is_named(regard, stdin):
    stdin("the cat drinks ____\nno blank\n")
    ran = regard("fill", "--model", learned("fill"))
    assert (ran.code, ran.out) == (2, "the cat drinks milk\n")
    assert ran.err.startswith("regard: standard input, row 2: 'no blank' has no blank")


def test_a_damaged_model_is_one_clear_line(regard, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for file in learned("tag").iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    (folder / "model.safetensors").write_bytes(b"no weights")
    ran = regard("tag", "hi", "--model", folder)
    assert ran.code == 2
    assert "model.safetensors: not a whole safetensors file" in ran.err


def test_no_control_character_of_a_text_reaches_the_terminal(regard):
    assert "\x1b" not in regard("tag", "a \x1b[31m cat", "--model", learned("tag")).out


def test_a_lone_surrogate_is_no_traceback(regard):
    assert regard("tag", "cat \udcff", "--model", learned("tag")).code == 0


def test_models_by_name(regard, monkeypatch):
    from regard import pretrained

    model = learned("translate")
    (model.parent / "index.json").write_text(
        json.dumps({"capitals": {"folder": "translate", "task": "translate", "to": ["upper"], "about": "to capitals"}})
    )
    monkeypatch.setattr(pretrained, "HERE", model.parent)
    pretrained.names.cache_clear()
    try:
        assert regard("translate", "a b", "--to", "upper").out == "A B\n"
        assert regard("translate", "a b", "--model", "capitals").out == "A B\n"
        assert "did you mean capitals?" in regard("translate", "a b", "--model", "capitls").err
        assert "translate into lower: which model?" in regard("translate", "a b", "--to", "lower").err
        assert "config.json: No such file" in regard("translate", "a b", "--model", "..").err  # a path, not a name
    finally:
        monkeypatch.undo()
        pretrained.names.cache_clear()


def test_word_by_word_knows_no_order(regard, stdin):
    black_cat = "The black cat ate the mouse."
    ran = regard("translate", black_cat, "--to", "fr", "--word-by-word")
    assert (ran.code, ran.out) == (0, "Le noir chat a mangé le souris.\n")
    stdin(f"{black_cat}\nzorblax\n")
    ran = regard("translate", "--to", "fr", "--word-by-word", "--json")
    assert [json.loads(line)["unknown"] for line in ran.out.splitlines()] == [[], ["zorblax"]]
    assert "leave out --show" in regard("translate", "a", "--to", "fr", "--word-by-word", "--show").err
    assert "--to fr" in regard("translate", "a", "--word-by-word").err
    assert "expected one of" in regard("translate", "a", "--to", "tlh", "--word-by-word").err
