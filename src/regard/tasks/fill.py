"""Fill in the blank: words are hidden in training, and the network says which they were, from both sides."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.shapes import InputError
from regard.recording import record
from regard.tasks import networks
from regard.tasks.data import Plain, read_plain
from regard.tasks.examples import IGNORED, Batch, Item, counted, lengths_of, padded
from regard.tasks.task import Answer, Attended, Options, Task, in_batches, lost, mean_heads
from regard.tasks.tokenizers import BOS, EOS, MASK, SPECIAL, UNK

BLANK = re.compile(r"_{2,}|<mask>|\[MASK\]")


class Fill(Task):
    """A text stands between begin and end of sentence, so that there is always something to look at."""

    name = "fill"
    tokens = "word"
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
        draw = random.Random(chance)
        rows, asked = [], []
        for item in items:
            known = [i for i, id in enumerate(item.source) if id != UNK]
            hidden = {i for i in known if draw.random() < self.noise}
            hidden = hidden or set(draw.sample(known, min(1, len(known))))
            row = [MASK if i in hidden else id for i, id in enumerate(item.source)]
            rows.append((BOS, *row, EOS))
            asked.append((IGNORED, *(id if i in hidden else IGNORED for i, id in enumerate(item.source)), IGNORED))
        target = padded(asked, IGNORED)
        return Batch(padded(rows), lengths_of(rows), target, units=counted(target))

    def network(self, dropout: float = 0.0, embedding: nn.Module | None = None) -> nn.Module:
        return networks.filler(self.model, len(self.tokenizer), embedding, dropout, self.longest + 2)

    def logits(self, network: nn.Module, batch: Batch) -> tuple[Float[Tensor, "asked V"], Int[Tensor, " asked"]]:
        asked = batch.target != IGNORED
        return network(batch.source, batch.lengths, asked), batch.target[asked]

    def loss(self, network: nn.Module, batch: Batch, smoothing: float = 0.0) -> Float[Tensor, ""]:
        asked = batch.target != IGNORED
        return network(batch.source, batch.lengths, asked, read=lost(batch.target[asked], smoothing))

    @torch.no_grad()
    def answer(self, network: nn.Module, texts: Sequence[str], options: Options) -> list[Answer]:
        network.eval()
        device = next(network.parameters()).device
        read = [self._read(text) for text in texts]
        answers: list[Any] = [None] * len(texts)
        most = max(5, options.n_best)
        for places in in_batches(read, lambda each: len(each[0]) + 2):
            rows = [(BOS, *read[i][0], EOS) for i in places]
            source = padded(rows).to(device)
            logits = network(source, lengths_of(rows).to(device), source == MASK)
            logits[:, : len(SPECIAL)] = float("-inf")
            best = logits.float().softmax(-1).topk(min(most, logits.shape[-1] - len(SPECIAL)))
            found = [
                tuple((self.tokenizer.piece(int(id)), float(p)) for id, p in zip(ids, ps, strict=True))
                for ids, ps in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            ]
            for i in places:
                ids, unknown, cut = read[i]
                blanks, found = found[: ids.count(MASK)], found[ids.count(MASK) :]
                answers[i] = self._told(texts[i], ids, tuple(blanks), unknown, cut)
        return answers

    def _told(self, text: str, ids: tuple[int, ...], blanks: Any, unknown: tuple[str, ...], cut: bool) -> Answer:
        words = iter([candidates[0][0] for candidates in blanks])
        output = BLANK.sub(lambda blank: next(words, blank[0]), text)
        sure = 1.0
        for candidates in blanks:
            sure *= candidates[0][1]
        others = tuple((w, p) for w, p in blanks[0][1:]) if len(blanks) == 1 else ()
        return replace(Answer(text, output, sure, others, blanks=blanks, unknown=unknown, cut=cut), source=ids)

    def _read(self, text: str) -> tuple[tuple[int, ...], tuple[str, ...], bool]:
        ids: list[int] = []
        unknown: list[str] = []
        cut = False
        parts = BLANK.split(text)
        if len(parts) == 1:
            raise InputError(f"{text[:60]!r} has no blank; write ____ where a word is missing")
        for place, part in enumerate(parts):
            ids += [MASK] * (place > 0)
            encoded, longer = self.pieces(part, self.longest)
            ids += encoded.ids
            unknown += self.unknown(part, encoded)
            cut |= longer
        cut |= len(ids) > self.longest
        return tuple(ids[: self.longest]), tuple(dict.fromkeys(unknown)), cut

    @torch.no_grad()
    def attended(self, network: nn.Module, answer: Answer) -> list[Attended]:
        """Where each blank looked, in each layer, the last first."""
        device = next(network.parameters()).device
        row = (BOS, *answer.source, EOS)
        source = torch.tensor([row], device=device)
        blanks = [i for i, id in enumerate(row) if id == MASK]
        if not blanks or self.model.kind != "transformer":
            return []
        with record(network.eval()) as records:
            network(source, lengths_of([row]).to(device), source == MASK)
        names = tuple("____" if id == MASK else self.tokenizer.piece(id) for id in row[1:-1])
        filled = tuple(candidates[0][0] for candidates in answer.blanks)
        words, found = self.grouped(answer.source), []
        for each in reversed(list(records)):
            weights = mean_heads(each).cpu()[blanks]
            own = tuple(range(len(blanks)))
            found.append(Attended(each.name, filled, names, weights[:, 1:-1], own, words, weights[:, [0, -1]].sum(-1)))
        return found


def plain(files: Sequence[str]) -> Iterator[Plain]:
    for file in files:
        yield from read_plain(file)
