"""Masks that are pure rules about positions: no tensor inside, the same for every batch element."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.core.mask import Kinds, Mask
from regard.core.noise import mix
from regard.core.shapes import Align, Extent, Spans, Tile


@dataclass(frozen=True, eq=False)
class Band(Mask):
    """i - left <= j <= i + right, where None is no limit: causal and window are the same rule."""

    fields = ("left", "right", "align", "who")
    left: int | None
    right: int | None
    align: Align
    who: str

    def allowed(self, tile: Tile) -> Bool[Tensor, "r c"]:
        i = tile.i + tile.extent.offset(self.align, self.who)
        allowed = torch.ones_like(i + tile.j, dtype=torch.bool)
        if self.right is not None:
            allowed = tile.j <= i + self.right
        if self.left is not None:
            allowed = (tile.j >= i - self.left) & allowed
        return allowed

    def classify(self, spans: Spans) -> Kinds:
        offset = spans.extent.offset(self.align, self.who)
        i_first, i_last = spans.i_first + offset, spans.i_last + offset
        maybe = torch.ones_like(i_first + spans.j_first, dtype=torch.bool)
        full = maybe
        if self.right is not None:
            maybe = maybe & (spans.j_first <= i_last + self.right)
            full = full & (spans.j_last <= i_first + self.right)
        if self.left is not None:
            maybe = maybe & (spans.j_last >= i_first - self.left)
            full = full & (spans.j_first >= i_last - self.left)
        return Kinds(maybe, full)

    def on_diagonal(self) -> bool:
        return self.align in (None, "start", 0)

    def sees_all(self, extent: Extent) -> bool:
        if super().sees_all(extent):
            return True
        if torch.compiler.is_compiling():  # comparing lengths would compile once more for each answer
            return False
        first = extent.offset(self.align, self.who)  # where the first and the last query stand
        last = first + extent.n_q - 1
        before = float("inf") if self.left is None else self.left
        after = float("inf") if self.right is None else self.right
        queries = first + after >= 0 and last - before <= extent.n_k - 1
        keys = first - before <= 0 and last + after >= extent.n_k - 1  # neighbouring bands leave no gap
        return queries and keys and extent.n_q > 0 and extent.n_k > 0

    def check(self, extent: Extent) -> None:
        extent.offset(self.align, self.who)


@dataclass(frozen=True, eq=False)
class Stride(Mask):
    """Keys whose distance from the query is a multiple of the stride."""

    fields = ("stride", "align")
    stride: int
    align: Align

    def allowed(self, tile: Tile) -> Bool[Tensor, "r c"]:
        return (tile.j - tile.i - tile.extent.offset(self.align, "strided")) % self.stride == 0

    def classify(self, spans: Spans) -> Kinds:
        offset = spans.extent.offset(self.align, "strided")
        least, most = spans.j_first - spans.i_last - offset, spans.j_last - spans.i_first - offset
        # The largest multiple of the stride that is at most `most`: inside the range, or there is none.
        maybe = torch.div(most, self.stride, rounding_mode="floor") * self.stride >= least
        return Kinds(maybe, torch.full_like(maybe, self.stride == 1))

    def on_diagonal(self) -> bool:
        return self.align in (None, "start", 0)

    def check(self, extent: Extent) -> None:
        extent.offset(self.align, "strided")


@dataclass(frozen=True, eq=False)
class BlockDiagonal(Mask):
    """Position i attends within its own block of `size`."""

    fields = ("size",)
    size: int

    def allowed(self, tile: Tile) -> Bool[Tensor, "r c"]:
        return div(tile.i, self.size) == div(tile.j, self.size)

    def classify(self, spans: Spans) -> Kinds:
        i_first, i_last = div(spans.i_first, self.size), div(spans.i_last, self.size)
        j_first, j_last = div(spans.j_first, self.size), div(spans.j_last, self.size)
        one = (i_first == i_last) & (j_first == j_last)
        return Kinds((i_first <= j_last) & (j_first <= i_last), one & (i_first == j_first))

    def on_diagonal(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class RandomBlocks(Mask):
    """Each block of queries attends to `count` different random blocks of keys, the same for a seed."""

    fields = ("size", "count", "seed")
    size: int
    count: int
    seed: int

    def _chosen(self, block: Tensor, extent: Extent) -> list[tuple[Tensor, Tensor]]:
        """The key blocks are cut into `count` strata and one is drawn from each: never the same twice.
        (which block, whether the stratum holds any) for each stratum."""
        n_blocks = -(-extent.n_k // self.size)
        chosen = []
        for stratum in range(self.count):
            low, high = stratum * n_blocks // self.count, (stratum + 1) * n_blocks // self.count
            bits = mix((mix((block + (self.seed * 0x9E3779B9 & 0xFFFFFFFF)) & 0xFFFFFFFF) + stratum) & 0xFFFFFFFF)
            chosen.append((low + bits % max(high - low, 1), torch.full_like(block, high > low, dtype=torch.bool)))
        return chosen

    def allowed(self, tile: Tile) -> Bool[Tensor, "r c"]:
        j = div(tile.j, self.size)
        allowed = torch.zeros_like(tile.i + j, dtype=torch.bool)
        for block, exists in self._chosen(div(tile.i, self.size), tile.extent):
            allowed = allowed | ((block == j) & exists)
        return allowed

    def classify(self, spans: Spans) -> Kinds:
        i_first, i_last = div(spans.i_first, self.size), div(spans.i_last, self.size)
        j_first, j_last = div(spans.j_first, self.size), div(spans.j_last, self.size)
        hit = torch.zeros_like(i_first + j_first, dtype=torch.bool)
        for block, exists in self._chosen(i_first, spans.extent):
            hit = hit | ((j_first <= block) & (block <= j_last) & exists)
        one_row = i_first == i_last
        return Kinds(hit | ~one_row, hit & one_row & (j_first == j_last))


def div(x: Tensor, by: int) -> Tensor:
    return torch.div(x, by, rounding_mode="floor")
