"""From the words of a configuration to a network: sizes, kinds and mechanisms by name.

Models of `regard.models` write or read; what a task puts on top of them, a label for each word or for the whole
text, is here.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.core.masks import padding
from regard.core.normalizers import Normalizer
from regard.core.scores import Additive, Score
from regard.core.shapes import InputError
from regard.mechanisms import make_normalizer, make_score
from regard.models.autoencoder import Autoencoder
from regard.models.cells import RNNEncoder
from regard.models.letters import LetterReader, LetterTagger
from regard.models.rnn import AttentiveRNN, RNNEncoderDecoder
from regard.models.transformer import Transformer, TransformerDecoder, TransformerEncoder, WordsOut
from regard.nn.attention import Attention
from regard.nn.embeddings import Pretrained
from regard.nn.word_loss import Read
from regard.tasks.config import Model
from regard.tasks.letters import LETTERS
from regard.tasks.tokenizers import UNK


class Widened(nn.Module):
    """Vectors that someone else trained, brought to another width by a linear layer."""

    def __init__(self, vectors: Pretrained, d: int) -> None:
        super().__init__()
        self.vectors, self.linear = vectors, nn.Linear(vectors.weight.shape[1], d, bias=False)

    @property
    def weight(self) -> Float[Tensor, "V d"]:
        return self.linear(self.vectors.weight)

    def forward(self, ids: Int[Tensor, "*n"]) -> Float[Tensor, "*n d"]:
        return self.linear(self.vectors(ids))


class Reader(nn.Module):
    """Words to one state for each: a Transformer's encoder or an RNN that reads from both ends."""

    def __init__(self, model: Model, vocabulary: int | nn.Module, dropout: float, longest: int) -> None:
        super().__init__()
        if model.kind == "transformer":
            self.inner: nn.Module = TransformerEncoder(
                vocabulary, *_sizes(model), **_parts(model), n_max=longest, dropout=dropout
            )
            self.d = model.d
        else:
            size = vocabulary if isinstance(vocabulary, int) else 1
            self.inner = RNNEncoder(size, model.d, _hidden(model), model.cell, model.bidirectional, dropout)
            self.inner.join = nn.ModuleList()  # which would learn nothing: no decoder begins with the last state
            if isinstance(vocabulary, nn.Module):
                self.inner.embedding = vocabulary
            self.d = self.inner.width

    def forward(self, source: Int[Tensor, "B n"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B n d"]:
        states = self.inner(source, lengths)
        return states[0] if isinstance(states, tuple) else states


class Tagger(nn.Module):
    """A label for each word: its pieces' states, averaged, through a linear layer."""

    def __init__(self, reader: Reader, labels: int, dropout: float) -> None:
        super().__init__()
        self.reader, self.label, self.dropout = reader, nn.Linear(reader.d, labels), nn.Dropout(dropout)

    def forward(
        self, source: Int[Tensor, "B n"], lengths: Int[Tensor, " B"], words: Int[Tensor, "B n"], most: int
    ) -> Float[Tensor, "B most labels"]:
        """`words[b, i]` is the word of piece i, -1 for pads; `most` words in the longest row."""
        states = self.reader(source, lengths)
        member = (words[..., None] == torch.arange(most, device=words.device)).to(states.dtype)  # B n most
        mean = member.mT @ states / member.sum(1).clamp(min=1)[..., None]
        return self.label(self.dropout(mean))


class Classifier(nn.Module):
    """A label for the whole text. A learned query attends to all states, so that what it looked at can be seen;
    an RNN without attention gives its last state only."""

    def __init__(
        self, reader: Reader, labels: int, dropout: float, score: Score | None, normalizer: Normalizer | None
    ) -> None:
        super().__init__()
        self.reader, self.label, self.dropout = reader, nn.Linear(reader.d, labels), nn.Dropout(dropout)
        self.query = self.attention = None
        if normalizer is not None:
            self.query = nn.Parameter(torch.randn(1, reader.d) * reader.d**-0.5)
            self.attention = Attention(score, normalizer)

    def forward(self, source: Int[Tensor, "B n"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B labels"]:
        states = self.reader(source, lengths)
        if self.attention is None or self.query is None:
            last = states[torch.arange(len(states), device=states.device), (lengths - 1).clamp(min=0)]
            return self.label(self.dropout(last))
        query = self.query.expand(states.shape[0], -1, -1)  # len() would fix the batch in an exported network
        found = self.attention(query, states, states, mask=padding(lengths))  # B 1 d
        return self.label(self.dropout(found[:, 0]))


class Filler(nn.Module):
    """The word behind each blank: only where one is asked for, since a vocabulary is wide."""

    def __init__(self, reader: Reader, vocabulary: int) -> None:
        super().__init__()
        self.reader = reader
        self.turn = nn.Sequential(nn.Linear(reader.d, reader.d), nn.GELU(), nn.LayerNorm(reader.d))
        self.out = WordsOut(reader.d, vocabulary, tied=False)

    def forward(
        self,
        source: Int[Tensor, "B n"],
        lengths: Int[Tensor, " B"],
        asked: Bool[Tensor, "B n"],
        read: Read | None = None,
    ) -> Float[Tensor, "asked V"]:
        return self.out(self.turn(self.reader(source, lengths)[asked]), None, read)


def embedding_of(model: Model, vectors: Pretrained | None) -> nn.Module | None:
    if vectors is None or vectors.weight.shape[1] == model.d:
        return vectors
    return Widened(vectors, model.d)


def tagger(model: Model, vocabulary: int | nn.Module, labels: int, dropout: float, longest: int) -> Tagger:
    kinds("tag", model, "transformer", "rnn")
    return Tagger(Reader(model, vocabulary, dropout, longest), labels, dropout)


def letter_tagger(model: Model, vocabulary: int | nn.Module, labels: int, dropout: float, hide: float) -> LetterTagger:
    if model.kind != "rnn":
        raise InputError(f"model.letters={model.letters}: words are read by their letters where model.kind='rnn'")
    return LetterTagger(
        nn.Embedding(vocabulary, model.d) if isinstance(vocabulary, int) else vocabulary,
        model.d,
        LetterReader(LETTERS, model.letters, dropout),
        _hidden(model),
        model.layers,
        labels,
        cell=model.cell,
        dropout=dropout,
        hide=hide,
        unknown=UNK,
    )


def classifier(model: Model, vocabulary: int | nn.Module, labels: int, dropout: float, longest: int) -> Classifier:
    kinds("classify", model, "transformer", "rnn", "attentive")
    reader = Reader(model, vocabulary, dropout, longest)
    if model.kind == "rnn":
        return Classifier(reader, labels, dropout, None, None)
    score = _score(model, reader.d, reader.d, additive=model.kind == "attentive")
    return Classifier(reader, labels, dropout, score, make_normalizer(model.normalizer))


def filler(model: Model, vocabulary: int, embedding: nn.Module | None, dropout: float, longest: int) -> Filler:
    kinds("fill", model, "transformer", "rnn")
    return Filler(Reader(model, vocabulary if embedding is None else embedding, dropout, longest), vocabulary)


def writer(model: Model, vocabulary: int, dropout: float, longest: int) -> nn.Module:
    """From one text to another, both in the same pieces."""
    kinds("translate", model, "transformer", "attentive", "rnn")
    if model.kind == "transformer":
        return Transformer(
            vocabulary,
            vocabulary,
            *_sizes(model),
            **_parts(model),
            n_max=longest + 1,  # begin of sentence
            dropout=dropout,
            tied=model.tied,
            shared=model.tied,
        )
    shape: dict[str, Any] = {"cell": model.cell, "bidirectional": model.bidirectional, "dropout": dropout}
    hidden = _hidden(model)
    if model.kind == "rnn":
        return RNNEncoderDecoder(vocabulary, vocabulary, model.d, hidden, **shape)
    width = 2 * hidden if model.bidirectional else hidden
    score = _score(model, hidden, width, additive=True)
    normalizer = make_normalizer(model.normalizer)
    parts = {"score": score, "normalizer": normalizer, "input_feeding": model.feeding}
    return AttentiveRNN(vocabulary, vocabulary, model.d, hidden, **parts, **shape)


def restorer(model: Model, vocabulary: int, dropout: float, longest: int) -> nn.Module:
    """From a damaged text to the whole one."""
    kinds("denoise", model, "autoencoder", "transformer", "attentive", "rnn")
    if model.kind != "autoencoder":
        return writer(model, vocabulary, dropout, longest)
    return Autoencoder(
        vocabulary,
        *_sizes(model),
        **_parts(model),
        slots=model.slots,
        d_latent=model.latent,
        n_max=longest,
        dropout=dropout,
        tied=model.tied,
    )


def continuer(model: Model, vocabulary: int, dropout: float, longest: int) -> nn.Module:
    """Each word from those before it."""
    kinds("generate", model, "transformer")
    return TransformerDecoder(
        vocabulary, *_sizes(model), **_parts(model), n_max=longest + 1, dropout=dropout, tied=model.tied
    )


def kinds(task: str, model: Model, *known: str) -> None:
    if model.kind not in known:
        raise InputError(f"model.kind={model.kind!r} cannot {task}; expected one of {', '.join(map(repr, known))}")
    if model.kind in ("transformer", "autoencoder") and model.d % model.heads:
        raise InputError(
            f"model.d={model.d} does not divide into model.heads={model.heads}; take heads that divide d, "
            f"or a d that they divide"
        )


def _sizes(model: Model) -> tuple[int, int, int, int | None]:
    return model.d, model.heads, model.layers, model.hidden


def _parts(model: Model) -> dict[str, Any]:
    d_head = model.d // model.heads
    return {
        "position": model.position,
        "score": _score(model, d_head, d_head, additive=False),
        "normalizer": make_normalizer(model.normalizer).train(),
    }


def _score(model: Model, d_q: int, d_k: int, additive: bool) -> Score | None:
    """`auto` is what suits the model: Bahdanau's score where an RNN attends, else the scaled dot product."""
    if model.score != "auto":
        return make_score(model.score, d_q, d_k)
    return Additive(d_q, d_k, d_q) if additive else None


def _hidden(model: Model) -> int:
    return model.d if model.hidden is None else model.hidden
