"""The formula step by step: a → q, k, v → α → α′ → b, every intermediate by its name.

Nothing is computed here that the library does not compute itself: the parts are those of `attention`,
and b is its output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.backends import reference
from regard.core.formula import scored, weigh
from regard.core.normalizers import Normalizer
from regard.core.scores import extent_of
from regard.core.shapes import InputError, ShapeError, wide
from regard.resolve import AnyMask, AnyScore, Seed, precisely, resolve

LAYOUTS = ("rows", "columns")


@dataclass(frozen=True)
class Steps:
    """One attention, opened. Shapes are those of layout="rows"; in "columns" every field is transposed:
    scores and weights are n_k x n_q, one column per query.

    With channels, q, k and v are n x M, and a score or a weight is 1 x M: there is one per channel.
    A position that no pair involves is 0 in q, k and v; a pair that is not allowed has a score all the
    same, which nothing uses.
    """

    a: Float[Tensor, "*batch n d"] | None  # the input; None if the queries, keys and values were given
    q: Float[Tensor, "*batch n_q d_q"]
    k: Float[Tensor, "*batch n_k d_k"]
    v: Float[Tensor, "*batch n_k d_v"]
    q_projected: Float[Tensor, "*batch n_q p"] | None  # what the score makes of q, once per token;
    k_projected: Float[Tensor, "*batch n_k p"] | None  # None if it takes q (or k) as it is
    scores: Float[Tensor, "*batch n_q n_k"]  # α
    allowed: Bool[Tensor, "*batch n_q n_k"] | None  # which pairs exist; None without a mask: all
    weights: Float[Tensor, "*batch n_q n_k"]  # α′
    b: Float[Tensor, "*batch n_q d_v"]  # the output


def step_by_step(
    a: Float[Tensor, "*batch n d"],
    w_q: Float[Tensor, "d d_q"],
    w_k: Float[Tensor, "d d_k"],
    w_v: Float[Tensor, "d d_v"],
    *,
    score: AnyScore = None,
    normalizer: Normalizer | None = None,
    mask: AnyMask = None,
    seed: Seed = None,
    channels: bool = False,
    layout: str = "rows",
) -> Steps:
    """Self-attention of the input a, for any score, normalizer and mask.

    `channels=True`: q, k, v are n x M, and each of the M channels attends for itself (M heads of width 1).
    `layout="columns"`: the words of a (d x n) are its columns, as are the queries of the weights, whose
    columns sum to 1. The matrices W stay d x d_q in both, so q = a W_q becomes q = W_qᵀ a.

    >>> import torch, regard
    >>> a = torch.tensor([[1.0], [0.0], [2.0]])  # three words, d = 1
    >>> one = torch.ones(1, 1)
    >>> s = step_by_step(a, one, 2 * one, 3 * one, normalizer=regard.normalizers.Identity())
    >>> s.scores  # q · k, with q = a and k = 2a
    tensor([[2., 0., 4.],
            [0., 0., 0.],
            [4., 0., 8.]])
    >>> s.b.mT  # 2·3 + 4·6 = 30, and so on
    tensor([[30.,  0., 60.]])
    """
    _check_layout(layout)
    for name, x in (("a", a), ("w_q", w_q), ("w_k", w_k), ("w_v", w_v)):
        if x.ndim < 2:
            raise ShapeError(f"{name} has shape {tuple(x.shape)}; expected a matrix; try {name}[:, None]")
    words = a.mT if layout == "columns" else a
    for name, w in (("w_q", w_q), ("w_k", w_k), ("w_v", w_v)):
        if w.shape[-2] != words.shape[-1]:
            axes = "d n" if layout == "columns" else "n d"
            raise ShapeError(
                f"{name} has d={w.shape[-2]}, a [{axes}] has d={words.shape[-1]}; expected {name} [d d_out] with "
                f"d={words.shape[-1]}; words are {layout} of a: try layout={_other(layout)!r} if they are not"
            )
    qkv = [words @ w for w in (w_q, w_k, w_v)]
    if layout == "columns":
        qkv = [x.mT for x in qkv]
    opened = steps(*qkv, score=score, normalizer=normalizer, mask=mask, seed=seed, channels=channels, layout=layout)
    return replace(opened, a=a)


def steps(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    *,
    score: AnyScore = None,
    normalizer: Normalizer | None = None,
    mask: AnyMask = None,
    seed: Seed = None,
    channels: bool = False,
    layout: str = "rows",
) -> Steps:
    """The same, from queries, keys and values that are already made.

    >>> import torch
    >>> x = torch.zeros(4, 2)
    >>> steps(x, x, x).weights[0]  # equal scores: 1/n
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    _check_layout(layout)
    with precisely(score, query, key, value) as (query, key, value):
        if layout == "columns":
            query, key, value = query.mT, key.mT, value.mT
        if channels:
            query, key, value = _channels_to_heads(query, key, value)
        call, query, key, value = resolve(query, key, value, score, normalizer, mask, seed=seed)
        extent = extent_of(call.score, query, key)
        pairs = extent.tile()  # every query with every key
        q, k = call.score.project(query, key)
        scores, allowed = scored(q, k, pairs, call)
        weights = weigh(q, k, pairs, call)
        b = reference.forward(query, key, value, call)

    whole = (*extent.batch, extent.n_q, extent.n_k)
    opened = {
        "q": query,
        "k": key,
        "v": value,
        "q_projected": None if _same(q, query) else q,
        "k_projected": None if _same(k, key) else k,
        "scores": scores.expand(whole),
        "allowed": None if allowed is None else allowed.expand(whole),
        "weights": weights.expand(whole),
        "b": b,
    }
    if channels:
        opened = {name: _heads_to_channels(name, x) for name, x in opened.items()}
    if layout == "columns":
        opened = {name: _transposed(name, x, channels) for name, x in opened.items()}
    return Steps(a=None, **opened)


def _same(projected: Tensor, x: Tensor) -> bool:
    return projected.shape == x.shape and torch.equal(projected, wide(x))


def _channels_to_heads(*qkv: Tensor) -> list[Tensor]:
    """n x M: one vector of M channels per word. M x n x 1: M heads of width 1."""
    sizes = [x.shape[-1] for x in qkv]
    if len(set(sizes)) > 1:
        raise ShapeError(
            f"channels: query, key and value have {sizes[0]}, {sizes[1]} and {sizes[2]} channels (last axis); "
            f"expected the same M; make W_q, W_k and W_v of one width"
        )
    return [x.mT[..., None] for x in qkv]


PER_PAIR = ("scores", "allowed", "weights")
PROJECTED = ("q_projected", "k_projected")


def _heads_to_channels(name: str, x: Tensor | None) -> Tensor | None:
    if x is None:
        return None
    if name in PER_PAIR:
        return x.movedim(-3, -1)  # M n_q n_k -> n_q n_k M
    if name in PROJECTED:
        return x.movedim(-3, -2)  # M n p -> n M p: a score may make several numbers of one
    return x.squeeze(-1).mT  # M n 1 -> n M


def _transposed(name: str, x: Tensor | None, channels: bool) -> Tensor | None:
    if x is None:
        return None
    return x.transpose(-3, -2) if channels and name in (*PER_PAIR, *PROJECTED) else x.mT


def _other(layout: str) -> str:
    return LAYOUTS[1 - LAYOUTS.index(layout)]


def _check_layout(layout: str) -> None:
    if layout not in LAYOUTS:
        raise InputError(f"layout={layout!r} is unknown; expected {' or '.join(map(repr, LAYOUTS))}")
