"""Text from templates: `{name}` draws from a list of that name, `{a|b|}` one of what is written there.

What is drawn may hold slots again. `{name#1}` keeps what it drew: the same slot later in the text is the same word.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

SLOT = re.compile(r"\{([^{}]*)\}")
SPLITS = ("train", "valid", "test")
PARTS = 20  # of all combinations, one each for validation and test

Lists = Mapping[str, Sequence[str]]


class Draw:
    """The expansion of one text. `words` is what it drew from lists that carry meaning, those in `content`."""

    def __init__(self, chance: random.Random, content: frozenset[str]) -> None:
        self.chance, self.content = chance, content
        self.words: list[str] = []
        self._kept: dict[str, str] = {}

    def fill(self, template: str, lists: Lists) -> str:
        while slot := SLOT.search(template):
            template = template[: slot.start()] + self._one(slot[1], lists) + template[slot.end() :]
        return template

    def _one(self, slot: str, lists: Lists) -> str:
        if "|" in slot:
            return self.chance.choice(slot.split("|"))
        if slot in self._kept:
            return self._kept[slot]
        name, number, _ = slot.partition("#")
        word = self.chance.choice(lists[name])
        if name in self.content:
            self.words.append(word)
        if number:
            word = self._kept[slot] = self.fill(word, lists)
        return word


def split_of(words: Iterable[str]) -> str:
    """The split that a combination of words belongs to, whatever text it stands in."""
    part = crc32("|".join(sorted(words)).encode()) % PARTS
    return SPLITS[part] if part in (1, 2) else SPLITS[0]


def polished(text: str) -> str:
    """`a(n)` decided, single spaces, a capital where a sentence begins."""
    text = re.sub(r"\b([Aa])\(n\) (?=(\w+))", _article, text)
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r" ([,.?!;:])", r"\1", text)
    return re.sub(r"(^|[.?!] )([a-z])", lambda m: m[1] + m[2].upper(), text)


def _article(found: re.Match[str]) -> str:
    word = found[2].lower()
    vowel = (word[0] in "aeiou" and not re.match(r"(uni(?![mn])|use|usu|uti|euro|one|once)", word)) or word in (
        "hour",
        "honest",
    )
    vowel = vowel or word.startswith(("honest", "hour", "8", "11", "18"))
    return f"{found[1]}{'n' if vowel else ''} "


def words_in(text: str) -> list[str]:
    """Lower case, without punctuation: what is compared when two texts are called near."""
    return re.findall(r"[\w$%.]*\w%?", text.lower())


def near(text: str, other: Sequence[str], most: int) -> bool:
    """At most so many words changed, left out or put in."""
    words = words_in(text)
    if abs(len(words) - len(other)) > most:
        return False
    row = list(range(len(other) + 1))
    for i, word in enumerate(words, 1):
        before, row[0] = row[0], i
        for j, wanted in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != wanted))
        if min(row) > most:
            return False
    return row[-1] <= most
