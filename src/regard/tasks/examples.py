"""An example as numbers, and batches of them: what the loop, the tasks and the networks hand to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from regard.tasks.tokenizers import PAD

IGNORED = -100  # a target that no loss counts: torch's own number for it


@dataclass(frozen=True)
class Item:
    """One example. Where words are labelled, `words[i]` is the word that piece i of the source belongs to, and
    `letters[i]` how word i is spelled."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    words: tuple[int, ...] = ()
    letters: tuple[tuple[int, ...], ...] = ()

    def __len__(self) -> int:
        return max(len(self.source), len(self.target))


@dataclass(frozen=True)
class Batch:
    """Examples side by side. The network reads `source`, and `given` of the target; it is asked for `target`."""

    source: Int[Tensor, "B n"]
    lengths: Int[Tensor, " B"]
    target: Int[Tensor, "B m"]  # IGNORED where nothing is asked
    given: Int[Tensor, "B m"] | None = None  # the target as its writer sees it: one word behind
    words: Int[Tensor, "B n"] | None = None
    letters: Int[Tensor, "B n c"] | None = None
    units: int = 0  # how many targets are asked for, in all rows, also those that another process has

    def to(self, device: torch.device) -> Batch:
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def share(self, rank: int, processes: int) -> Batch:
        """The rows of one process; where there are none, a row that asks for nothing, so that all take part."""
        if processes == 1:
            return self
        if rank < len(self.source):
            return self._each(lambda tensor: tensor[rank::processes])
        mine = self._each(lambda tensor: tensor[:1])
        return replace(mine, target=torch.full_like(mine.target, IGNORED))

    def twice(self) -> Batch:
        """All rows, and all of them once more."""
        return self._each(lambda tensor: torch.cat([tensor, tensor]))

    def _each(self, change) -> Batch:
        tensors = {name: getattr(self, name) for name in ("source", "lengths", "target", "given", "words", "letters")}
        return replace(self, **{name: change(tensor) for name, tensor in tensors.items() if tensor is not None})


def padded(rows: Sequence[Sequence[int]], filler: int = PAD) -> Int[Tensor, "B n"]:
    """Rows of different lengths as one tensor."""
    width = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows], dtype=torch.long)


def lengths_of(rows: Sequence[Sequence[int]]) -> Int[Tensor, " B"]:
    return torch.tensor([len(row) for row in rows], dtype=torch.long)


def counted(target: Int[Tensor, "B m"]) -> int:
    return int((target != IGNORED).sum())
