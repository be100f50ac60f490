"""Two gloo ranks, uneven data, and something that happens to one of them: all end soon, and a restart goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.tasks.small import apart, swaps, train, weights
from torture.ranks import job, launch
from torture.table import Figure

NAME = "distributed"
BAR = "2 gloo ranks, uneven data, one killed, broken, stopped or frozen: 50 of 50 recover or exit within 60 s; DDP ≡ FSDP2 ≤ 1e-5"
TRIALS, SEED, BOUND = 48, 3, 1e-5
STARTING = 45  # seconds that torchrun may need before anything happens


def run(quick: bool) -> Figure:
    with TemporaryDirectory(prefix="torture-") as folder:
        trials = 1 if quick else TRIALS
        command = [sys.executable, "-m", "torture.pairs", folder, str(trials), str(SEED)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=Path(__file__).parents[1], env=environment, capture_output=True, text=True)
        if done.returncode:
            return Figure(NAME, "broke off", False, done.stderr.splitlines()[-20:])
        found = json.loads(done.stdout.splitlines()[-1])
        wrong = found["wrong"]
        if not quick:
            trials, wrong = trials + 2, wrong + list(by_torchrun(Path(folder)))
    figure = f"{trials - len(wrong)} of {trials}, all had ended after {found['longest']:.0f} s; weights apart by {found['furthest']:.1e}"
    return Figure(NAME, figure, not wrong, wrong)


def by_torchrun(folder: Path) -> Iterator[str]:
    """As a user starts them, one way a trial."""
    run = swaps(folder, optim__dropout=0.0, optim__accumulate=2, checkpoint__every=3)
    train(run, folder / "one")
    for way, how in (("ddp", "exception"), ("fsdp", "kill")):
        shared = replace(run, machine=replace(run.machine, parallel=way))  # pyright: ignore[reportArgumentType]
        started = time.monotonic()
        ended = launch(folder, job(shared, folder / way, dies=(1, 7, how)))
        took = time.monotonic() - started
        if ended.returncode == 0 or took > 60 + STARTING:
            yield f"torchrun, {way}, {how}: exit status {ended.returncode} after {took:.0f} s"
        again = launch(folder, job(shared, folder / way))
        difference = apart(weights(folder / way), weights(folder / "one")) if again.returncode == 0 else float("inf")
        if not difference <= BOUND:
            yield f"torchrun, {way}, {how}: the restart ended with {again.returncode}, weights differ by {difference:.1e}"
