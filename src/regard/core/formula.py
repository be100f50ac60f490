"""The formula: Attention(q, D) = Σ_i weight(q, k_i) · v_i, for one tile of rows and all their columns.

`Call` holds the resolved parts of one attention call: defaults are filled in once, in dispatch, and
every backend receives the same.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import prod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.core import noise
from regard.core.mask import Mask
from regard.core.normalizers import Normalizer
from regard.core.scores import Score, extent_of
from regard.core.shapes import Extent, Tile, wide


@dataclass(frozen=True)
class Call:
    """One attention call with nothing left to default. A seed is present exactly when noise is needed."""

    score: Score
    normalizer: Normalizer
    mask: Mask | None
    dropout: float = 0.0
    seed: Tensor | None = None


def scored(
    query: Float[Tensor, "*batch r p"], key: Float[Tensor, "*batch c p"], tile: Tile, call: Call
) -> tuple[Float[Tensor, "*batch r c"], Bool[Tensor, "*batch r c"] | None]:
    """Scores of projected queries and keys, and which of the pairs exist."""
    return call.score.tile(query, key, tile), None if call.mask is None else call.mask.allowed(tile)


BUDGET = 2**22  # numbers held at once in one block of pairs: 16 MiB of float32


def rows_at_once(extent: Extent, work: int, budget: int = BUDGET) -> int:
    """How many rows of queries fit the budget, when each pair costs `work` numbers; at least one."""
    return max(1, min(extent.n_q, budget // max(1, prod(extent.batch) * extent.n_k * max(1, work))))


def weigh(
    query: Float[Tensor, "*batch r p"], key: Float[Tensor, "*batch c p"], tile: Tile, call: Call
) -> Float[Tensor, "*batch r c"]:
    """The weights of one tile, from projected queries and keys. All keys of a row must be in the tile."""
    return normalized(*scored(query, key, tile, call), tile, call)


def normalized(
    scores: Float[Tensor, "*batch r c"], allowed: Bool[Tensor, "*batch r c"] | None, tile: Tile, call: Call
) -> Float[Tensor, "*batch r c"]:
    """The weights from the scores: normalizer, then dropout."""
    drawn = None
    if call.normalizer.noisy and call.seed is not None:
        drawn = noise.uniform(call.seed, tile, noise.GUMBEL)
    weights = call.normalizer(scores, allowed, drawn)
    if call.dropout > 0 and call.seed is not None:
        kept = noise.uniform(call.seed, tile, noise.DROPOUT) >= call.dropout
        weights = torch.where(kept, weights, 0.0) / max(1 - call.dropout, 1e-38)
    return weights


def knows_autocast(device: str) -> bool:
    """Not every device does (meta). Compiled code is not asked: torch 2.11's tracer stops at the question."""
    return device != "meta" and (torch.compiler.is_compiling() or torch.amp.is_autocast_available(device))


def autocast_off(device: str) -> AbstractContextManager:
    """Plain precision inside; devices that know no autocast have nothing to switch off."""
    return torch.autocast(device, enabled=False) if knows_autocast(device) else nullcontext()


def blend(weights: Float[Tensor, "*batch r c"], value: Float[Tensor, "*batch c d_v"]) -> Float[Tensor, "*batch r d_v"]:
    """Σ_i weight_i · v_i, in float32 or better even where autocast is on for a score of one's own."""
    with autocast_off(weights.device.type):
        return wide(weights) @ wide(value)


def weights_of(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    call: Call,
    rows: Int[Tensor, " r"] | None = None,
) -> Float[Tensor, "*batch r n_k"]:
    """The weights of some queries (all, if none are named) over every key."""
    tile = extent_of(call.score, query, key).tile(rows)
    query, key = call.score.project(query, key)
    return weigh(query if rows is None else query[..., rows, :], key, tile, call)
