"""Some columns of a CSV or TSV file, row by row. In CSV a field may be quoted; in TSV a quote is a quote."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence

from regard.core.shapes import InputError
from regard.tasks.files import Line, PathLike, read_lines, shown

PACKED = (".gz", ".xz")
Row = tuple[Line, list[str]]  # a record and the line on which it begins


def read_rows(
    path: PathLike, columns: Sequence[str | int], *, delimiter: str | None = None, header: bool | None = None
) -> Iterator[Row]:
    """These columns of each row, by name or by number from 1, with the line where the row begins.

    Names stand in the first row; with numbers the first row is data, unless header=True. The delimiter is a
    comma for `.csv` and a tab for all else, unless it is given. Every row has as many fields as the first.
    """
    named = _check(columns)
    if named and header is False:
        raise InputError(f"{path}: header=False, but columns {_listed(columns)} are names; give numbers, from 1")
    rows = _csv(path, delimiter or ",") if _is_csv(path) else _tsv(path, delimiter or "\t")
    places: list[int] | None = None
    width = 0
    for line, fields in rows:
        if places is None:
            places, width = _places(line, columns, fields), len(fields)
            if named or header:
                continue
        if len(fields) != width:
            raise line.error(f"{_fields(len(fields))}, expected {width} as in the first row")
        yield line, [fields[place] for place in places]


def _check(columns: Sequence[str | int]) -> bool:
    """Are they names?"""
    if isinstance(columns, str) or not columns:
        raise InputError(f"columns={columns!r}; expected a list of names, or of numbers from 1")
    named = isinstance(columns[0], str)
    if any(isinstance(column, str) != named for column in columns):
        raise InputError(f"columns {_listed(columns)} mix names and numbers; give one kind")
    return named


def _places(line: Line, columns: Sequence[str | int], fields: list[str]) -> list[int]:
    places = []
    for column in columns:
        if isinstance(column, int):
            if not 1 <= column <= len(fields):
                raise line.error(f"no column {column}; the row has {_fields(len(fields))}, counted from 1")
            places.append(column - 1)
        elif fields.count(column) == 1:
            places.append(fields.index(column))
        elif column in fields:
            raise line.error(f"{fields.count(column)} columns are called {shown(column)}; give their numbers, from 1")
        else:
            names = ", ".join(shown(field) for field in fields[:10])
            raise line.error(f"no column {shown(column)}; the first row names {names}")
    return places


def _tsv(path: PathLike, delimiter: str) -> Iterator[Row]:
    for line in read_lines(path):
        if not line.blank:
            yield line, line.text.split(delimiter)


def _csv(path: PathLike, delimiter: str) -> Iterator[Row]:
    if len(delimiter) != 1:
        raise InputError(f"{path}: delimiter={delimiter!r}; expected one character, since fields may be quoted")
    begins: Line | None = None  # the line of the current record's first field

    def texts() -> Iterator[str]:
        nonlocal begins
        for line in read_lines(path):
            begins = begins or line
            yield line.text + "\n"

    records = csv.reader(texts(), delimiter=delimiter, strict=True)
    while True:
        begins = None
        try:
            fields = next(records, None)
        except csv.Error as error:
            assert begins is not None
            raise begins.error(f"{error}; is a quote open, or not doubled?") from None
        if fields is None:
            return
        assert begins is not None
        if fields and not (len(fields) == 1 and begins.blank):
            yield begins, fields


def _is_csv(path: PathLike) -> bool:
    name = os.fspath(path).lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    return name.endswith(".csv")


def _fields(count: int) -> str:
    return f"{count} field" if count == 1 else f"{count} fields"


def _listed(columns: Sequence[str | int]) -> str:
    return ", ".join(repr(column) for column in columns)
