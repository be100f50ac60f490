"""One small instance of every module that computes, with inputs: sentences of different lengths, one of them empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch import nn as layers

from regard import masks, nn, normalizers, scores
from regard.core.parts import flatten, rebuild
from regard.models.autoencoder import Autoencoder
from regard.models.captioner import Captioner
from regard.models.rnn import AttentiveRNN, RNNEncoderDecoder
from regard.models.transformer import POSITIONS, Transformer, TransformerDecoder, TransformerEncoder

D, HEADS, V = 4, 2, 9
LENGTHS = torch.tensor([5, 2, 0])
SOURCE = torch.tensor([[3, 4, 5, 6, 7], [8, 3, 0, 0, 0], [0, 0, 0, 0, 0]])
TARGET = torch.tensor([[1, 5, 6, 7], [1, 8, 8, 2], [1, 2, 0, 0]])
PARTS: dict[str, Any] = {"dropout": 0.2}


@dataclass(frozen=True)
class Animal:
    """A module and what to give it."""

    name: str
    make: Callable[[], layers.Module]
    inputs: Callable[[], tuple[Any, ...]]
    named: dict[str, Any]

    def __str__(self) -> str:
        return self.name


def animal(name: str, make: Callable[[], layers.Module], *inputs: Any, **named: Any) -> Animal:
    """A tuple among the inputs is the shape of a tensor of normal numbers."""

    def made() -> tuple[Any, ...]:
        generator = torch.Generator().manual_seed(5)
        return tuple(torch.randn(x, generator=generator) if isinstance(x, tuple) else x for x in inputs)

    return Animal(name, make, made, named)


X, Y = (3, 5, D), (3, 4, D)
PADDED = masks.padding(LENGTHS)
CAUSAL = masks.causal() & PADDED


def heads(**parts: Any) -> Callable[[], layers.Module]:
    return lambda: nn.MultiHeadAttention(D, HEADS, **(PARTS | parts))


def layer(kind: type, **parts: Any) -> Callable[[], layers.Module]:
    return lambda: kind(D, HEADS, 6, activation="gelu", attention_dropout=0.2, **(PARTS | parts))


def whole(kind: type, *vocabularies: int, **parts: Any) -> Callable[[], layers.Module]:
    return lambda: kind(*vocabularies, D, HEADS, 1, 6, n_max=8, activation="gelu", **(PARTS | parts))


def recurrent(kind: type = AttentiveRNN, **parts: Any) -> Callable[[], layers.Module]:
    return lambda: kind(V, V, D, D, **(PARTS | parts))


def pretrained() -> layers.Module:
    return nn.Pretrained(torch.randn(V, D), frozen=False)


ZOO = [
    animal("Attention", lambda: nn.Attention(scores.Additive(D, D, 3), dropout=0.2), (2, D), (3, D), (3, D)),
    animal("MultiHeadAttention", heads(), X, mask=CAUSAL),
    animal("MultiHeadAttention, across", heads(), Y, X, mask=PADDED),
    animal("MultiHeadAttention, shared keys", heads(key_heads=1), X, mask=PADDED),
    animal("MultiHeadAttention, a score for each head", heads(score=[scores.Dot(), scores.TanhSum(2)]), X, mask=CAUSAL),
    animal("MultiHeadAttention, sparse", heads(normalizer=normalizers.Entmax()), X, mask=PADDED),
    animal("MultiHeadAttention, rotary", lambda: nn.MultiHeadAttention(D, HEADS, rotary=nn.Rotary(2)), X, mask=CAUSAL),
    animal("LengthMap", lambda: nn.LengthMap(6, 3, D, 2), X, LENGTHS),
    animal("FeedForward", lambda: nn.FeedForward(D, 6, 0.2, "silu"), X),
    *(animal(f"EncoderLayer, {norm}", layer(nn.EncoderLayer, norm=norm), X, mask=PADDED) for norm in ("pre", "post")),
    animal("DecoderLayer", layer(nn.DecoderLayer), Y, X, mask=masks.causal(), memory_mask=PADDED),
    animal("Sinusoidal", lambda: nn.Sinusoidal(D), X),
    animal("Learned", lambda: nn.Learned(8, D), X),
    animal("Embedding", lambda: nn.Embedding(V, D, scaled=True), SOURCE),
    animal("OneHot", lambda: nn.OneHot(V, D), SOURCE),
    animal("Pretrained", pretrained, SOURCE),
    animal("FullyConnectedWindow", lambda: nn.FullyConnectedWindow(D, 3, 1, 2), X),
    animal("FullyConnectedSequence", lambda: nn.FullyConnectedSequence(D, 3, 6), X),
    *(
        animal(f"RNNEncoderDecoder, {cell}", recurrent(RNNEncoderDecoder, cell=cell), SOURCE, TARGET, LENGTHS)
        for cell in ("rnn", "gru", "lstm")
    ),
    animal("AttentiveRNN", recurrent(), SOURCE, TARGET, LENGTHS),
    animal("AttentiveRNN, fed", recurrent(input_feeding=True, bidirectional=True), SOURCE, TARGET, LENGTHS),
    *(
        animal(f"Transformer, {position}", whole(Transformer, V, V, position=position), SOURCE, TARGET, LENGTHS)
        for position in POSITIONS
    ),
    animal("TransformerEncoder", whole(TransformerEncoder, V), SOURCE, LENGTHS),
    animal("TransformerDecoder", whole(TransformerDecoder, V), TARGET),
    animal("Autoencoder", whole(Autoencoder, V, slots=2, d_latent=3), SOURCE, TARGET, LENGTHS),
    animal("Captioner", lambda: Captioner(V, D, HEADS, 1, 6, side=4, patch=2, dropout=0.2), (2, 3, 4, 4), TARGET[:2]),
]


def alive(of: Animal, dtype: torch.dtype = torch.float32, seed: int = 0) -> tuple[layers.Module, tuple[Any, ...]]:
    """The module with weights that are drawn from the seed, and its inputs."""
    torch.manual_seed(seed)
    module = of.make().to(dtype)
    for parameter in module.parameters():
        layers.init.normal_(parameter, std=0.7)
    inputs = (x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x for x in of.inputs())
    return module, tuple(inputs)


def moved(mask: masks.Mask, device: str) -> masks.Mask:
    tensors: list[Tensor] = []
    text = flatten(mask, tensors)
    return rebuild(text, [x.to(device) for x in tensors])
