"""Threads beside the event loop: so many at once, so many waiting, each for so long. What is more is refused."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from torch import nn

T = TypeVar("T")

_current = threading.local()  # .job: the one that this thread works on


class BusyError(Exception):
    """As many requests as may wait are waiting."""


class LateError(Exception):
    """A request took longer than it may."""


class Work:
    """A bounded queue of jobs. A job ends at its deadline: where a network runs (see `mindful`) it is broken off,
    and whoever asked has had an answer by then."""

    def __init__(self, threads: int = 2, waiting: int = 32, seconds: float = 20.0) -> None:
        self.threads, self.waiting, self.seconds = threads, waiting, seconds
        self.inside = 0  # jobs that run or wait
        self.closed = False
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="regard")

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        with self._lock:
            if self.inside >= self.threads + self.waiting:
                raise BusyError
            self.inside += 1
        job = _Job(self, time.monotonic() + self.seconds)
        future = self._pool.submit(job.do, function, arguments)
        future.add_done_callback(self._done)  # also of one that was cancelled while it waited
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.seconds)
        except TimeoutError:
            job.deadline = 0.0
            raise LateError from None
        except asyncio.CancelledError:  # whoever asked has gone
            job.deadline = 0.0
            raise

    def close(self) -> None:
        """What waits is dropped, what runs is broken off where it can be."""
        self.closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _done(self, _: Any) -> None:
        with self._lock:
            self.inside -= 1


class _Job:
    def __init__(self, work: Work, deadline: float) -> None:
        self.work, self.deadline = work, deadline

    def do(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        _current.job = self
        try:
            check()
            return function(*arguments)
        finally:
            _current.job = None


def remaining() -> float:
    """Seconds that the job of this thread still has; many where there is none."""
    job = getattr(_current, "job", None)
    if job is None:
        return 3600.0
    return 0.0 if job.work.closed else job.deadline - time.monotonic()


def check() -> None:
    if remaining() <= 0:
        raise LateError


def mindful(network: nn.Module) -> nn.Module:
    """The network, which looks at the clock as it goes: a beam search may call it thousands of times."""
    for module in network.modules():
        if isinstance(module, nn.Embedding | nn.Linear | nn.LayerNorm):
            module.register_forward_pre_hook(lambda *_: check())
    return network
