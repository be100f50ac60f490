"""How verbs print: tables that read well on a terminal and in a pipe, numbers in few digits."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (), gap: int = 2) -> None:
    """Columns are right-aligned but for those named in `left` by their place."""
    drawn = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        drawn.add_column(Text(printable(column)), justify="left" if place in left else "right", vertical="bottom")
    for row in rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    # A pipe has no width: nothing is wrapped or cut there.
    Console(width=None if sys.stdout.isatty() else 10_000, highlight=False).print(drawn)


def printable(text: str) -> str:
    """No control character of somebody's table reaches the terminal."""
    return re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", "\N{REPLACEMENT CHARACTER}", text)


def number(x: Any) -> str:
    """Six digits, two decimals at least, and no exponent where a person would write none."""
    if isinstance(x, list):
        return ", ".join(number(y) for y in x)
    if not isinstance(x, float):
        return str(x)
    if x.is_integer() and abs(x) < 1e15:
        return str(int(x))
    return f"{x:.2f}" if 1e3 <= abs(x) < 1e15 else f"{x:.6g}"


def weight(w: float) -> str:
    return f"{w:.4f}" if abs(w) >= 5e-5 else f"{w:.1e}"
