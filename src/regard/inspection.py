"""See the weights: dense when asked for, statistics without an n x n tensor otherwise."""

from __future__ import annotations

from types import ModuleType

import torch
from jaxtyping import Float
from torch import Tensor

from regard.backends import reference
from regard.core.formula import Call
from regard.core.memory import typed_out_of_memory
from regard.core.normalizers import Normalizer
from regard.core.shapes import InputError
from regard.core.statistics import Summary
from regard.dispatch import BACKENDS, choose
from regard.resolve import AnyMask, AnyScore, precisely, resolve


def attention_weights(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    *,
    score: AnyScore = None,
    normalizer: Normalizer | None = None,
    mask: AnyMask = None,
) -> Float[Tensor, "*batch n_q n_k"]:
    """The weight of every key for every query: n_q x n_k numbers, in float32 or better, differentiable.

    >>> import torch, regard
    >>> gpa = torch.tensor([[3.0], [3.4], [3.5], [4.0]])
    >>> regard.attention_weights(torch.tensor([[3.5]]), gpa, score=regard.scores.Gaussian(0.1)).round(decimals=3)
    tensor([[0.0000, 0.3780, 0.6220, 0.0000]])
    """
    with precisely(score, query, key) as (query, key):
        # The keys stand in for the values: weights do not depend on them.
        call, query, key, _ = resolve(query, key, key, score, normalizer, mask)
        with typed_out_of_memory(query, key, "attention_summary needs O(n), or ask for some of the queries"):
            return reference.rows(query, key, call)


def attention_summary(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    *,
    score: AnyScore = None,
    normalizer: Normalizer | None = None,
    mask: AnyMask = None,
    top: int = 8,
    pool: int = 64,
) -> Summary:
    """What the weights say, in memory O(n): log-sum-exp, entropy, the `top` keys of each query, the mass
    each key receives, and the map pooled to at most `pool` x `pool` cells. Not differentiable.

    >>> import torch, regard
    >>> x = torch.zeros(4, 2)
    >>> seen = regard.attention_summary(x, x, mask=regard.masks.causal(), top=1)
    >>> seen.entropy.exp()  # how many keys each query spreads over
    tensor([1., 2., 3., 4.])
    """
    for name, size, least in (("top", top, 0), ("pool", pool, 1)):
        if size < least:
            raise InputError(f"{name}={size}; expected {least} or more")
    with precisely(score, query, key) as (query, key):
        call, query, key, value = resolve(query, key, key, score, normalizer, mask)
        return _who_sees(query, key, value, call).summary(query, key, call, top, pool)


def _who_sees(query: Tensor, key: Tensor, value: Tensor, call: Call) -> ModuleType:
    """The backend that would attend; but torch's fused attention shows nothing of its weights, our kernels do."""
    with torch.no_grad():
        name, module = choose("auto", query, key, value, call)
        kernels = name == "sdpa" and query.is_cuda and BACKENDS["triton"].why_not(query, key, value, call) is None
    return BACKENDS["triton"] if kernels else module
