"""Who is seen at all: queries with at least one key, and keys that at least one query may attend to.

A padded key may hold NaN, and 0 · NaN is NaN in any matrix product, forward or backward. So what
nobody may see is blanked before any backend starts; this finds it, from block maps and, where a block
is partial, tile by tile: never an n_q x n_k tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.core.mask import Mask
from regard.core.parts import built_in, flatten, rebuild
from regard.core.shapes import Extent, Spans

BLOCK = 64


def blank_unseen(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    mask: Mask | None,
    extent: Extent,
) -> tuple[Tensor, Tensor, Tensor]:
    """Zero the queries, keys and values that no pair of their own batch element involves."""
    if 0 in (*extent.batch, extent.n_q, extent.n_k):  # no pairs at all: even a mask that hides nothing
        nobody = torch.zeros((), dtype=torch.bool, device=extent.device)
        return torch.where(nobody, query, 0.0), torch.where(nobody, key, 0.0), torch.where(nobody, value, 0.0)
    if mask is None or mask.finite or mask.sees_all(extent):
        return query, key, value
    if torch.onnx.is_in_onnx_export():  # ONNX knows no operator of ours; the mask is written out
        allowed = mask.allowed(extent.tile()).expand(*extent.batch, -1, -1)
        queries, keys = allowed.any(-1), allowed.any(-2)
    elif built_in(mask):
        parts: list[Tensor] = []
        spec = flatten(mask, parts)
        queries, keys = torch.ops.regard.seen(query.detach(), parts, spec, extent.batch, extent.n_q, extent.n_k)
    else:
        queries, keys = seen(mask, extent)
    return _keep(query, queries), _keep(key, keys), _keep(value, keys)


def _keep(x: Float[Tensor, "*batch n d"], seen: Bool[Tensor, "*full n"]) -> Float[Tensor, "*batch n d"]:
    """Blank where unseen; a tensor that several batch elements share is seen when any of them sees it."""
    seen = seen.flatten(0, seen.ndim - x.ndim).any(0) if seen.ndim - 1 > x.ndim - 2 else seen
    for axis, size in enumerate(x.shape[:-2]):
        seen = seen.any(axis, keepdim=True) if size == 1 else seen
    return torch.where(seen[..., None], x, 0.0)


def seen(mask: Mask, extent: Extent) -> tuple[Bool[Tensor, "*batch n_q"], Bool[Tensor, "*batch n_k"]]:
    """(queries with a key, keys with a query), exactly."""
    queries = torch.zeros(*extent.batch, extent.n_q, dtype=torch.bool, device=extent.device)
    keys = torch.zeros(*extent.batch, extent.n_k, dtype=torch.bool, device=extent.device)
    if 0 in (extent.n_q, extent.n_k, prod(extent.batch)):
        return queries, keys
    maybe, full = mask.classify(Spans.of_blocks(extent, BLOCK, BLOCK))
    keys |= full.any(-2).repeat_interleave(BLOCK, -1)[..., : extent.n_k]
    queries |= full.any(-1).repeat_interleave(BLOCK, -1)[..., : extent.n_q]
    # Only partial blocks must be looked into. Which ones, the host may ask on the CPU alone: on a GPU
    # that would wait for the device, so there every tile is looked into.
    partial = (maybe & ~full).flatten(0, -3).any(0) if maybe.ndim > 2 else maybe & ~full
    partial = partial if extent.device.type == "cpu" else torch.ones_like(partial, device="cpu")
    for block, cols in enumerate(columns_of(partial, extent)):
        if cols is None:
            continue
        rows = torch.arange(block * BLOCK, min((block + 1) * BLOCK, extent.n_q), device=extent.device)
        allowed = mask.allowed(extent.tile(rows, cols))
        queries[..., rows] |= allowed.any(-1)
        keys[..., cols] |= allowed.any(-2)
    return queries, keys


def columns_of(blocks: Bool[Tensor, "R C"], extent: Extent) -> Iterator[Tensor | None]:
    """For each row of blocks in turn, the positions of all keys in its marked blocks; None if there are none."""
    starts = torch.arange(blocks.shape[-1]) * BLOCK
    offsets = torch.arange(BLOCK)
    for row in blocks:
        cols = (starts[row][:, None] + offsets).flatten()
        cols = cols[cols < extent.n_k].to(extent.device)
        yield cols if len(cols) else None


# Defined on a Library: torch.library.custom_op would import the whole compiler at the first masked call.
_library = torch.library.Library("regard", "FRAGMENT")
_library.define(
    "seen(Tensor like, Tensor[] parts, str spec, SymInt[] batch, SymInt n_q, SymInt n_k) -> (Tensor, Tensor)"
)


def _seen(like: Tensor, parts: list[Tensor], spec: str, batch: list[int], n_q: int, n_k: int) -> tuple[Tensor, Tensor]:
    return seen(rebuild(spec, parts), Extent(tuple(batch), n_q, n_k, like.device))


def _fake(like: Tensor, parts: list[Tensor], spec: str, batch: list[int], n_q: int, n_k: int) -> tuple[Tensor, Tensor]:
    return like.new_empty((*batch, n_q), dtype=torch.bool), like.new_empty((*batch, n_k), dtype=torch.bool)


_library.impl("seen", _seen, "CompositeExplicitAutograd")
torch.library.register_fake("regard::seen", _fake, lib=_library)
