"""The rows, in the order of the table; what each found; the table itself."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType

from rich.table import Table
from rich.text import Text

ROWS = (
    "numerics", "gradients", "properties", "invariance", "determinism", "memory", "large",
    "crash", "resume", "distributed", "files", "text", "http", "load",
)  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """What a row measured, and whether that keeps the promise; None where it could not be measured here."""

    row: str
    figure: str
    passed: bool | None
    detail: list[str] = field(default_factory=list)  # what broke, one line each; the worst first


def module_of(row: str) -> ModuleType:
    return importlib.import_module(f"torture.{row}")


def measure(row: str, quick: bool) -> Figure:
    """A row that breaks off has not kept its promise; the others are measured all the same."""
    try:
        return module_of(row).run(quick)
    except Exception as error:
        return Figure(row, f"broke off: {type(error).__name__}", False, traceback.format_exc().splitlines())


def table(figures: Iterable[Figure]) -> Table:
    lines = Table("row", "figure", "bar", "ok")
    for figure in figures:
        ok = {True: Text("yes", "green"), False: Text("no", "bold red"), None: Text("skipped", "yellow")}[figure.passed]
        lines.add_row(figure.row, Text(figure.figure), Text(module_of(figure.row).BAR), ok)
    return lines
