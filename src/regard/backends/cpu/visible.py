"""Which keys each group of rows may see: as ranges, or as lists of tiles with bytes where one is partial."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.backends.cpu.intervals import intervals
from regard.core.mask import Mask
from regard.core.shapes import Extent, Spans

WRITTEN = 2**24  # bytes of a mask that are written out at once
STRIP = 2**17  # numbers in the scores of one group of rows, more or less: they should stay in the cache
MOST_ROWS = 32

_NO_INTS, _NO_BYTES, _NO_RANGE = np.zeros(1, np.int64), np.zeros(1, np.uint8), np.zeros(1, np.int64)


class Visible(NamedTuple):
    """For some groups of `rows` rows: ranges low ≤ j < high, or what Problem calls tiles and bits."""

    first_group: int
    last_group: int
    rows: int
    ld: int  # numbers in a row of the strip
    lead: tuple[int, ...]  # the leading axes of the ranges or bits
    listed: bool
    low: np.ndarray = _NO_RANGE
    high: np.ndarray = _NO_RANGE
    tiles: np.ndarray = _NO_INTS
    tiles_at: np.ndarray = _NO_INTS
    bits: np.ndarray = _NO_BYTES
    bits_at: np.ndarray = _NO_INTS


def visible(mask: Mask | None, extent: Extent, chosen: Tensor | None, tile: int, pad: int) -> Iterator[Visible]:
    """All groups at once; or, where a mask must be written out, as many as fit."""
    if mask is None:
        n_r = extent.n_q if chosen is None else len(chosen)
        rows, wide = _rows(extent.n_k + tile, n_r), -(-extent.n_k // tile) * tile
        low, high = np.zeros(n_r, np.int64), np.full(n_r, extent.n_k)
        yield Visible(0, -(-n_r // rows), rows, wide + pad, (), False, low=low, high=high)
        return
    found = intervals(mask, extent)
    if found is None:
        yield from _listed(mask, extent, chosen, tile, pad)
        return
    low, high = (x if chosen is None else x[..., chosen] for x in found)
    n_r = low.shape[-1]
    lead = tuple(low.shape[:-1])
    flat_low, flat_high = (x.reshape(-1, n_r).contiguous().numpy() for x in (low, high))
    widest = int((flat_high - flat_low).max())
    rows = _rows(widest + tile, n_r)
    starts = np.arange(0, n_r, rows)
    empty = flat_low >= flat_high
    first = np.minimum.reduceat(np.where(empty, extent.n_k, flat_low), starts, axis=1) // tile
    last = -(-np.maximum.reduceat(np.where(empty, 0, flat_high), starts, axis=1) // tile)
    ld = max(int((last - first).max()), 0) * tile + pad
    yield Visible(0, len(starts), rows, ld, lead, False, low=flat_low.reshape(-1), high=flat_high.reshape(-1))


def _rows(width: int, n_r: int) -> int:
    """How many rows of `width` scores make a group."""
    fit = max(8, min(MOST_ROWS, STRIP // max(width, 1))) // 4 * 4
    return min(fit, (n_r + 3) // 4 * 4)


def _listed(mask: Mask, extent: Extent, chosen: Tensor | None, tile: int, pad: int) -> Iterator[Visible]:
    positions = torch.arange(extent.n_q) if chosen is None else chosen
    n_r = len(positions)
    rows = _rows(extent.n_k, n_r)
    groups = -(-n_r // rows)
    if chosen is None:
        maybe, full = mask.classify(Spans.of_blocks(extent, rows, tile))
        maybe = maybe.flatten(0, -3).any(0) if maybe.ndim > 2 else maybe
        full = full.flatten(0, -3).all(0) if full.ndim > 2 else full
    else:  # they may stand anywhere
        maybe = torch.ones(groups, -(-extent.n_k // tile), dtype=torch.bool)
        full = torch.zeros_like(maybe)
    partial = (maybe & ~full).any(-1)
    one = torch.zeros(1, dtype=torch.long)
    lead = tuple(mask.allowed(extent.tile(one, one)).shape[:-2])
    counts = maybe.sum(-1)
    sizes = torch.where(partial, counts * tile * rows * prod(lead), 0).tolist()
    begin = 0
    while begin < groups:
        end, written = begin + 1, sizes[begin]
        while end < groups and written + sizes[end] <= WRITTEN:
            written += sizes[end]
            end += 1
        yield _write(mask, extent, positions, rows, tile, pad, maybe, partial, lead, begin, end)
        begin = end


def _write(
    mask: Mask, extent: Extent, positions: Tensor, rows: int, tile: int, pad: int,
    maybe: Tensor, partial: Tensor, lead: tuple[int, ...], begin: int, end: int,
) -> Visible:  # fmt: skip
    """The lists of groups begin..end, and the bytes of those that see only part of a tile."""
    counts = maybe[begin:end].sum(-1)
    tiles = maybe[begin:end].nonzero()[:, 1]
    tiles_at = torch.zeros(end + 1, dtype=torch.long)
    tiles_at[begin + 1 :] = counts.cumsum(0)
    bits_at, bits, reached = torch.full((end,), -1), [], 0
    offsets = torch.arange(tile)
    for g in range(begin, end):
        if not partial[g] or not counts[g - begin]:
            continue
        here = tiles[tiles_at[g] : tiles_at[g + 1]]
        cols = (here[:, None] * tile + offsets).flatten()
        of_rows = positions[g * rows : (g + 1) * rows]
        inside = cols < extent.n_k
        allowed = mask.allowed(extent.tile(of_rows, cols.clamp(max=extent.n_k - 1))) & inside
        table = torch.zeros(*lead, rows, len(cols), dtype=torch.bool)
        table[..., : len(of_rows), :] = allowed
        bits_at[g] = reached
        bits.append(table.flatten())
        reached += table.numel()
    written = torch.cat(bits).view(torch.uint8).numpy() if bits else _NO_BYTES
    ld = int(counts.max()) * tile + pad
    return Visible(
        begin, end, rows, ld, lead, True,
        tiles=tiles.numpy() if len(tiles) else _NO_INTS, tiles_at=tiles_at.numpy(), bits=written, bits_at=bits_at.numpy(),
    )  # fmt: skip
