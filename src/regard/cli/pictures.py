"""One sentence under one mechanism or several, as a picture: what show and serve share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from regard.cli.sentence import mask_of, rounded, take, words_of
from regard.core.shapes import InputError
from regard.mechanisms import NORMALIZERS, SCORES, make_normalizer, make_score, nearest
from regard.nn.vectors import Vectors
from regard.see.picture import Picture
from regard.see.walkthrough import walk_of
from regard.steps import Steps, steps

LONGEST_WALK = 64  # words up to which a page has the walk-through
CHECKED = 20_000  # numbers of torch that a walk-through carries, to check every mechanism with


@dataclass(frozen=True)
class Asked:
    """A score and a normalizer by their names."""

    score: str
    normalizer: str

    def __str__(self) -> str:
        return f"{self.score}, {self.normalizer}"


@dataclass(frozen=True)
class Known:
    """Vectors that someone trained, one for each word, in the place of random numbers."""

    vectors: Tensor  # n d
    source: str


def asked(text: str, score: str, normalizer: str) -> Asked:
    """additive, sparsemax or additive/sparsemax: what is not named stays as it is."""
    first, slash, second = text.partition("/")
    if slash:
        return Asked(first, second)
    name = text.partition(":")[0].strip().lower().replace("_", "-")
    if name not in SCORES and name not in NORMALIZERS:
        raise InputError(f"no score or normalizer is called {name!r}; {nearest(name, [*SCORES, *NORMALIZERS])}")
    return Asked(text, normalizer) if name in SCORES else Asked(score, text)


def picture_of(
    text: str,
    wanted: Sequence[Asked],
    mask: str | None = None,
    known: Known | None = None,
    width: int = 4,
    seed: int = 0,
    walk: bool = False,
) -> Picture:
    """What each of the mechanisms makes of the sentence. `walk`: with all that a page needs to walk through it."""
    words = words_of(text)
    opened = [_open(text, one, mask, known, width, seed) for one in wanted]
    a = opened[0].a
    assert a is not None
    unique = list(dict.fromkeys(words))
    places = Vectors(words, a).plane(unique) if len(unique) > 2 else None
    whence = (
        f"Word vectors from {known.source}, q = k = v" if known else f"Random numbers from seed {seed}, not trained"
    )
    return Picture(
        torch.stack([one.weights for one in opened]),
        words,
        words,
        title=" ".join(words),
        maps=list(map(str, wanted)),
        note=f"{whence}{f'; mask {mask}' if mask else ''}.",
        points=None if places is None else places[[unique.index(word) for word in words]],
        view="matrix" if len(wanted) == 1 else "compare",
        walk=_walk(words, wanted[0], opened[0], mask, known, width, seed)
        if walk and len(words) <= LONGEST_WALK
        else None,
    )


def _open(text: str, one: Asked, mask: str | None, known: Known | None, width: int, seed: int) -> Steps:
    if known is None:
        return take(text, one.score, one.normalizer, mask, "matrices", "rows", width, seed).steps
    x, d = known.vectors, known.vectors.shape[-1]
    parts = {"score": make_score(one.score, d, d, seed).double(), "normalizer": make_normalizer(one.normalizer)}
    with torch.no_grad():
        return replace(steps(x, x, x, **parts, mask=mask_of(mask), seed=seed), a=x)


def _walk(
    words: list[str], one: Asked, opened: Steps, mask: str | None, known: Known | None, width: int, seed: int
) -> dict[str, Any]:
    """What the page walks through: the mechanism that was asked for, and all others to choose from."""
    d = width if known is None else known.vectors.shape[-1]
    tidy = rounded if known is None else torch.nn.Module.double

    def score(name: str) -> Any:
        return tidy(make_score(f"additive:{width}" if name == "additive" else name, d, d, seed))

    scores = {name: score(name) for name in dict.fromkeys([one.score, *SCORES])}
    normalizers: dict[str, Any] = {
        name: tidy(make_normalizer(name)) for name in dict.fromkeys([one.normalizer, *NORMALIZERS])
    }
    w = None
    if known is None:
        w = {x[-1]: matrix for x, matrix in take(" ".join(words), *_DEFAULTS, width, seed).w.items()}
    checks, pairs = {}, list(product(scores, normalizers))
    if len(scores) * opened.scores.numel() + len(pairs) * opened.b.numel() <= CHECKED:
        given = {"mask": mask_of(mask), "seed": seed}
        with torch.no_grad():
            for s, n in pairs:
                parts = {"score": scores[s], "normalizer": normalizers[n]}
                checks[s, n] = steps(opened.q, opened.k, opened.v, **parts, **given)
    return walk_of(words, opened, w, scores, normalizers, score=one.score, normalizer=one.normalizer, checks=checks)


_DEFAULTS = ("dot", "softmax", None, "matrices", "rows")  # W_q, W_k and W_v do not depend on them
