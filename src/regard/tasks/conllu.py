"""Tagged sentences from CoNLL-U files: one word a line in ten columns, a blank line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from regard.tasks.files import Line, PathLike, among, nonempty, read_lines, shown

COLUMNS = 10
ID, FORM, UPOS = 0, 1, 3
LEFT_OUT = re.compile(r"[0-9]+[-.][0-9]+")


@dataclass(frozen=True)
class Tagged:
    """A sentence's words, and the tag of each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


def read_tagged(path: PathLike, tags: Collection[str] | None = None) -> Iterator[Tagged]:
    """The sentences of a CoNLL-U file: the forms and universal tags of its words.

    Ranges (`3-4`, written as one) and empty nodes (`3.1`) are left out, comments too. With `tags`, a tag that is
    not among them is an error.
    """
    return nonempty(path, _sentences(path, tags), "sentences")


def _sentences(path: PathLike, tags: Collection[str] | None) -> Iterator[Tagged]:
    words: list[tuple[str, str]] = []
    for line in read_lines(path):
        if line.blank:
            if words:
                yield _tagged(words)
            words = []
        elif not line.text.startswith("#"):
            columns = line.text.split("\t")
            if len(columns) != COLUMNS:
                raise line.error(
                    f"{len(columns)} column{'s' * (len(columns) > 1)}, expected the {COLUMNS} of CoNLL-U, separated by tabs"
                )
            if not LEFT_OUT.fullmatch(columns[ID]):
                words.append(_word(line, columns, len(words) + 1, tags))
    if words:
        yield _tagged(words)


def _word(line: Line, columns: list[str], number: int, tags: Collection[str] | None) -> tuple[str, str]:
    if columns[ID] != str(number):
        raise line.error(
            f"the id is {shown(columns[ID])}, expected {number}; a blank line stands between sentences, and only there"
        )
    form, tag = columns[FORM], columns[UPOS]
    if not form or not tag:
        raise line.error(f"the {'tag (UPOS, column 4)' if form else 'word (FORM, column 2)'} is empty")
    if tags is not None:
        among(tag, tags, "tag", line)
    return form, tag


def _tagged(words: list[tuple[str, str]]) -> Tagged:
    return Tagged(tuple(form for form, _ in words), tuple(tag for _, tag in words))
