"""The speed of attention on a CPU, against what it should be: `python -m benchmarks.cpu`, about three minutes.

Two threads, one run: everybody takes turns on the same random inputs, ratios are those of the median turn. Exits 1
if a bar is missed. The table that anyone can measure at home is `regard bench`; this adds the bars, long sequences
and a training step.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as SDPA

import regard
from benchmarks.encoder_decoder import alike, batches, eager, ours
from regard.cli.bench import Clock, Row, machine, measured
from regard.cli.timing import Runner, peak, ratio, take_turns, timed
from regard.cli.works import WORKS

LONG, VOCABULARY = 16_384, 8000
NUMBERS = 4 * LONG * LONG  # bytes of one tensor with a number for each pair: a gigabyte


@dataclass(frozen=True)
class Bar:
    """What was found, and the least (or most) it should be."""

    what: str
    found: float
    bound: float
    at_most: bool = False

    @property
    def kept(self) -> bool:
        return self.found <= self.bound if self.at_most else self.found >= self.bound

    def __str__(self) -> str:
        sign = "at most" if self.at_most else "at least"
        return f"{'kept  ' if self.kept else 'MISSED'}  {self.what}: {self.found:.2f} ({sign} {self.bound:g})"


def rows_of(name: str, compiled: bool = False, seconds: float = 8, **sizes: int) -> dict[str, Row]:
    """Who computes this mechanism, and how fast; ours is called `ours`."""
    work = replace(next(work for work in WORKS if work.name == name), **sizes)
    rows = list(measured(work, "cpu", torch.float32, Clock(2 * seconds, 1), compiled, lambda _: None))
    for row in rows:
        if row.missing:
            print(f"        {name}, {row.who}: {row.missing}")
        else:
            ms = f"{row.forward_ms or 0:9.2f} ms forward  {row.backward_ms or 0:9.2f} ms backward"
            print(f"        {name}, n = {row.n:,} x {row.heads}, {row.who:<16}{ms}  error {row.error or 0:.0e}")
    return {"ours" if place == 0 else row.who: row for place, row in enumerate(rows)}


def additive() -> list[Bar]:
    rows = rows_of("additive", compiled=True, seconds=20)
    return [
        Bar("additive forward, times as fast as eager", rows["eager"].forward_ratio or 0, 40),
        Bar("additive forward, times as fast as torch.compile", rows["torch.compile"].forward_ratio or 0, 10),
        Bar("additive forward + backward, times as fast as eager", rows["eager"].both_ratio or 0, 10),
    ]


def dot() -> list[Bar]:
    """SDPA is what we call, so the differences are small: many turns, and SDPA beside itself to know the noise."""
    return [bar for heads in (1, 8) for bar in _beside_sdpa(heads)]


def _beside_sdpa(heads: int) -> Iterator[Bar]:
    work = replace(next(work for work in WORKS if work.name == "dot product"), heads=heads)
    runners = {"ours": Runner(regard.attention), "sdpa": Runner(SDPA), "again": Runner(SDPA)}
    times = take_turns(runners, lambda: work.inputs("cpu", torch.float32), "cpu", seconds=15, most=400)
    for what in ("forward", "both"):
        theirs, mine, again = (getattr(times[who], what) for who in ("sdpa", "ours", "again"))
        found = ratio(theirs, mine) or 0
        print(
            f"        dot product, n = 1,024 x {heads}, {what}: ours {1e3 * statistics.median(mine):.2f} ms, SDPA "
            f"{1e3 * statistics.median(theirs):.2f} ms; SDPA beside itself {ratio(theirs, again):.3f}; {len(mine)} turns"
        )
        yield Bar(f"dot product, n = 1,024 x {heads}, {what}: part of SDPA's speed", found, 0.95)


def window() -> list[Bar]:
    rows = rows_of("window of 64")
    return [Bar("window ±64, n = 8,192, times as fast as full SDPA", rows["sdpa, all pairs"].forward_ratio or 0, 8)]


def others() -> list[Bar]:
    bars = []
    for work in WORKS:
        if work.name not in ("additive", "dot product", "window of 64"):
            row = rows_of(work.name, seconds=4)["eager"]
            bars.append(Bar(f"{work.name} forward, n = 1,024, times as fast as eager", row.forward_ratio or 0, 1))
            bars.append(Bar(f"{work.name} with backward, n = 1,024, times as fast as eager", row.both_ratio or 0, 1))
    return bars


def long() -> list[Bar]:
    """Sequences at which one tensor of all pairs takes a gigabyte."""
    bars = []
    for work in WORKS:
        call = work.call(replace(work, n=LONG, heads=1))
        if isinstance(call.get("score"), regard.scores.Score) and work.name == "alibi":
            call = {"score": regard.scores.ScaledDot() + regard.scores.Alibi(1)}
        inputs = replace(work, heads=1).inputs("cpu", torch.float32, LONG)

        def run(call: dict[str, Any] = call, inputs: list[Tensor] = inputs) -> None:
            torch.autograd.grad(regard.attention(*inputs, **call).sum(), inputs)

        start = time.perf_counter()
        found = peak(run, "cpu")
        taken = time.perf_counter() - start
        if found is not None:
            share = found / NUMBERS
            bars.append(Bar(f"{work.name}, n = {LONG:,}, {taken:.1f} s: memory as a share of n²", share, 0.1, True))
    return bars


def step() -> list[Bar]:
    """One training step of the attentive RNN on batches like Multi30k's. The bar is for pairs in random order, as they
    come from a shuffled data set. Sorted by length there are few pads to skip, and both spend most of their time in
    the same products of the output layer: that ratio is shown beside it."""
    bars = []
    for hidden in (256, 512):
        ratios = [_ratio_of_steps(hidden, together) for together in (False, True)]
        bars.append(Bar(f"H2 training step, hidden {hidden}, times as fast as eager", ratios[0], 3))
    return bars


def _ratio_of_steps(hidden: int, together: bool) -> float:
    a, b = alike(VOCABULARY, 256, hidden)
    steps = {"ours": ours(a), "eager": eager(b), "eager, fused AdamW": eager(copy.deepcopy(b), fused=True)}
    times: dict[str, list[float]] = {who: [] for who in steps}
    for turn, batch in enumerate(batches(VOCABULARY, 12, together)):
        losses = []
        for who, run in steps.items():
            taken = timed(lambda run=run, batch=batch, losses=losses: losses.append(run(batch)), "cpu")
            if turn:
                times[who].append(taken)
        if max(losses) - min(losses) > 1e-3:
            raise AssertionError(f"they compute different losses: {losses}")
    order = "sorted by length" if together else "in random order"
    for who, taken in times.items():
        of_ours = f"{ratio(taken, times['ours']):.2f}x"
        print(
            f"        H2, hidden {hidden}, pairs {order}, {who:<20}{1e3 * statistics.median(taken):6.0f} ms  {of_ours}"
        )
    return ratio(times["eager"], times["ours"]) or 0


PARTS = {"additive": additive, "dot": dot, "window": window, "others": others, "long": long, "step": step}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"some of: {', '.join(PARTS)}")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part is called {unknown[0]!r}; there is: {', '.join(PARTS)}")
    for name, value in machine().items():
        print(f"{name}: {value}")
    bars = []
    for name in options.parts or PARTS:
        for bar in PARTS[name]():
            print(bar, flush=True)
            bars.append(bar)
    sys.exit(0 if all(bar.kept for bar in bars) else 1)


if __name__ == "__main__":
    main()
