"""What the maps say in a few numbers: how widely a query spreads, which pattern a head follows, where layers lead."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.shapes import InputError


def entropy(weights: Float[Tensor, "*maps n_q n_k"]) -> Float[Tensor, "*maps n_q"]:
    """Of |w| / Σ|w|, in nats; 0 for a row without any weight."""
    size = weights.abs()
    share = size / size.sum(-1, keepdim=True).clamp(min=torch.finfo(size.dtype).tiny)
    return -torch.special.xlogy(share, share).sum(-1)


def patterns(weights: Float[Tensor, "maps n_q n_k"]) -> dict[str, Float[Tensor, " maps"]]:
    """The mean weight that a query gives to its own place, to the one before, and to the first key."""
    nothing = weights.new_zeros(len(weights))

    def mean(x: Tensor) -> Tensor:
        return x.mean(-1) if x.shape[-1] else nothing

    return {
        "diagonal": mean(weights.diagonal(dim1=-2, dim2=-1)),
        "previous": mean(weights.diagonal(-1, dim1=-2, dim2=-1)),
        "first": mean(weights[..., 0]) if weights.shape[-1] else nothing,
    }


def rollout(weights: Float[Tensor, "maps n n"], layers: Sequence[int]) -> Float[Tensor, "n n"]:
    """Attention rollout (Abnar and Zuidema 2020): the mean over the heads of each layer, half of it kept for the
    token itself (the residual connection), multiplied from the first layer to the last.

    >>> rollout(torch.eye(2)[[1, 0]][None], [0])  # one layer whose tokens look at each other
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    n = weights.shape[-1]
    if weights.shape[-2] != n:
        raise InputError(
            f"rollout: {weights.shape[-2]} queries and {n} keys; expected self-attention, with as many of both"
        )
    through = torch.eye(n)
    for layer in sorted(set(layers)):
        mean = weights[[i for i, its in enumerate(layers) if its == layer]].mean(0)
        step = mean + torch.eye(n)
        through = step / step.sum(-1, keepdim=True) @ through
    return through
