"""A process that does nothing but save checkpoints, and is killed by SIGKILL while it does, again and again.

    python -m torture.saving FOLDER KILLS SEED

Its own process, which imports torch once and forks a child for each life. The last line says how many checkpoints
were lost, and the last step that was reached.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

from regard.tasks.checkpoints import load, save


def state_of(step: int) -> dict[str, Any]:
    return {"step": step, "weights": torch.full((20000,), float(step))}


def killed(folder: Path, kills: int, seed: int) -> tuple[int, int]:
    """A checkpoint is lost if it was promised (`save` had come back) and what is read is older, or not whole."""
    chance, lost, step = random.Random(seed), 0, 1
    started = time.perf_counter()
    save(folder, step, state_of(step), keep=2)
    long = time.perf_counter() - started  # on this machine, now
    for _ in range(kills):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            while True:
                step += 1
                save(folder, step, state_of(step), keep=2)
                os.write(writer, b"%d\n" % step)
        os.close(writer)
        time.sleep(chance.uniform(0, 0.05 + 6 * long))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with open(reader, "rb") as told:
            promised = told.read().split()
        if promised or any(folder.glob("step-*")):
            read = load(folder)
            whole = torch.equal(read.state["weights"], state_of(read.step)["weights"])
            lost += read.step < int((promised or [step])[-1]) or not whole
            step = read.step
    return lost, step


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(*killed(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
