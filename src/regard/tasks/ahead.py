"""The next batches are made while the network works on this one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from typing import TypeVar

Thing = TypeVar("Thing")
LAST = 20.0  # seconds that a thing may still take when nobody waits for it any more


def ahead(things: Iterable[Thing], most: int = 2) -> Generator[Thing, None, None]:
    """The same things in the same order, made by a thread that is at most so many ahead. Its errors come out here.

    >>> list(ahead("abc"))
    ['a', 'b', 'c']
    """
    made: queue.Queue[tuple[str, Thing | BaseException | None]] = queue.Queue(most)
    closed = threading.Event()

    def put(*message: Thing | BaseException | str | None) -> bool:
        while not closed.is_set():
            try:
                made.put(message, timeout=0.1)  # pyright: ignore[reportArgumentType]
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for thing in things:
                if not put("thing", thing):
                    return
            put("end", None)
        except BaseException as error:  # whatever it is belongs to whoever waits for the next thing
            put("error", error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while True:
            kind, thing = made.get()
            if kind == "error":
                raise thing  # pyright: ignore[reportGeneralTypeIssues]
            if kind == "end":
                return
            yield thing  # pyright: ignore[reportReturnType]
    finally:
        closed.set()
        worker.join(LAST)  # an interpreter that ends while a thread is inside torch is aborted
