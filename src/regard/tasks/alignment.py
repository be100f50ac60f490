"""Which source word each target word came from, as a translation model's attention says.

Trained models differ in where they say it best: in which layer, in one head or in all, and when: before a word is
written, or after, when it is read. `choose` finds that out from a few sentences with gold links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.shapes import InputError
from regard.recording import record
from regard.tasks.data import Pair
from regard.tasks.examples import Item
from regard.tasks.metrics import Gold, Links, alignment_error
from regard.tasks.spelling import Spans
from regard.tasks.translate import Translate
from regard.tasks.writing import Aligner, Writing


@dataclass(frozen=True)
class Linked:
    """A pair whose words have places in its texts (without any: what stands between spaces), and gold links."""

    pair: Pair
    gold: Gold
    source: Spans | None = None
    target: Spans | None = None


def links(
    task: Translate, network: nn.Module, pair: Pair, source: Spans | None = None, target: Spans | None = None
) -> Links:
    """The source word with the largest weight, for each target word, while the network writes this very target."""
    tag, rest = task.tagged(pair.source)
    read, written = task.tokenizer.encode(rest), task.tokenizer.encode(pair.target)
    ids = (*tag, *read.ids)[: task.longest - 1], written.ids[: task.longest - 1]
    if len(ids[0]) == len(tag) or not ids[1]:
        return frozenset()
    _, weights = task.looked(network, *ids)[0]
    sides = [_member(written.offsets[: len(ids[1])], target or between_spaces(pair.target))]
    sides += [_member(read.offsets[: len(ids[0]) - len(tag)], source or between_spaces(rest))]
    return _largest(weights[: len(ids[1]), len(tag) : len(ids[0])], *sides)


def choose(task: Translate, network: nn.Module, examples: Sequence[Linked]) -> tuple[Aligner, float]:
    """Where attention says best what the gold links say, and the alignment error rate there."""
    if task.model.kind == "rnn":
        raise InputError("a model of kind 'rnn' has no attention, so there is nothing to align by")
    found: dict[Aligner, list[Links]] = {}
    for example in examples:
        tag, rest = task.tagged(example.pair.source)
        read, written = task.tokenizer.encode(rest), task.tokenizer.encode(example.pair.target)
        sides = [
            _member(written.offsets, example.target or between_spaces(example.pair.target)),
            _member(read.offsets, example.source or between_spaces(rest)),
        ]
        for aligner, weights in _all(task, network, (*tag, *read.ids), written.ids):
            links = _largest(weights[: len(written.ids), len(tag) : len(tag) + len(read.ids)], *sides)
            found.setdefault(aligner, []).append(links)
    gold = [example.gold for example in examples]
    errors = {aligner: alignment_error(links, gold) for aligner, links in found.items()}
    best = min(errors, key=lambda aligner: errors[aligner])
    return best, errors[best]


@torch.no_grad()
def _all(
    task: Translate, network: nn.Module, source: Sequence[int], target: Sequence[int]
) -> Iterator[tuple[Aligner, Float[Tensor, "m n"]]]:
    network.eval()
    batch = Writing.collate(task, [Item(tuple(source), tuple(target))], 0).to(next(network.parameters()).device)
    with record(network) as records:
        task.logits(network, batch)
    layers = [each for each in records if "cross_attention" in each.name or each.name == "attention"]
    for layer, each in enumerate(layers):
        weights = each.weights().float().cpu()
        weights = weights.reshape(-1, *weights.shape[-2:])
        for late in (0, 1):
            yield Aligner(layer, None, late), weights.mean(0)[late:]
            if len(weights) > 1:
                yield from ((Aligner(layer, head, late), of_head[late:]) for head, of_head in enumerate(weights))


def between_spaces(text: str) -> Spans:
    return tuple(found.span() for found in re.finditer(r"[^ ]+", text))


def _member(pieces: Spans, words: Spans) -> Float[Tensor, "pieces words"]:
    """1 where a piece belongs to a word: to the one that it has most characters of."""
    member = torch.zeros(len(pieces), len(words))
    for i, (start, end) in enumerate(pieces):
        shared = [min(end, b) - max(start, a) for a, b in words]
        if shared and max(shared) > 0:
            member[i, shared.index(max(shared))] = 1
    return member


def _largest(
    weights: Float[Tensor, "m n"], target: Float[Tensor, "m words_t"], source: Float[Tensor, "n words_s"]
) -> Links:
    """A word's weight is the sum over its pieces, and the mean of its pieces' rows."""
    by_words = (target / target.sum(0).clamp(min=1)).mT @ weights @ source
    known = target.sum(0) > 0
    return frozenset((int(by_words[j].argmax()), j) for j in range(len(by_words)) if known[j])
