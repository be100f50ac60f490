"""Which source word each target word came from, as a translation model's attention says."""

from __future__ import annotations

import torch
from torch import nn

from regard.tasks.data import Pair
from regard.tasks.metrics import Links
from regard.tasks.translate import Translate


def links(task: Translate, network: nn.Module, pair: Pair) -> Links:
    """The source word with the largest weight, for each target word; words are what stands between spaces.

    The weights are those of the layer where alignment is clearest, averaged over its heads, while the network
    writes this very target; a word's weight is the sum over its pieces, and the mean of its pieces' rows.
    """
    tag, rest = task.tagged(pair.source)
    source, target = (task.tokenizer.encode_words(text.split()) for text in (rest, pair.target))
    if not source.words or not target.words:
        return frozenset()
    read, written = (*tag, *source.ids)[: task.longest - 1], target.ids[: task.longest - 1]
    _, weights = task.looked(network, read, written)[0]
    weights = weights[
        : len(written), len(tag) : len(read)
    ]  # what it looks at when there is nothing to align is left out
    by_source = [weights[:, of_word.start : of_word.stop].sum(1) for of_word in source.words]
    weights = torch.stack(by_source, 1)
    found = set()
    for j, of_word in enumerate(target.words):
        rows = weights[of_word.start : of_word.stop]
        if len(rows):
            found.add((int(rows.mean(0).argmax()), j))
    return frozenset(found)
