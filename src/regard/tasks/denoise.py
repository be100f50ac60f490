"""Denoising: from a text with words missing, hidden or swapped to the whole one, through a smaller latent."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from torch import nn

from regard.models.autoencoder import corrupt
from regard.tasks import metrics, networks
from regard.tasks.data import Plain
from regard.tasks.examples import Batch, Item, lengths_of, padded
from regard.tasks.fill import BLANK, plain
from regard.tasks.task import Options
from regard.tasks.tokenizers import EOS, MASK, PAD
from regard.tasks.writing import Writing


class Denoise(Writing):
    """Each text is its own target; what the network reads is damaged anew each time it is seen."""

    name = "denoise"
    kind = "autoencoder"
    files = "files of plain text, an example a line"

    @classmethod
    def read(cls, files: Sequence[str], labels: Collection[str] | None = None) -> Iterator[Plain]:
        return plain(files)

    @classmethod
    def texts(cls, example: Plain) -> Iterable[str]:
        return (example.text,)

    def encode(self, example: Plain) -> Item:
        ids = self.tokenizer.encode(example.text).ids
        return Item(ids, ids)

    def collate(self, items: Sequence[Item], chance: int) -> Batch:
        batch = super().collate(items, chance)
        rows = [item.source for item in items]
        noise = self.noise
        damaged, lengths = corrupt(
            padded(rows), lengths_of(rows), chance, mask_id=MASK, pad_id=PAD, drop=noise, mask=noise, swap=noise
        )
        return replace(batch, **dict(zip(("source", "lengths"), with_end(damaged, lengths), strict=True)))

    def network(self, dropout: float = 0.0, embedding: nn.Module | None = None) -> nn.Module:
        return networks.restorer(self.model, len(self.tokenizer), dropout, self.longest)

    def source(self, text: str, options: Options) -> tuple[tuple[int, ...], tuple[str, ...], bool]:
        """`____` stands for a word that nobody can read."""
        parts = re.split(BLANK, text)
        ids: list[int] = []
        unknown: list[str] = []
        cut = False
        for place, part in enumerate(parts):
            ids += [MASK] * (place > 0)
            encoded, longer = self.pieces(part, self.longest - 1)
            ids += encoded.ids
            unknown += self.unknown(part, encoded)
            cut |= longer
        most = self.longest - 1
        return tuple(ids[:most]), tuple(dict.fromkeys(unknown)), cut or len(ids) > most

    def score(self, network: nn.Module, examples: Sequence[Plain], options: Options) -> dict[str, float | str]:
        """Of examples that are damaged as in training, the same way each time."""
        items = [self.encode(example) for example in examples]
        hidden = [self.collate([item], place) for place, item in enumerate(items)]
        damaged = [self.tokenizer.decode(batch.source[0].tolist()).replace("<mask>", "____") for batch in hidden]
        outputs = [answer.output for answer in self.answer(network, damaged, options)]
        wholes = [self.tokenizer.decode(item.source) for item in items]
        exact = sum(a == b for a, b in zip(outputs, wholes, strict=True)) / max(len(wholes), 1)
        return {**metrics.translation(outputs, wholes), "exact": exact}


def with_end(tokens, lengths):
    """Each row with its end of sentence."""
    tokens = nn.functional.pad(tokens, (0, 1), value=PAD)
    return tokens.scatter(1, lengths[:, None], EOS), lengths + 1
