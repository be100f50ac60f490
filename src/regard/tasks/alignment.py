"""Which source word each target word came from, as a translation model's attention says.

Trained models differ in where they say it best: in which heads, and when: before a word is written, or after, when it
is read. `choose` finds that out from a few sentences with gold links.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
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
from regard.tasks.writing import Aligner, Writing, by_head


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
    """Where attention says best what the gold links say, and the alignment error rate there: the best head first, then
    each that makes the mean of all better, until none does."""
    if task.model.kind == "rnn":
        raise InputError("a model of kind 'rnn' has no attention, so there is nothing to align by")
    gold = [example.gold for example in examples]
    words: dict[int, list[Float[Tensor, "heads words_t words_s"]]] = {0: [], 1: []}
    known: list[list[bool]] = []
    heads: list[tuple[int, int]] = []
    for example in examples:
        tag, rest = task.tagged(example.pair.source)
        read, written = task.tokenizer.encode(rest), task.tokenizer.encode(example.pair.target)
        sides = [
            _member(written.offsets, example.target or between_spaces(example.pair.target)),
            _member(read.offsets, example.source or between_spaces(rest)),
        ]
        layers = _layers(task, network, (*tag, *read.ids), written.ids)
        heads = [(layer, head) for layer, weights in enumerate(layers) for head in range(len(weights))]
        known.append((sides[0].sum(0) > 0).tolist())
        for late, found in words.items():
            rows, columns = slice(late, late + len(written.ids)), slice(len(tag), len(tag) + len(read.ids))
            found.append(_by_words(torch.cat(layers)[:, rows, columns], *sides))
    best, least = Aligner(()), math.inf
    for late, found in words.items():
        chosen, error = tuple[int, ...](), math.inf
        while len(chosen) < len(heads):
            errors = {
                head: alignment_error(
                    [_links(each[[*chosen, head]].mean(0), there) for each, there in zip(found, known, strict=True)],
                    gold,
                )
                for head in range(len(heads))
                if head not in chosen
            }
            head = min(errors, key=lambda head: errors[head])
            if errors[head] >= error:
                break
            chosen, error = (*chosen, head), errors[head]
            if error < least:
                best, least = Aligner(tuple(heads[i] for i in chosen), late), error
    return best, least


@torch.no_grad()
def _layers(
    task: Translate, network: nn.Module, source: Sequence[int], target: Sequence[int]
) -> list[Float[Tensor, "h m n"]]:
    """Cross-attention while this target is written, a matrix for each head."""
    network.eval()
    batch = Writing.collate(task, [Item(tuple(source), tuple(target))], 0).to(next(network.parameters()).device)
    with record(network) as records:
        task.logits(network, batch)
    return [by_head(each) for each in records if "cross_attention" in each.name or each.name == "attention"]


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
    return _links(_by_words(weights, target, source), (target.sum(0) > 0).tolist())


def _by_words(
    weights: Float[Tensor, "*h m n"], target: Float[Tensor, "m words_t"], source: Float[Tensor, "n words_s"]
) -> Float[Tensor, "*h words_t words_s"]:
    """A word's weight is the sum over its pieces, and the mean of its pieces' rows."""
    return (target / target.sum(0).clamp(min=1)).mT @ weights @ source


def _links(by_words: Float[Tensor, "words_t words_s"], known: Sequence[bool]) -> Links:
    return frozenset((i, j) for j, i in enumerate(by_words.argmax(-1).tolist()) if known[j])
