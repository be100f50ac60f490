"""A model of every task, small enough to be trained in a moment, and `regard serve` as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.tasks import training
from regard.tasks.catalogue import TASKS
from tests.tasks.small import run_of
from tests.web.small import corpus


def models(folder: Path, steps: int = 2, **keys: Any) -> dict[str, Path]:
    """Task → the folder of its model."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for task in TASKS:
            sizes = {"data__tokens": 512, "data__longest": 128, "schedule__steps": steps, "optim__lr": 5e-3, **keys}
            training.train(run_of(task, corpus(task, folder), **sizes), folder / task)
    finally:
        torch.set_num_threads(threads)
    return {task: folder / task for task in TASKS}


@dataclass(frozen=True)
class Service:
    process: subprocess.Popen
    host: str
    port: int

    @property
    def memory(self) -> int:
        """Bytes that it has in memory; 0 where the system does not say."""
        try:
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def files(self) -> int:
        """Files and sockets that it has open."""
        try:
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except OSError:
            return 0

    @property
    def waited(self) -> float:
        """Seconds that the thread which answers was ready but had no core: somebody else's work, not its own."""
        try:
            return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[1]) / 1e9
        except (OSError, IndexError):
            return 0.0

    def end(self, seconds: float) -> tuple[int | None, float]:
        """SIGTERM: its exit status (None: it had to be killed), and how long it took."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds), time.monotonic() - started
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None, time.monotonic() - started


@contextmanager
def serving(places: dict[str, Path], log: Path, *options: str) -> Iterator[Service]:
    """On a free port of the loopback interface; ended with the block, whatever happens."""
    given = [option for name, path in places.items() for option in ("--model", f"{name}={path}")]
    code = "import sys; from regard.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "serve", "--port", "0", *given, *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with open(log, "wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
    try:
        assert process.stdout
        line = process.stdout.readline().decode()
        address = line.partition("http://")[2].partition(" ")[0]
        if not address:
            raise RuntimeError(f"regard serve did not start: {line}{log.read_text()[-2000:]}")
        host, _, port = address.rpartition(":")
        yield Service(process, host, int(port))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
