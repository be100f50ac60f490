"""Examples of each task, read from files one at a time: memory does not grow with the file.

Every reader is a generator and opens its file when the first example is asked for; what is wrong with a file
is one InputError that names it, the row and the byte. Read again for another epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from regard.core.shapes import InputError
from regard.tasks.conllu import Tagged, read_tagged
from regard.tasks.files import Line, PathLike, among, is_blank, nonempty, read_lines, shown
from regard.tasks.tables import read_rows

__all__ = [
    "Labelled",
    "Pair",
    "Plain",
    "Tagged",
    "read_labelled",
    "read_labelled_table",
    "read_pair_table",
    "read_pairs",
    "read_plain",
    "read_table",
    "read_tagged",
]


@dataclass(frozen=True)
class Labelled:
    """A text and the class that it belongs to."""

    label: str
    text: str


@dataclass(frozen=True)
class Pair:
    """A text and what it shall become."""

    source: str
    target: str


@dataclass(frozen=True)
class Plain:
    """A text by itself."""

    text: str


def read_plain(path: PathLike) -> Iterator[Plain]:
    """Every line that is not blank."""
    return nonempty(path, (Plain(line.text) for line in read_lines(path) if not line.blank), "text")


def read_pairs(source: PathLike, target: PathLike) -> Iterator[Pair]:
    """Two files, line by line: row i of the one belongs to row i of the other. Rows blank in both are left out."""
    return nonempty(source, _aligned(source, target), "pairs")


def read_labelled(
    path: PathLike, labels: Collection[str] | None = None, *, separator: str = "\t"
) -> Iterator[Labelled]:
    """Lines of `label<TAB>text`; the text may hold more tabs. With `labels`, any other label is an error."""
    return nonempty(path, _labelled(path, labels, separator), "labelled texts")


def read_table(
    path: PathLike, columns: Sequence[str | int], *, delimiter: str | None = None, header: bool | None = None
) -> Iterator[tuple[str, ...]]:
    """Columns of a TSV or CSV file, by name (first row) or by number (from 1); see `tables.read_rows`."""
    rows = read_rows(path, columns, delimiter=delimiter, header=header)
    return nonempty(path, (tuple(fields) for _, fields in rows), "rows")


def read_pair_table(
    path: PathLike,
    columns: Sequence[str | int] = (1, 2),
    *,
    delimiter: str | None = None,
    header: bool | None = None,
) -> Iterator[Pair]:
    """Pairs from two columns of a TSV or CSV file: the source's, then the target's."""
    _two(columns, "the source's and the target's")
    rows = read_rows(path, columns, delimiter=delimiter, header=header)
    return nonempty(path, (_pair(line, fields) for line, fields in rows), "pairs")


def read_labelled_table(
    path: PathLike,
    columns: Sequence[str | int] = ("label", "text"),
    labels: Collection[str] | None = None,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
) -> Iterator[Labelled]:
    """Labelled texts from two columns of a TSV or CSV file: the label's, then the text's."""
    _two(columns, "the label's and the text's")
    rows = read_rows(path, columns, delimiter=delimiter, header=header)
    return nonempty(path, (_with_label(line, fields, labels) for line, fields in rows), "labelled texts")


def _aligned(source: PathLike, target: PathLike) -> Iterator[Pair]:
    sources, targets = read_lines(source), read_lines(target)
    count = 0
    while True:
        left, right = next(sources, None), next(targets, None)
        if left is None and right is None:
            return
        if left is None or right is None:
            longer = sources if right is None else targets
            total = count + 1 + sum(1 for _ in longer)
            n_source, n_target = (total, count) if right is None else (count, total)
            raise InputError(
                f"{source} has {n_source} lines, {target} has {n_target}; "
                f"expected as many, since row i of the one belongs to row i of the other"
            )
        count += 1
        if not (left.blank and right.blank):
            if left.blank:
                raise left.error(f"the line is empty, but row {count} of {target} is not; take both out, or neither")
            if right.blank:
                raise right.error(f"the line is empty, but row {count} of {source} is not; take both out, or neither")
            yield Pair(left.text, right.text)


def _labelled(path: PathLike, labels: Collection[str] | None, separator: str) -> Iterator[Labelled]:
    between = "<TAB>" if separator == "\t" else separator
    for line in read_lines(path):
        if not line.blank:
            label, found, text = line.text.partition(separator)
            if not found:
                raise line.error(f"{shown(line.text)} is one field, expected label{between}text")
            yield _with_label(line, [label, text], labels)


def _with_label(line: Line, fields: list[str], labels: Collection[str] | None) -> Labelled:
    label, text = fields
    if is_blank(label) or is_blank(text):
        raise line.error(f"the {'label' if is_blank(label) else 'text'} is empty")
    if labels is not None:
        among(label, labels, "label", line)
    return Labelled(label, text)


def _pair(line: Line, fields: list[str]) -> Pair:
    source, target = fields
    if is_blank(source) or is_blank(target):
        raise line.error(f"the {'source' if is_blank(source) else 'target'} is empty")
    return Pair(source, target)


def _two(columns: Sequence[str | int], which: str) -> None:
    if isinstance(columns, str) or len(columns) != 2:
        raise InputError(f"columns={columns!r}; expected two, {which}")
