"""The Transformer in its three forms: encoder, decoder only, encoder-decoder. Any score, normalizer,
mask and position.

`parts` go to every attention: score, normalizer, key_heads, d_head, d_v, backend. Each attention gets
its own copy of a score or normalizer that is given, so parameters are never shared between layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.mask import And, Mask, Not, Or, PerHead
from regard.core.masks import causal, padding, per_head
from regard.core.products import Linear, linear
from regard.core.rules import Band, Stride
from regard.core.shapes import InputError
from regard.nn.attention import Cache, plain
from regard.nn.embeddings import Embedding
from regard.nn.layers import DecoderStack, EncoderStack, LayerCache
from regard.nn.positions import Learned, Sinusoidal
from regard.nn.word_loss import Read, words

POSITIONS = ("sinusoidal", "learned", "rotary", "alibi", None)


class WordsIn(nn.Module):
    """Tokens to vectors: an embedding, plus the position where it is one that is added.

    `vocabulary` is a number of words, or an embedding of width d that exists already (`Pretrained`).
    `lent=True` says that it belongs to another module, which saves it.
    """

    def __init__(
        self,
        vocabulary: int | nn.Module,
        d: int,
        position: str | None,
        n_max: int,
        dropout: float,
        lent: bool = False,
    ) -> None:
        super().__init__()
        if position not in POSITIONS:
            raise InputError(f"position={position!r}; expected one of {', '.join(map(repr, POSITIONS))}")
        embedding = Embedding(vocabulary, d, scaled=True) if isinstance(vocabulary, int) else vocabulary
        # A tuple hides it from parameters() and state_dict(): one embedding is saved once.
        self.lent = (embedding,) if lent else None
        self.own = None if lent else embedding
        self.position: nn.Module | None = None
        if position == "sinusoidal":
            self.position = Sinusoidal(d)
        elif position == "learned":
            self.position = Learned(n_max, d)
        self.dropout = nn.Dropout(dropout)

    @property
    def embedding(self) -> Any:
        return self.own if self.lent is None else self.lent[0]

    def forward(
        self, tokens: Int[Tensor, "*batch n"], offset: int | Int[Tensor, "*batch"] = 0
    ) -> Float[Tensor, "*batch n d"]:
        """The first token of each row stands at position `offset`."""
        x = self.embedding(tokens)
        return self.dropout(x if self.position is None else self.position(x, offset=offset))


class WordsOut(nn.Module):
    """States to one logit for each word; tied to an embedding, it has no parameters of its own."""

    def __init__(self, d: int, vocabulary: int, tied: bool) -> None:
        super().__init__()
        self.linear = None if tied else Linear(d, vocabulary)

    def forward(
        self, x: Float[Tensor, "*batch n d"], embedding: Any, read: Read | None = None
    ) -> Float[Tensor, "*batch n V"]:
        """Logits, or what `read` makes of (states, weight, bias)."""
        if self.linear is None:
            return (read or linear)(x, embedding.weight, None)
        return words(self.linear, x, read)


@dataclass
class State:
    """What a decoder keeps between steps. A step changes it in place and returns it."""

    caches: list[Cache] | list[LayerCache]
    n: int = 0  # tokens written so far, pads before them included
    lag: Int[Tensor, " B"] | None = None  # pads before the first token of each row
    memory: Float[Tensor, "M n_k d"] | None = None  # one for each row, or for each group of rows
    memory_lengths: Int[Tensor, " M"] | None = None
    group: int = 1  # rows side by side that read the same memory
    groups: bool = False  # may several?

    def select(self, rows: Int[Tensor, " m"]) -> State:
        """Keep these rows, in this order; of a group all, or none."""
        sources = rows if self.group == 1 else rows[:: self.group] // self.group
        if self.memory is not None and torch.equal(sources, torch.arange(len(self.memory), device=rows.device)):
            sources = None  # as it is
        for cache in self.caches:
            if isinstance(cache, Cache):
                cache.select(rows)
                continue
            cache.itself.select(rows)
            if sources is not None:
                cache.memory.select(sources)
        if self.lag is not None:
            self.lag = self.lag[rows]
        for name in ("memory", "memory_lengths"):
            tensor = getattr(self, name)
            if tensor is not None and sources is not None:
                setattr(self, name, tensor[sources])
        return self

    def spread(self, rows: Int[Tensor, " B"], width: int) -> State:
        """Each of these rows, which are all, `width` times side by side, before the first step."""
        if not self.groups:
            return self.select(rows.repeat_interleave(width))
        self.group = width
        return self


class TransformerEncoder(nn.Module):
    """Tokens to one state for each: (*batch, n) -> (*batch, n, d). Heads for a task stand elsewhere.

    >>> import torch
    >>> encoder = TransformerEncoder(vocabulary=100, d=16, heads=2, layers=2)
    >>> encoder(torch.tensor([[5, 8, 2], [7, 0, 0]]), lengths=torch.tensor([3, 1])).shape
    torch.Size([2, 3, 16])
    """

    def __init__(
        self,
        vocabulary: int | nn.Module,
        d: int = 256,
        heads: int = 4,
        layers: int = 4,
        hidden: int | None = None,
        *,
        position: str | None = "sinusoidal",
        n_max: int = 1024,
        mask: Mask | Sequence[Mask] | None = None,
        dropout: float = 0.0,
        **parts: Any,
    ) -> None:
        super().__init__()
        self.d, self.mask = d, _one_mask(mask)
        self.words = WordsIn(vocabulary, d, position, n_max, dropout)
        self.stack = EncoderStack(
            layers, d, heads, hidden or 4 * d, position=_inside(position), dropout=dropout, **parts
        )

    def forward(
        self, tokens: Int[Tensor, "*batch n"], lengths: Int[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch n d"]:
        # Pads are words like others: what the mask hides are numbers.
        real = None if lengths is None else padding(lengths).of_finite()
        return self.stack(self.words(tokens), _both(self.mask, real))


class TransformerDecoder(nn.Module):
    """A language model: each word from those before it. (*batch, n) -> logits (*batch, n, V), where
    logits[:, t] predict the token after tokens[:, t].

    `begin` reads a prompt without its last token, which is what the first `step` takes.
    """

    def __init__(
        self,
        vocabulary: int | nn.Module,
        d: int = 256,
        heads: int = 4,
        layers: int = 4,
        hidden: int | None = None,
        *,
        position: str | None = "sinusoidal",
        n_max: int = 1024,
        mask: Mask | Sequence[Mask] | None = None,
        dropout: float = 0.0,
        tied: bool = True,
        **parts: Any,
    ) -> None:
        super().__init__()
        self.d, self.mask = d, _one_mask(mask)
        self.words = WordsIn(vocabulary, d, position, n_max, dropout)
        self.stack = EncoderStack(
            layers, d, heads, hidden or 4 * d, position=_inside(position), dropout=dropout, **parts
        )
        self.out = WordsOut(d, len(self.words.embedding.weight), tied)

    def forward(
        self,
        tokens: Int[Tensor, "*batch n"],
        lengths: Int[Tensor, "*batch"] | None = None,
        *,
        read: Read | None = None,
    ) -> Float[Tensor, "*batch n V"]:
        """Pads come after the words, where no word looks: `lengths` change no logit of a word. `read` takes the
        output layer's place."""
        return self.out(self.stack(self.words(tokens), _both(causal(), self.mask)), self.words.embedding, read)

    def begin(self, source: Int[Tensor, "B n"], lengths: Int[Tensor, " B"] | None = None) -> State:
        state = State([Cache() for _ in self.stack.layers])
        n = source.shape[-1]
        if n == 0:
            return state
        mask = _both(causal(), self.mask)
        if lengths is not None:
            # Rows end together, so that every row's next token is the next column: pads move to the front.
            if not _moves(self.mask):
                raise InputError(
                    f"prompts of different lengths are aligned at their ends, but {type(self.mask).__name__} names "
                    f"positions from the start; begin with prompts of one length (lengths=None)"
                )
            state.lag = n - lengths
            column = (torch.arange(n, device=source.device) - state.lag[:, None]).clamp(min=0)
            source = source.gather(-1, column)
            mask = _both(mask, padding(lengths, side="left"))
        self.stack(self.words(source, _place(0, state.lag)), mask, state.caches)
        state.n = n
        return state

    def step(self, token: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        x = self.words(token[:, None], _place(state.n, state.lag))
        state.n += 1
        real = None if state.lag is None else padding(state.n - state.lag, side="left")
        x = self.stack(x, _both(self.mask, real), state.caches)
        return self.out(x, self.words.embedding)[:, 0], state


class Writer(nn.Module):
    """Writes words while it reads a memory: the decoder of an encoder-decoder, whatever the encoder."""

    def __init__(
        self,
        vocabulary: int | nn.Module,
        d: int,
        heads: int,
        layers: int,
        hidden: int | None = None,
        *,
        position: str | None = "sinusoidal",
        n_max: int = 1024,
        mask: Mask | Sequence[Mask] | None = None,
        dropout: float = 0.0,
        tied: bool = True,
        lent: bool = False,
        **parts: Any,
    ) -> None:
        super().__init__()
        self.mask = _one_mask(mask)
        self.words = WordsIn(vocabulary, d, position, n_max, dropout, lent)
        self.stack = DecoderStack(
            layers, d, heads, hidden or 4 * d, position=_inside(position), dropout=dropout, **parts
        )
        self.out = WordsOut(d, len(self.words.embedding.weight), tied)

    def forward(
        self,
        target: Int[Tensor, "*batch n"],
        memory: Float[Tensor, "*batch n_k d"],
        memory_lengths: Int[Tensor, "*batch"] | None = None,
        *,
        read: Read | None = None,
    ) -> Float[Tensor, "*batch n V"]:
        real = None if memory_lengths is None else padding(memory_lengths)
        x = self.stack(self.words(target), memory, _both(causal(), self.mask), real)
        return self.out(x, self.words.embedding, read)

    def begin(self, memory: Float[Tensor, "B n_k d"], memory_lengths: Int[Tensor, " B"] | None = None) -> State:
        state = State([LayerCache() for _ in self.stack.layers], memory=memory, memory_lengths=memory_lengths)
        cross: list[Any] = [layer.cross_attention for layer in self.stack.layers]
        state.groups = all(map(plain, cross))  # the beams of an input are several queries to one memory
        return state

    def step(self, token: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        x = self.words(token[:, None], state.n)
        state.n += 1
        # The encoder wrote the memory's pads: they are numbers.
        real = None if state.memory_lengths is None else padding(state.memory_lengths).of_finite()
        x = self.stack(x, state.memory, self.mask, real, state.caches)
        return self.out(x, self.words.embedding)[:, 0], state


class Transformer(nn.Module):
    """Encoder and decoder: `mask` is for the source's self-attention, `target_mask` for the target's.

    `tied`: the output words are the embedding of the target; `shared`: source and target words are one
    vocabulary with one embedding.

    >>> import torch
    >>> model = Transformer(source_vocabulary=50, target_vocabulary=60, d=16, heads=2, layers=1)
    >>> model(torch.tensor([[5, 8, 2]]), torch.tensor([[1, 9]])).shape
    torch.Size([1, 2, 60])
    """

    def __init__(
        self,
        source_vocabulary: int | nn.Module,
        target_vocabulary: int | nn.Module,
        d: int = 256,
        heads: int = 4,
        layers: int = 3,
        hidden: int | None = None,
        *,
        decoder_layers: int | None = None,
        mask: Mask | Sequence[Mask] | None = None,
        target_mask: Mask | Sequence[Mask] | None = None,
        tied: bool = True,
        shared: bool = False,
        **parts: Any,
    ) -> None:
        super().__init__()
        if shared and source_vocabulary != target_vocabulary:
            raise InputError(
                f"shared: source_vocabulary={source_vocabulary}, target_vocabulary={target_vocabulary}; "
                f"one embedding needs one vocabulary"
            )
        self.encoder = TransformerEncoder(source_vocabulary, d, heads, layers, hidden, mask=mask, **parts)
        layers = layers if decoder_layers is None else decoder_layers
        target_words = self.encoder.words.embedding if shared else target_vocabulary
        self.writer = Writer(target_words, d, heads, layers, hidden, mask=target_mask, tied=tied, lent=shared, **parts)

    def forward(
        self,
        source: Int[Tensor, "*batch n_k"],
        target: Int[Tensor, "*batch n"],
        lengths: Int[Tensor, "*batch"] | None = None,
        *,
        read: Read | None = None,
    ) -> Float[Tensor, "*batch n V"]:
        """`read` takes the output layer's place, as `regard.nn.word_loss` does in training."""
        return self.writer(target, self.encoder(source, lengths), lengths, read=read)

    def begin(self, source: Int[Tensor, "B n_k"], lengths: Int[Tensor, " B"] | None = None) -> State:
        return self.writer.begin(self.encoder(source, lengths), lengths)

    def step(self, token: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        return self.writer.step(token, state)


def _inside(position: str | None) -> str | None:
    """The position, if it is one that acts inside the attention."""
    return position if position in ("rotary", "alibi") else None


def _place(n: int, lag: Tensor | None) -> int | Tensor:
    """The position of column n in each row, given the pads before its first token."""
    return n if lag is None else n - lag


def _one_mask(mask: Mask | Sequence[Mask] | None) -> Mask | None:
    return mask if mask is None or isinstance(mask, Mask) else per_head(list(mask))


def _both(a: Mask | None, b: Mask | None) -> Mask | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _moves(mask: Mask | None) -> bool:
    """A rule about distances only, which holds wherever the sequence stands."""
    if isinstance(mask, And | Or):
        return _moves(mask.a) and _moves(mask.b)
    if isinstance(mask, Not):
        return _moves(mask.a)
    if isinstance(mask, PerHead):
        return all(_moves(one) for one in mask.masks)
    return mask is None or isinstance(mask, Band | Stride)
