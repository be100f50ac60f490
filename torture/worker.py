"""One rank of a parallel run, as torchrun starts it: it trains the runs that a JSON file lists, one after another.

    torchrun --standalone --nproc-per-node 2 -m torture.worker JOBS.json

A job may say that one rank shall die at a step: by SIGKILL, by an exception, or by a signal that asks it to stop.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

from regard.tasks import config, training


def work(job: dict[str, Any]) -> None:
    rank, step, how = job.get("dies", (-1, 0, ""))

    def report(now: training.Progress) -> None:
        if int(os.environ.get("RANK", 0)) == rank and now.step == step:
            if how == "exception":
                raise RuntimeError("something broke in one rank")
            os.kill(os.getpid(), {"kill": signal.SIGKILL, "stop": signal.SIGTERM}[how])

    try:
        training.train(config.read(job["run"]), job["folder"], report)
    except training.Stopped:
        if how != "stop":
            raise


def main(jobs: str) -> None:
    torch.set_num_threads(1)
    for job in json.loads(Path(jobs).read_text()):
        work(job)


if __name__ == "__main__":
    main(sys.argv[1])
