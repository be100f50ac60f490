"""A run that is stopped at a random batch, mid-epoch and mid-accumulation, and goes on: to the last bit the same."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from regard.tasks import checkpoints, training
from regard.tasks.config import Run
from tests.tasks.small import run_of, swaps
from torture.killing import left
from torture.progress import track
from torture.table import Figure

NAME = "resume"
BAR = "0 differing bits after stops at 20 random steps, mid-epoch and mid-accumulation (CPU)"
ACCUMULATE, STEPS, SEED = 3, 14, 5


def run(quick: bool) -> Figure:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with TemporaryDirectory(prefix="torture-") as folder:
            return _run(Path(folder), quick)
    finally:
        torch.set_num_threads(threads)


def _run(folder: Path, quick: bool) -> Figure:
    chance = random.Random(SEED)
    detail: list[str] = []
    places: list[tuple[bool, bool]] = []
    bits, differing = 0, 0
    for name, run in list(runs(folder).items())[:1] if quick else list(runs(folder).items()):
        training.train(run, folder / f"{name}-whole")
        whole = left(folder / f"{name}-whole")
        batches = STEPS * ACCUMULATE
        for at in track(sorted(chance.sample(range(1, batches), 4 if quick else 20)), name):
            place = folder / f"{name}-{at}"
            places.append(stopped(run, place, at))
            training.train(run, place)
            counted, different = compared(left(place), whole)
            bits, differing = bits + counted, differing + different
            detail += [f"{name}, stopped at batch {at} of {batches}: {different} bits differ"] * bool(different)
    epochs, windows = (sum(each[i] for each in places) for i in (0, 1))
    figure = (
        f"{len(places)} stops ({epochs} mid-epoch, {windows} mid-accumulation): {differing:,} of {bits:,} bits differ"
    )
    return Figure(NAME, figure, not differing and windows > 0 and epochs > 0, detail)


def runs(folder: Path) -> dict[str, Run]:
    """Dropout, accumulation, averaging, validation; noise that a task draws; an RNN; bfloat16."""
    folder.mkdir(exist_ok=True)
    rest = "\t_" * 6
    tagged = "".join(f"1\t{a}\t_\t{a}{rest}\n2\t{b}\t_\t{b}{rest}\n\n" for a in "abcdef" for b in "abcdef")
    (folder / "tagged.conllu").write_text(tagged)
    (folder / "plain.txt").write_text("".join(f"{a} {b} c d\n" for a in "abcdef" for b in "abcdef"))
    keys: dict[str, Any] = {
        "optim__accumulate": ACCUMULATE, "schedule__steps": STEPS, "schedule__average": 2, "checkpoint__every": 2,
    }  # fmt: skip
    return {
        "translate": swaps(folder, **keys),
        "tag": run_of("tag", folder / "tagged.conllu", **keys, model__kind="rnn"),
        "fill": run_of("fill", folder / "plain.txt", **keys, machine__precision="bfloat16"),
        "denoise": run_of("denoise", folder / "plain.txt", **keys),
    }


def stopped(run: Run, folder: Path, at: int) -> tuple[bool, bool]:
    """SIGTERM in the middle of this batch. Was that within an epoch, within a step?"""
    with interrupted(at):
        try:
            training.train(run, folder)
        except training.Stopped:
            place = checkpoints.load(folder / training.CHECKPOINTS).state["place"]
            return place["batch"] > 0 or place["micro"] > 0, place["micro"] > 0
    raise RuntimeError(f"a signal at batch {at} did not stop the run")


@contextmanager
def interrupted(at: int) -> Iterator[None]:
    """A signal to this process while batch number `at` is computed."""
    real, count = training.Loop._loss, 0

    def call(*args: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(*args)

    training.Loop._loss = call  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        training.Loop._loss = real


def compared(found: Any, expected: Any) -> tuple[int, int]:
    """Bits in all, and how many of them differ; a different structure differs wholly."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(found, torch.Tensor) or found.dtype != expected.dtype or found.shape != expected.shape:
            return 8 * expected.nbytes, 8 * expected.nbytes
        return compared(_bytes(found), _bytes(expected))
    if isinstance(expected, bytes):
        if not isinstance(found, bytes) or len(found) != len(expected):
            return 8 * len(expected), 8 * len(expected)
        pairs = zip(found, expected, strict=True)
        return 8 * len(expected), 0 if found == expected else sum((a ^ b).bit_count() for a, b in pairs)
    if isinstance(expected, dict) and isinstance(found, dict) and list(found) == list(expected):
        each = [compared(found[key], value) for key, value in expected.items()]
    elif isinstance(expected, list | tuple) and type(found) is type(expected) and len(found) == len(expected):
        each = [compared(a, b) for a, b in zip(found, expected, strict=True)]
    else:
        return 64, 0 if type(found) is type(expected) and repr(found) == repr(expected) else 64
    return sum(n for n, _ in each), sum(n for _, n in each)


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
