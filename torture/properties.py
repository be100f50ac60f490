"""What holds for every call (`tests/test_properties.py`), over many random ones: sizes of 0, strides, expanded axes,
every kind of mask, NaN in the padding; and here whatever torch and the CPU kernels allocate is full of NaN too, so
that a number which nobody wrote, and somebody reads, shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, settings

from regard.backends.cpu import threads
from tests import test_properties
from torture.progress import track
from torture.table import Figure

NAME = "properties"
CASES = 10_000
BAR = f"{CASES:,} cases, 0 failures"


@contextmanager
def poisoned() -> Iterator[None]:
    """Fresh memory holds NaN: torch's own switch does so for torch.empty and its like. Bytes of ones are a NaN."""
    empty = np.empty

    def full_of_nan(*shape: Any, **kind: Any) -> np.ndarray:
        fresh = empty(*shape, **kind)
        if fresh.dtype.kind in "fu":
            fresh.view(np.uint8).fill(0xFF)
        return fresh

    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    assert torch.empty(3).isnan().all()
    try:
        kept_nothing = patch.object(threads, "SPARE", 0), patch.object(threads, "_spare", [])
        with patch.object(np, "empty", full_of_nan), kept_nothing[0], kept_nothing[1]:
            yield
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = filled
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def properties() -> dict[str, Callable]:
    return {name: test for name, test in vars(test_properties).items() if hasattr(test, "hypothesis")}


def repeated(name: str, test: Any, cases: int, quick: bool) -> tuple[int, list[str]]:
    """How many cases there were, and what broke."""
    count = 0

    def counted(**drawn: Any) -> None:
        nonlocal count
        count += 1
        test.hypothesis.inner_test(**drawn)

    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    phases = [Phase.generate] if quick else [Phase.generate, Phase.shrink]
    how = settings(
        max_examples=cases, deadline=None, derandomize=quick, database=None, phases=phases,
        suppress_health_check=checks, print_blob=True,
    )  # fmt: skip
    try:
        how(given(**test.hypothesis._given_kwargs)(counted))()
    except Exception as error:
        told = [line for note in getattr(error, "__notes__", []) for line in note.splitlines()]
        return count, [f"{name}: {type(error).__name__}: {error}", *told]
    return count, []


def run(quick: bool) -> Figure:
    tests = properties()
    each = -(-(140 if quick else CASES) // len(tests))
    cases, broken = 0, []
    with poisoned():
        for name, test in track(list(tests.items()), NAME):
            count, lines = repeated(name, test, each, quick)
            cases += count
            broken += lines
    failures = sum(line.startswith("test_") for line in broken)
    return Figure(NAME, f"{cases:,} cases, {failures} failures", not broken and (quick or cases >= CASES), broken)
