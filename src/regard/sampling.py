"""Hard attention by drawing: one key per query, with what REINFORCE needs to train it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard.core import noise
from regard.core.formula import Call, extent_of, rows_at_once, scored
from regard.core.normalizers import Hard, Softmax
from regard.core.shapes import Extent, wide
from regard.resolve import AnyMask, AnyScore, Seed, precisely, resolve, seed_tensor


@dataclass(frozen=True)
class Sample:
    """One key for each query. A query that may attend to none has index -1, output 0, log_prob 0."""

    output: Float[Tensor, "*batch n_q d_v"]
    index: Int[Tensor, "*batch n_q"]
    log_prob: Float[Tensor, "*batch n_q"]  # of the drawn key; differentiable
    entropy: Float[Tensor, "*batch n_q"]  # of the distribution it was drawn from; differentiable


def sample_attention(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    *,
    score: AnyScore = None,
    mask: AnyMask = None,
    seed: Seed = None,
) -> Sample:
    """Draw key i with probability softmax(scores)_i and return its value.

    The draw has no gradient. Train by REINFORCE: minimise
    `-(reward - baseline).detach() * sample.log_prob - beta * sample.entropy`.

    >>> import torch, regard
    >>> q, k, v = torch.tensor([[9.0]]), torch.tensor([[-9.0], [9.0]]), torch.tensor([[1.0], [2.0]])
    >>> sample = regard.sample_attention(q, k, v, seed=0)
    >>> sample.index.tolist(), sample.output.tolist()
    ([1], [[2.0]])
    """
    with precisely(score, query, key, value) as (query, key, value):
        call, query, key, value = resolve(query, key, value, score, Softmax(), mask)
        call = Call(call.score, call.normalizer, call.mask, seed=seed_tensor(seed, query.device))
        extent = extent_of(call.score, query, key)
        query, key = call.score.project(query, key)
        size = rows_at_once(extent, call.score.work(query.shape[-1]))
        parts: list[tuple[Tensor, Tensor, Tensor]] = []
        for start in range(0, max(extent.n_q, 1), size):
            rows = slice(start, min(start + size, extent.n_q))
            arguments = (query[..., rows, :], key, rows, call, extent)
            # Backward draws the same rows again from the seed, so that no n_q x n_k tensor is kept.
            again = torch.is_grad_enabled() and extent.n_q > size
            drawn = checkpoint(_draw, *arguments, use_reentrant=False) if again else _draw(*arguments)
            parts.append(drawn)  # type: ignore[arg-type]
        index, log_prob, entropy = (torch.cat(list(column), dim=-1) for column in zip(*parts, strict=True))
        return Sample(_take(value, index), index, log_prob, entropy)


def _draw(query: Tensor, key: Tensor, rows: slice, call: Call, extent: Extent) -> tuple[Tensor, Tensor, Tensor]:
    tile = extent.tile(torch.arange(rows.start, rows.stop, device=extent.device))
    scores, allowed = scored(query, key, tile, call)
    scores = wide(scores).expand(*extent.batch, -1, -1)
    exists = scores != float("-inf")
    allowed = exists if allowed is None else exists & allowed
    scores = scores.masked_fill(~allowed, 0.0)
    if extent.n_k == 0:
        none = scores.sum(-1)
        return torch.full_like(none, -1, dtype=torch.long), none, none
    assert call.seed is not None
    gumbel = -(-noise.uniform(call.seed, tile, noise.GUMBEL).log()).log()
    alive = allowed.any(-1)
    index = Hard().weigh((scores + gumbel).detach(), allowed).argmax(-1)  # the largest: one draw from softmax
    lse = torch.where(alive, Softmax().logsumexp(scores, allowed | ~alive[..., None]), 0.0)
    log_weights = torch.where(allowed, scores - lse[..., None], 0.0)
    log_prob = log_weights.gather(-1, index[..., None]).squeeze(-1)
    entropy = -torch.where(allowed, log_weights.exp() * log_weights, 0.0).sum(-1)
    return torch.where(alive, index, -1), log_prob, entropy


def _take(value: Float[Tensor, "*batch n_k d_v"], index: Int[Tensor, "*batch n_q"]) -> Tensor:
    """The value of each drawn key; zeros where none was drawn."""
    batch = torch.broadcast_shapes(value.shape[:-2], index.shape[:-1])
    value, index = value.expand(*batch, *value.shape[-2:]), index.expand(*batch, index.shape[-1])
    if value.shape[-2] == 0:
        return value.new_zeros(*batch, index.shape[-1], value.shape[-1])
    place = index.clamp(min=0)[..., None].expand(*index.shape, value.shape[-1])
    return torch.where((index >= 0)[..., None], value.gather(-2, place), 0.0)
