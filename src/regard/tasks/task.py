"""What a task adds to the one training loop, and what it answers afterwards.

A task turns examples into numbers and a network's logits into answers. It knows no optimizer, no device, no file
but its examples'. Each task is one small class in a file of its own.
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.core.shapes import wide
from regard.nn.word_loss import Read, word_loss
from regard.recording import Record
from regard.tasks.batches import by_size
from regard.tasks.config import Model
from regard.tasks.examples import IGNORED, Batch, Item
from regard.tasks.tokenizers import EOS, UNK, Encoded, Tokenizer

UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER")  # how the names of their letters begin


@dataclass(frozen=True)
class Options:
    """How an answer is searched for."""

    beam: int = 4  # 1: greedy
    n_best: int = 1
    alpha: float = 0.6  # of the length penalty; see models.decoding.beam
    longest: int | None = None  # words to write at most; left out: what suits the text
    to: str | None = None  # the language to translate into, where a model knows several
    temperature: float = 0.0  # above 0: words are drawn, not searched for
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None


@dataclass(frozen=True)
class Answer:
    """`text` as it was given, and what the model makes of it. `confidence` is the model's own probability: of the
    label, or the mean of the words (geometric)."""

    text: str
    output: str
    confidence: float
    others: tuple[tuple[str, float], ...] = ()  # further answers and their confidence, the best first
    words: tuple[tuple[str, str, float], ...] = ()  # tagging: word, label, probability
    blanks: tuple[tuple[tuple[str, float], ...], ...] = ()  # filling in: candidates for each blank
    unknown: tuple[str, ...] = ()  # of the text: what training never saw
    cut: bool = False  # the text was longer than the model reads; its end was left out
    source: tuple[int, ...] = field(default=(), repr=False)  # what the network read, and what it wrote
    target: tuple[int, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Attended:
    """Weights of one attention, by what a person calls the rows and columns."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    weights: Float[Tensor, "rows columns"]
    row_words: tuple[int, ...] | None = None  # the word that each piece belongs to, counted from 0
    column_words: tuple[int, ...] | None = None
    removed: Float[Tensor, " rows"] | None = None  # weight that went to the ends of the text, which are no columns


