"""Praise and blame: held out by combination, far from what is shown, and right about what rises and falls."""

from __future__ import annotations

import random
import re

import pytest

from regard.tasks.corpora.sentiment import LABELS, sentiment
from regard.tasks.corpora.sentiment_words import THINGS
from regard.tasks.corpora.templates import Draw, near, polished, words_in

SHOWN = (
    "NVIDIA (NASDAQ: NVDA) today reported revenue for the second quarter ended July 28, 2024, of $30.0 billion, "
    "up 15% from the previous quarter and up 122% from a year ago. For the quarter, GAAP earnings per diluted share was "
    "$0.67, up 12% from the previous quarter and up 168% from a year ago. Non-GAAP earnings per diluted share was $0.68, "
    "up 5% from the previous quarter and up 152% from a year ago."
)
FIGURE = re.compile(r"[$€£]?\d[\d.,]*(?:%|bn|m)?")


@pytest.fixture(scope="module")
def made():
    return sentiment(seed=0, n=12_000)


def test_all_texts_differ_and_both_labels_are_equally_frequent(made) -> None:
    texts = [example.text for split in made.values() for example in split]
    assert {split: len(examples) for split, examples in made.items()} == {"train": 12_000, "valid": 600, "test": 600}
    assert len(set(texts)) == len(texts)
    assert all(2 * sum(e.label == LABELS[0] for e in split) == len(split) for split in made.values())
    assert max(len(text.split()) for text in texts) <= 80
    assert not [text for text in texts if re.search(r"[{}|]|\s\s|\b(?!again)(\w+) and \1\b|\ba [aeio]\w+ly", text)]


def test_the_same_seed_makes_the_same_texts() -> None:
    assert sentiment(3, 50) == sentiment(3, 50)
    assert sentiment(3, 50)["train"] != sentiment(4, 50)["train"]


def test_what_is_shown_stands_nowhere(made) -> None:
    """Neither the name, nor its figures, nor, whatever the figures, a sentence that is five words away."""
    masked = [words_in(FIGURE.sub("7", sentence)) for sentence in re.split(r"(?<=[a-z])\.\s", SHOWN)]
    for example in made["train"]:
        assert not re.search(
            r"nvidia|nvda|nasdaq|\b(?:12|15|122|152|168) ?(?:%|percent)|(?<!\d)30\.0|0\.6[78]", example.text.lower()
        )
        for sentence in re.split(r"(?<=[a-z%])\.\s", example.text):
            if "quarter" in sentence:
                text = FIGURE.sub("7", sentence)
                assert not any(near(text, other, 5) for other in masked), sentence


def test_held_out_pairs_stand_in_no_training_text(made) -> None:
    nouns = {noun for kind in THINGS.values() for noun in kind}

    def pairs(split: str) -> set[tuple[str, str]]:
        said = re.compile(r"(?:^|\. )(?:The|This|My) ([a-z]+) (?:is|was) (?:not )?([a-z]+)(?= at all\.|\.)")
        found = {pair for example in made[split] for pair in said.findall(example.text)}
        return {(noun, adjective) for noun, adjective in found if noun in nouns}

    held_out = pairs("test") | pairs("valid")
    assert len(held_out) > 10
    assert len(pairs("train")) > 200
    assert not held_out & pairs("train")


@pytest.mark.parametrize(
    ("pattern", "label"),
    [
        (r"(is|was) not (bad|terrible|awful|poor|horrible|mediocre|dreadful) at all\.$", "positive"),
        (r"(is|was) not (good|great|excellent|wonderful|superb|amazing|lovely) at all\.$", "negative"),
        (
            r"\b(Losses|Net losses|Costs|Debts|Expenses|Liabilities) (rose|grew|increased|climbed|jumped) (by )?\d",
            "negative",
        ),
        (
            r"\b(Losses|Net losses|Costs|Debts|Expenses|Liabilities) (fell|narrowed|shrank|dropped|declined) (by )?\d",
            "positive",
        ),
        (r"\b(Revenue|Net income|Sales|Profits) (fell|declined|dropped|plunged|decreased) (by )?\d", "negative"),
        (r"\b(Revenue|Net income|Sales|Profits) (rose|grew|increased|climbed|jumped) (by )?\d", "positive"),
        (r"\b(Unemployment|Crime|Poverty|Hunger) (fell|dropped|sank|declined|plunged|is falling)\b", "positive"),
        (r"\b(Employment|Tourism|Literacy|Trade) (fell|dropped|sank|declined|plunged|is falling)\b", "negative"),
    ],
)
def test_negation_and_direction_decide(made, pattern: str, label: str) -> None:
    found = [e for e in made["train"] if re.search(pattern, e.text)]
    assert found, "no such text: the pattern tests nothing"
    assert {e.label for e in found} <= {label}


def test_slots_that_are_kept_and_articles() -> None:
    draw = Draw(random.Random(0), frozenset({"animal"}))
    text = draw.fill("{animal#1} and {animal#1}", {"animal": ["ox", "cow", "hen"]})
    first, second = text.split(" and ")
    assert first == second
    assert draw.words == [first]
    assert polished("it is a(n) ugly  thing. a(n) useful one") == "It is an ugly thing. A useful one"


def test_near_counts_words() -> None:
    assert near("The dog was happy.", words_in("the dog was sad"), 1)
    assert not near("The dog was happy.", words_in("the cat was sad"), 1)
    assert near("The big dog was happy.", words_in("the dog was happy"), 1)
