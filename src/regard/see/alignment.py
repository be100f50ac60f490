"""Which word of one sentence belongs to which of another, read off the weights: for ribbons."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Links:
    """For each query the key with the largest weight, and where these run backwards or meet.

    >>> import torch
    >>> Links.of(torch.tensor([[0.9, 0.1, 0.0], [0.1, 0.1, 0.8], [0.2, 0.7, 0.1]]))  # the black cat, le chat noir
    Links(key=(0, 2, 1), inverted=(False, True, True), shared=())
    """

    key: tuple[int, ...]  # -1 for a query without any weight
    inverted: tuple[bool, ...]  # this query and its neighbour look at keys in the opposite order
    shared: tuple[int, ...]  # keys at which more than one query looks

    @staticmethod
    def of(weights: Float[Tensor, "n_q n_k"]) -> Links:
        sizes = weights.abs()
        best = sizes.max(-1) if weights.shape[-1] else None
        key = (
            [j if w > 0 else -1 for w, j in zip(*map(Tensor.tolist, best), strict=True)]
            if best
            else [-1] * len(weights)
        )
        inverted = [False] * len(key)
        linked = [i for i, j in enumerate(key) if j >= 0]
        for a, b in itertools.pairwise(linked):
            if key[b] < key[a]:
                inverted[a] = inverted[b] = True
        shared = sorted({j for j in key if j >= 0 and key.count(j) > 1})
        return Links(tuple(key), tuple(inverted), tuple(shared))
