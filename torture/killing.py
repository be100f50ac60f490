"""Training that is killed by SIGKILL at random moments, again and again, and goes on each time.

    python -m torture.killing FOLDER KILLS SEED

Its own process, which imports torch once and forks a child for each sitting. The last line says how many kills
there were, in how many runs, how many checkpoints were lost and how many runs ended with other weights.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import torch

from regard.tasks import checkpoints, training
from regard.tasks.config import Run
from tests.tasks.small import swaps

DROPPED = ("seconds",)  # how long it took is the only thing that may differ


def run_of(folder: Path) -> Run:
    """Accumulation, dropout, validation and averaging, so that all of them must come back."""
    keys = {
        "schedule__steps": 60, "schedule__evaluate": 20, "schedule__average": 3, "optim__accumulate": 3,
        "checkpoint__every": 5,
    }  # fmt: skip
    return swaps(folder, **keys)


def sitting(run: Run, folder: Path) -> int:
    """A child that trains; its process id."""
    child = os.fork()
    if child:
        return child
    try:
        training.train(run, folder)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def ended(child: int) -> None:
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"a sitting ended with status {status}")


def left(folder: Path) -> dict:
    """What a finished run leaves: the model, and all of its last checkpoint."""
    state = checkpoints.load(folder / training.CHECKPOINTS).state
    place = {key: value for key, value in state["place"].items() if key not in DROPPED}
    return {"model": (folder / "model.safetensors").read_bytes(), "state": {**state, "place": place}}


def equal(a: object, b: object) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return a == b


def newest(folder: Path) -> int:
    """The step from which it would go on; -1: from the beginning."""
    if not training.checkpoint_there(folder):
        return -1
    return checkpoints.load(folder / training.CHECKPOINTS).step


def killed(folder: Path, kills: int, seed: int) -> tuple[int, int, int]:
    """Runs, lost checkpoints, runs that ended differently."""
    chance = random.Random(seed)
    run = run_of(folder)
    training.train(run, folder / "warm")  # here, so that no child has to import what it needs
    started = time.perf_counter()
    ended(sitting(run, folder / "whole"))
    whole, long = left(folder / "whole"), time.perf_counter() - started
    done, runs, lost, different = 0, 0, 0, 0
    while done < kills:
        place, before = folder / f"run-{runs}", -1
        while done < kills:
            child = sitting(run, place)
            time.sleep(chance.uniform(0, 0.8 * long))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if not os.WIFSIGNALED(status):
                break  # it was over before
            done += 1
            now = newest(place)
            lost += now < before
            before = now
        ended(sitting(run, place))
        runs += 1
        different += not equal(left(place), whole)
    return runs, lost, different


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(int(sys.argv[2]), *killed(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
