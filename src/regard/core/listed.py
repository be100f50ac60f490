"""Masks that carry tensors: lengths, ids, lists of positions, tables. The tensors stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.core.mask import Kinds, Mask
from regard.core.rules import div
from regard.core.shapes import Extent, ShapeError, Spans, Tile


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
        return self.layout[..., div(tile.i, self.size), div(tile.j, self.size)]

    def classify(self, spans: Spans) -> Kinds:
        return _rectangles(
            self.layout,
            div(spans.i_first, self.size),
            div(spans.i_last, self.size),
            div(spans.j_first, self.size),
            div(spans.j_last, self.size),
        )


@dataclass(frozen=True, eq=False)
class Following(Mask):
    """A mask whose positions, given as a plain list, have no device of their own: they follow the queries."""

    index: Int[Tensor, "*lead m"]
    follows: bool = False
    copies: dict[torch.device, Mask] = field(default_factory=dict, repr=False)  # one copy to a GPU, not one per call

    def on(self, device: torch.device) -> Mask:
        if not self.follows or self.index.device == device:
            return self
        if torch.compiler.is_compiling():
            return replace(self, index=self.index.to(device), copies={})
        if device not in self.copies:
            self.copies[device] = replace(self, index=self.index.to(device), copies={})
        return self.copies[device]


@dataclass(frozen=True, eq=False)
class GlobalTokens(Following):
    """These positions attend to all, and all attend to them. A position of -1 is none."""

    fields = ("index",)

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
class Positions(Following):
    """Chosen keys: the same for every query (one axis), or a list for each query. -1 is none."""

    fields = ("index",)

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
        table = self._whole(spans.extent)
        if spans.block is None:
            return _rectangles(table, spans.i_first, spans.i_last, spans.j_first, spans.j_last)
        # Block by block, without a copy: a summed-area table would take sixteen bytes for each pair.
        block_q, block_k = spans.block
        bits = table.view(torch.uint8)
        maybe, full = (_along(_along(bits, block_q, -2, how), block_k, -1, how) for how in (torch.amax, torch.amin))
        return Kinds(maybe.bool(), full.bool())


def _along(table: Tensor, size: int, axis: int, how: Callable[..., Tensor]) -> Tensor:
    """Each run of `size` along an axis as one number; the last run may be shorter."""
    n = table.shape[axis]
    whole = n // size * size
    runs = how(table.narrow(axis, 0, whole).unflatten(axis, (whole // size, size)), axis)
    return runs if n == whole else torch.cat([runs, how(table.narrow(axis, whole, n - whole), axis, True)], axis)


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
