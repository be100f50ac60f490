"""Small models that have learned something a person can check, each trained once for all tests of the verbs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from tests.tasks.small import run_of, train

QUICK = {
    "optim__lr": 1e-2, "optim__dropout": 0.0, "optim__label_smoothing": 0.0, "model__d": 32,
    "data__tokens": 512, "schedule__steps": 80, "schedule__evaluate": 80, "checkpoint__every": 20,
}  # fmt: skip

WORDS = {"the": "DET", "a": "DET", "cat": "NOUN", "dog": "NOUN", "bird": "NOUN", "sees": "VERB", "likes": "VERB"}
SENTENCES = [f"{d} {n} {v} {e} {m}" for d in ("the", "a") for n in ("cat", "dog") for v in ("sees", "likes")
             for e in ("the", "a") for m in ("bird", "dog")][:20]  # fmt: skip


def conllu(sentences: list[str] = SENTENCES) -> str:
    """Column 2 is the word, column 4 its tag."""
    rows = [
        "".join(f"{i}\t{word}\t_\t{WORDS[word]}" + "\t_" * 6 + "\n" for i, word in enumerate(sentence.split(), 1))
        for sentence in sentences
    ]
    return "\n".join(rows) + "\n"


DATA = {
    "tag": conllu(),
    # Each word becomes itself in capitals, at the same place.
    "translate": "".join(f"{a} {b}\t{a.upper()} {b.upper()}\n" for a in "abcde" for b in "abcde"),
    "classify": "".join(
        f"{label}\tthe {thing} is {word}\n"
        for thing in ("film", "book", "play", "song")
        for label, word in (("good", "great"), ("bad", "awful"))
    ),
    "fill": "".join(f"the {who} drinks {what}\n" for who, what in (("cat", "milk"), ("man", "beer"), ("car", "oil")))
    * 4,
    "denoise": "one two three\n" * 8,
    "generate": "one two three four five\n" * 8,
}
LONGER = {"denoise": {"data__mask": 0.1, "model__kind": "transformer"}}


@cache
def learned(task: str, **keys: object) -> Path:
    """The folder of a model for this task; its data are beside it, in `data`."""
    folder = Path(mkdtemp(prefix=f"regard-{task}-"))
    data = folder / "data.tsv"
    data.write_text(DATA[task])
    train(run_of(task, data, **{**QUICK, **LONGER.get(task, {}), **keys}), folder / task)
    return folder / task


def data_of(model: Path) -> Path:
    return model.parent / "data.tsv"
