"""regard show: what one sentence attends to, under one mechanism or several, as a picture or a page."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from torch import Tensor

from regard.cli.sentence import mask_of, rounded, take, words_of
from regard.core.shapes import InputError
from regard.mechanisms import NORMALIZERS, SCORES, make_normalizer, make_score, nearest, usages
from regard.nn.vectors import Vectors, read_vectors
from regard.see.figure import FORMATS, save
from regard.see.page import THEMES, save_page
from regard.see.picture import Picture
from regard.see.terminal import heatmap
from regard.see.walkthrough import walk_of
from regard.steps import Steps, steps

LONGEST_WALK = 64  # words up to which a page has the walk-through


def show(
    text: Annotated[str, typer.Argument(help="The words: 'This is a cat'")],
    score: Annotated[str, typer.Option(help=f"One of {usages(SCORES)}")] = "scaled-dot",
    normalizer: Annotated[str, typer.Option(help=f"One of {usages(NORMALIZERS)}")] = "softmax",
    mask: Annotated[
        str | None, typer.Option(help="Who may attend to whom: causal, window:1,1, dilated:1,1,2, strided:2, blocks:2")
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(help="Another score, normalizer or score/normalizer, to see beside it; may be given again"),
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option(help="A GloVe or word2vec file: its vectors are q, k and v (else: random numbers)")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="x.html, x.png, x.svg or x.pdf (else: the terminal)")] = None,
    theme: Annotated[str | None, typer.Option(help="light or dark (a page: as the reader's system)")] = None,
    width: Annotated[int, typer.Option(min=1, help="Random numbers per word (and additive's hidden units)")] = 4,
    seed: Annotated[int, typer.Option(help="The random numbers are the same for the same seed")] = 0,
) -> None:
    """Draw what a sentence attends to: in the terminal, as a figure, or as a page with everything in it.

    regard show "This is a cat" --score additive --compare dot --out cat.html
    """
    if theme is not None and theme not in THEMES[1:]:
        raise InputError(f"no theme is called {theme!r}; {nearest(theme, THEMES[1:])}")
    if out is not None and out.suffix.lower() not in (".html", *FORMATS):
        raise InputError(f"{out}: expected a name that ends in .html, {', '.join(FORMATS)}")
    wanted = [_Asked(score, normalizer), *(_asked(other, score, normalizer) for other in compare or [])]
    words = words_of(text)
    known = None if vectors is None else _look_up(vectors, words)
    opened = [_open(text, one, mask, known, width, seed) for one in wanted]
    picture = _picture(words, wanted, opened, known, vectors, mask, seed)
    if out is None:
        console = Console(highlight=False)
        for i in range(len(wanted)):
            console.print(heatmap(picture.only(i)))
            console.print()
        console.print(picture.note, style="dim")
    elif out.suffix.lower() == ".html":
        if len(words) <= LONGEST_WALK:
            picture = replace(picture, walk=_walk(words, wanted[0], opened[0], known, width, seed))
        save_page(picture, out, theme=theme or "auto")
    else:
        save(picture, out, "matrix" if len(wanted) == 1 else "heads", theme=theme or "light")


@dataclass(frozen=True)
class _Asked:
    score: str
    normalizer: str

    def __str__(self) -> str:
        return f"{self.score}, {self.normalizer}"


def _asked(text: str, score: str, normalizer: str) -> _Asked:
    """additive, sparsemax or additive/sparsemax: what is not named stays as it is."""
    first, slash, second = text.partition("/")
    if slash:
        return _Asked(first, second)
    name = text.partition(":")[0].strip().lower().replace("_", "-")
    if name not in SCORES and name not in NORMALIZERS:
        raise InputError(f"no score or normalizer is called {name!r}; {nearest(name, [*SCORES, *NORMALIZERS])}")
    return _Asked(text, normalizer) if name in SCORES else _Asked(score, text)


def _look_up(path: Path, words: list[str]) -> Tensor:
    """The vector of each word as it is written, or in small letters."""
    logging.getLogger("regard.nn.vectors").setLevel(logging.ERROR)  # what is missing is said below
    found = read_vectors(path, [*words, *map(str.lower, words)])
    missing = [word for word in words if word not in found and word.lower() not in found]
    if missing:
        raise InputError(f"{path}: has no vector for {', '.join(missing)}; leave these words out, or --vectors")
    return torch.stack([found[word if word in found else word.lower()] for word in words]).double()


def _open(text: str, asked: _Asked, mask: str | None, known: Tensor | None, width: int, seed: int) -> Steps:
    if known is None:
        return take(text, asked.score, asked.normalizer, mask, "matrices", "rows", width, seed).steps
    d = known.shape[-1]
    parts = {"score": make_score(asked.score, d, d, seed).double(), "normalizer": make_normalizer(asked.normalizer)}
    with torch.no_grad():
        return replace(steps(known, known, known, **parts, mask=mask_of(mask), seed=seed), a=known)


def _picture(
    words: list[str],
    wanted: list[_Asked],
    opened: list[Steps],
    known: Tensor | None,
    source: Path | None,
    mask: str | None,
    seed: int,
) -> Picture:
    a = opened[0].a
    assert a is not None
    unique = list(dict.fromkeys(words))
    places = Vectors(words, a).plane(unique) if len(unique) > 2 else None
    whence = (
        f"Word vectors from {source.name}, q = k = v" if source else f"Random numbers from seed {seed}, not trained"
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
    )


def _walk(
    words: list[str], asked: _Asked, opened: Steps, known: Tensor | None, width: int, seed: int
) -> dict[str, Any]:
    """What the page walks through: the mechanism that was asked for, and all others to choose from."""
    d = width if known is None else known.shape[-1]
    tidy = rounded if known is None else torch.nn.Module.double

    def score(name: str) -> Any:
        return tidy(make_score(f"additive:{width}" if name == "additive" else name, d, d, seed))

    scores = {name: score(name) for name in dict.fromkeys([asked.score, *SCORES])}
    normalizers: dict[str, Any] = {
        name: tidy(make_normalizer(name)) for name in dict.fromkeys([asked.normalizer, *NORMALIZERS])
    }
    w = None
    if known is None:
        w = {x[-1]: matrix for x, matrix in take(" ".join(words), *_DEFAULTS, width, seed).w.items()}
    return walk_of(words, opened, w, scores, normalizers, score=asked.score, normalizer=asked.normalizer)


_DEFAULTS = ("dot", "softmax", None, "matrices", "rows")  # W_q, W_k and W_v do not depend on them
