"""Where weights, or their derivatives, jump or have no bound: nobody can be exact there, and no derivative be checked."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard import normalizers


def distance_to_a_kink(normalizer: object, scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """How far the scores of each query (those of the keys it may attend to) are from the next one: [*batch, n_q]."""
    allowed = torch.ones_like(scores, dtype=torch.bool) if allowed is None else allowed.expand_as(scores)
    match normalizer:
        case normalizers.ReLU():
            distance = scores.abs()
        case normalizers.Hard() | normalizers.GumbelHard():
            first, second = scores.masked_fill(~allowed, -math.inf).topk(2).values.unbind(-1)
            return torch.where(first.isfinite(), first - second, math.inf)
        case normalizers.Entmax():
            alpha = normalizer.alpha
            weights, z = normalizer(scores, allowed), (alpha - 1) * scores
            # Inside the support z - τ = w^(α-1); any key inside thus tells τ to those outside.
            tau = torch.where(weights > 0, z - weights ** (alpha - 1), -math.inf).amax(-1, keepdim=True)
            distance = (z - tau).abs()
        case _:
            return torch.full(scores.shape[:-1], math.inf, device=scores.device)
    return distance.masked_fill(~allowed, math.inf).amin(-1)
