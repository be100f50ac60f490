"""How well a key answers a query: s(q, k).

A score works in two steps. `project` is done once per token (W q, a gate's share, a scale); `pair`
once per pair, and is all that a kernel must know. To make your own, write `pair`; or pass any function
(query, key) -> scores that looks at each pair alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.biases import Bias
from regard.core.parts import Part, described
from regard.core.products import linear
from regard.core.shapes import DTypeError, Extent, InputError, ShapeError, Tile, common_batch, real, sizes, wide

__all__ = [
    "Additive",
    "Bilinear",
    "Dot",
    "Exact",
    "Gated",
    "Gaussian",
    "ScaledDot",
    "Score",
    "SoftCap",
    "TanhSum",
]

Pairwise = Callable[[Tensor, Tensor], Tensor]


class Score(nn.Module, Part):
    """Base of all scores; `heads=None` shares parameters over heads, `heads=h` has a set per head (axis -3)."""

    heads: int | None = None

    def project(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """What is computed once per token, at least in float32."""
        return wide(query), wide(key)

    def pair(self, query: Float[Tensor, "*batch r p"], key: Float[Tensor, "*batch c p"]) -> Float[Tensor, "*batch r c"]:
        raise NotImplementedError(f"{type(self).__name__} must define pair(query, key)")

    def tile(self, query: Tensor, key: Tensor, tile: Tile) -> Float[Tensor, "*batch r c"]:
        """The scores of one tile, from projected queries and keys. Parts that depend on position look at `tile`."""
        return wide(self.pair(query, key))

    def forward(self, query: Float[Tensor, "*batch n_q d_q"], key: Float[Tensor, "*batch n_k d_k"]) -> Tensor:
        self.check(query, key)
        extent = extent_of(self, query, key)
        self.check_extent(extent)
        return self.tile(*self.project(query, key), extent.tile())

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise if the widths do not fit."""

    def check_extent(self, extent: Extent) -> None:
        """Raise if a part that depends on position cannot serve a problem of this extent."""

    def work(self, width: int) -> int:
        """Numbers held at once for each pair, given the projected width: plans the size of tiles."""
        return width

    def __add__(self, bias: Bias) -> Score:
        if not isinstance(bias, Bias):
            raise DTypeError(
                f"score + {type(bias).__name__}: expected a bias such as Alibi(heads); a float tensor goes into mask="
            )
        return Biased(self, bias)

    __radd__ = __add__

    def extra_repr(self) -> str:
        return described(self)

    def _equal_widths(self, query: Tensor, key: Tensor) -> None:
        d_q, d_k = query.shape[-1], key.shape[-1]
        if d_q != d_k:
            raise ShapeError(
                f"key has d_k={d_k}, query has d_q={d_q}: {type(self).__name__} needs equal sizes; try Bilinear({d_q}, {d_k})"
            )

    def _widths(self, query: Tensor, key: Tensor, d_q: int, d_k: int) -> None:
        for name, tensor, axis, width in (("query", query, "d_q", d_q), ("key", key, "d_k", d_k)):
            if tensor.shape[-1] != width:
                raise ShapeError(
                    f"{name} has {axis}={tensor.shape[-1]}, {type(self).__name__} was made for {axis}={width}"
                )


def _parameter(*shape: int, heads: int | None, fan_in: int) -> nn.Parameter:
    """Uniform in ±1/sqrt(fan_in), with a leading axis for heads when each has its own."""
    bound = 1 / math.sqrt(max(fan_in, 1))
    shape = shape if heads is None else (heads, *shape)
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def _apply(x: Float[Tensor, "*batch n d"], weight: Float[Tensor, "*heads d out"]) -> Float[Tensor, "*batch n out"]:
    weight = weight.to(x.dtype)
    return linear(x, weight.mT) if weight.ndim == 2 else x @ weight


