"""How `regard bench` measures: everybody takes turns on the same fresh inputs; medians, and ratios turn by turn."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from regard.cli.works import Attend

LEAST, MOST = 3, 60  # turns


@dataclass(frozen=True)
class Runner:
    """One of those who take turns."""

    attend: Attend
    trains: bool = True
    learned: tuple[Tensor, ...] = ()  # parameters that get gradients too


@dataclass
class Times:
    """Seconds of each turn."""

    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)  # without the forward before it
    both: list[float] = field(default_factory=list)


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def timed(run: Callable[[], object], device: str) -> float:
    wait(device)
    start = time.perf_counter()
    run()
    wait(device)
    return time.perf_counter() - start


def gradients(out: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(out, inputs, torch.ones_like(out)))


def turn(runner: Runner, inputs: Sequence[Tensor], device: str, times: Times) -> None:
    attend = runner.attend
    with torch.no_grad():
        times.forward.append(timed(lambda: attend(*inputs), device))
    if runner.trains:
        made: list[Tensor] = []
        before = timed(lambda: made.append(attend(*inputs)), device)
        times.backward.append(timed(lambda: gradients(made.pop(), [*inputs, *runner.learned]), device))
        times.both.append(before + times.backward[-1])


def take_turns(
    runners: dict[str, Runner],
    fresh: Callable[[], Sequence[Tensor]],
    device: str,
    seconds: float,
    most: int = MOST,
) -> dict[str, Times]:
    """All of them, turn by turn, until the time is up or they had `most` turns."""
    times = {name: Times() for name in runners}
    start, turns, order = time.perf_counter(), 0, list(runners)
    while turns < LEAST or (turns < most and time.perf_counter() - start < seconds):
        inputs = fresh()
        for place in range(len(order)):  # who comes first finds cold caches: everybody, in turn
            name = order[(place + turns) % len(order)]
            turn(runners[name], inputs, device, times[name])
        turns += 1
    return times


def median(times: Sequence[float]) -> float | None:
    return statistics.median(times) if times else None


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> float | None:
    """How many times as long they take, in the median turn."""
    return statistics.median(a / b for a, b in zip(theirs, ours, strict=True)) if theirs and ours else None


# Memory, beyond what is there before.


def peak(run: Callable[[], object], device: str) -> int | None:
    """Bytes that running it takes at most; None where the system does not tell."""
    gc.collect()
    if device == "cuda":
        wait(device)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        wait(device)
        return torch.cuda.max_memory_allocated() - before
    try:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back, so that taking it again counts
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
        before = _status("VmRSS")
        run()
        return max(_status("VmHWM") - before, 0)
    except (OSError, KeyError):
        return None


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith(" kB")}
    return int(found[name]) * 1024


# Error.


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Memory that torch hands out unwritten holds NaN: what is read before it is written shows."""
    was, warned = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(was, warn_only=warned)


def results(runner: Runner, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The output and the inputs' gradients."""
    if not runner.trains:
        with torch.no_grad():
            return [runner.attend(*inputs)]
    out = runner.attend(*inputs)
    return [out.detach(), *gradients(out, inputs)]


def error(found: Sequence[Tensor], right: Sequence[Tensor]) -> float:
    """The largest difference, as a share of the largest number of its tensor; NaN is the largest of all."""
    return max(
        ((a.double() - b).abs().max() / b.abs().max()).nan_to_num(torch.inf).item()
        for a, b in zip(found, right, strict=False)
    )
