"""Classification: one label for each text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.shapes import InputError
from regard.recording import record
from regard.tasks import networks
from regard.tasks.data import Labelled, read_labelled, read_labelled_table
from regard.tasks.examples import Batch, Item, lengths_of, padded
from regard.tasks.task import Answer, Attended, Options, Task, in_batches, mean_heads
from regard.tasks.tokenizers import BOS, UNK


class Classify(Task):
    """A text begins with begin of sentence, so that an empty one has something to look at."""

    name = "classify"
    files = "files of label<TAB>text, or .csv tables with columns label and text"
    aim = "accuracy"
    labelled = True

    @classmethod
    def read(cls, files: Sequence[str], labels: Collection[str] | None = None) -> Iterator[Labelled]:
        for file in files:
            table = str(file).lower().removesuffix(".gz").removesuffix(".xz").endswith(".csv")
            yield from read_labelled_table(file, labels=labels) if table else read_labelled(file, labels)

    @classmethod
    def texts(cls, example: Labelled) -> Iterable[str]:
        return (example.text,)

    @classmethod
    def labels_of(cls, example: Labelled) -> Iterable[str]:
        return (example.label,)

    def encode(self, example: Labelled) -> Item:
        if example.label not in self.labels:
            raise InputError(f"unknown label {example.label!r}; the model knows {', '.join(self.labels)}")
        encoded, _ = self.pieces(example.text, self.longest)
        return Item(encoded.ids, (self.labels.index(example.label),))

    def collate(self, items: Sequence[Item], chance: int) -> Batch:
        rows = [(BOS, *item.source) for item in items]
        return Batch(padded(rows), lengths_of(rows), padded([item.target for item in items]), units=len(items))

    def network(self, dropout: float = 0.0, embedding: nn.Module | None = None) -> nn.Module:
        vocabulary = len(self.tokenizer) if embedding is None else embedding
        return networks.classifier(self.model, vocabulary, len(self.labels), dropout, self.longest + 1)

    def logits(self, network: nn.Module, batch: Batch) -> tuple[Float[Tensor, "B C"], Int[Tensor, " B"]]:
        return network(batch.source, batch.lengths), batch.target[:, 0]

    @torch.no_grad()
    def answer(self, network: nn.Module, texts: Sequence[str], options: Options) -> list[Answer]:
        network.eval()
        device = next(network.parameters()).device
        read = [self.pieces(text, self.longest) for text in texts]
        answers: list[Any] = [None] * len(texts)
        for places in in_batches(read, lambda each: len(each[0].ids) + 1):
            rows = [(BOS, *read[i][0].ids) for i in places]
            shares = network(padded(rows).to(device), lengths_of(rows).to(device)).float().softmax(-1).tolist()
            for i, share in zip(places, shares, strict=True):
                ranked = sorted(zip(self.labels, share, strict=True), key=lambda each: -each[1])
                encoded, cut = read[i]
                unknown = self.unknown(texts[i], encoded)
                answers[i] = Answer(
                    texts[i], *ranked[0], tuple(ranked[1:]), unknown=unknown, cut=cut, source=encoded.ids
                )
        return answers

    @torch.no_grad()
    def attended(self, network: nn.Module, answer: Answer) -> list[Attended]:
        """What the label was read from."""
        if self.model.kind == "rnn" or not answer.source:
            return []
        row = (BOS, *answer.source)
        with record(network.eval(), only="attention") as records:
            network(torch.tensor([row], device=next(network.parameters()).device), torch.tensor([len(row)]))
        encoded, _ = self.pieces(answer.text, self.longest)
        spans = zip(encoded.ids, encoded.offsets, strict=True)  # what has no piece is shown as it was written
        names = tuple(answer.text[a:b] if id == UNK else self.tokenizer.piece(id) for id, (a, b) in spans)
        words = self.grouped(answer.source)
        begin, shown = mean_heads(records["attention"]).cpu().split([1, len(names)], dim=1)
        return [Attended("attention", (answer.output,), names, shown, (0,), words, begin[:, 0])]
