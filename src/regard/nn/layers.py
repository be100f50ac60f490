"""Layers of a Transformer: attention and feed-forward, each with a residual and a norm around it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.core.biases import Alibi
from regard.core.products import Linear
from regard.core.scores import as_score
from regard.core.shapes import InputError
from regard.nn.attention import Cache, MultiHeadAttention
from regard.nn.positions import Rotary
from regard.resolve import AnyMask

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    """W_2 activation(W_1 x): each position for itself."""

    def __init__(self, d: int, hidden: int, dropout: float = 0.0, activation: str = "relu", bias: bool = True) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise InputError(f"activation={activation!r}; expected one of {', '.join(ACTIVATIONS)}")
        self.w_1, self.w_2 = Linear(d, hidden, bias=bias), Linear(hidden, d, bias=bias)
        self.dropout, self.activation = nn.Dropout(dropout), activation

    def forward(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        return self.w_2(self.dropout(ACTIVATIONS[self.activation](self.w_1(x))))


class Residual(nn.Module):
    """x + f(norm(x)) (norm="pre"), or norm(x + f(x)) (norm="post")."""

    def __init__(self, d: int, dropout: float, norm: str, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        if norm not in ("pre", "post"):
            raise InputError(f"norm={norm!r}; expected 'pre' or 'post'")
        self.norm, self.dropout, self.order = nn.LayerNorm(d, eps=eps, bias=bias), nn.Dropout(dropout), norm

    def forward(self, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        if self.order == "pre":
            return x + self.dropout(f(self.norm(x)))
        return self.norm(x + self.dropout(f(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward. `parts` go to MultiHeadAttention: score, normalizer, rotary, …

    `dropout` is for what flows along the layer, `attention_dropout` for the weights. The second is 0 unless
    asked for: torch's fused attention cannot draw it from a seed, and the first does its work.
    """

    def __init__(
        self,
        d: int,
        heads: int,
        hidden: int,
        *,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        norm: str = "pre",
        activation: str = "relu",
        bias: bool = True,
        eps: float = 1e-5,
        **parts: Any,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d, heads, bias=bias, dropout=attention_dropout, **parts)
        self.feed_forward = FeedForward(d, hidden, dropout, activation, bias)
        self.around_attention = Residual(d, dropout, norm, eps, bias)
        self.around_feed_forward = Residual(d, dropout, norm, eps, bias)

    def forward(
        self, x: Float[Tensor, "*batch n d"], mask: AnyMask = None, cache: Cache | None = None
    ) -> Float[Tensor, "*batch n d"]:
        x = self.around_attention(x, lambda x: self.attention(x, mask=mask, cache=cache))
        return self.around_feed_forward(x, self.feed_forward)


@dataclass
class LayerCache:
    """What a decoder layer keeps between steps."""

    itself: Cache = field(default_factory=Cache)
    memory: Cache = field(default_factory=Cache)

    def select(self, rows: Int[Tensor, " m"]) -> None:
        self.itself.select(rows)
        self.memory.select(rows)


