"""Stories: held out by combination, and far from the sentence whose blank is shown."""

from __future__ import annotations

import re

import pytest

from regard.tasks.corpora.stories import FEELINGS, SHOWN, apart, stories

DOG = "When he saw his owner, the dog was {}, so he wagged his tail."


@pytest.fixture(scope="module")
def made():
    return stories(seed=0, n=12_000)


def test_all_texts_differ_and_are_whole(made) -> None:
    texts = [example.text for split in made.values() for example in split]
    assert {split: len(examples) for split, examples in made.items()} == {"train": 12_000, "valid": 600, "test": 600}
    assert len(set(texts)) == len(texts)
    assert not [text for text in texts if re.search(r"[{}|]|\s\s|[^.?]$", text)]


def test_the_same_seed_makes_the_same_stories() -> None:
    assert stories(3, 50) == stories(3, 50)
    assert stories(3, 50)["train"] != stories(4, 50)["train"]


def _distance(a: list[str], b: list[str]) -> int:
    """Levenshtein's, written anew: the recursion itself."""
    table = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i, one in enumerate(a, 1):
        for j, other in enumerate(b, 1):
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (one != other))
    return table[len(a), len(b)]


def test_no_text_is_near_the_dog_whatever_fills_the_blank(made) -> None:
    """A sentence that differs from it by the blank and by one more word is a near-copy; his and her make no difference."""
    dog = DOG.format("____").lower().replace(",", "").rstrip(".").split()
    for split in made.values():
        for example in split:
            for sentence in re.split(r"(?<=[.?]) ", example.text):
                if "owner" in sentence and "tail" in sentence:
                    words = re.sub(r"[,.?]", "", sentence.lower()).replace("she", "he").replace("her ", "his ").split()
                    assert _distance(words, dog) > 2, sentence
    assert not apart(SHOWN)
    assert not apart(DOG.format("glad"))
    assert not apart("It rained. " + DOG.format("sad"))


def test_the_dog_can_be_told_by_analogy(made) -> None:
    """Dogs wag their tails for joy and for nothing else; who sees an owner is joyful; others are sad and afraid."""
    texts = [example.text for example in made["train"]]
    wagged = [
        t
        for t in texts
        if re.fullmatch(r"When \w+ .*, the .*(dog|puppy|poodle) was (\w+), so \w+ wagged \w+ tail\.", t)
    ]
    assert len(wagged) > 4
    assert all(re.search(rf"was ({'|'.join(FEELINGS['joy'])}),", t) for t in wagged)
    owners = [t for t in texts if re.fullmatch(r"When \w+ saw \w+ owner, the .* was (\w+), so \w+ [^.]*\.", t)]
    assert len(owners) > 4
    assert all(re.search(rf"was ({'|'.join(FEELINGS['joy'])}),", t) for t in owners)
    assert [t for t in texts if re.search(r"dog was (sad|afraid|hungry|tired)", t)]


def test_held_out_combinations_stand_in_no_training_text(made) -> None:
    def found(split: str) -> set[tuple[str, ...]]:
        whole = (re.fullmatch(r"When \w+ (.*), the (.*) was \w+, so \w+ (.*)\.", e.text) for e in made[split])
        return {f.groups() for f in whole if f}

    assert len(found("test")) > 20
    assert not (found("test") | found("valid")) & found("train")
