"""What a person sees of a training run: a bar on a terminal, a line now and then in a log. All of it on stderr."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.text import Text

from regard.tasks import training

NOW_AND_THEN = 15.0  # seconds between two lines of a log
NAMES = {"bleu": "BLEU", "chrf": "chrF"}


class Watch:
    """Called by the loop after each step."""

    def __init__(self, console: Console, bar: Progress | None, task: TaskID | None) -> None:
        self.console, self.bar, self.task = console, bar, task
        self.last = time.monotonic()
        self.steps = 0  # seen in this sitting
        self.best: dict[str, float] = {}

    def __call__(self, now: training.Progress) -> None:
        self.steps += 1
        said = f"loss {now.loss:.3f}  {rate(now.tokens_per_second)}  {duration(now.seconds_left)} left"
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=now.step, total=now.steps, description="training", said=said)
        if now.figures:
            self._print(f"{place(now)}  loss {now.loss:.3f}  valid {figures(now.figures)}{self._news(now.figures)}")
        elif self.bar is None and (self.steps == 1 or time.monotonic() - self.last > NOW_AND_THEN):
            self._print(f"{place(now)}  {said}")

    def close(self) -> None:
        """Take the bar away before something else is said."""
        if self.bar is not None:
            self.bar.stop()

    def _print(self, line: str) -> None:
        self.last = time.monotonic()
        self.console.print(Text(line), soft_wrap=True)

    def _news(self, found: dict[str, Any]) -> str:
        """Is it the lowest loss of this sitting?"""
        before, now = self.best.get("loss"), float(found["loss"])
        self.best["loss"] = now if before is None else min(before, now)
        return "" if before is None or now < before else "  (loss not lower)"


@contextmanager
def watching(quiet: bool = False) -> Iterator[Watch]:
    """A bar while it lasts, and warnings as lines above it. `quiet`: warnings only, for all processes but one."""
    console = Console(stderr=True, highlight=False)
    with _warnings(console, quiet):
        if quiet or not console.is_terminal:
            yield Watch(Console(quiet=True) if quiet else console, None, None)
            return
        columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(None), MofNCompleteColumn()
        with Progress(*columns, TextColumn("{task.fields[said]}"), console=console) as bar:
            yield Watch(console, bar, bar.add_task("reading the data", total=None, said=""))


@contextmanager
def counting(doing: str, what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for what is not training; in a log, nothing."""
    console = Console(stderr=True, highlight=False)
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(what)
    with (
        _warnings(console, False),
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task(doing, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


@contextmanager
def _warnings(console: Console, quiet: bool) -> Iterator[None]:
    """What the library logs, in the voice of the command line."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            console.print(Text(f"regard: {record.getMessage()}"), soft_wrap=True)

    logger, handler = logging.getLogger("regard"), Handler(logging.ERROR if quiet else logging.WARNING)
    before, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


def place(now: training.Progress) -> str:
    return f"step {now.step:>{len(str(now.steps))}} of {now.steps}"


def figures(found: dict[str, Any]) -> str:
    """loss 2.31  accuracy 54.1%  BLEU 17.2"""
    said = [f"loss {found['loss']:.3f}"] if "loss" in found else []
    for name, value in found.items():
        if name == "accuracy":
            said.append(f"accuracy {100 * value:.1f}%")
        elif name in ("bleu", "chrf"):
            said.append(f"{NAMES[name]} {value:.1f}")
        elif name != "loss" and isinstance(value, float):
            said.append(f"{name} {value:.4g}")
    return "  ".join(said)


def rate(tokens: float) -> str:
    return f"{tokens / 1000:.1f}k tokens/s" if tokens >= 1000 else f"{tokens:.0f} tokens/s"


def duration(seconds: float) -> str:
    """0:07, 12:30, 3:05:00"""
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
