"""python -m torture [ROW ...] [--quick]: measure the promises, print them as a table, exit 1 if one is broken."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from torture.progress import bar, track
from torture.table import ROWS, measure, table

SHOWN = 20  # lines of detail for each row


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"one of {', '.join(ROWS)}; none: all of them")
    parser.add_argument("--quick", action="store_true", help="a small part of each, as the tests run it")
    asked = parser.parse_args(arguments)
    unknown = [row for row in asked.rows if row not in ROWS]
    if unknown:
        parser.error(f"no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    with bar():
        figures = [measure(row, asked.quick) for row in track(asked.rows or ROWS, "rows")]
    console = Console()
    console.print(table(figures))
    for figure in figures:
        for line in figure.detail[:SHOWN]:
            console.print(f"{figure.row}: {line}", markup=False, highlight=False, soft_wrap=True)
        if len(figure.detail) > SHOWN:
            console.print(f"{figure.row}: and {len(figure.detail) - SHOWN:,} lines more")
    return int(any(figure.passed is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
