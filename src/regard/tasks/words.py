"""A text as words, each punctuation mark one, as the Universal Dependencies split English: `don't` is `do`, `n't`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby

CLITIC = re.compile(r"(?i)(.+?)(n['’]t|['’](?:s|re|ve|ll|d|m))$")
APOSTROPHES = ("'", "’")
JOINERS = ("\u200c", "\u200d")  # within words of Indic and Persian scripts


def words_of(text: str) -> list[str]:
    """The words of a text, in order, without white space.

    >>> words_of("The dog didn't bark (at 3.5 km).")
    ['The', 'dog', 'did', "n't", 'bark', '(', 'at', '3.5', 'km', ')', '.']
    """
    return [word for run in text.split() for word in _split(run)]


def _split(run: str) -> Iterator[str]:
    kinds = [_kind(run, i) for i in range(len(run))]
    start = 0
    for kind, group in groupby(kinds):
        end = start + len(list(group))
        piece = run[start:end]
        start = end
        if kind != "word":
            yield from piece
        elif found := CLITIC.fullmatch(piece):
            yield from found.groups()
        else:
            yield piece


def _kind(run: str, i: int) -> str:
    c = run[i]
    if unicodedata.category(c)[0] in "LMN" or c in JOINERS:
        return "word"
    # Between two letters or digits these belong to the word: don't, 3.5, 1,000, well-known stays apart.
    inside = 0 < i < len(run) - 1 and run[i - 1].isalnum() and run[i + 1].isalnum()
    if inside and (c in APOSTROPHES or (c in ".," and run[i - 1].isdigit() and run[i + 1].isdigit())):
        return "word"
    return "mark"
