"""How well a model's attention finds the gold links of the corpora: on running text, by the places of its words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from regard.core.shapes import InputError
from regard.tasks.data import read_table
from regard.tasks.files import PathLike
from regard.tasks.metrics import Gold, Links, alignment_error
from regard.tasks.model import Trained
from regard.tasks.task import Options
from regard.tasks.tokenizers import Encoded
from regard.tasks.translate import Translate

Spans = tuple[tuple[int, int], ...]
COLUMNS = ("source", "target", "source_places", "target_places", "links", "sure")


@dataclass(frozen=True)
class Aligned:
    """A pair of texts; where their words are, and which of them belong together."""

    source: str
    target: str
    source_spans: Spans
    target_spans: Spans
    gold: Gold


def read_aligned(path: PathLike) -> Iterator[Aligned]:
    """The rows of an alignment file that `files` wrote."""
    for source, target, left, right, links, sure in read_table(path, COLUMNS):
        try:
            gold = Gold(frozenset(_pairs(sure, "-")), frozenset(_pairs(links, "-")))
            yield Aligned(source, target, tuple(_pairs(left, ":")), tuple(_pairs(right, ":")), gold)
        except ValueError:
            raise InputError(f"{path}: {source!r}: expected places as 0:3 4:9 and links as 0-0 1-2") from None


def error(
    trained: Trained, rows: Iterable[Aligned], to: str | None = None, report: Callable[[int], None] = lambda done: None
) -> float:
    """The alignment error rate of the cross-attention while it writes the gold translation."""
    rows = list(rows)
    found = []
    for done, row in enumerate(rows):
        report(done)
        found.append(attended(trained, row, to))
    return alignment_error(found, [row.gold for row in rows])


@torch.no_grad()
def attended(trained: Trained, row: Aligned, to: str | None = None) -> Links:
    """For each target word the source word with the largest weight, from the layer that aligns best: the sum over the
    source word's pieces, and the mean over the target word's."""
    task = trained.task
    if not isinstance(task, Translate) or task.model.kind == "rnn":
        raise InputError("alignments are of translation models that attend; this model has nothing to align by")
    read, _, _ = task.source(row.source, Options(to=to))
    source, target = task.tokenizer.encode(row.source), task.tokenizer.encode(row.target)
    tag = len(read) - len(source.ids)
    written = target.ids[: task.longest - 1]
    _, weights = task.looked(trained.network, read, written)[0]
    weights = weights[: len(written), tag : len(read)]
    columns = [_pieces(source, span) for span in row.source_spans]
    found = set()
    for j, span in enumerate(row.target_spans):
        mine = weights[[i for i in _pieces(target, span) if i < len(weights)]]
        if len(mine):
            found.add((int(torch.stack([mine[:, column].sum(1).mean() for column in columns]).argmax()), j))
    return frozenset(found)


def _pieces(encoded: Encoded, span: tuple[int, int]) -> list[int]:
    """The pieces that share a letter with a word."""
    start, end = span
    return [i for i, (a, b) in enumerate(encoded.offsets) if max(a, start) < min(b, end)]


def _pairs(text: str, between: str) -> Sequence[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in (pair.split(between) for pair in text.split())]
