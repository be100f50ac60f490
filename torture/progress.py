"""One bar for whatever is being measured: a row wraps its loop in `track`; where nobody watches, nothing is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

T = TypeVar("T")
_shown: Progress | None = None


@contextmanager
def bar() -> Iterator[None]:
    global _shown
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as _shown:
        try:
            yield
        finally:
            _shown = None


def track(things: Sequence[T], what: str) -> Iterator[T]:
    if _shown is None:
        yield from things
        return
    shown = _shown
    task = shown.add_task(what, total=len(things))
    try:
        for thing in things:
            yield thing
            shown.advance(task)
    finally:
        shown.remove_task(task)
