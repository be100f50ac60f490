"""Which pairs exist: True = may attend. A mask is a small rule, never an n x n tensor.

Each mask answers two questions. `allowed(tile)`: exactly which pairs of this tile. `classify(spans)`:
for many rectangles at once, in O(rectangles), which may hold an allowed pair (`maybe`) and which hold
nothing else (`full`). A rectangle may be called partial when it is full or empty, never the other way;
lengths and ids stay on their device, nothing is read by the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.core.noise import mix
from regard.core.parts import Part
from regard.core.shapes import DTypeError, Extent, InputError, ShapeError, Spans, Tile

__all__ = [
    "Mask",
    "blocks",
    "causal",
    "dense",
    "dilated",
    "documents",
    "global_tokens",
    "padding",
    "per_head",
    "positions",
    "random_blocks",
    "strided",
    "window",
]

Align = str | int | None


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

    def check(self, extent: Extent) -> None:
        """Raise if this mask cannot serve a problem of this extent."""

    def blocks(self, extent: Extent, block_q: int, block_k: int) -> BlockMap:
        maybe, full = self.classify(Spans.of_blocks(extent, block_q, block_k))
        shape = (*torch.broadcast_shapes(maybe.shape[:-2], full.shape[:-2]), *maybe.shape[-2:])
        maybe, full = maybe.expand(shape), full.expand(shape)
        return BlockMap(~maybe, maybe & ~full, full)

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
class Padding(Mask):
    """The first (or, padded on the left, the last) `lengths` keys of each batch element exist."""

    fields = ("lengths", "query_lengths", "side")
    lengths: Int[Tensor, "*lead"]
    query_lengths: Int[Tensor, "*lead"] | None
    side: str

    def check(self, extent: Extent) -> None:
        self._aligned(self.lengths, extent)
        if self.query_lengths is not None:
            self._aligned(self.query_lengths, extent)

    def _aligned(self, lengths: Tensor, extent: Extent) -> Int[Tensor, "*batch 1 1"]:
        return extent.left_aligned(lengths[..., None, None], 2, "padding", "lengths")

    def _real(self, position: Tensor, lengths: Tensor, n: int) -> Bool[Tensor, "..."]:
        return position < lengths if self.side == "right" else position + lengths >= n

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        extent = tile.extent
        real = self._real(tile.j, self._aligned(self.lengths, extent), extent.n_k)
        real = real & torch.ones_like(tile.i, dtype=torch.bool)
        if self.query_lengths is None:
            return real
        return real & self._real(tile.i, self._aligned(self.query_lengths, extent), extent.n_q)

    def classify(self, spans: Spans) -> Kinds:
        extent = spans.extent
        lengths = self._aligned(self.lengths, extent)
        first = self._real(spans.j_first, lengths, extent.n_k)
        last = self._real(spans.j_last, lengths, extent.n_k)
        every_row = torch.ones_like(spans.i_first, dtype=torch.bool)
        maybe, full = (first | last) & every_row, first & last & every_row
        if self.query_lengths is None:
            return Kinds(maybe, full)
        lengths = self._aligned(self.query_lengths, extent)
        first = self._real(spans.i_first, lengths, extent.n_q)
        last = self._real(spans.i_last, lengths, extent.n_q)
        return Kinds(maybe & (first | last), full & first & last)


@dataclass(frozen=True, eq=False)
class Documents(Mask):
    """Packed sequences: a pair exists when both ends carry the same id; a negative id belongs nowhere."""

    fields = ("ids", "key_ids")
    ids: Int[Tensor, "*lead n_q"]
    key_ids: Int[Tensor, "*lead n_k"] | None

    def _ids(self, extent: Extent) -> tuple[Tensor, Tensor]:
        key_ids = self.ids if self.key_ids is None else self.key_ids
        for name, ids, n in (("ids", self.ids, extent.n_q), ("key ids", key_ids, extent.n_k)):
            if ids.shape[-1] != n:
                raise ShapeError(
                    f"documents: {ids.shape[-1]} {name} for {n} positions; give one id per position "
                    f"(documents(ids, key_ids=...) when queries and keys differ)"
                )
        return (
            extent.left_aligned(self.ids, 1, "documents", "ids"),
            extent.left_aligned(key_ids, 1, "documents", "key ids"),
        )

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        ids, key_ids = self._ids(tile.extent)
        row, col = ids[..., tile.rows, None], key_ids[..., None, tile.cols]
        return (row == col) & (row >= 0)

    def classify(self, spans: Spans) -> Kinds:
        ids, key_ids = self._ids(spans.extent)
        i_low, i_high, i_sorted, i_one = _id_ranges(ids, spans.i_first[:, 0], spans.i_last[:, 0])
        j_low, j_high, j_sorted, j_one = _id_ranges(key_ids, spans.j_first[0], spans.j_last[0])
        apart = (i_high[..., :, None] < j_low[..., None, :]) | (i_low[..., :, None] > j_high[..., None, :])
        maybe = ~(apart & (i_sorted & j_sorted)[..., None, None])
        row, col = ids[..., spans.i_first[:, 0], None], key_ids[..., None, spans.j_first[0]]
        same = (row == col) & (row >= 0)
        return Kinds(maybe, same & i_one[..., :, None] & j_one[..., None, :])

    def check(self, extent: Extent) -> None:
        self._ids(extent)


def _id_ranges(ids: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ids at both ends of each span; whether all ids ascend (only then the ends bound the span);
    whether the span holds a single id (counted by changes, right for any order)."""
    changes = (ids[..., 1:] != ids[..., :-1]).cumsum(-1)
    changes = torch.nn.functional.pad(changes, (1, 0))
    ascending = torch.where(ids < 0, torch.iinfo(ids.dtype).max, ids)
    is_sorted = (ascending[..., 1:] >= ascending[..., :-1]).all(-1)
    return ascending[..., first], ascending[..., last], is_sorted, changes[..., first] == changes[..., last]


