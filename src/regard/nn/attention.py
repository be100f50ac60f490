"""Attention as modules: one call with its parts, and many heads side by side with projections around."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.mask import HeadsOf, LastRows, Mask
from regard.core.masks import dense, per_head
from regard.core.noise import new_seed
from regard.core.normalizers import Normalizer, Softmax
from regard.core.products import Linear, linear
from regard.core.scores import Pairwise, ScaledDot, Score, as_score
from regard.core.shapes import InputError, ShapeError
from regard.dispatch import attention
from regard.nn.positions import Rotary
from regard.resolve import AnyMask


class Attention(nn.Module):
    """`regard.attention` with its parts held: draws noise in training, none in evaluation.

    Every attention of the library passes through here, which is where `regard.record` listens.
    """

    def __init__(
        self,
        score: Score | Pairwise | None = None,
        normalizer: Normalizer | None = None,
        dropout: float = 0.0,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        self.score = as_score(score)
        self.normalizer = Softmax() if normalizer is None else normalizer
        self.dropout, self.backend = dropout, backend

    def forward(
        self,
        query: Float[Tensor, "*batch n_q d_q"],
        key: Float[Tensor, "*batch n_k d_k"],
        value: Float[Tensor, "*batch n_k d_v"],
        mask: AnyMask = None,
    ) -> Float[Tensor, "*batch n_q d_v"]:
        dropout = self.dropout if self.training else 0.0
        noisy = dropout > 0 or (self.training and self.normalizer.noisy)
        return attention(
            query,
            key,
            value,
            score=self.score,
            normalizer=self.normalizer,
            mask=mask,
            dropout=dropout,
            seed=new_seed(query.device) if noisy else None,
            backend=self.backend,
        )

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}, backend={self.backend!r}"


@dataclass
class Cache:
    """Keys and values that one attention has already projected, for decoding a step at a time."""

    key: Float[Tensor, "*batch heads n d_k"] | None = None
    value: Float[Tensor, "*batch heads n d_v"] | None = None

    def __len__(self) -> int:
        return 0 if self.key is None else self.key.shape[-2]

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if self.key is not None and self.value is not None:
            key, value = torch.cat([self.key, key], dim=-2), torch.cat([self.value, value], dim=-2)
        self.key, self.value = key, value
        return key, value

    def select(self, rows: Int[Tensor, " m"]) -> None:
        """Keep these batch elements, in this order: what beam search does after each step."""
        if self.key is not None and self.value is not None:
            self.key, self.value = self.key[rows], self.value[rows]


class MultiHeadAttention(nn.Module):
    """Heads side by side, each with its own W_q, W_k, W_v; concatenated; then W_o.

    Self-attention by default: `forward(x)`. Cross-attention: `forward(x, memory)`, of widths `d_key` and
    `d_value` if they differ from `d`. Each head works in `d_head` (queries and keys) and `d_v` (values)
    dimensions, by default d / heads; `heads=d, d_head=1` is the lecture's 1 x M vector of scores.
    `key_heads` below `heads` share keys among groups of queries. `score` and `mask` may be lists, one
    for each head: heads of different kinds and scopes.

    >>> import torch
    >>> attention = MultiHeadAttention(8, heads=2)
    >>> attention(torch.randn(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        d: int,
        heads: int,
        *,
        d_head: int | None = None,
        d_v: int | None = None,
        d_out: int | None = None,
        d_key: int | None = None,
        d_value: int | None = None,
        key_heads: int | None = None,
        score: Score | Pairwise | Sequence[Score | Pairwise] | None = None,
        normalizer: Normalizer | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        rotary: Rotary | None = None,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        if d_head is None and d % heads:
            raise ShapeError(f"d={d} does not divide into heads={heads}; give d_head, or heads that divide {d}")
        self.heads, self.key_heads = heads, heads if key_heads is None else key_heads
        if self.key_heads < 1 or heads % self.key_heads:
            raise ShapeError(f"key_heads={key_heads} does not divide heads={heads}")
        d_head = d // heads if d_head is None else d_head
        d_v = d_head if d_v is None else d_v
        d_key = d if d_key is None else d_key
        d_value = d_key if d_value is None else d_value
        self.d_head, self.d_v, self.rotary = d_head, d_v, rotary
        self.w_q = Linear(d, heads * d_head, bias=bias)
        self.w_k = Linear(d_key, self.key_heads * d_head, bias=bias)
        self.w_v = Linear(d_value, self.key_heads * d_v, bias=bias)
        self.w_o = Linear(heads * d_v, d if d_out is None else d_out, bias=bias)
        scores = _per_head(score, heads)
        if len(scores) > 1 and normalizer is not None and normalizer.heads is not None:
            raise InputError(
                f"normalizer has heads={normalizer.heads}, and each score of the list its own copy of it; "
                f"expected a normalizer for one head (heads=None)"
            )
        self.attentions = nn.ModuleList(
            Attention(score, copy.deepcopy(normalizer), dropout, backend) for score in scores
        )

    def forward(
        self,
        query: Float[Tensor, "*batch n_q d"],
        key: Float[Tensor, "*batch n_k d_key"] | None = None,
        value: Float[Tensor, "*batch n_k d_value"] | None = None,
        *,
        mask: AnyMask | Sequence[Mask] = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "*batch n_q d_out"]:
        """With a cache, self-attention appends its new keys and values to those it has, and a mask
        speaks of the whole sequence so far, whose last queries these are. Cross-attention projects the
        memory at the first step and then only reads it."""
        mask = mask if mask is None or isinstance(mask, Mask | Tensor) else per_head(mask)
        if cache is None:
            q, k, v = self.project(query, key, value)
        elif key is None:
            q, k, v = self.project(query, value=value, offset=len(cache))
            k, v = cache.append(k, v)
            if isinstance(mask, Mask) and q.shape[-2] != k.shape[-2]:
                mask = LastRows(mask)
        else:
            q, k, v = self._read(query, key, value, cache)
        return self.w_o(self._heads(q, k, v, mask).transpose(-3, -2).flatten(-2))  # *batch n_q heads·d_v

    def _read(self, query: Tensor, key: Tensor, value: Tensor | None, cache: Cache) -> tuple[Tensor, Tensor, Tensor]:
        if self.rotary is not None:
            raise InputError(
                "rotary with a cache: where do the queries stand among another sequence's keys? use rotary=None"
            )
        if cache.key is not None and cache.value is not None:
            return self._split(self.w_q(query), self.heads), cache.key, cache.value
        q, k, v = self.project(query, key, value)
        return q, *cache.append(k, v)

    def project(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, offset: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of all heads: (*batch, heads, n, width)."""
        key = query if key is None else key
        value = key if value is None else value
        if query is key is value:
            q, k, v = _together(query, self.w_q, self.w_k, self.w_v)
        elif key is value:
            q, (k, v) = self.w_q(query), _together(key, self.w_k, self.w_v)
        else:
            q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        q, k, v = self._split(q, self.heads), self._split(k, self.key_heads), self._split(v, self.key_heads)
        if self.rotary is not None:
            q, k = self.rotary(q, k, offset=offset)
        return q, k, v

    def _split(self, x: Float[Tensor, "*batch n hd"], heads: int) -> Float[Tensor, "*batch heads n d"]:
        return x.unflatten(-1, (heads, -1)).transpose(-3, -2)

    def _heads(self, q: Tensor, k: Tensor, v: Tensor, mask: AnyMask) -> Tensor:
        if len(self.attentions) == 1:
            return self.attentions[0](q, k, v, mask=mask)
        # Heads with scores of their own run apart, each at the speed of its own score.
        group = self.heads // self.key_heads
        outs = []
        for head, one in enumerate(self.attentions):
            keys = slice(head // group, head // group + 1)
            here = slice(head, head + 1)
            outs.append(
                one(q[..., here, :, :], k[..., keys, :, :], v[..., keys, :, :], mask=_cut(mask, head, self.heads))
            )
        return torch.cat(outs, dim=-3)


def plain(attention: MultiHeadAttention) -> bool:
    """Nothing but softmax(q kᵀ / √d): each query for itself, wherever it stands."""
    (one, *more) = attention.attentions
    normalizer = one.normalizer
    usual = type(one.score) is ScaledDot and type(normalizer) is Softmax and normalizer.sink is None
    return not more and usual and not (one.training and one.dropout)


def _together(x: Tensor, *layers: nn.Linear) -> Sequence[Tensor]:
    """What each layer makes of x. In training by one product of their weights side by side: a GPU is busier
    with one large product than with several small ones. A decoding step would only copy weights."""
    ours = all(type(layer) is Linear and not layer._forward_hooks for layer in layers)
    if not (ours and torch.is_grad_enabled()):
        return [layer(x) for layer in layers]
    weight = torch.cat([layer.weight for layer in layers])
    bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
    return linear(x, weight, bias).split([layer.out_features for layer in layers], dim=-1)


def _per_head(score: object, heads: int) -> list:
    if not isinstance(score, list | tuple):
        return [score]
    if len(score) != heads:
        raise InputError(f"score: a list of {len(score)} for heads={heads}; expected one for each head")
    return list(score)


def _cut(mask: AnyMask, head: int, heads: int) -> AnyMask:
    """The mask or bias of one head."""
    if isinstance(mask, Tensor) and mask.dtype == torch.bool:
        mask = dense(mask)
    if isinstance(mask, Tensor):
        return mask[..., head : head + 1, :, :] if mask.ndim > 2 and mask.shape[-3] == heads else mask
    return None if mask is None else HeadsOf(mask, head, 1, heads)


class LengthMap(nn.Module):
    """Output of another length: b′[m, c] = Σ_i Σ_v W_o[m, i, c, v] · b[i, v], from n attended positions to
    n_out positions over d_out words. n is a maximum; a shorter input counts as padded with zeros.
    A softmax over the last axis reads off one word for each output position.
    """

    def __init__(self, n: int, n_out: int, d_v: int, d_out: int) -> None:
        super().__init__()
        self.n, self.d_v = n, d_v
        bound = (n * d_v) ** -0.5
        self.w_o = nn.Parameter(torch.empty(n_out, n, d_out, d_v).uniform_(-bound, bound))

    def forward(
        self, b: Float[Tensor, "*batch n d_v"], lengths: Int[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch n_out d_out"]:
        here, d_v = b.shape[-2:]
        if here > self.n:
            raise ShapeError(
                f"b has n={here}, LengthMap was made for at most n={self.n}; cut b, or make LengthMap(n={here}, ...)"
            )
        if d_v != self.d_v:
            raise ShapeError(f"b has d_v={d_v}, LengthMap was made for d_v={self.d_v}")
        if lengths is not None:
            real = torch.arange(here, device=b.device) < lengths[..., None]  # *batch n
            b = torch.where(real[..., None], b, 0.0)
        return torch.einsum("micv,...iv->...mc", self.w_o[:, :here], b)