class DecoderLayer(nn.Module):
    """Self-attention over what is written so far, cross-attention to the memory, feed-forward.

    Both attentions get the `parts`, each its own copy; `cross` replaces some of them between the texts.
    """

    def __init__(
        self,
        d: int,
        heads: int,
        hidden: int,
        *,
        d_memory: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        norm: str = "pre",
        activation: str = "relu",
        bias: bool = True,
        eps: float = 1e-5,
        cross: dict[str, Any] | None = None,
        **parts: Any,
    ) -> None:
        super().__init__()
        parts = {"dropout": attention_dropout, **parts}
        # Distances between two texts mean nothing: rotary positions stay within one.
        between = {"d_key": d_memory, **copy.deepcopy(parts), "rotary": None, **(cross or {})}
        self.attention = MultiHeadAttention(d, heads, bias=bias, **parts)
        self.cross_attention = MultiHeadAttention(d, heads, bias=bias, **between)
        self.feed_forward = FeedForward(d, hidden, dropout, activation, bias)
        self.around_attention = Residual(d, dropout, norm, eps, bias)
        self.around_cross_attention = Residual(d, dropout, norm, eps, bias)
        self.around_feed_forward = Residual(d, dropout, norm, eps, bias)

    def forward(
        self,
        x: Float[Tensor, "*batch n d"],
        memory: Float[Tensor, "*batch n_k d_memory"],
        mask: AnyMask = None,
        memory_mask: AnyMask = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        itself, before = (None, None) if cache is None else (cache.itself, cache.memory)

        def read(x: Tensor) -> Tensor:
            # With a cache, rows side by side may share a memory: they are its queries.
            rows = x if cache is None or len(x) == len(memory) else x.reshape(len(memory), -1, x.shape[-1])
            return self.cross_attention(rows, memory, mask=memory_mask, cache=before).reshape(x.shape)

        x = self.around_attention(x, lambda x: self.attention(x, mask=mask, cache=itself))
        x = self.around_cross_attention(x, read)
        return self.around_feed_forward(x, self.feed_forward)


class _Stack(nn.Module):
    """Layers one after another, each with its own copy of the parts; pre-norm layers need a last norm."""

    def __init__(self, layers: Sequence[nn.Module], d: int, norm: str, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(d, eps=eps, bias=bias) if norm == "pre" else nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)


class EncoderStack(_Stack):
    """`layers` encoder layers. `position`: "rotary", "alibi" (both act inside the attention) or None."""

    def __init__(
        self,
        layers: int,
        d: int,
        heads: int,
        hidden: int,
        *,
        position: str | None = None,
        norm: str = "pre",
        **parts: Any,
    ) -> None:
        parts = positioned(position, d, heads, parts)
        each = [EncoderLayer(d, heads, hidden, norm=norm, **copy.deepcopy(parts)) for _ in range(layers)]
        super().__init__(each, d, norm, parts.get("eps", 1e-5), parts.get("bias", True))

    def forward(
        self, x: Float[Tensor, "*batch n d"], mask: AnyMask = None, caches: Sequence[Cache] | None = None
    ) -> Float[Tensor, "*batch n d"]:
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers), strict=True):
            x = layer(x, mask, cache)
        return self.norm(x)


class DecoderStack(_Stack):
    """`layers` decoder layers. Positions act in self-attention only, not between the texts."""

    def __init__(
        self,
        layers: int,
        d: int,
        heads: int,
        hidden: int,
        *,
        position: str | None = None,
        norm: str = "pre",
        **parts: Any,
    ) -> None:
        within = positioned(position, d, heads, parts)
        # Copied apart, or both attentions of a layer would share one score.
        within["cross"] = copy.deepcopy({"score": parts.get("score"), **(parts.get("cross") or {})})
        each = [DecoderLayer(d, heads, hidden, norm=norm, **copy.deepcopy(within)) for _ in range(layers)]
        super().__init__(each, d, norm, parts.get("eps", 1e-5), parts.get("bias", True))

    def forward(
        self,
        x: Float[Tensor, "*batch n d"],
        memory: Float[Tensor, "*batch n_k d_memory"],
        mask: AnyMask = None,
        memory_mask: AnyMask = None,
        caches: Sequence[LayerCache] | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers), strict=True):
            x = layer(x, memory, mask, memory_mask, cache)
        return self.norm(x)


def positioned(position: str | None, d: int, heads: int, parts: dict[str, Any]) -> dict[str, Any]:
    """The parts of a self-attention, with a position that acts inside it."""
    if position is None:
        return dict(parts)
    if position == "rotary":
        return {**parts, "rotary": Rotary(parts.get("d_head") or d // heads)}
    if position != "alibi":
        raise InputError(f"position={position!r}; expected 'rotary', 'alibi' or None inside the attention")
    score = parts.get("score")
    if not isinstance(score, list | tuple):
        return {**parts, "score": as_score(score) + Alibi(heads, align="end")}
    scores = []
    for one, slope in zip(score, Alibi(heads).slopes, strict=True):
        bias = Alibi(1, align="end")
        bias.slopes = slope[None]  # each head keeps its own of the `heads` slopes
        scores.append(as_score(one) + bias)
    return {**parts, "score": scores}