@dataclass(frozen=True, eq=False)
class BlockDiagonal(Mask):
    """Position i attends within its own block of `size`."""

    fields = ("size",)
    size: int

    def allowed(self, tile: Tile) -> Bool[Tensor, "r c"]:
        return _div(tile.i, self.size) == _div(tile.j, self.size)

    def classify(self, spans: Spans) -> Kinds:
        i_first, i_last = _div(spans.i_first, self.size), _div(spans.i_last, self.size)
        j_first, j_last = _div(spans.j_first, self.size), _div(spans.j_last, self.size)
        one = (i_first == i_last) & (j_first == j_last)
        return Kinds((i_first <= j_last) & (j_first <= i_last), one & (i_first == j_first))

    def on_diagonal(self) -> bool:
        return True


def _div(x: Tensor, by: int) -> Tensor:
    return torch.div(x, by, rounding_mode="floor")


@dataclass(frozen=True, eq=False)
class BlockLayout(Mask):
    """Block (I, J) of `size` x `size` pairs exists where layout[..., I, J] is True."""

    fields = ("size", "layout")
    size: int
    layout: Bool[Tensor, "*batch I J"]

    def check(self, extent: Extent) -> None:
        need = (-(-extent.n_q // self.size), -(-extent.n_k // self.size))
        if tuple(self.layout.shape[-2:]) != need:
            raise ShapeError(
                f"blocks: layout is {tuple(self.layout.shape[-2:])} blocks of {self.size}, "
                f"n_q={extent.n_q} and n_k={extent.n_k} need {need}"
            )
        _fits_batch("blocks: layout", self.layout.shape[:-2], extent)

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        return self.layout[..., _div(tile.i, self.size), _div(tile.j, self.size)]

    def classify(self, spans: Spans) -> Kinds:
        return _rectangles(
            self.layout,
            _div(spans.i_first, self.size),
            _div(spans.i_last, self.size),
            _div(spans.j_first, self.size),
            _div(spans.j_last, self.size),
        )


def _rectangles(table: Tensor, i_first: Tensor, i_last: Tensor, j_first: Tensor, j_last: Tensor) -> Kinds:
    """How many True each rectangle of a table holds, from its summed-area table: any, and all."""
    total = torch.nn.functional.pad(table.long().cumsum(-1).cumsum(-2), (1, 0, 1, 0))
    inside = (
        total[..., i_last + 1, j_last + 1]
        - total[..., i_first, j_last + 1]
        - total[..., i_last + 1, j_first]
        + total[..., i_first, j_first]
    )
    return Kinds(inside > 0, inside == (i_last - i_first + 1) * (j_last - j_first + 1))


def _fits_batch(who: str, lead: Sequence[int], extent: Extent) -> None:
    try:
        fits = torch.broadcast_shapes(tuple(lead), extent.batch) == torch.Size(extent.batch)
    except RuntimeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{who} has leading axes {tuple(lead)}, the attention has {extent.batch}; each must be equal or 1 "
            f"(insert an axis of size 1 for the heads: tensor[:, None])"
        )


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
        j = _div(tile.j, self.size)
        allowed = torch.zeros_like(tile.i + j, dtype=torch.bool)
        for block, exists in self._chosen(_div(tile.i, self.size), tile.extent):
            allowed = allowed | ((block == j) & exists)
        return allowed

    def classify(self, spans: Spans) -> Kinds:
        i_first, i_last = _div(spans.i_first, self.size), _div(spans.i_last, self.size)
        j_first, j_last = _div(spans.j_first, self.size), _div(spans.j_last, self.size)
        hit = torch.zeros_like(i_first + j_first, dtype=torch.bool)
        for block, exists in self._chosen(i_first, spans.extent):
            hit = hit | ((j_first <= block) & (block <= j_last) & exists)
        one_row = i_first == i_last
        return Kinds(hit | ~one_row, hit & one_row & (j_first == j_last))


@dataclass(frozen=True, eq=False)
class GlobalTokens(Mask):
    """These positions attend to all, and all attend to them. A position of -1 is none."""

    fields = ("index",)
    index: Int[Tensor, "*lead g"]

    def _marks(self, extent: Extent) -> tuple[Tensor, Tensor]:
        index = extent.left_aligned(self.index, 1, "global_tokens", "index")
        return _mark(index, extent.n_q), _mark(index, extent.n_k)

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        rows, cols = self._marks(tile.extent)
        return rows[..., tile.rows, None] | cols[..., None, tile.cols]

    def classify(self, spans: Spans) -> Kinds:
        rows, cols = self._marks(spans.extent)
        i_any, i_all = _runs(rows, spans.i_first[:, 0], spans.i_last[:, 0])
        j_any, j_all = _runs(cols, spans.j_first[0], spans.j_last[0])
        return Kinds(i_any[..., :, None] | j_any[..., None, :], i_all[..., :, None] | j_all[..., None, :])

    def check(self, extent: Extent) -> None:
        self._marks(extent)


def _mark(index: Int[Tensor, "*lead g"], n: int) -> Bool[Tensor, "*lead n"]:
    """True at the named positions; what lies outside 0..n-1 falls into a last cell that is cut off."""
    cell = torch.where((index >= 0) & (index < n), index, n)
    marks = torch.zeros(*index.shape[:-1], n + 1, dtype=torch.bool, device=index.device)
    return marks.scatter(-1, cell, True)[..., :n]


def _runs(marks: Bool[Tensor, "*lead n"], first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    total = torch.nn.functional.pad(marks.long().cumsum(-1), (1, 0))
    inside = total[..., last + 1] - total[..., first]
    return inside > 0, inside == last - first + 1


@dataclass(frozen=True, eq=False)
class Positions(Mask):
    """Chosen keys: the same for every query (one axis), or a list for each query. -1 is none."""

    fields = ("index",)
    index: Int[Tensor, "*lead n_q m"]

    def _index(self, extent: Extent) -> Tensor:
        if self.index.ndim == 1:
            return self.index[None, :]
        if self.index.shape[-2] not in (1, extent.n_q):
            raise ShapeError(
                f"positions: lists for {self.index.shape[-2]} queries, n_q={extent.n_q}; "
                f"expected {extent.n_q}, or 1 to share one list"
            )
        return extent.left_aligned(self.index, 2, "positions", "index")

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        index = self._index(tile.extent)
        index = index if index.shape[-2] == 1 else index[..., tile.rows, :]
        return _mark(index, tile.extent.n_k)[..., tile.cols].expand(*index.shape[:-2], tile.i.shape[0], -1)

    def classify(self, spans: Spans) -> Kinds:
        index, extent = self._index(spans.extent), spans.extent
        rows, cols = spans.i_first.shape[0], spans.j_first.shape[1]
        if index.shape[-2] == 1:
            hit, full = _runs(_mark(index, extent.n_k), spans.j_first[0], spans.j_last[0])
            return Kinds(*(x.expand(*index.shape[:-2], rows, cols) for x in (hit, full)))
        if 0 in (rows, cols):
            return Mask.classify(self, spans)
        # One mark per listed key in the grid of rectangles: O(n_q m), and never full by this count.
        row = torch.searchsorted(spans.i_last[:, 0].contiguous(), torch.arange(extent.n_q, device=extent.device))
        inside = (index >= 0) & (index < extent.n_k)
        col = torch.searchsorted(spans.j_last[0].contiguous(), index.clamp(min=0).contiguous())
        spanned = (row < rows)[:, None] & inside & (col < cols)
        row_, col_ = row.clamp(max=rows - 1)[:, None].expand_as(col), col.clamp(max=cols - 1)
        spanned = spanned & (torch.arange(extent.n_q, device=extent.device)[:, None] >= spans.i_first[row_, 0])
        spanned = spanned & (index >= spans.j_first[0, col_])
        cell = torch.where(spanned, row_ * cols + col_, rows * cols)
        marks = torch.zeros(*index.shape[:-2], rows * cols + 1, dtype=torch.bool, device=extent.device)
        marks = marks.scatter(-1, cell.flatten(-2), True)[..., :-1]
        marks = marks.unflatten(-1, (rows, cols))
        return Kinds(marks, torch.zeros_like(marks))

    def check(self, extent: Extent) -> None:
        self._index(extent)


@dataclass(frozen=True, eq=False)
class Dense(Mask):
    """A bool tensor, for when the pairs follow no rule; this one costs its own n_q x n_k."""

    fields = ("table",)
    table: Bool[Tensor, "*batch n_q n_k"]

    def check(self, extent: Extent) -> None:
        for axis, size, expected in (
            ("n_q", self.table.shape[-2], extent.n_q),
            ("n_k", self.table.shape[-1], extent.n_k),
        ):
            if size not in (1, expected):
                raise ShapeError(
                    f"dense: the mask has {axis}={size}, the attention has {axis}={expected}; expected {expected} or 1"
                )
        _fits_batch("dense: the mask", self.table.shape[:-2], extent)

    def _whole(self, extent: Extent) -> Tensor:
        return self.table.expand(*self.table.shape[:-2], extent.n_q, extent.n_k)

    def allowed(self, tile: Tile) -> Bool[Tensor, "*batch r c"]:
        return self._whole(tile.extent)[..., tile.i, tile.j]

    def classify(self, spans: Spans) -> Kinds:
        return _rectangles(self._whole(spans.extent), spans.i_first, spans.i_last, spans.j_first, spans.j_last)


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


# The public names: functions, so that each documents its rule and checks its arguments.


def causal(align: Align = None) -> Mask:
    """Key j is visible to query i when j <= i. With n_q != n_k, say how the two line up.

    >>> import torch, regard
    >>> causal().allowed(regard.Extent((), 3, 3, torch.device("cpu")).tile()).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    return Band(None, 0, _align(align, "causal"), "causal")


def window(left: int | None, right: int | None, align: Align = None) -> Mask:
    """i - left <= j <= i + right, self included; None is no limit on that side."""
    for name, size in (("left", left), ("right", right)):
        if size is not None:
            _whole_number("window", name, size, least=0)
    return Band(left, right, _align(align, "window"), "window")


def dilated(left: int, right: int, step: int, align: Align = None) -> Mask:
    """A window with gaps: `left` keys before and `right` after, `step` apart."""
    _whole_number("dilated", "step", step, least=1)
    return window(left * step, right * step, align) & strided(step, align)


def strided(stride: int, align: Align = None) -> Mask:
    """Every `stride`-th key, counted from the query in both directions."""
    _whole_number("strided", "stride", stride, least=1)
    return Stride(stride, _align(align, "strided"))


def padding(
    lengths: Int[Tensor, "*lead"], query_lengths: Int[Tensor, "*lead"] | None = None, side: str = "right"
) -> Mask:
    """Only the first `lengths` keys are real (side="left": the last). Axes line up from the left: (B,)
    serves (B, heads, n, d). With `query_lengths`, rows beyond them have no key and give exactly 0."""
    for name, value in (("lengths", lengths), ("query_lengths", query_lengths)):
        if value is not None:
            _whole_tensor("padding", name, value)
    if side not in ("left", "right"):
        raise InputError(f"padding: side={side!r} is not 'left' or 'right'")
    return Padding(lengths, query_lengths, side)


def documents(ids: Int[Tensor, "*lead n"], key_ids: Int[Tensor, "*lead n_k"] | None = None) -> Mask:
    """Packed sequences: attend within the same id. A negative id is padding. Fastest when ids ascend."""
    _whole_tensor("documents", "ids", ids)
    if key_ids is not None:
        _whole_tensor("documents", "key_ids", key_ids)
    return Documents(ids, key_ids)


def blocks(size: int, layout: Bool[Tensor, "*batch I J"] | None = None) -> Mask:
    """Within one's own block of `size` positions; or, with a layout, block I to block J where it is True."""
    _whole_number("blocks", "size", size, least=1)
    return BlockDiagonal(size) if layout is None else BlockLayout(size, _truth("blocks: layout", layout))


def global_tokens(index: Int[Tensor, "*lead g"] | Sequence[int]) -> Mask:
    """These positions attend to every key, and every query attends to them."""
    index = torch.as_tensor(index, dtype=None if len(index) else torch.long)
    _whole_tensor("global_tokens", "index", index)
    return GlobalTokens(index.long())


def random_blocks(size: int, count: int, seed: int = 0) -> Mask:
    """Each block of `size` queries attends to `count` random blocks of keys, drawn from the seed alone."""
    _whole_number("random_blocks", "size", size, least=1)
    _whole_number("random_blocks", "count", count, least=1)
    return RandomBlocks(size, count, seed)


def positions(index: Int[Tensor, "*lead m"] | Sequence[int]) -> Mask:
    """Chosen keys. [m]: the same for every query; [..., n_q, m]: a list per query. -1 chooses nothing."""
    index = torch.as_tensor(index, dtype=None if len(index) else torch.long)
    _whole_tensor("positions", "index", index)
    return Positions(index.long())


def dense(tensor: Bool[Tensor, "*batch n_q n_k"]) -> Mask:
    """Any bool tensor that broadcasts to the scores. True = may attend."""
    tensor = _truth("dense", tensor)
    if tensor.ndim < 2:
        raise ShapeError(
            f"dense: the mask has shape {tuple(tensor.shape)}; expected [..., n_q, n_k] (or padding(lengths), positions(index))"
        )
    return Dense(tensor)


def per_head(masks: Sequence[Mask]) -> Mask:
    """One mask for each head, in order."""
    if not masks or not all(isinstance(mask, Mask) for mask in masks):
        raise InputError("per_head: expected a list of masks, one per head")
    return PerHead(tuple(masks))


def _align(align: Align, who: str) -> Align:
    if align is not None and not isinstance(align, int) and align not in ("start", "end"):
        raise InputError(f"{who}: align={align!r} is not 'start', 'end' or a whole number")
    return align


def _whole_number(who: str, name: str, value: object, least: int) -> None:
    if not isinstance(value, int | torch.SymInt) or value < least:
        raise InputError(f"{who}: {name}={value!r}; expected a whole number, {least} or more")


def _whole_tensor(who: str, name: str, value: object) -> None:
    if not isinstance(value, Tensor) or value.dtype.is_floating_point or value.dtype in (torch.bool, torch.complex64):
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise DTypeError(f"{who}: {name} is {kind}; expected a tensor of whole numbers")


def _truth(who: str, value: object) -> Tensor:
    if not isinstance(value, Tensor) or value.dtype != torch.bool:
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        cure = "; a float tensor is a bias: pass it as mask=tensor itself" if "float" in str(kind) else ""
        raise DTypeError(f"{who}: {kind} where a bool tensor was expected (True = may attend){cure}")
    return value
