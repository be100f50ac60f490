"""Work shared among threads. The kernels let go of Python's lock, know nothing of each other and start no
threads of their own: so any number of callers may come at once, and a forked child starts anew."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np
import torch

KEPT = 2**22  # numbers of scratch that a thread keeps from one call to the next
SPARE = 2**26  # bytes of other memory that is kept: from the system it would come page by page, each at a price

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_size = 0
_local = threading.local()
_spare: list[np.ndarray] = []


def _forget() -> None:
    """In a forked child only one thread lives: the pool's are gone, and a lock may stay taken for ever."""
    global _lock, _pool, _size
    _lock, _pool, _size = threading.Lock(), None, 0


os.register_at_fork(after_in_child=_forget)


def _workers(count: int) -> ThreadPoolExecutor:
    global _pool, _size
    with _lock:
        if _pool is None or _size < count:
            _pool, _size = ThreadPoolExecutor(count, thread_name_prefix="regard"), count
        return _pool


def scratch(numbers: int, dtype: np.dtype) -> np.ndarray:
    """Memory to compute in, the thread's own, beginning at a whole cache line; it holds anything."""
    kept = getattr(_local, "kept", {})
    _local.kept = kept
    have = kept.get(dtype)
    if have is None or have.size < numbers + 16:
        have = np.empty(numbers + 16, dtype)
        if have.size <= KEPT:
            kept[dtype] = have
    skip = -have.ctypes.data % 64 // dtype.itemsize
    return have[skip : skip + numbers]


def borrow(numbers: int, dtype: np.dtype) -> np.ndarray:
    """Memory that holds anything, until it is given back."""
    size = numbers * dtype.itemsize
    for place, block in enumerate(_spare):
        if size <= block.nbytes <= 4 * size:
            try:
                block = _spare.pop(place)
            except IndexError:  # another thread was first
                break
            if size <= block.nbytes:
                return block[:size].view(dtype)
            give_back([block])
            break
    return np.empty(size, np.uint8).view(dtype)


def give_back(blocks: list[np.ndarray]) -> None:
    for block in blocks:
        while block.base is not None:
            block = block.base
        if block.nbytes + sum(other.nbytes for other in _spare) <= SPARE:
            _spare.append(block)


def share(run: Callable[[int, int], None], tasks: int, work: float) -> None:
    """run(begin, end) over all tasks, on as many threads as torch may use. `work`, in nanoseconds of one
    thread, says whether it is worth waking any."""
    threads = min(torch.get_num_threads(), tasks, int(work / 50_000))
    if threads <= 1:
        run(0, tasks)
        return
    size = max(1, tasks // (threads * 4))
    begins = iter(range(0, tasks, size))  # taking the next is one step under Python's lock

    def take() -> None:
        for begin in begins:
            run(begin, min(begin + size, tasks))

    pool = _workers(threads - 1)
    helpers: list[Future[None]] = [pool.submit(take) for _ in range(threads - 1)]
    try:
        take()
    finally:
        waited = [helper for helper in helpers if not helper.cancel()]  # nothing is left for those not begun
        wait(waited)
    for helper in waited:
        helper.result()
