"""regard show: what one sentence attends to, under one mechanism or several, as a picture or a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from regard.cli.pictures import Asked, Known, asked, picture_of
from regard.cli.sentence import words_of
from regard.core.shapes import InputError
from regard.mechanisms import NORMALIZERS, SCORES, nearest, usages
from regard.nn.vectors import read_vectors
from regard.see.figure import FORMATS, kind_of, save
from regard.see.page import THEMES, save_page
from regard.see.picture import Picture
from regard.see.terminal import heatmap
from regard.tasks.silence import silent

VIEWS = ("matrix", "text", "lines", "overview", "compare", "walk", "statistics", "vectors")
DRAWN = ("matrix", "text", "overview", "compare", "vectors")


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
    view: Annotated[
        str | None,
        typer.Option(help=f"What is seen first. Of a page: {', '.join(VIEWS)}; of a figure: {', '.join(DRAWN)}"),
    ] = None,
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
    if view is not None:
        _check(view, out)
    wanted = [Asked(score, normalizer), *(asked(other, score, normalizer) for other in compare or [])]
    known = None if vectors is None else _look_up(vectors, words_of(text))
    page = out is not None and out.suffix.lower() == ".html"
    picture = picture_of(text, wanted, mask, known, width, seed, walk=page)
    if view is not None:
        picture = _seen(picture, view)
    if out is None:
        console = Console(highlight=False)
        for i in range(len(wanted)):
            console.print(heatmap(picture.only(i)))
            console.print()
        console.print(picture.note, style="dim")
    elif page:
        save_page(picture, out, theme=theme or "auto")
    else:
        save(picture, out, kind_of(picture), theme=theme or "light")


def _check(view: str, out: Path | None) -> None:
    if view not in VIEWS:
        raise InputError(f"no view is called {view!r}; {nearest(view, VIEWS)}")
    if out is None:
        raise InputError(f"--view {view}: the terminal shows matrices; --out x.html or x.png shows it")
    if out.suffix.lower() != ".html" and view not in DRAWN:
        raise InputError(f"--view {view}: only a page has it; write --out x.html, or one of {', '.join(DRAWN)}")


def _seen(picture: Picture, view: str) -> Picture:
    if view == "vectors" and picture.points is None:
        raise InputError("--view vectors: three different words make a map; write more words")
    if view in ("compare", "overview") and len(picture.maps) == 1:
        raise InputError(f"--view {view}: one mechanism cannot be compared; --compare NAME adds another")
    return replace(picture, view=view)


def _look_up(path: Path, words: list[str]) -> Known:
    """The vector of each word as it is written, or in small letters."""
    with silent("regard.nn.vectors"):  # what is missing is said below
        found = read_vectors(path, [*words, *map(str.lower, words)])
    missing = [word for word in words if word not in found and word.lower() not in found]
    if missing:
        raise InputError(f"{path}: has no vector for {', '.join(missing)}; leave these words out, or --vectors")
    rows = torch.stack([found[word if word in found else word.lower()] for word in words])
    return Known(rows.double(), path.name)
