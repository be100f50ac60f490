"""A fault at every call that writes a checkpoint, and SIGKILL at any moment: what was saved is never lost."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from regard import InputError
from regard.tasks import checkpoints, training
from regard.tasks.config import Run
from tests.tasks.small import swaps
from torture.faults import FAULTS, Faults, Killed
from torture.killing import equal, left, newest
from torture.progress import track
from torture.table import Figure

NAME = "crash"
BAR = "0 lost in a fault at every write, fsync and rename, 300 SIGKILLs of saving and 100 of training, bits equal"
SAVING, TRAINING = 300, 100  # kills


def run(quick: bool) -> Figure:
    library = logging.getLogger("regard")
    level = library.level
    library.setLevel(logging.ERROR)  # what could not be removed is no news here
    try:
        with TemporaryDirectory(prefix="torture-") as folder:
            return _run(Path(folder), quick)
    finally:
        library.setLevel(level)


def _run(folder: Path, quick: bool) -> Figure:
    broken = list(saved_under_faults(folder / "saving", ["full", "killed"] if quick else list(FAULTS)))
    faults = len(broken)
    if not quick:
        trained = list(trained_under_faults(folder / "training"))
        faults, broken = faults + len(trained), broken + trained
    detail = [line for line in broken if line]
    kills = f"{faults:,} faults, {len(detail)} lost"
    if not hasattr(os, "fork"):
        return Figure(NAME, f"{kills}; no SIGKILL here", not detail and None, detail)
    lost, step = map(int, _process("torture.saving", folder / "killed", 5 if quick else SAVING).split())
    detail += [f"{lost} checkpoints of a killed process were lost"] * bool(lost)
    kills += f"; {5 if quick else SAVING} kills of saving, {step:,} checkpoints, {lost} lost"
    if not quick:
        _, runs, gone, different = map(int, _process("torture.killing", folder / "runs", TRAINING).split())
        detail += [f"{gone} checkpoints of killed training lost, {different} of {runs} runs differ"] * bool(
            gone + different
        )
        kills += f"; {TRAINING} kills of training, {gone} lost, {different} of {runs} runs ended with other bits"
    return Figure(NAME, kills, not detail and step > 0, detail)


def _process(module: str, folder: Path, kills: int) -> str:
    folder.mkdir()
    command = [sys.executable, "-m", module, str(folder), str(kills), "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=Path(__file__).parents[1], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{module}: {done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1]


# A checkpoint


def state_of(step: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(step)
    return {"step": step, "weights": torch.randn(50, generator=generator), "seen": [step, None]}


def saved_under_faults(folder: Path, kinds: list[str]) -> Iterator[str]:
    """For each call and each fault: what was lost, or nothing."""
    with Faults() as counted:
        checkpoints.save(folder / "counted", 4, state_of(4), keep=2)
    for at in track(range(counted.count + 6), "faults of the disk"):  # and what removing an older one calls
        for kind in kinds:
            place = folder / f"{kind}-{at}"
            for step in (1, 2, 3):
                checkpoints.save(place, step, state_of(step), keep=2, best=step == 1)
            done = False
            try:
                with Faults(at, FAULTS[kind]):
                    checkpoints.save(place, 4, state_of(4), keep=2)
                    done = True
            except (InputError, Killed):
                pass
            yield from _lost(place, done, f"{kind} at call {at} of a save")
            shutil.rmtree(place)


def _lost(folder: Path, done: bool, when: str) -> Iterator[str]:
    last, best = checkpoints.load(folder), checkpoints.load(folder, "best")
    whole = equal(last.state, state_of(last.step)) and equal(best.state, state_of(1))
    checkpoints.save(folder, 5, state_of(5), keep=2)  # and it goes on
    on = equal(checkpoints.load(folder).state, state_of(5))
    yield (
        ""
        if whole and on and last.step in ((4,) if done else (3, 4))
        else f"{when}: read step {last.step}, whole: {whole}"
    )


# A training run: its description, figures, checkpoints and weights


def run_of(folder: Path) -> Run:
    keys = {
        "schedule__steps": 4,
        "schedule__evaluate": 2,
        "optim__accumulate": 2,
        "checkpoint__every": 1,
        "checkpoint__keep": 2,
    }
    return swaps(folder, **keys)


def trained_under_faults(folder: Path) -> Iterator[str]:
    """Broken off at any call, the same command goes on, and ends with the bits of a run that nobody disturbed."""
    run = run_of(folder)
    with Faults() as counted:
        training.train(run, folder / "whole")
    whole = left(folder / "whole")
    for at in track(range(counted.count), "faults in training"):
        for kind in ("full", "killed"):
            place, before = folder / f"{kind}-{at}", [-1]

            def report(now: training.Progress, place: Path = place, before: list[int] = before) -> None:
                before[0] = newest(place)

            try:
                with Faults(at, FAULTS[kind]):
                    training.train(run, place, report)
            except (InputError, Killed):
                pass
            lost = newest(place) < before[0]
            try:
                training.train(run, place)
                same = equal(left(place), whole)
            except InputError as error:
                same, lost = False, f"{error}"
            yield "" if same and not lost else f"{kind} at call {at} of a run: lost: {lost}, bits equal: {same}"
            shutil.rmtree(place, ignore_errors=True)
