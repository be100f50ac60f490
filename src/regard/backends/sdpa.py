"""Dot products under softmax go to torch's own fused attention: do not write what is already there."""

from __future__ import annotations

from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from regard.core.biases import Bias
from regard.core.formula import Call, extent_of, weights_of
from regard.core.mask import Mask
from regard.core.normalizers import Softmax
from regard.core.rules import Band
from regard.core.scores import Biased, Bilinear, Dot, ScaledDot, Score
from regard.core.shapes import Extent, wide
from regard.core.statistics import Summary, summarize

KINDS = frozenset({torch.float64, torch.float32, torch.float16, torch.bfloat16})
LIMIT = 2**24  # elements of a mask or bias that must be written out for torch: 16 MiB of bools


def why_not(query: Tensor, key: Tensor, value: Tensor, call: Call) -> str | None:
    extent = extent_of(call.score, query, key)
    content, biases = _split(call.score)
    if type(content) not in (Dot, ScaledDot, Bilinear):
        return f"torch's fused attention knows dot products only, not {type(content).__name__}"
    if type(call.normalizer) is not Softmax:
        return f"torch's fused attention knows softmax only, not {type(call.normalizer).__name__}"
    if call.normalizer.sink is not None:
        return "torch's fused attention has no sink"
    if call.dropout > 0:
        return "torch draws its own dropout, which is not a function of the seed"
    if 0 in (*extent.batch, extent.n_q, extent.n_k, query.shape[-1], key.shape[-1], value.shape[-1]):
        return "an axis has size 0"
    # An exported program serves lengths that are not known yet: no limit can be compared with them.
    if (biases or not _is_native(call.mask, extent)) and not torch.compiler.is_exporting():
        size = prod(_table_batch(call, extent, biases)) * extent.n_q * extent.n_k
        if size > LIMIT:
            return f"the mask or bias would have to be written out: {size:,} elements, more than the limit of {LIMIT:,}"
    return None


def takes_as_they_are(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether torch's function may be called at once, with nothing to resolve: that would take longer than a small
    attention itself."""
    if torch.compiler.is_compiling() or not type(query) is type(key) is type(value) is Tensor:
        return False
    kind, device = query.dtype, query.device
    if kind not in KINDS or not kind == key.dtype == value.dtype or not device == key.device == value.device:
        return False
    where, q, k, v = device.type, query.shape, key.shape, value.shape
    if where not in ("cpu", "cuda") or torch.is_autocast_enabled(where) or len(q) != 4:
        return False
    # Each look at a tensor costs: after a large computation nothing of it is in the cache.
    alike = q == k == v or (len(k) == len(v) == 4 and q[:2] == k[:2] == v[:2] and q[3] == k[3] and k[2] == v[2])
    return alike and 0 not in q and 0 not in k and 0 not in v


def writes(query: Tensor, key: Tensor, call: Call) -> bool:
    """Whether it would have to write out a mask or a bias."""
    return bool(_split(call.score)[1]) or not _is_native(call.mask, extent_of(call.score, query, key))


def forward(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    call: Call,
) -> Float[Tensor, "*batch n_q d_v"]:
    content, biases = _split(call.score)
    extent = extent_of(call.score, query, key)
    scale, dtype = 1.0, query.dtype
    if isinstance(content, ScaledDot):
        scale = content.factor(key.shape[-1])
    elif isinstance(content, Bilinear):
        projected = content.project(query, key)[0]
        if query.dtype == torch.float16:  # q W may leave its range where the scores do not
            key, value = wide(key), wide(value)
        query = projected.to(key.dtype)
    table, alive = None, None
    if biases or not _is_native(call.mask, extent):
        table, alive = _table(call, extent, biases, query.dtype)
    out = scaled_dot_product_attention(
        _four_axes(query, extent),
        _four_axes(key, extent),
        _four_axes(value, extent),
        attn_mask=table,
        is_causal=call.mask is not None and table is None,
        scale=scale,
    )
    out = out.reshape(*extent.batch, *out.shape[-2:]).to(dtype)
    return out if alive is None else torch.where(alive, out, 0.0)


def rows(
    query: Tensor, key: Tensor, call: Call, rows: Int[Tensor, " r"] | None = None
) -> Float[Tensor, "*batch r n_k"]:
    return weights_of(query, key, call, rows)


def summary(query: Tensor, key: Tensor, call: Call, top: int, pool: int) -> Summary:
    return summarize(query, key, call, top, pool)


def _split(score: Score) -> tuple[Score, list[Bias]]:
    """The score of the content and the biases added to it."""
    biases = []
    while isinstance(score, Biased):
        biases.append(score.bias)
        score = score.score
    return score, biases


def _is_native(mask: Mask | None, extent: Extent) -> bool:
    """No mask, or the causal one that torch knows by a flag."""
    if mask is None:
        return True
    causal = isinstance(mask, Band) and mask.left is None and mask.right == 0
    return causal and mask.on_diagonal() and extent.n_q == extent.n_k


def _table_batch(call: Call, extent: Extent, biases: list[Bias]) -> tuple[int, ...]:
    """The leading axes that the written-out mask and biases have: found on one pair, not on all."""
    if 0 in (extent.n_q, extent.n_k):
        return ()
    first = torch.zeros(1, dtype=torch.long, device=extent.device)
    tile = extent.tile(first, first)
    shapes = [bias(tile).shape[:-2] for bias in biases]
    if call.mask is not None:
        shapes.append(call.mask.allowed(tile).shape[:-2])
    batch = torch.broadcast_shapes(*shapes)
    return tuple(extent.batch) if len(extent.batch) > 2 and prod(batch) > 1 else tuple(batch)


def _table(call: Call, extent: Extent, biases: list[Bias], dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """The mask (bool) or biases (float) as torch wants them, and which rows have a key at all. A row
    without one sees every key here and is blanked after: torch may answer it with NaN."""
    tile = extent.tile()
    allowed = None if call.mask is None else call.mask.allowed(tile)
    alive = None if allowed is None else allowed.any(-1, keepdim=True)
    if allowed is not None and alive is not None:
        allowed = allowed | ~alive
    if not biases:
        assert allowed is not None
        return _mask_axes(allowed, extent), alive
    table = biases[0](tile)
    for bias in biases[1:]:
        table = table + bias(tile)
    table = table.to(dtype)
    if allowed is not None:
        table = torch.where(allowed, table, float("-inf"))
    return _mask_axes(table, extent), alive


def _four_axes(x: Float[Tensor, "*batch n d"], extent: Extent) -> Float[Tensor, "b h n d"]:
    if x.ndim == 4 and x.shape[:-2] == extent.batch:
        return x
    heads = extent.batch[-1] if extent.batch else 1
    return x.expand(*extent.batch, *x.shape[-2:]).reshape(prod(extent.batch[:-1]), heads, *x.shape[-2:])


def _mask_axes(table: Tensor, extent: Extent) -> Tensor:
    """Broadcast where four axes allow it; only more leading axes than that force a copy."""
    lead = table.shape[:-2]
    if len(extent.batch) > 2 and prod(lead) > 1:
        return _four_axes(table, extent)
    lead = lead[len(lead) - min(len(lead), 2) :]
    return table.reshape(*([1] * (2 - len(lead))), *lead, *table.shape[-2:])
