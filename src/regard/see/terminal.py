"""A heat map of letters and colours, for any terminal: as wide as it is, in as many colours as it has.

Cells carry their numbers where there is room; then two digits; then colour alone; a map wider than the
terminal is pooled. Without colour, shades of ░▒▓█ stand beside or instead of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.shapes import InputError, MissingError
from regard.see.labels import is_rtl, visible
from regard.see.palette import Colour, ink, weigh_colour
from regard.see.picture import Picture

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

COLOURS = {"none": None, "256": "256", "truecolour": "truecolor"}  # rich's names
SHADES = " ░▒▓█"
LONGEST_LABEL, LONGEST_HEADER = 24, 12  # cells of the terminal, before a label is cut
TALLEST = 64  # rows of a map; a longer one is pooled


@dataclass(frozen=True)
class Heatmap:
    """One map, to be printed by rich (`rich.print(h)`), or as plain text by `str(h)` and `h.text(...)`."""

    weights: Float[Tensor, "n_q n_k"]
    rows: Sequence[str]
    columns: Sequence[str]
    title: str = ""
    width: int | None = None
    colour: str = "auto"

    def text(self, width: int | None = None, colour: str | None = None) -> str:
        """The lines, with colour codes for "256" and "truecolour", without for "none"."""
        console = _console(width or self.width or 80, colour or self.colour)
        console.print(self)
        assert isinstance(console.file, StringIO)
        return console.file.getvalue()

    def __str__(self) -> str:
        return self.text(colour="none" if self.colour == "auto" else None)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        if self.colour not in ("auto", "none") and console.color_system != COLOURS[self.colour]:
            # The caller chose the colours: draw there, and hand the finished lines over.
            from rich.text import Text

            yield Text.from_ansi(self.text(self.width or options.max_width), no_wrap=True)
            return
        system = None if self.colour == "none" or console.no_color else console.color_system
        yield from _Drawing(self, min(self.width or options.max_width, options.max_width), system).lines()


def heatmap(
    weights: Float[Tensor, "n_q n_k"] | Picture,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    title: str | None = None,
    width: int | None = None,
    colour: str = "auto",
) -> Heatmap:
    """A heat map of one map of weights: queries are its rows, keys its columns (the rows again, if not given).

    `colour`: "auto" (what the terminal can), "truecolour", "256" or "none"; `width` in letters (default: the
    terminal's). Of a picture with several maps, their mean is drawn.

    >>> print(heatmap(torch.tensor([[1.0, 0.0], [0.25, 0.75]]), ["The", "cat"]))
          The     cat
    The  1.00 █  0.00
    cat  0.25 ░  0.75 ▓
    """
    if colour not in ("auto", *COLOURS):
        raise InputError(f"colour={colour!r}; expected auto, truecolour, 256 or none")
    if width is not None and width < 12:
        raise InputError(f"width={width}; expected 12 or more letters")
    _console(80, "none")  # says so now if rich is missing
    if isinstance(weights, Picture):
        picture = weights
        one = picture.weights.mean(0) if len(picture.maps) != 1 else picture.weights[0]
        named = " · ".join(
            x
            for x in (picture.title, picture.maps[0] if len(picture.maps) == 1 else f"mean of {len(picture.maps)} maps")
            if x
        )
        rows, columns = picture.rows, picture.columns
        if picture.pooled:
            rows, columns = _spans(rows, one.shape[0]), _spans(columns, one.shape[1])
        return Heatmap(one, rows, columns, named if title is None else title, width, colour)
    if rows is None:
        raise InputError("heatmap: rows is missing; expected one label for each query")
    picture = Picture(weights, rows, rows if columns is None else columns)
    return Heatmap(picture.weights[0], picture.rows, picture.columns, title or "", width, colour)


def _console(width: int, colour: str) -> Console:
    try:
        from rich.console import Console
    except ImportError:
        raise MissingError("a heat map in the terminal needs rich; pip install 'regard[see]'") from None
    system: Any = COLOURS.get(colour)
    return Console(
        file=StringIO(),
        width=width,
        color_system=system,
        force_terminal=system is not None,
        no_color=False,
        highlight=False,
        legacy_windows=False,
    )


class _Drawing:
    """One heat map at one width."""

    def __init__(self, h: Heatmap, width: int, system: str | None) -> None:
        self.width, self.system, self.title = width, system, visible(h.title) if h.title else ""
        self.colours = system in ("256", "truecolor")  # sixteen are too few for a scale
        self.weights, self.rows, self.columns = h.weights, [visible(r) for r in h.rows], [visible(c) for c in h.columns]
        self.most = h.weights.abs().max().item() if h.weights.numel() else 0.0
        self.signed = bool((h.weights < 0).any())

    def lines(self) -> Iterator[Any]:
        if self.title:
            yield self.styled(self.title, bold=True)
        if not self.weights.numel():
            yield self.styled(f"no weights: {len(self.rows)} queries, {len(self.columns)} keys")
            return
        header = max(_cells(label) for label in self.columns)
        number = 5 + self.signed + (0 if self.colours else 2)  # 0.82 and its shade, with a space before
        room = self.width - min(max(map(_cells, self.rows)), LONGEST_LABEL) - 1
        each = room // len(self.columns)
        if len(self.rows) > TALLEST:
            yield from self.dense()
        elif each > min(header, LONGEST_HEADER) and each > number:
            yield from self.numbered(max(min(header, LONGEST_HEADER) + 1, number + 1), decimals=True)
        elif len(self.rows) == 1:
            yield from self.flow()
        else:
            yield from self.compact()

    def flow(self) -> Iterator[Any]:
        """One query over a long text: the text itself, each word on the colour of its weight, or with its shade."""
        lines: list[list[tuple[str, float | None]]] = [[]]
        used = 0
        for name, w in zip(self.columns, self.weights[0].tolist(), strict=True):
            word = _cut(name, self.width - 2)
            shadow = "" if self.colours else self.cell(w, 1).strip()
            shadow = f"-{shadow}" if shadow and w < 0 else shadow
            if used + _cells(word + shadow) > self.width:
                lines.append([])
                used = 0
            lines[-1] += [(word + shadow, w), (" ", None)]
            used += _cells(word + shadow) + 1
        yield self.styled(f"{self.rows[0]}:")
        for line in lines:
            yield self.line(line)
        yield self.scale()

    def numbered(self, cell: int, decimals: bool) -> Iterator[Any]:
        """Words above their columns, and a number in every cell."""
        label = min(max(map(_cells, self.rows)), LONGEST_LABEL)
        yield self.line([(" " * label + " ", None), *((_centred(c, cell), None) for c in self.columns)])
        for name, row in zip(self.rows, self.weights.tolist(), strict=True):
            yield self.line([(_right(name, label) + " ", None), *((self.cell(w, cell), w) for w in row)])

    def compact(self) -> Iterator[Any]:
        """Numbers above the columns, and the words they stand for beside the rows or below."""
        same = self.rows == self.columns
        n_k = len(self.columns)
        digits = len(str(n_k))
        names = (
            [f"{_cut(r, LONGEST_LABEL)} {i + 1:>{digits}}" for i, r in enumerate(self.rows)]
            if same
            else [_cut(r, LONGEST_LABEL) for r in self.rows]
        )
        label = max(map(_cells, names))
        room = self.width - label - 1
        if room < n_k:
            yield from self.dense()
            return
        cell = next(c for c in (digits + 2 if digits > 1 else 3, 3, 2, 1) if room >= c * n_k and (c <= 2 or c > digits))
        if cell >= 3:
            yield self.line([(" " * (label + 1), None), *((f"{j + 1:>{cell - 1}} ", None) for j in range(n_k))])
        else:
            yield self.line([(" " * (label + 1) + _ruler(n_k, cell), None)])
        for name, row in zip(names, self.weights.tolist(), strict=True):
            yield self.line([(_right(name, label) + " ", None), *((self.cell(w, cell), w) for w in row)])
        yield self.scale(percent=cell >= 3)
        if not same:
            yield from self.key(self.columns)

    def dense(self) -> Iterator[Any]:
        """Longer than the terminal: cells are pooled, summed over keys and averaged over queries; two rows a line."""
        n_q, n_k = self.weights.shape
        lines = min(n_q, TALLEST)
        across = min(n_k, max(self.width - 2 * len(str(n_q)) - 2, 8))
        # The most rows that keep a cell's share of queries and of keys alike, so that a diagonal looks like one.
        lines = min(lines, max(1, math.ceil(n_q * across / n_k))) if n_q > TALLEST or n_k > across else lines
        pooled = _pool(self.weights, lines, across)
        self.most = pooled.abs().max().item()
        edges = [(i * n_q + lines - 1) // lines for i in range(lines)]
        label = len(str(n_q))
        if not self.colours:
            for edge, row in zip(edges, pooled.tolist(), strict=True):
                yield self.line([(f"{edge + 1:>{label}} ", None), *((self.cell(w, 1), w) for w in row)])
        else:
            for i in range(0, lines, 2):
                pairs = zip(
                    pooled[i].tolist(), pooled[i + 1].tolist() if i + 1 < lines else [None] * across, strict=True
                )
                yield self.halves(f"{edges[i] + 1:>{label}} ", pairs)
        yield self.scale()
        if (lines, across) != (n_q, n_k):
            share = f"{n_q / lines:.3g} queries (averaged) and {n_k / across:.3g} keys (summed)"
            yield self.styled(f"{n_q} queries x {n_k} keys: each cell is {share}", dim=True)

    def cell(self, w: float, cell: int) -> str:
        """What is written into a cell of this width."""
        share = abs(w) / self.most if self.most else 0.0
        shadow = SHADES[min(math.ceil(share * (len(SHADES) - 1) - 0.5), len(SHADES) - 1)] if share else " "
        minus = "-" if w < 0 else " "
        if cell <= 2:
            mark = " " if self.colours else shadow
            return (minus + mark if w < 0 and not self.colours else mark * 2) if cell == 2 else mark
        if cell <= 4 + self.signed:
            whole = round(abs(w) * 100)
            if self.most > 1.0:  # not shares of one: hundredths of the largest
                whole = round(share * 100)
            body = f"{whole}" if whole or not self.signed else "0"
            body = ("-" if w < 0 and whole else "") + body
            return f"{body:>{cell - 1}}" + (" " if self.colours else shadow)
        body = f"{w:.2f}" if abs(w) < 100 else f"{w:.3g}"
        if round(w, 2) == 0:
            body = "0.00"
        return _centred(body, cell) if self.colours else _centred(f"{body:>{5 if self.signed else 4}} {shadow}", cell)

    def line(self, parts: list[tuple[str, float | None]]) -> Any:
        from rich.style import Style
        from rich.text import Text

        text = Text(no_wrap=True, overflow="crop", end="\n")
        for words, weight in parts:
            if weight is None or not self.colours:
                text.append(words)
            else:
                back = self.colour(weight)
                text.append(words, Style(color=self.rich(ink(back)), bgcolor=self.rich(back)))
        if not self.colours:
            text.rstrip()
        return text

    def halves(self, label: str, pairs: Any) -> Any:
        from rich.style import Style
        from rich.text import Text

        text = Text(label, no_wrap=True, overflow="crop", end="\n")
        for upper, lower in pairs:
            under = None if lower is None else self.rich(self.colour(lower))
            text.append("▀", Style(color=self.rich(self.colour(upper)), bgcolor=under))
        return text

    def scale(self, percent: bool = False) -> Any:
        """What the colours mean."""
        low = -self.most if self.signed else 0.0
        unit = ""
        if percent:
            unit = "  in hundredths" if self.most <= 1.0 else f"  in hundredths of {self.most:.3g}"
        room = self.width - len(f"{low:.3g}  {self.most:.3g}")
        unit = unit if len(unit) + 8 <= room else ""
        count = max(2, min(16, room - len(unit)))
        steps = [low + (self.most - low) * i / (count - 1) for i in range(count)]
        bar = [(" " if self.colours else self.cell(w, 1), w) for w in steps]
        return self.line([(f"{low:.3g} ", None), *bar, (f" {self.most:.3g}{unit}", None)])

    def key(self, labels: list[str]) -> Iterator[Any]:
        line = "keys:"
        for j, label in enumerate(labels):
            word = f" {j + 1} {_isolated(_cut(label, LONGEST_LABEL))}"
            if _cells(line + word) > self.width:
                yield self.styled(line)
                line = "     "
            line += word
        yield self.styled(line)

    def colour(self, weight: float) -> Colour:
        return weigh_colour(weight, self.most, self.signed)

    def rich(self, colour: Colour) -> Any:
        """The colour as this terminal has it: rich would keep the codes of the first terminal for all later ones."""
        from rich.color import Color, ColorSystem

        exact = Color.from_rgb(*colour)
        return exact if self.system == "truecolor" else exact.downgrade(ColorSystem.EIGHT_BIT)

    def styled(self, words: str, bold: bool = False, dim: bool = False) -> Any:
        from rich.style import Style
        from rich.text import Text

        return Text(words, Style(bold=bold, dim=dim) if self.colours else "")


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _cut(label: str, most: int) -> str:
    from rich.cells import set_cell_size

    return label if _cells(label) <= most else set_cell_size(label, most - 1) + "…"


def _isolated(label: str) -> str:
    """A mark on both sides keeps a terminal that reorders Arabic or Hebrew from reordering whole columns."""
    return f"\u200e{label}\u200e" if is_rtl(label) else label


def _right(label: str, width: int) -> str:
    label = _cut(label, width)
    return " " * (width - _cells(label)) + _isolated(label)


def _centred(label: str, width: int) -> str:
    label = _cut(label, width - 1)
    left = (width - _cells(label) + 1) // 2
    return " " * left + _isolated(label) + " " * (width - left - _cells(label))


def _ruler(n: int, cell: int) -> str:
    """1    5    10 …: the numbers of columns too narrow to have one each."""
    line = ""
    for j in range(n):
        mark = str(j + 1) if j == 0 or (j + 1) % (5 if cell == 2 else 10) == 0 else ""
        if mark and len(line) <= j * cell and j * cell + len(mark) <= n * cell:
            line += " " * (j * cell - len(line)) + mark
    return line


def _pool(weights: Float[Tensor, "n_q n_k"], rows: int, columns: int) -> Float[Tensor, "rows columns"]:
    n_q, n_k = weights.shape
    of_row, of_column = torch.arange(n_q) * rows // n_q, torch.arange(n_k) * columns // n_k
    summed = torch.zeros(n_q, columns).index_add_(1, of_column, weights)
    return torch.zeros(rows, columns).index_add_(0, of_row, summed) / torch.bincount(of_row)[:, None]


def _spans(labels: Sequence[str], cells: int) -> list[str]:
    """Names of pooled cells: the first of their tokens, with its place."""
    n = len(labels)
    return [f"{labels[i]}…" for i in ((place * n + cells - 1) // cells for place in range(cells))]
