"""What there is to know about the weights without holding them: computed in tiles of rows, O(n) kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.formula import Call, extent_of, normalized, rows_at_once, scored
from regard.core.normalizers import Softmax
from regard.core.shapes import Tile, wide

Weigh = Callable[[Tensor], tuple[Tensor, Tensor | None]]  # rows -> (their weights, for softmax their lse)


@dataclass(frozen=True)
class Summary:
    """Statistics of one attention. A row without any weight has lse -inf, entropy 0, index -1."""

    lse: Float[Tensor, "*batch n_q"] | None  # log Σ exp(score), for softmax; else None
    entropy: Float[Tensor, "*batch n_q"]  # of |w| / Σ|w|, in nats
    top_weights: Float[Tensor, "*batch n_q top"]  # largest |w| first, with their sign
    top_indices: Int[Tensor, "*batch n_q top"]
    mass: Float[Tensor, "*batch n_k"]  # weight received by each key, summed over queries
    pooled: Float[Tensor, "*batch p_q p_k"]  # cells of the map: summed over keys, averaged over queries


@torch.no_grad()
def summarize(
    query: Tensor, key: Tensor, call: Call, top: int, pool: int, block: int | None = None, weigh: Weigh | None = None
) -> Summary:
    """The statistics, from tiles of `block` rows (by default as many as the budget
    allows); query and key are not yet projected. A backend may `weigh` rows itself."""
    extent = extent_of(call.score, query, key)
    if weigh is None:
        query, key = call.score.project(query, key)
    block = rows_at_once(extent, call.score.work(query.shape[-1]) if weigh is None else 1) if block is None else block
    n_q, n_k, batch, device = extent.n_q, extent.n_k, extent.batch, extent.device
    top = min(top, n_k)
    dtype = wide(query).dtype
    of_key = cells_of(n_k, pool, device)
    of_query = cells_of(n_q, pool, device)
    cells_q, cells_k = min(pool, n_q), min(pool, n_k)
    mass = torch.zeros(*batch, n_k, dtype=dtype, device=device)
    pooled = torch.zeros(*batch, cells_q, cells_k, dtype=dtype, device=device)
    lse, entropy, top_weights, top_indices = [], [], [], []
    for start in range(0, n_q, block):
        tile = extent.tile(rows=torch.arange(start, min(start + block, n_q), device=device))
        if weigh is None:
            weights, of_rows = _weigh(query[..., start : start + block, :], key, tile, call)
        else:
            weights, of_rows = weigh(tile.rows)
        weights = weights.expand(*batch, -1, -1)
        if of_rows is not None:
            lse.append(of_rows.expand(*batch, -1))
        size = weights.abs()
        share = size / size.sum(-1, keepdim=True).clamp(min=torch.finfo(dtype).tiny)
        entropy.append(-torch.special.xlogy(share, share).sum(-1))
        best = size.topk(top, dim=-1).indices
        chosen = weights.gather(-1, best)
        top_weights.append(chosen)
        top_indices.append(torch.where(chosen != 0, best, -1))
        mass += weights.sum(-2)
        narrow = torch.zeros(*batch, len(tile.rows), cells_k, dtype=dtype, device=device)
        narrow.index_add_(-1, of_key, weights)
        pooled.index_add_(-2, of_query[tile.rows], narrow)
    per_cell = torch.bincount(of_query, minlength=cells_q).to(dtype)
    empty = torch.zeros(*batch, 0, dtype=dtype, device=device)
    return Summary(
        (torch.cat(lse, -1) if lse else empty) if isinstance(call.normalizer, Softmax) else None,
        torch.cat([*entropy, empty], -1),
        torch.cat([*top_weights, empty.new_zeros(*batch, 0, top)], -2),
        torch.cat([*top_indices, torch.zeros(*batch, 0, top, dtype=torch.long, device=device)], -2),
        mass,
        pooled / per_cell[:, None],
    )


def _weigh(query: Tensor, key: Tensor, tile: Tile, call: Call) -> tuple[Tensor, Tensor | None]:
    scores, allowed = scored(query, key, tile, call)
    lse = _lse(call.normalizer, scores, allowed) if isinstance(call.normalizer, Softmax) else None
    return normalized(scores, allowed, tile, call), lse


def cells_of(n: int, pool: int, device: torch.device) -> Int[Tensor, " n"]:
    """Which cell of the pooled map each position falls into: min(pool, n) cells of nearly equal size."""
    return torch.arange(n, device=device) * min(pool, n) // max(n, 1)


def _lse(normalizer: Softmax, scores: Tensor, allowed: Tensor | None) -> Float[Tensor, "*batch r"]:
    exists = scores != float("-inf")
    return normalizer.logsumexp(scores, exists if allowed is None else exists & allowed)
