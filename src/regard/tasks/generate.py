"""Generation: each word from those before it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.recording import record
from regard.tasks import networks
from regard.tasks.data import Plain
from regard.tasks.examples import IGNORED, Batch, Item, counted, lengths_of, padded
from regard.tasks.fill import plain
from regard.tasks.task import Answer, Attended, Options, Task, ended, in_batches, lost, mean_heads
from regard.tasks.tokenizers import BOS, SPECIAL
from regard.tasks.writing import confidence, finite, written

MOST = 1000  # pieces, where nobody says how many


class Generate(Task):
    """A text goes on where the prompt ends; an empty prompt begins a new one."""

    name = "generate"
    files = "files of plain text, an example a line"

    @classmethod
    def read(cls, files: Sequence[str], labels: Collection[str] | None = None) -> Iterator[Plain]:
        return plain(files)

    @classmethod
    def texts(cls, example: Plain) -> Iterable[str]:
        return (example.text,)

    def encode(self, example: Plain) -> Item:
        return Item(self.tokenizer.encode(example.text).ids, ())

    def collate(self, items: Sequence[Item], chance: int) -> Batch:
        rows = [(BOS, *item.source) for item in items]
        target = padded([ended(item.source) for item in items], IGNORED)
        return Batch(padded(rows), lengths_of(rows), target, units=counted(target))

    def network(self, dropout: float = 0.0, embedding: nn.Module | None = None) -> nn.Module:
        return networks.continuer(self.model, len(self.tokenizer), dropout, self.longest)

    def logits(self, network: nn.Module, batch: Batch) -> tuple[Float[Tensor, "B n V"], Int[Tensor, "B n"]]:
        return network(batch.source, batch.lengths), batch.target

    def loss(self, network: nn.Module, batch: Batch, smoothing: float = 0.0) -> Float[Tensor, ""]:
        return network(batch.source, batch.lengths, read=lost(batch.target, smoothing))

    def answer(self, network: nn.Module, texts: Sequence[str], options: Options) -> list[Answer]:
        network.eval()
        device = next(network.parameters()).device
        prompts = [self.pieces(text, self.longest // 2) for text in texts]
        answers: list[Any] = [None] * len(texts)
        for places in in_batches(prompts, lambda prompt: len(prompt[0].ids) + 32):
            rows = [(BOS, *prompts[i][0].ids) for i in places]
            begun = padded([row[:-1] for row in rows]).to(device)
            lengths = lengths_of([row[:-1] for row in rows]).to(device)
            last = torch.tensor([row[-1] for row in rows], device=device)
            most = options.longest or min(max(self.longest // 2, 1), MOST)
            found = written(network, begun, lengths, last, options, most)
            for i, n_best in zip(places, found.n_best, strict=True):
                encoded, cut = prompts[i]
                finite(n_best)
                told = [(self.tokenizer.decode((*encoded.ids, *h.tokens)), confidence(h, options)) for h in n_best]
                (output, sure), *others = told
                answers[i] = Answer(
                    texts[i],
                    output,
                    sure,
                    tuple(others),
                    unknown=self.unknown(texts[i], encoded),
                    cut=cut,
                    source=encoded.ids,
                    target=tuple(n_best[0].tokens),
                )
        return answers

    def score(self, network: nn.Module, examples: Sequence[Plain], options: Options) -> dict[str, float | str]:
        return {"perplexity": math.exp(min(self.evaluate(network, map(self.encode, examples))["loss"], 700))}

    @torch.no_grad()
    def attended(self, network: nn.Module, answer: Answer) -> list[Attended]:
        """Each piece over those before it, as it was written, the last layer first."""
        ids = (*answer.source, *answer.target)
        row = (BOS, *ids)[: len(ids)]
        if not row:
            return []
        source = torch.tensor([row], device=next(network.parameters()).device)
        with record(network.eval()) as records:
            network(source)
        names = tuple(map(self.tokenizer.piece, ids))
        # Row t of the map is what piece t looked at before it was written.
        words = self.grouped(ids)
        return [
            Attended(r.name, names, (SPECIAL[BOS], *names[:-1]), mean_heads(r).cpu(), words, (-1, *words[:-1]))
            for r in reversed(list(records))
        ]