class Task(ABC):
    """Made for a run from its data (`prepare`), or from a model's folder."""

    name: ClassVar[str]
    kind: ClassVar[str] = "transformer"  # of the network, where nothing is said
    tokens: ClassVar[str] = "bpe"
    files: ClassVar[str]  # what its data are, for messages
    aim: ClassVar[str] = "loss"  # the figure by which the best checkpoint is chosen
    labelled: ClassVar[bool] = False

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Model,
        longest: int,
        labels: Sequence[str] = (),
        vectors: tuple[int, int] | None = None,  # the shape of the pretrained vectors it reads by
        noise: float = 0.15,
    ) -> None:
        self.tokenizer, self.longest, self.noise = tokenizer, longest, noise
        self.model = replace(model, kind=model.kind or self.kind)
        self.labels, self.vectors = tuple(labels), vectors

    # From files to numbers

    @classmethod
    @abstractmethod
    def read(cls, files: Sequence[str], labels: Collection[str] | None = None) -> Iterator[Any]:
        """The examples in these files, one at a time. With labels, another label is an error."""

    @classmethod
    @abstractmethod
    def texts(cls, example: Any) -> Iterable[str | Sequence[str]]:
        """What its tokenizer learns from."""

    @classmethod
    def labels_of(cls, example: Any) -> Iterable[str]:
        return ()

    @abstractmethod
    def encode(self, example: Any) -> Item: ...

    @abstractmethod
    def collate(self, items: Sequence[Item], chance: int) -> Batch:
        """`chance` seeds whatever is drawn: the same batch comes out the same."""

    # The network

    @abstractmethod
    def network(self, dropout: float = 0.0, embedding: nn.Module | None = None) -> nn.Module: ...

    @abstractmethod
    def logits(self, network: nn.Module, batch: Batch) -> tuple[Float[Tensor, "*n C"], Int[Tensor, "*n"]]:
        """What the network says, and what it was asked for; IGNORED is not counted."""

    def loss(self, network: nn.Module, batch: Batch, smoothing: float = 0.0) -> Float[Tensor, ""]:
        """What `loss_of` makes of the logits; a task of many words needs not all of them at once."""
        return loss_of(*self.logits(network, batch), smoothing)

    # Answers

    @abstractmethod
    def answer(self, network: nn.Module, texts: Sequence[str], options: Options) -> list[Answer]: ...

    def attended(self, network: nn.Module, answer: Answer) -> list[Attended]:
        """The attention that led to this answer, layer by layer where there are several, the most telling first."""
        return []

    def score(self, network: nn.Module, examples: Sequence[Any], options: Options) -> dict[str, float | str]:
        """Figures of its own beside loss and accuracy, from answers that are written out."""
        return {}

    # What all tasks do the same way

    @torch.no_grad()
    def evaluate(self, network: nn.Module, items: Iterable[Item], tokens: int = 4096) -> dict[str, float]:
        """Loss (mean negative log-likelihood) and accuracy over all that is asked for, nothing drawn, no smoothing."""
        device = next(network.parameters()).device
        network.eval()
        total, right, units = 0.0, 0, 0
        for place, few in enumerate(by_size(items, tokens)):
            batch = self.collate(few, place).to(device)
            logits, target = self.logits(network, batch)
            total += float(loss_of(logits, target))
            right += int((logits.argmax(-1) == target).sum())
            units += batch.units
        return {"loss": total / max(units, 1), "accuracy": right / max(units, 1)}

    def state(self) -> dict[str, Any]:
        """What a model's folder says of its task, beside tokenizer and weights."""
        return {"labels": list(self.labels), "longest": self.longest, "noise": self.noise, "vectors": self.vectors}

    def pieces(self, text: str, most: int) -> tuple[Encoded, bool]:
        """The text's pieces, at most so many, and whether it was cut."""
        # A piece has at least one character: what comes far behind the limit need not be looked at.
        encoded = self.tokenizer.encode(text[: 64 * most])
        cut = len(encoded.ids) > most or len(text) > 64 * most
        if not cut:
            return encoded, False
        return Encoded(encoded.ids[:most], encoded.offsets[:most], encoded.tokens[:most]), True

    def grouped(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The word that each of these pieces belongs to, counted from 0."""
        words: list[int] = []
        before = ""  # the mark of a space alone, or what a sentence begins with: the next piece belongs to it
        for id in ids:
            piece = self.tokenizer.piece(id)
            begins = before != "" and (self.tokenizer.begins(id) or unspaced(piece))
            words.append((words[-1] + begins) if words else 0)
            before = piece
        return tuple(words)

    def unknown(self, text: str, encoded: Encoded) -> tuple[str, ...]:
        found = [text[a:b] for id, (a, b) in zip(encoded.ids, encoded.offsets, strict=True) if id == UNK]
        return tuple(dict.fromkeys(found))


def unspaced(piece: str) -> bool:
    """Is it of a script that writes no spaces between words?"""
    return unicodedata.name(piece[:1] or " ", "").split(" ")[0] in UNSPACED


def loss_of(logits: Float[Tensor, "*n C"], target: Int[Tensor, "*n"], smoothing: float = 0.0) -> Float[Tensor, ""]:
    """Summed, not averaged: the loop knows how many targets there are in all processes."""
    return F.cross_entropy(
        wide(logits.reshape(-1, logits.shape[-1])),
        target.reshape(-1),
        ignore_index=IGNORED,
        label_smoothing=smoothing,
        reduction="sum",
    )


def lost(target: Int[Tensor, "*n"], smoothing: float) -> Read:
    """The same from states and an output layer, for networks to put in its place."""
    return partial(word_loss, target=target, smoothing=smoothing, ignored=IGNORED)


def ended(ids: Sequence[int]) -> tuple[int, ...]:
    return (*ids, EOS)


def in_batches(texts: Sequence[Any], size: Any, tokens: int = 8192) -> Iterator[list[int]]:
    """Places of texts that are answered together: similar lengths, not too many at once."""
    order = sorted(range(len(texts)), key=lambda i: size(texts[i]))
    batch: list[int] = []
    for i in order:
        if batch and (len(batch) + 1) * max(size(texts[i]), 1) > tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def mean_heads(record: Record) -> Float[Tensor, "n_q n_k"]:
    """The weights of the only text of a batch, averaged over heads."""
    weights = record.weights().float()
    return weights.reshape(-1, *weights.shape[-2:]).mean(0)
