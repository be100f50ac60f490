"""The formula, line by line. Every other backend is checked against this one; it is meant to be read."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from regard.core.formula import Call, blend, extent_of, weigh, weights_of
from regard.core.statistics import Summary, summarize


def forward(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    call: Call,
) -> Float[Tensor, "*batch n_q d_v"]:
    pairs = extent_of(call.score, query, key).tile()  # every query with every key
    query, key = call.score.project(query, key)  # once per token
    weights = weigh(query, key, pairs, call)  # once per pair: score, mask, normalizer
    return blend(weights, value).to(value.dtype)


def rows(
    query: Tensor, key: Tensor, call: Call, rows: Int[Tensor, " r"] | None = None
) -> Float[Tensor, "*batch r n_k"]:
    return weights_of(query, key, call, rows)


def summary(query: Tensor, key: Tensor, call: Call, top: int, pool: int) -> Summary:
    return summarize(query, key, call, top, pool, block=max(query.shape[-2], 1))


def why_not(query: Tensor, key: Tensor, value: Tensor, call: Call) -> str | None:
    return None
