"""The speed of attention on a CPU, against what it should be: `python -m benchmarks.cpu`, about three minutes.

Two threads, one run: everybody takes turns on the same random inputs, ratios are those of the median turn. Exits 1
if a bar is missed. The table that anyone can measure at home is `regard bench`; this adds the bars, long sequences
and a training step.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import regard
from regard.cli.bench import Clock, Row, machine, measured
from regard.cli.timing import peak, ratio, timed
from regard.cli.works import WORKS
from regard.models.rnn import AttentiveRNN

LONG = 16_384
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
    rows = [rows_of("dot product", heads=heads) for heads in (1, 8)]
    return [
        Bar(f"dot product, {row['ours'].heads} heads, {what}: part of SDPA's speed", found or 0, 0.95)
        for row in rows
        for what, found in (("forward", row["sdpa"].forward_ratio), ("with backward", row["sdpa"].both_ratio))
    ]


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
    """One training step of the attentive RNN on batches like Multi30k's, with our attention and with eager torch's."""
    bars = []
    for hidden, vocabulary in ((256, 8000), (512, 8000)):
        steps = {how: stepper(hidden, vocabulary, how) for how in ("ours", "eager")}
        times: dict[str, list[float]] = {how: [] for how in steps}
        for turn in range(6):
            for how, run in steps.items():
                taken = timed(lambda run=run, turn=turn: run(turn), "cpu")
                if turn:
                    times[how].append(taken)
        found = ratio(times["eager"], times["ours"]) or 0
        for how, taken in times.items():
            print(f"        H2, hidden {hidden}, vocabulary {vocabulary:,}, {how}: {1e3 * sorted(taken)[2]:.0f} ms")
        bars.append(Bar(f"H2 training step, hidden {hidden}, times as fast as eager", found, 3))
    return bars


def stepper(hidden: int, vocabulary: int, how: str) -> Callable[[int], None]:
    """128 sentence pairs of 14 words on average, as Multi30k's are, padded to the longest."""
    torch.manual_seed(0)
    model = AttentiveRNN(vocabulary, vocabulary, d=256, hidden=hidden)
    score: Any = model.attention.score

    def eager(q: Tensor, k: Tensor, v: Tensor, mask: Any) -> Tensor:
        units = torch.tanh((q @ score.w_q)[:, :, None] + (k @ score.w_k)[:, None] + score.b)
        allowed = torch.arange(k.shape[1]) < mask.lengths[:, None, None]
        return torch.softmax((units @ score.v).masked_fill(~allowed, -math.inf), -1) @ v

    def run(seed: int) -> None:
        torch.manual_seed(seed)
        lengths, wanted = ((torch.randn(128) * 4 + 14).clamp(4, 40).long() for _ in "st")
        source, target = (torch.randint(3, vocabulary, (128, int(x.max()))) for x in (lengths, wanted + 1))
        target = target.masked_fill(torch.arange(target.shape[1]) > wanted[:, None], 0)
        logits = model(source, target[:, :-1], lengths, None if how == "ours" else eager)
        F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        model.zero_grad(set_to_none=True)

    return run


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
