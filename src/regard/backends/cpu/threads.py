"""Work shared among threads. The kernels let go of Python's lock, know nothing of each other and start no
threads of their own: so any number of callers may come at once, and a forked child starts anew.

Torch's own team of threads, by way of its OpenMP, was tried: no faster on a quiet machine, and on a busy one everybody
waits for the member that gets no core. These help as they come; who is late finds nothing left to do.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np
import torch

SPARE = 2**26  # bytes of memory that is kept between calls: from the system it would come page by page, each at a price
LINE = 64  # bytes: a line of the cache, a register

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_size = 0
_spare: list[np.ndarray] = []


def _forget() -> None:
    """In a forked child only one thread lives: the pool's are gone, and a lock may stay taken for ever."""
    global _lock, _pool, _size
    _lock, _pool, _size = threading.Lock(), None, 0


os.register_at_fork(after_in_child=_forget)


def borrow(numbers: int, dtype: np.dtype) -> np.ndarray:
    """Memory that holds anything, from the beginning of a cache line on, until it is given back."""
    size = numbers * dtype.itemsize + LINE
    block = _taken(size)
    if block is None:
        block = np.empty(size, np.uint8)
    skip = -block.__array_interface__["data"][0] % LINE
    return block[skip : skip + size - LINE].view(dtype)


def _taken(size: int) -> np.ndarray | None:
    for place, block in enumerate(_spare):
        if size <= block.nbytes <= 4 * size:
            try:
                block = _spare.pop(place)
            except IndexError:  # another thread was first
                return None
            if size <= block.nbytes:
                return block
            _spare.append(block)
            return None
    return None


def give_back(*arrays: np.ndarray) -> None:
    for block in arrays:
        while isinstance(block.base, np.ndarray):
            block = block.base
        _spare.append(block)
    while _spare and sum(block.nbytes for block in _spare) > SPARE:
        _taken(_spare[0].nbytes)


def share(run: Callable[[int, int], None], tasks: int, work: float) -> None:
    """run(begin, end) over all tasks, on as many threads as torch may use. `work`, in nanoseconds of one
    thread, says whether it is worth waking any."""
    threads = min(torch.get_num_threads(), tasks, int(work / 50_000))
    if threads <= 1:
        run(0, tasks)
        return
    size = max(1, tasks // (threads * 8))
    begins = iter(range(0, tasks, size))  # taking the next is one step under Python's lock

    def take() -> None:
        for begin in begins:
            run(begin, min(begin + size, tasks))

    pool = _workers(threads - 1)
    helpers: list[Future[None]] = [pool.submit(take) for _ in range(threads - 1)]
    try:
        take()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]  # nothing is left for the others
        wait(begun)
    for helper in begun:
        helper.result()


def _workers(count: int) -> ThreadPoolExecutor:
    global _pool, _size
    with _lock:
        if _pool is None or _size < count:
            _pool, _size = ThreadPoolExecutor(count, thread_name_prefix="regard"), count
        return _pool
