"""Meanings drawn at random from a seed, none of them twice; which of them are kept for tests, and which for nobody."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from hashlib import sha256

from regard.core.shapes import InputError
from regard.tasks.corpora.lexicon import (
    ADJECTIVES,
    COLOURS,
    LIGHT,
    NOUNS,
    PLACES,
    TIMES,
    VERBS,
    may_be,
    objects_of,
    subjects_of,
)
from regard.tasks.corpora.meaning import BE, Clause, Determiner, NounPhrase, Place, Sentence, Tense

SPLITS = ("train", "valid", "test")
TWENTIETHS = {"valid": (0,), "test": (1,)}  # of all combinations; the others are for training

# What the documentation shows; nothing like it is ever trained on.
SHOWN = Clause(NounPhrase("cat", adjectives=("black",)), "eat", "past", NounPhrase("mouse"))

TENSES: tuple[Tense, ...] = ("past", "present", "future")
FURNITURE = ("table", "chair", "bed")  # on and under which not everything is done by everybody
AT_HOME = ("cat", "dog", "mouse", "monkey", "rabbit", "frog", "snake", "bird", "hen", "child", "boy", "girl")
NUMERALS: tuple[Determiner, ...] = ("two", "three", "four")


def sentences(split: str, seed: int, count: int) -> Iterator[Sentence]:
    """`count` different sentences of a split. The first of them are the same for every larger count."""
    if split not in SPLITS:
        raise InputError(f"split {split!r}; expected one of {', '.join(SPLITS)}")
    draw, seen, in_vain = random.Random(f"{split} {seed}"), set(), 0
    while len(seen) < count:
        sentence = _sentence(draw, split)
        if sentence in seen:
            in_vain += 1
            if in_vain > 100 * count + 10_000:
                raise InputError(f"sentences={count}: only {len(seen)} different ones were found; ask for fewer")
            continue
        seen.add(sentence)
        yield sentence


def split_of(clause: Clause) -> str | None:
    """Where the clause belongs, by who, how, does what to whom: in any number, tense or place, asked or denied. So
    no combination that is tested was trained on. None: nowhere."""
    if near(clause, SHOWN):
        return None
    key = "|".join(_slots(clause))
    bucket = int.from_bytes(sha256(key.encode()).digest()[:8], "big") % 20
    return next((split for split, buckets in TWENTIETHS.items() if bucket in buckets), "train")


def near(clause: Clause, other: Clause) -> bool:
    """Do they say the same but for one part at most? Number, tense and all that can be added do not count."""
    return sum(a == b for a, b in zip(_slots(clause), _slots(other), strict=True)) >= len(_slots(other)) - 1


def _slots(clause: Clause) -> tuple[str, str, str, str]:
    what = clause.object.noun if clause.object else clause.quality or ""
    return clause.subject.noun, " ".join(clause.subject.adjectives), clause.verb, what


def _sentence(draw: random.Random, split: str) -> Sentence:
    if draw.random() < 0.12:
        question = _clause(draw, split, question=True)
        return Sentence((question,), None, "?", capital=draw.random() < 0.97)
    mark = draw.choices((".", "!", ""), (88, 5, 7))[0]
    capital = bool(mark) or draw.random() < 0.5
    short = draw.random() < 0.4
    if draw.random() < 0.55:
        only = _clause(draw, split)
        return Sentence((only,), None, mark, capital, short and only.negated)
    link = draw.choices(("and", "but", "because"), (5, 2, 3))[0]
    first = _clause(draw, split)
    # Mostly both are of the same time, and it is said once.
    second = _clause(draw, split, follows=first, tense=first.tense if draw.random() < 0.7 else None)
    return Sentence((first, second), link, mark, capital, short and (first.negated or second.negated))


def _clause(
    draw: random.Random,
    split: str,
    question: bool = False,
    follows: Clause | None = None,
    tense: Tense | None = None,
) -> Clause:
    while True:
        clause = _any_clause(draw, question, follows, tense or draw.choices(TENSES, (55, 28, 17))[0])
        if _clear(clause) and split_of(clause) == split:
            return clause


def _clear(clause: Clause) -> bool:
    """Has it one meaning in English? They cut (today or yesterday?); does not sing every day (some, or none?)."""
    if clause.negated:
        return clause.time != "every day"
    present = clause.tense == "present" and clause.subject.plural and not clause.question
    return not (present and clause.verb in ("cut", "read"))


def _any_clause(draw: random.Random, question: bool, follows: Clause | None, tense: Tense) -> Clause:
    negated = not question and draw.random() < 0.15
    place = _place(draw) if draw.random() < 0.3 else None
    time = draw.choice(TIMES[tense]) if draw.random() < 0.25 and not (follows and follows.time) else None
    first = time is not None and not question and not follows and draw.random() < 0.5
    if draw.random() < 0.12:
        noun = draw.choice(_QUALIFIED)
        quality = draw.choice(_known(noun))
        subject = replace(_noun_phrase(draw, noun, subject=True), adjectives=())
        if subject.determiner in ("a", "some"):
            subject = replace(subject, determiner="the")
        if draw.random() < 0.25 and (others := [a for a in _light(noun) if quality not in (*LIGHT, *COLOURS)]):
            subject = replace(subject, adjectives=(draw.choice(others),))
        return Clause(subject, BE, tense, None, quality, negated, question)
    verb = draw.choice(_WEIGHTED)
    subject = _noun_phrase(draw, draw.choice(_subjects(verb)), subject=True)
    if place and place.where.noun in FURNITURE and subject.noun not in AT_HOME and verb not in ("find", "hide", "see"):
        place = None
    if not VERBS[verb].objects:
        place = place if VERBS[verb].place else None
        return Clause(subject, verb, tense, None, None, negated, question, place, time, first)
    what = _noun_phrase(draw, draw.choice(_objects(verb, subject.noun)))
    if negated and what.determiner in NUMERALS:
        what = replace(what, determiner="the")
    if place and place.where.noun in (what.noun, subject.noun):
        place = None
    return Clause(subject, verb, tense, what, None, negated, question, place, time, first)


def _noun_phrase(draw: random.Random, name: str, subject: bool = False) -> NounPhrase:
    noun = NOUNS[name]
    plural = noun.plural and noun.kind != "place" and draw.random() < 0.3
    if noun.kind == "place":
        determiner: Determiner = "the"
    elif not noun.counted:
        determiner = draw.choices(("the", "some"), (60, 40))[0]
    elif plural:
        determiner = draw.choices(("the", "some", draw.choice(NUMERALS)), (55, 20, 25))[0]
    else:
        determiner = draw.choices(("the", "a"), (75, 25) if subject else (60, 40))[0]
    return NounPhrase(name, determiner, plural, _adjectives(draw, name))


def _adjectives(draw: random.Random, noun: str) -> tuple[str, ...]:
    known = _known(noun)
    colours = [adjective for adjective in known if adjective in COLOURS]
    chance = draw.random()
    if chance < 0.14 and colours and (light := _light(noun)):
        return draw.choice(light), draw.choice(colours)
    if chance < 0.5 and known:
        return (draw.choice(colours if colours and draw.random() < 0.4 else known),)
    return ()


def _place(draw: random.Random) -> Place:
    name = draw.choice(list(PLACES))
    known = [a for a in _known(name) if a not in ("expensive", "heavy")]
    adjectives = (draw.choice(known),) if known and draw.random() < 0.3 else ()
    return Place(draw.choice(PLACES[name]), NounPhrase(name, adjectives=adjectives))


# Asked again and again: remembered.
_subjects, _objects = cache(subjects_of), cache(objects_of)


@cache
def _known(noun: str) -> list[str]:
    return [adjective for adjective in ADJECTIVES if may_be(noun, adjective)]


@cache
def _light(noun: str) -> list[str]:
    return [adjective for adjective in LIGHT if may_be(noun, adjective)]


_QUALIFIED = [noun for noun in NOUNS if any(may_be(noun, adjective) for adjective in ADJECTIVES)]
_WEIGHTED = [*VERBS, *["eat"] * 3, *["drink", "see", "find", "buy"]]  # the verbs that the most can be said with
