"""Masks under which every query sees one run of keys: kernels then need two numbers for each query."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from regard.core.listed import Documents, Padding
from regard.core.mask import And, HeadsOf, LastRows, Mask, PerHead
from regard.core.rules import Band, BlockDiagonal
from regard.core.shapes import Extent

Range = tuple[Int[Tensor, "*batch n_q"], Int[Tensor, "*batch n_q"]]


def intervals(mask: Mask | None, extent: Extent) -> Range | None:
    """(low, high) with low ≤ j < high for the keys of each query; None if the mask is of another kind."""
    found = _of(mask, extent)
    if found is None:
        return None
    low, high = (x.clamp(0, extent.n_k) for x in found)
    return torch.broadcast_tensors(low, torch.maximum(low, high))  # type: ignore[return-value]


def _of(mask: Mask | None, extent: Extent) -> Range | None:
    i = torch.arange(extent.n_q)
    start, stop = torch.zeros_like(i), torch.full_like(i, extent.n_k)
    if mask is None:
        return start, stop
    if isinstance(mask, Band):
        here = i + extent.offset(mask.align, mask.who)
        low = start if mask.left is None else here - mask.left
        return low, stop if mask.right is None else here + mask.right + 1
    if isinstance(mask, BlockDiagonal):
        low = i // mask.size * mask.size
        return low, low + mask.size
    if isinstance(mask, Padding):
        return _padding(mask, extent, i)
    if isinstance(mask, Documents):
        return _documents(mask, extent)
    if isinstance(mask, And):
        a, b = _of(mask.a, extent), _of(mask.b, extent)
        return None if a is None or b is None else (torch.maximum(a[0], b[0]), torch.minimum(a[1], b[1]))
    if isinstance(mask, PerHead):
        each = [_of(m, extent) for m in mask.masks]
        if not all(each):
            return None
        return tuple(_heads([x[side] for x in each if x is not None]) for side in (0, 1))  # type: ignore[return-value]
    if isinstance(mask, HeadsOf):
        every = _of(mask.mask, replace(extent, batch=(*extent.batch[:-1], mask.of)))
        return None if every is None else tuple(_cut(x, mask) for x in every)  # type: ignore[return-value]
    if isinstance(mask, LastRows):
        whole = _of(mask.mask, replace(extent, n_q=extent.n_k))
        return None if whole is None else (whole[0][..., -extent.n_q :], whole[1][..., -extent.n_q :])
    return None


def _padding(mask: Padding, extent: Extent, i: Tensor) -> Range:
    lengths = extent.left_aligned(mask.lengths[..., None], 1, "padding", "lengths").long()
    none = torch.zeros_like(i)
    low, high = (none, lengths + none) if mask.side == "right" else (extent.n_k - lengths + none, none + extent.n_k)
    if mask.query_lengths is not None:
        real = extent.left_aligned(mask.query_lengths[..., None], 1, "padding", "lengths").long()
        high = torch.where(i < real if mask.side == "right" else i + real >= extent.n_q, high, 0)
    return low, high


def _documents(mask: Documents, extent: Extent) -> Range | None:
    """Where ids ascend, those that are equal stand side by side."""
    key_ids = mask.ids if mask.key_ids is None else mask.key_ids
    last = torch.iinfo(torch.int64).max  # negative ids, which belong nowhere, come last
    ids, keys = (torch.where(x < 0, last, x.long()) for x in (mask.ids, key_ids))
    if (keys[..., 1:] < keys[..., :-1]).any():
        return None
    lead = torch.broadcast_shapes(ids.shape[:-1], keys.shape[:-1])
    ids, keys = ids.expand(*lead, -1).contiguous(), keys.expand(*lead, -1).contiguous()
    low, high = torch.searchsorted(keys, ids), torch.searchsorted(keys, ids, right=True)
    high = torch.where(ids == last, 0, high)
    return tuple(extent.left_aligned(x, 1, "documents", "ids") for x in (low, high))  # type: ignore[return-value]


def _heads(each: list[Tensor]) -> Tensor:
    """One row of numbers for each head, on axis -2."""
    lead = torch.broadcast_shapes(*[x.shape[:-1] for x in each], (len(each),))
    return torch.stack([x.expand(*lead, x.shape[-1])[..., h, :] for h, x in enumerate(each)], dim=-2)


def _cut(x: Tensor, mask: HeadsOf) -> Tensor:
    return x if x.ndim < 2 or x.shape[-2] == 1 else x.narrow(-2, mask.first, mask.count)
