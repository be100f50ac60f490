"""The order of the examples: batches of similar lengths, a function of the seed and the epoch alone.

So a run that was stopped goes on with the batch that comes next, and every process of a parallel run knows all
batches without asking another. Files are read in pools: what fits a pool is kept and shuffled as a whole; of a
larger file one pool after another is read, shuffled and forgotten, so memory does not grow with the file.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from regard.core.shapes import InputError
from regard.tasks.examples import Item

logger = logging.getLogger(__name__)

POOL = 2**26  # numbers in a pool: half a gigabyte as Python keeps them, some four million sentence pairs


@dataclass
class Batches:
    """`read` gives the items from the first on, each time it is called."""

    read: Callable[[], Iterable[Item]]
    tokens: int  # in a batch, padding included
    longest: int  # longer items are left out
    seed: int = 0
    pool: int = POOL

    def __post_init__(self) -> None:
        if self.longest > self.tokens:
            raise InputError(
                f"data.longest={self.longest} is more than data.tokens={self.tokens}: an example must fit a batch; "
                f"make data.tokens larger"
            )
        self._kept: list[Item] | None = None  # the file, where it fits one pool
        self._said = False

    def epoch(self, number: int) -> Iterator[list[Item]]:
        """The batches of one pass over the data, in an order of its own."""
        for place, pool in enumerate(self._pools()):
            # A text as seed is hashed in full: (1, 23) and (12, 3) are different orders.
            chance = random.Random(f"{self.seed} {number} {place}")
            yield from shuffled(pool, self.tokens, chance)

    def forever(self, epoch: int = 0, skip: int = 0) -> Iterator[tuple[int, int, list[Item]]]:
        """Epoch after epoch: (epoch, how many of its batches are then done, batch), `skip` of the first left out."""
        while True:
            for place, batch in enumerate(self.epoch(epoch)):
                if place >= skip:
                    yield epoch, place + 1, batch
            epoch, skip = epoch + 1, 0

    def count(self) -> int:
        """Batches in one epoch (epochs may differ by a few)."""
        return sum(1 for _ in self.epoch(0))

    def _pools(self) -> Iterator[list[Item]]:
        if self._kept is not None:
            yield self._kept
            return
        pool: list[Item] = []
        size, pools, left_out = 0, 0, 0
        for item in self.read():
            if len(item) > self.longest:
                left_out += 1
                continue
            pool.append(item)
            size += len(item.source) + len(item.target)
            if size >= self.pool:
                pools += 1
                yield pool
                pool, size = [], 0
        if left_out and not self._said:
            logger.warning("%d examples are longer than data.longest=%d and left out", left_out, self.longest)
            self._said = True
        if not pools:
            if not pool:
                raise InputError(f"no example is left to train on: all are longer than data.longest={self.longest}")
            self._kept = pool
        if pool:
            yield pool


def shuffled(items: Sequence[Item], tokens: int, chance: random.Random) -> list[list[Item]]:
    """Batches of items that are about equally long, in random order."""
    order = list(range(len(items)))
    chance.shuffle(order)  # equal lengths meet in another order each time
    order.sort(key=lambda i: len(items[i].source) + len(items[i].target))
    batches = list(by_size([items[i] for i in order], tokens))
    chance.shuffle(batches)
    return batches


def by_size(items: Iterable[Item], tokens: int) -> Iterator[list[Item]]:
    """Consecutive items, as many as fit: rows times the longest, padding included."""
    batch: list[Item] = []
    widest = 0
    for item in items:
        width = max(widest, len(item), 1)
        if batch and width * (len(batch) + 1) > tokens:
            yield batch
            batch, width = [], max(len(item), 1)
        batch.append(item)
        widest = width
    if batch:
        yield batch
