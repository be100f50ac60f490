"""Which pairs exist: True = may attend. A mask is a small rule, never an n x n tensor.

Each mask answers two questions. `allowed(tile)`: exactly which pairs of this tile. `classify(spans)`:
for many rectangles at once, in O(rectangles), which may hold an allowed pair (`maybe`) and which hold
nothing else (`full`). A rectangle may be called partial when it is full or empty, never the other way;
lengths and ids stay on their device, nothing is read by the host.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.core.parts import Part
from regard.core.shapes import DTypeError, Extent, ShapeError, Spans, Tile


class Kinds(NamedTuple):
    """What is known of each rectangle: it may hold an allowed pair; it holds only allowed pairs."""

    maybe: Bool[Tensor, "*batch R C"]
    full: Bool[Tensor, "*batch R C"]


class BlockMap(NamedTuple):
    """Every block of the problem, classified."""

    empty: Bool[Tensor, "*batch R C"]
    partial: Bool[Tensor, "*batch R C"]
    full: Bool[Tensor, "*batch R C"]


class Mask(Part):
    """Base of all masks. `& | ~` combine them."""

    finite = False  # what it hides surely holds numbers, so that weights of 0 suffice to remove it

    def of_finite(self) -> Mask:
        """The same mask, with that promise: nothing need be blanked."""
        same = copy.copy(self)
        object.__setattr__(same, "finite", True)
        return same

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        raise NotImplementedError(f"{type(self).__name__} must say which pairs of a tile are allowed")

    def classify(self, spans: Spans) -> Kinds:
        """Knowing nothing is always right: every rectangle may hold allowed pairs, none surely only them."""
        unknown = torch.ones(
            spans.i_first.shape[0], spans.j_first.shape[1], dtype=torch.bool, device=spans.extent.device
        )
        return Kinds(unknown, ~unknown)

    def on_diagonal(self) -> bool:
        """Certain, without looking at any tensor, that query i may attend to key i."""
        return False

    def sees_all(self, extent: Extent) -> bool:
        """Certain, without looking at any tensor, that every query has a key and every key a query."""
        return extent.n_q == extent.n_k and self.on_diagonal()

    def check(self, extent: Extent) -> None:
        """Raise if this mask cannot serve a problem of this extent."""

    def on(self, device: torch.device) -> Mask:
        """The same mask, whose plain lists have followed the queries to a device; tensors stay where they are."""
        moved: dict[str, Any] = {}
        for name in self.fields:
            old = getattr(self, name)
            if isinstance(old, Mask):
                new: Any = old.on(device)
                if new is not old:
                    moved[name] = new
            elif isinstance(old, tuple) and any(isinstance(part, Mask) for part in old):
                new = tuple([part.on(device) for part in old])
                if any(a is not b for a, b in zip(new, old, strict=True)):
                    moved[name] = new
        return replace(self, **moved) if moved else self  # type: ignore[type-var]

    def blocks(self, extent: Extent, block_q: int, block_k: int) -> BlockMap:
        maybe, full = self.classify(Spans.of_blocks(extent, block_q, block_k))
        shape = (*torch.broadcast_shapes(maybe.shape[:-2], full.shape[:-2]), *maybe.shape[-2:])
        maybe, full = maybe.expand(shape), full.expand(shape)
        return BlockMap(~maybe, maybe & ~full, full)

    def __bool__(self) -> bool:
        raise DTypeError("a mask is neither true nor false: combine masks with & | ~, not with `and`, `or`, `not`")

    def __and__(self, other: Mask) -> Mask:
        return And(self, _operand(other, "&"))

    def __or__(self, other: Mask) -> Mask:
        return Or(self, _operand(other, "|"))

    def __invert__(self) -> Mask:
        return Not(self)


def _operand(other: object, sign: str) -> Mask:
    if not isinstance(other, Mask):
        raise DTypeError(
            f"mask {sign} {type(other).__name__}: both sides must be masks; for a bool tensor use dense(tensor)"
        )
    return other


@dataclass(frozen=True, eq=False)
class And(Mask):
    fields = ("a", "b")
    a: Mask
    b: Mask

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        return self.a.allowed(tile) & self.b.allowed(tile)

    def classify(self, spans: Spans) -> Kinds:
        a, b = self.a.classify(spans), self.b.classify(spans)
        return Kinds(a.maybe & b.maybe, a.full & b.full)

    def on_diagonal(self) -> bool:
        return self.a.on_diagonal() and self.b.on_diagonal()

    def check(self, extent: Extent) -> None:
        self.a.check(extent)
        self.b.check(extent)


@dataclass(frozen=True, eq=False)
class Or(Mask):
    fields = ("a", "b")
    a: Mask
    b: Mask

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        return self.a.allowed(tile) | self.b.allowed(tile)

    def classify(self, spans: Spans) -> Kinds:
        a, b = self.a.classify(spans), self.b.classify(spans)
        return Kinds(a.maybe | b.maybe, a.full | b.full)

    def on_diagonal(self) -> bool:
        return self.a.on_diagonal() or self.b.on_diagonal()

    def check(self, extent: Extent) -> None:
        self.a.check(extent)
        self.b.check(extent)


@dataclass(frozen=True, eq=False)
class Not(Mask):
    fields = ("a",)
    a: Mask

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        return ~self.a.allowed(tile)

    def classify(self, spans: Spans) -> Kinds:
        maybe, full = self.a.classify(spans)
        return Kinds(~full, ~maybe)

    def check(self, extent: Extent) -> None:
        self.a.check(extent)


@dataclass(frozen=True, eq=False)
class PerHead(Mask):
    """One mask per head (axis -3 of query): heads with different scopes."""

    fields = ("masks",)
    masks: tuple[Mask, ...]

    def _stack(self, per_head: list[Tensor]) -> Tensor:
        heads = len(per_head)
        lead = torch.broadcast_shapes(*[x.shape[:-2] for x in per_head], (heads,))
        spread = [x.expand(*lead, *x.shape[-2:])[..., h, :, :] for h, x in enumerate(per_head)]
        return torch.stack(spread, dim=-3)

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        return self._stack([mask.allowed(tile) for mask in self.masks])

    def classify(self, spans: Spans) -> Kinds:
        kinds = [mask.classify(spans) for mask in self.masks]
        return Kinds(self._stack([k.maybe for k in kinds]), self._stack([k.full for k in kinds]))

    def on_diagonal(self) -> bool:
        return all(mask.on_diagonal() for mask in self.masks)

    def check(self, extent: Extent) -> None:
        heads = extent.batch[-1] if extent.batch else 0
        if heads != len(self.masks):
            raise ShapeError(
                f"per_head: {len(self.masks)} masks for {heads} heads (axis -3 of query); give one mask per head"
            )
        for mask in self.masks:
            mask.check(extent)


@dataclass(frozen=True, eq=False)
class HeadsOf(Mask):
    """What a mask for `of` heads says to `count` of them, from `first` on: heads that run apart."""

    fields = ("mask", "first", "count", "of")
    mask: Mask
    first: int
    count: int
    of: int

    def _all_heads(self, extent: Extent) -> Extent:
        return replace(extent, batch=(*extent.batch[:-1], self.of))

    def _cut(self, x: Tensor) -> Tensor:
        return x if x.ndim < 3 or x.shape[-3] == 1 else x.narrow(-3, self.first, self.count)

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        return self._cut(self.mask.allowed(replace(tile, extent=self._all_heads(tile.extent))))

    def classify(self, spans: Spans) -> Kinds:
        kinds = self.mask.classify(replace(spans, extent=self._all_heads(spans.extent)))
        return Kinds(*(self._cut(kind) for kind in kinds))

    def on_diagonal(self) -> bool:
        return self.mask.on_diagonal()

    def check(self, extent: Extent) -> None:
        self.mask.check(self._all_heads(extent))


@dataclass(frozen=True, eq=False)
class LastRows(Mask):
    """A mask for a whole sequence, asked by the last of its queries only: those that a cache has not seen."""

    fields = ("mask",)
    mask: Mask

    def _whole(self, extent: Extent) -> Extent:
        return replace(extent, n_q=extent.n_k)

    def allowed(self, tile: Tile) -> Tensor:
        extent = tile.extent
        return self.mask.allowed(Tile(self._whole(extent), tile.rows + extent.n_k - extent.n_q, tile.cols))

    def classify(self, spans: Spans) -> Kinds:
        extent = spans.extent
        i_first, i_last = (i + extent.n_k - extent.n_q for i in (spans.i_first, spans.i_last))
        return self.mask.classify(Spans(self._whole(extent), i_first, i_last, spans.j_first, spans.j_last))

    def check(self, extent: Extent) -> None:
        self.mask.check(self._whole(extent))
