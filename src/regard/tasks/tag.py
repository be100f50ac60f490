"""Tagging: one label for each word."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.shapes import InputError
from regard.recording import record
from regard.tasks import networks
from regard.tasks.conllu import Tagged, read_tagged
from regard.tasks.examples import IGNORED, Batch, Item, lengths_of, padded
from regard.tasks.letters import side_by_side, spelled
from regard.tasks.task import Answer, Attended, Options, Task, in_batches, mean_heads
from regard.tasks.tokenizers import UNK, Encoded
from regard.tasks.words import words_of


class Tag(Task):
    """The pieces of a word share one label. A text that is longer than the model reads is tagged part by part."""

    name = "tag"
    files = "CoNLL-U files"
    aim = "accuracy"
    labelled = True

    @classmethod
    def read(cls, files: Sequence[str], labels: Collection[str] | None = None) -> Iterator[Tagged]:
        for file in files:
            yield from read_tagged(file, labels)

    @classmethod
    def texts(cls, example: Tagged) -> Iterable[Sequence[str]]:
        return (example.words,)

    @classmethod
    def labels_of(cls, example: Tagged) -> Iterable[str]:
        return example.tags

    def encode(self, example: Tagged) -> Item:
        for tag in example.tags:
            if tag not in self.labels:
                raise InputError(f"unknown tag {tag!r}; the model knows {', '.join(self.labels)}")
        encoded = self.tokenizer.encode_words(example.words)
        return self._item(encoded, example.words, tuple(map(self.labels.index, example.tags)))

    def _item(self, encoded: Encoded, words: Sequence[str], labels: tuple[int, ...] | None = None) -> Item:
        letters = tuple(map(spelled, words)) if self.model.letters else ()
        return Item(encoded.ids, (IGNORED,) * len(words) if labels is None else labels, members(encoded), letters)

    def collate(self, items: Sequence[Item], chance: int) -> Batch:
        rows = [item.source for item in items]
        target = padded([item.target for item in items], IGNORED)
        units = sum(len(item.target) for item in items)
        words = padded([item.words for item in items], -1)
        letters = side_by_side([item.letters for item in items]) if self.model.letters else None
        return Batch(padded(rows), lengths_of(rows), target, words=words, letters=letters, units=units)

    def network(self, dropout: float = 0.0, embedding: nn.Module | None = None) -> nn.Module:
        vocabulary = len(self.tokenizer) if embedding is None else embedding
        if self.model.letters:
            if self.tokenizer.kind != "word":
                raise InputError(
                    f"model.letters={self.model.letters}: letters are of whole words, but data.tokenizer="
                    f"{self.tokenizer.kind!r}; take 'word'"
                )
            return networks.letter_tagger(self.model, vocabulary, len(self.labels), dropout, self.noise)
        return networks.tagger(self.model, vocabulary, len(self.labels), dropout, self.longest)

    def logits(self, network: nn.Module, batch: Batch) -> tuple[Float[Tensor, "B m C"], Int[Tensor, "B m"]]:
        if self.model.letters:
            return network(batch.source, batch.lengths, batch.letters), batch.target
        return network(batch.source, batch.lengths, batch.words, batch.target.shape[-1]), batch.target

    @torch.no_grad()
    def answer(self, network: nn.Module, texts: Sequence[str], options: Options) -> list[Answer]:
        """Each text is split into words as in the Universal Dependencies: `don't` is `do` and `n't`."""
        network.eval()
        device = next(network.parameters()).device
        split = [words_of(text) for text in texts]
        encoded = [self.tokenizer.encode_words(words) for words in split]
        parts = [(i, *part) for i, each in enumerate(encoded) for part in self._parts(each, split[i])]
        found: list[list[tuple[str, float]]] = [[] for _ in texts]
        labelled: list[Any] = [None] * len(parts)
        for places in in_batches(parts, lambda part: len(part[1].ids)):
            items = [self._item(*parts[p][1:]) for p in places]
            logits, _ = self.logits(network, self.collate(items, 0).to(device))
            best = logits.float().softmax(-1).max(-1)
            for place, p in enumerate(places):
                n = len(parts[p][2])
                labels = [self.labels[k] for k in best.indices[place, :n].tolist()]
                labelled[p] = list(zip(labels, best.values[place, :n].tolist(), strict=True))
        for (i, *_), labels in zip(parts, labelled, strict=True):
            found[i] += labels
        return [self._told(*each) for each in zip(texts, split, encoded, found, strict=True)]

    def _told(self, text: str, words: list[str], encoded: Encoded, found: list[tuple[str, float]]) -> Answer:
        tagged = tuple((word, label, p) for word, (label, p) in zip(words, found, strict=True))
        output = " ".join(f"{word}/{label}" for word, label, _ in tagged)
        sure = math.exp(sum(math.log(max(p, 1e-30)) for _, p in found) / len(found)) if found else 1.0
        strange = [w for w, pieces in zip(words, encoded.words, strict=True) if UNK in [encoded.ids[i] for i in pieces]]
        return Answer(text, output, sure, words=tagged, unknown=tuple(dict.fromkeys(strange)), source=encoded.ids)

    def _parts(self, encoded: Encoded, texts: Sequence[str]) -> Iterator[tuple[Encoded, Sequence[str]]]:
        """Runs of whole words that the network can read at once."""
        words: list[range] = []
        for w, word in enumerate(encoded.words):
            word = word[: self.longest]
            if words and word[-1] - words[0][0] >= self.longest:
                yield part(encoded, words), texts[w - len(words) : w]
                words = []
            words.append(word)
        if words:
            yield part(encoded, words), texts[len(texts) - len(words) :]

    @torch.no_grad()
    def attended(self, network: nn.Module, answer: Answer) -> list[Attended]:
        """Each piece over all pieces, the last layer first."""
        if self.model.kind != "transformer" or not answer.source or len(answer.source) > self.longest:
            return []
        source = torch.tensor([answer.source], device=next(network.parameters()).device)
        with record(network.eval()) as records:
            network.reader(source, torch.tensor([len(answer.source)], device=source.device))  # pyright: ignore
        split = words_of(answer.text)
        encoded = self.tokenizer.encode_words(split)
        text, ends = " ".join(split), (0, *(b for _, b in encoded.offsets))
        # The mark of a space before a word may be a piece of its own, in the same place as what follows it.
        names, words = (
            tuple(text[max(a, end) : b] for (a, b), end in zip(encoded.offsets, ends, strict=False)),
            members(encoded),
        )
        return [Attended(r.name, names, names, mean_heads(r).cpu(), words, words) for r in reversed(list(records))]


def part(encoded: Encoded, words: Sequence[range]) -> Encoded:
    pieces = [i for word in words for i in word]
    shifted, at = [], 0
    for word in words:
        shifted.append(range(at, at + len(word)))
        at += len(word)
    return Encoded(
        tuple(encoded.ids[i] for i in pieces),
        tuple(encoded.offsets[i] for i in pieces),
        tuple(encoded.tokens[i] for i in pieces),
        tuple(shifted),
    )


def members(encoded: Encoded) -> tuple[int, ...]:
    """The word of each piece."""
    return tuple(w for w, pieces in enumerate(encoded.words) for _ in pieces)