class Dot(Score):
    """s = q · k"""

    def check(self, query: Tensor, key: Tensor) -> None:
        self._equal_widths(query, key)

    def pair(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.mT

    def work(self, width: int) -> int:
        return 1


class ScaledDot(Dot):
    """s = q · k / √d_k, or q · k · scale"""

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        self.scale = None if scale is None else real("ScaledDot", "scale", scale)

    def factor(self, d_k: int) -> float:
        return self.scale if self.scale is not None else 1 / math.sqrt(max(d_k, 1))

    def project(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        return wide(query) * self.factor(key.shape[-1]), wide(key)


class Bilinear(Dot):
    """s = qᵀ W k: Luong's "general" score. W folds into the query, so a pair costs a dot product."""

    def __init__(self, d_q: int, d_k: int, heads: int | None = None) -> None:
        super().__init__()
        sizes("Bilinear", d_q=d_q, d_k=d_k, heads=1 if heads is None else heads)
        self.heads, self.d_q, self.d_k = heads, d_q, d_k
        self.weight = _parameter(d_q, d_k, heads=heads, fan_in=d_q)

    def check(self, query: Tensor, key: Tensor) -> None:
        self._widths(query, key, self.d_q, self.d_k)

    def project(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        return _apply(wide(query), self.weight), wide(key)


class TanhSum(Score):
    """s = vᵀ tanh(q + k): additive attention on vectors of one size, without projections.
    With d = 1 it is the scalar form w · tanh(q + k)."""

    fields = ("v",)

    def __init__(self, d: int, heads: int | None = None) -> None:
        super().__init__()
        sizes(type(self).__name__, d=d, heads=1 if heads is None else heads)
        self.heads = heads
        self.v = _parameter(d, heads=heads, fan_in=d)

    def check(self, query: Tensor, key: Tensor) -> None:
        self._widths(query, key, self.v.shape[-1], self.v.shape[-1])

    def pair(self, query: Tensor, key: Tensor) -> Tensor:
        units, v = torch.tanh(query[..., :, None, :] + key[..., None, :, :]), self.v
        v = v.to(units.dtype)
        if v.ndim > 1:  # row by row, so that the gradient of v is a sum of short sums, which lose fewer digits
            return (units @ v[..., None, :, None]).squeeze(-1)
        # One matrix-vector product over all pairs: the same numbers as `units @ v`, twice as fast to train.
        scores = units.flatten(-3, -2) @ v[:, None]
        return scores.reshape(*scores.shape[:-2], *units.shape[-3:-1])


class Additive(TanhSum):
    """s = vᵀ tanh(W_q q + W_k k + b): Bahdanau's score, with a hidden size of its own."""

    def __init__(self, d_q: int, d_k: int, hidden: int, heads: int | None = None) -> None:
        sizes("Additive", d_q=d_q, d_k=d_k, hidden=hidden)
        super().__init__(hidden, heads)
        self.d_q, self.d_k, self.hidden = d_q, d_k, hidden
        self.w_q = _parameter(d_q, hidden, heads=heads, fan_in=d_q)
        self.w_k = _parameter(d_k, hidden, heads=heads, fan_in=d_k)
        self.b = nn.Parameter(torch.zeros(1, hidden) if heads is None else torch.zeros(heads, 1, hidden))

    def check(self, query: Tensor, key: Tensor) -> None:
        self._widths(query, key, self.d_q, self.d_k)

    def project(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        query, key = wide(query), wide(key)
        return _apply(query, self.w_q) + self.b.to(query.dtype), _apply(key, self.w_k)


class Gated(Score):
    """s = g · (qᵀk), g = σ(W_g [q; k]). The gate's argument splits into a share of q and a share of k,
    each computed once per token and carried as the last column."""

    def __init__(self, d_q: int, d_k: int, heads: int | None = None) -> None:
        super().__init__()
        if d_q != d_k:
            raise ShapeError(f"Gated: d_q={d_q}, d_k={d_k}: the dot product inside needs equal sizes")
        sizes("Gated", d_q=d_q, heads=1 if heads is None else heads)
        self.heads, self.d_q, self.d_k = heads, d_q, d_k
        self.gate = _parameter(d_q + d_k, 1, heads=heads, fan_in=d_q + d_k)

    def check(self, query: Tensor, key: Tensor) -> None:
        self._widths(query, key, self.d_q, self.d_k)

    def project(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        query, key = wide(query), wide(key)
        share_q = _apply(query, self.gate[..., : self.d_q, :])
        share_k = _apply(key, self.gate[..., self.d_q :, :])
        return _with_column(query, share_q), _with_column(key, share_k)

    def pair(self, query: Tensor, key: Tensor) -> Tensor:
        gate = torch.sigmoid(query[..., :, None, -1] + key[..., None, :, -1])
        return gate * (query[..., :-1] @ key[..., :-1].mT)

    def work(self, width: int) -> int:
        return 3


def _with_column(x: Float[Tensor, "*b n d"], column: Float[Tensor, "*c n 1"]) -> Float[Tensor, "*bc n d1"]:
    return torch.cat([x.expand(*column.shape[:-1], x.shape[-1]), column], dim=-1)


class Gaussian(Score):
    """s = -‖q - k‖² / 2σ²: under softmax, the weights of kernel regression."""

    fields = ("sigma",)

    def __init__(self, sigma: float = 1.0) -> None:
        super().__init__()
        self.sigma = real("Gaussian", "sigma", sigma)
        if not (sigma > 0 and sigma**2 > 0):
            raise InputError(f"Gaussian: sigma={sigma}; expected more than 0 (and sigma² too, in float64)")

    def check(self, query: Tensor, key: Tensor) -> None:
        self._equal_widths(query, key)

    def pair(self, query: Tensor, key: Tensor) -> Tensor:
        # By differences: expanding the square would lose all digits of near neighbours far from 0.
        return (query[..., :, None, :] - key[..., None, :, :]).square().sum(-1) / (-2 * self.sigma**2)


class Exact(Score):
    """s = 1 where key == query, else 0: with `Identity()`, an ordinary table lookup."""

    def check(self, query: Tensor, key: Tensor) -> None:
        self._equal_widths(query, key)

    def pair(self, query: Tensor, key: Tensor) -> Tensor:
        return (query[..., :, None, :] == key[..., None, :, :]).all(-1).to(query.dtype)


class Function(Score):
    """Any function (query, key) -> scores, with the queries and keys as the caller gave them."""

    fields = ("function",)

    def __init__(self, function: Pairwise) -> None:
        super().__init__()
        self.function = function

    def project(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        return query, key

    def pair(self, query: Tensor, key: Tensor) -> Tensor:
        scores: Any = self.function(query, key)
        r, c = query.shape[-2], key.shape[-2]
        if not isinstance(scores, Tensor) or scores.shape[-2:] != (r, c):
            came = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise ShapeError(
                f"your score returned {came}; expected a tensor [..., n_q={r}, n_k={c}], one score per pair"
            )
        return scores


class _Wrapped(Score):
    """A score around a score."""

    def __init__(self, score: Score | Pairwise) -> None:
        super().__init__()
        self.score = as_score(score)

    def project(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        return self.score.project(query, key)

    def check(self, query: Tensor, key: Tensor) -> None:
        self.score.check(query, key)

    def check_extent(self, extent: Extent) -> None:
        self.score.check_extent(extent)

    def work(self, width: int) -> int:
        return self.score.work(width)


class Biased(_Wrapped):
    """s(q, k) + a bias that depends on where the two stand: written `score + Alibi(heads)`."""

    fields = ("score", "bias")

    def __init__(self, score: Score | Pairwise, bias: Bias) -> None:
        super().__init__(score)
        self.bias = bias
        if self.score.heads is not None and bias.heads is not None and self.score.heads != bias.heads:
            raise ShapeError(f"score has heads={self.score.heads}, the bias has heads={bias.heads}; give both the same")
        self.heads = self.score.heads if self.score.heads is not None else bias.heads

    def check_extent(self, extent: Extent) -> None:
        self.score.check_extent(extent)
        self.bias.check(extent)

    def tile(self, query: Tensor, key: Tensor, tile: Tile) -> Tensor:
        scores = self.score.tile(query, key, tile)
        return scores + self.bias(tile).to(scores.dtype)


class SoftCap(_Wrapped):
    """s = cap · tanh(score / cap): scores stay within ±cap."""

    fields = ("score", "cap")

    def __init__(self, score: Score | Pairwise, cap: float) -> None:
        super().__init__(score)
        self.cap, self.heads = real("SoftCap", "cap", cap, above=0), self.score.heads

    def tile(self, query: Tensor, key: Tensor, tile: Tile) -> Tensor:
        return self.cap * torch.tanh(self.score.tile(query, key, tile) / self.cap)


def extent_of(score: Score, query: Tensor, key: Tensor) -> Extent:
    """The leading axes of the scores: those of query and key, and the score's own heads."""
    batch = common_batch(query=query, key=key)
    if score.heads is not None:
        batch = tuple(torch.broadcast_shapes(batch, (score.heads,)))
    return Extent(batch, query.shape[-2], key.shape[-2], query.device)


def as_score(score: Score | Pairwise | None) -> Score:
    """The default, a score, or any function of (query, key)."""
    if score is None:
        return ScaledDot()
    if isinstance(score, Score):
        return score
    if isinstance(score, type) and issubclass(score, Score):
        raise DTypeError(f"score={score.__name__} is a class; expected an object: {score.__name__}(...)")
    if callable(score):
        return Function(score)
    raise DTypeError(
        f"score is {type(score).__name__}; expected a score such as ScaledDot(), or a function (query, key) -> scores"
    )
