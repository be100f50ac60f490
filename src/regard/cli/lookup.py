"""regard lookup: the soft database over a table in a file."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.output import number, print_table, printable, weight
from regard.cli.tables import read_columns
from regard.core.shapes import InputError
from regard.database import Answer, Database, default_normalizer
from regard.mechanisms import NORMALIZERS, SCORES, make_normalizer, make_score, usages
from regard.scores import Exact


def lookup(
    path: Annotated[Path, typer.Argument(metavar="TABLE", help="A CSV, Parquet or SQLite file.", show_default=False)],
    key: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="Where to search; several make a vector.", show_default=False)
    ],
    value: Annotated[str, typer.Option(metavar="COLUMN", help="What to answer with.", show_default=False)],
    query: Annotated[
        str, typer.Option(metavar="KEY", help="What to search for: 3.5, or 3.5,2 for two keys.", show_default=False)
    ],
    score: Annotated[str, typer.Option(help=f"One of {usages(SCORES)}.")] = "exact",
    normalizer: Annotated[
        str | None,
        typer.Option(help=f"One of {usages(NORMALIZERS)}.", show_default="softmax, but identity for exact"),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="How many rows to show.")] = 5,
    table: Annotated[
        str | None, typer.Option(help="Which table of a SQLite file.", show_default="the only one")
    ] = None,
    seed: Annotated[int, typer.Option(help="For the parameters of a score, which are untrained.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Look a value up in a table, softly: near keys weigh most.

    Example: regard lookup gpa.csv --key gpa --value salary --query 3.5 --score gaussian:0.1
    """
    score_ = make_score(score, len(key), len(key), seed)
    normalizer_ = default_normalizer(score_) if normalizer is None else make_normalizer(normalizer)
    pairs = _pairs(read_columns(path, [*key, value], table))
    kept = [pair for pair in pairs if None not in (*pair.key, pair.value)]
    skipped = len(pairs) - len(kept)
    if skipped:
        print(f"regard: {skipped} of {len(pairs)} rows skipped: no {' or no '.join([*key, value])}", file=sys.stderr)
    if not kept:
        raise InputError(f"{path}: no rows to search")
    if not isinstance(score_, Exact):
        _all_numbers(kept, key, score)
    asked = _parsed(query, key, kept)

    database = Database([_one(pair.key) for pair in kept], [pair.value for pair in kept])
    answer = database.query(_one(asked), score=score_, normalizer=normalizer_)
    weights = answer.weights.tolist()
    found = [(kept[place], weights[place]) for place in answer.places]
    normalizer = normalizer or type(normalizer_).__name__.lower()
    if as_json:
        print(
            json.dumps(
                {
                    "value": answer.value.item() if found and answer.value is not None else None,
                    "value_column": value,
                    "key_columns": key,
                    "query": asked,
                    "score": score,
                    "normalizer": normalizer,
                    "rows": len(kept),
                    "skipped": skipped,
                    "found": [{"row": p.row, "key": p.key, "value": p.value, "weight": w} for p, w in found[:top]],
                }
            )
        )
        return
    print(printable(f"{value} = {_said(answer, isinstance(score_, Exact))}") if found else "nothing found")
    print(printable(f"at {', '.join(f'{k} = {q}' for k, q in zip(key, asked, strict=True))} ({score}, {normalizer})"))
    if found[:top]:
        print(f"\n{len(found[:top])} of {len(kept)} rows, those that weigh most:")
        cells = [[str(p.row), *map(number, p.key), number(p.value), weight(w)] for p, w in found[:top]]
        texts = [i for i, x in enumerate((0, *kept[0].key, kept[0].value)) if isinstance(x, str)]
        print_table(["row", *key, value, "weight"], cells, left=texts)


@dataclass(frozen=True)
class _Pair:
    row: int  # in the file, from 1
    key: list[Any]
    value: Any


def _pairs(rows: Sequence[Sequence[Any]]) -> list[_Pair]:
    return [_Pair(i, [_plain(x) for x in row[:-1]], _plain(row[-1])) for i, row in enumerate(rows, start=1)]


def _plain(x: Any) -> int | float | str | None:
    """Numbers as numbers, NaN as nothing, everything else (dates, truth values) as text."""
    if isinstance(x, bool):
        return str(x).lower()
    if isinstance(x, int):
        return x
    if isinstance(x, float | Decimal):
        return None if math.isnan(x) else float(x)
    return None if x is None else str(x)


def _one(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else tuple(parts)


def _all_numbers(pairs: list[_Pair], columns: list[str], score: str) -> None:
    texts = [
        (column, x, pair.row)
        for pair in pairs
        for column, x in zip(columns, pair.key, strict=True)
        if isinstance(x, str)
    ]
    if texts:
        # One text makes a text of every number in its column of a CSV file: name the culprit.
        column, x, row = next((text for text in texts if not _is_number(text[1])), texts[0])
        raise InputError(
            f"--score {score} compares numbers, and column {column!r} holds the text {x!r} (row {row}); "
            f"use --score exact"
        )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _parsed(query: str, columns: list[str], pairs: list[_Pair]) -> list[Any]:
    """The query as the keys are: a number where the column holds numbers, a text where it holds texts."""
    parts = [query] if len(columns) == 1 else next(csv.reader([query], skipinitialspace=True), [])
    if len(parts) != len(columns):
        raise InputError(
            f"--query {query!r}: expected {len(columns)} parts ({', '.join(columns)}), separated by commas, "
            f"got {len(parts)}"
        )
    return [
        part if any(isinstance(pair.key[i], str) for pair in pairs) else _number(part, column)
        for i, (column, part) in enumerate(zip(columns, parts, strict=True))
    ]


def _number(text: str, column: str) -> int | float:
    for kind in (int, float):
        try:
            x = kind(text)
        except ValueError:
            continue
        if math.isfinite(x):
            return x
    raise InputError(f"--query {text!r} is not a number, and column {column!r} holds numbers")


def _said(answer: Answer, exact: bool) -> str:
    if answer.value is not None:
        note = f"  (the sum of {len(answer.found)} equal keys)" if exact and len(answer.found) > 1 else ""
        return number(answer.value.item()) + note
    if exact:
        return ", ".join(str(v) for _, v, _ in answer.found)
    return f"{answer.found[0][1]}  (of the row that weighs most: texts have no weighted sum)"
