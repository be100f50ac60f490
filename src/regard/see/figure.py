"""Figures for papers and lectures, by matplotlib: a matrix, an alignment with ribbons, all heads side by side."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.core.shapes import InputError, MissingError
from regard.see.alignment import Links
from regard.see.drawing import (
    LABELS,
    THEMES,
    box_at,
    cell_of,
    cut,
    draw_legend,
    draw_matrix,
    draw_ribbons,
    draw_scale,
    header_of,
    hex_of,
    inches_of,
    names_of,
    paper,
    plate_at,
    rgb_of,
    widths_of,
)
from regard.see.fonts import families
from regard.see.labels import legible, visible
from regard.see.palette import SIGNED, ink, shade
from regard.see.picture import Picture
from regard.tasks.atomic import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
KINDS = ("matrix", "alignment", "heads", "compare", "text", "vectors")
FLOW = 4000  # words up to which a text is written out, once for each query


def figure(picture: Picture, kind: str = "matrix", *, theme: str = "light") -> Figure:
    """A matplotlib figure: "matrix" (of several maps, their mean), "alignment" (ribbons above the matrix),
    "heads" (every map, small), "compare" (every map with its words; of two, their difference too), "text" (what was
    read, each word on the colour of its weight) or "vectors" (where the words stand on a map of their vectors).

    Letters are drawn in the system's own fonts; where none has a letter, an error names the package to install.
    """
    for name, given, known in (("kind", kind, KINDS), ("theme", theme, THEMES)):
        if given not in known:
            raise InputError(f"{name}={given!r}; expected {', '.join(known)}")
    if not picture.weights.numel():
        raise InputError(f"{picture!r}: there is nothing to draw")
    picture = _legible(picture)
    with _matplotlib(picture, theme):
        draw = {
            "matrix": _matrix_figure,
            "alignment": _alignment_figure,
            "heads": _heads_figure,
            "compare": _compare_figure,
            "text": _text_figure,
            "vectors": _vectors_figure,
        }
        return draw[kind](picture, theme)


def kind_of(picture: Picture) -> str:
    """The figure that says what a page of this picture shows first, as far as its words can be read."""
    readable = not picture.pooled and max(picture.weights.shape[1:]) <= LABELS
    if picture.view in ("alignment", "compare") and readable and (picture.view, len(picture.maps)) != ("compare", 1):
        return picture.view
    if picture.view == "text" and not picture.pooled and len(picture.rows) * len(picture.columns) <= FLOW:
        return "text"
    if picture.view == "vectors" and picture.points is not None:
        return "vectors"
    return "matrix" if len(picture.maps) == 1 else "heads"


def save(picture: Picture, path: str | Path, kind: str = "matrix", *, theme: str = "light", dpi: int = 200) -> Path:
    """Write a .png, .svg or .pdf. The same picture gives the same file, byte for byte."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a figure is {', '.join(FORMATS)}, not {path.suffix or 'without an ending'}")
    write_whole(path, encoded(picture, path.suffix[1:].lower(), kind, theme=theme, dpi=dpi))
    return path


def encoded(picture: Picture, form: str, kind: str = "matrix", *, theme: str = "light", dpi: int = 200) -> bytes:
    """What `save` writes, as "png", "svg" or "pdf"."""
    made, written = figure(picture, kind, theme=theme), BytesIO()
    undated = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    with _matplotlib(_legible(picture), theme), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a code point that nobody has given a letter
        made.savefig(written, format=form, dpi=dpi, metadata=undated)
    return written.getvalue()


def _legible(picture: Picture) -> Picture:
    """Tokens are made so where they are drawn; this is for what stands around them."""
    return replace(
        picture, title=legible(picture.title), note=legible(picture.note), maps=[legible(name) for name in picture.maps]
    )


@contextmanager
def _matplotlib(picture: Picture, theme: str) -> Iterator[None]:
    try:
        import matplotlib
    except ImportError:
        raise MissingError("figures need matplotlib; pip install 'regard[see]'") from None
    texts = [picture.title, picture.note, *picture.maps, *map(visible, (*picture.rows, *picture.columns))]
    colours = THEMES[theme]
    style: dict[Any, Any] = {
        "font.family": families(texts),
        "font.size": 10,
        "figure.facecolor": colours["paper"],
        "savefig.facecolor": colours["paper"],
        "axes.facecolor": colours["paper"],
        "text.color": colours["ink"],
        "xtick.color": colours["ink"],
        "ytick.color": colours["ink"],
        "axes.labelcolor": colours["quiet"],
        "svg.fonttype": "path",  # the reader need not have the fonts
        "svg.hashsalt": "regard",
        "pdf.fonttype": 42,
        "text.parse_math": False,  # a token may be $x$
    }
    with matplotlib.rc_context(style):
        yield


def _matrix_figure(picture: Picture, theme: str) -> Figure:
    weights, title = _one(picture)
    rows, columns = names_of(picture.rows, len(weights)), names_of(picture.columns, weights.shape[1])
    cell = cell_of(len(rows), len(columns))
    left, top = inches_of(rows) + 0.35, header_of(columns, cell)
    wide, high = len(columns) * cell, len(rows) * cell
    bar = 0.62
    drawn, place = paper(left, wide, bar, top, high, 0.2, title, picture.note, theme)
    axes = drawn.add_axes(place(left, top, wide, high))
    draw_matrix(axes, weights, rows, columns, cell, theme, labels=True)
    draw_scale(drawn, place(left + wide + 0.14, top, 0.11, min(high, 2.4)), weights, theme)
    return drawn


def _alignment_figure(picture: Picture, theme: str) -> Figure:
    weights, title = _one(picture)
    if picture.pooled or max(weights.shape) > LABELS:
        raise InputError(
            f"an alignment of {len(picture.rows)} x {len(picture.columns)} words cannot be read; expected at most {LABELS}"
        )
    rows, columns = names_of(picture.rows, len(weights)), names_of(picture.columns, weights.shape[1])
    widest = max(inches_of([c]) for c in columns)
    cell = max(0.36, min(widest + 0.16, 1.3))
    high = max(0.3, min(cell, 0.42))
    left = max(inches_of(rows) + 0.35, 0.6)
    wide, tall = max(len(columns) * cell, sum(inches_of([r]) + 0.18 for r in rows)), len(rows) * high
    cell = wide / len(columns)
    ribbons, head = 1.7, 0.34
    top = head + ribbons + head
    drawn, place = paper(left, wide, 0.62, top, tall, 0.5, title, picture.note, theme)
    upper = drawn.add_axes(place(left, head, wide, ribbons))
    colours, links = THEMES[theme], Links.of(weights)
    draw_ribbons(upper, weights, links, theme)
    for i, name in enumerate(rows):
        colour = (
            colours["inverted"]
            if links.inverted[i]
            else colours["shared"]
            if links.key[i] in links.shared
            else colours["ink"]
        )
        upper.text((i + 0.5) / len(rows), 1.04, name, ha="center", va="bottom", color=colour)
    for j, name in enumerate(columns):
        upper.text(
            (j + 0.5) / len(columns),
            -0.04,
            name,
            ha="center",
            va="top",
            weight="normal",
            color=colours["shared"] if j in links.shared else colours["ink"],
        )
    axes = drawn.add_axes(place(left, top, wide, tall))
    draw_matrix(axes, weights, rows, [""] * len(columns), min(cell, high + 0.1), theme, labels=True, square=False)
    for i, j in enumerate(links.key):
        if links.inverted[i] or j in links.shared:
            axes.add_patch(box_at(j - 0.5, i - 0.5, colours["inverted" if links.inverted[i] else "shared"]))
    draw_scale(drawn, place(left + wide + 0.14, top, 0.11, min(tall, 2.4)), weights, theme)
    draw_legend(drawn, place(0.14, top + tall + 0.12, left + wide, 0.3), links, theme)
    return drawn


def _compare_figure(picture: Picture, theme: str) -> Figure:
    if picture.pooled or max(picture.weights.shape[1:]) > LABELS:
        count = f"{len(picture.rows)} x {len(picture.columns)}"
        raise InputError(f"maps of {count} words cannot be read side by side; expected at most {LABELS}; draw heads")
    rows, columns = map(names_of, (picture.rows, picture.columns), picture.weights.shape[1:])
    blocks = list(zip(picture.maps, picture.weights, strict=True))
    if len(blocks) == 2:
        blocks.append(("the first less the second", picture.weights[0] - picture.weights[1]))
    across = 2 if len(blocks) == 4 else min(len(blocks), 3)
    cell = min(cell_of(len(rows), len(columns)), 4.6 / max(len(rows), len(columns)))
    left, head = inches_of(rows) + 0.35, header_of(columns, cell) + 0.3
    wide, high = len(columns) * cell, len(rows) * cell
    each, tall = max(wide, inches_of([name for name, _ in blocks])) + 0.75, head + high
    lines = -(-len(blocks) // across)
    total = across * each - 0.75, lines * (tall + 0.15) - 0.15 - head
    drawn, place = paper(left, total[0], 0.62, head, total[1], 0.2, picture.title, picture.note, theme)
    for at, (name, weights) in enumerate(blocks):
        first = at % across == 0
        x, y = left + (at % across) * each, (at // across) * (tall + 0.15) + head
        less = at == len(picture.maps)
        most = weights.abs().max().item() if less else picture.most
        axes = drawn.add_axes(place(x, y, wide, high))
        signed = less or picture.signed
        draw_matrix(
            axes, weights, rows if first else [""] * len(rows), columns, cell, theme, labels=True, most=most,
            signed=signed,
        )  # fmt: skip
        where = place(x, y - head + 0.02, wide, 0.2)
        drawn.text(where[0], where[1], name, ha="left", va="bottom", fontsize=10, color=THEMES[theme]["quiet"])
        draw_scale(drawn, place(x + wide + 0.12, y, 0.09, min(high, 2.4)), weights, theme, most, signed)
    return drawn


def _text_figure(picture: Picture, theme: str) -> Figure:
    weights, title = _one(picture)
    if picture.pooled or weights.numel() > FLOW:
        count = f"{len(picture.rows)} x {len(picture.columns)}"
        raise InputError(f"a text of {count} words cannot be read; expected at most {FLOW:,} in all; draw a matrix")
    wide, line, gap = 6.4, 0.27, 0.03
    words = [cut(visible(c), 60) for c in picture.columns]
    widths = widths_of(words)
    places, x, y = [], 0.0, 0.0
    for width in widths:
        if x and x + width > wide:
            x, y = 0.0, y + line
        places.append((x, y))
        x += width + gap
    block = y + line + 0.34  # the query's name above its text
    signed, colours = picture.signed, THEMES[theme]
    most = weights.abs().max().item() or 1.0
    stops = SIGNED[theme] if signed else [rgb_of(colours["paper"]), rgb_of(colours["link"])]
    drawn, place = paper(0.2, wide, 0.62, 0.0, len(weights) * block, 0.15, title, picture.note, theme)
    axes = drawn.add_axes(place(0.2, 0.0, wide, len(weights) * block))
    axes.set_xlim(0, wide)
    axes.set_ylim(len(weights) * block, 0)
    axes.axis("off")
    for i, row in enumerate(weights.tolist()):
        top = i * block + 0.3
        axes.text(0, top - 0.16, f"{visible(picture.rows[i])}:", va="center", fontsize=9, color=colours["quiet"])
        for word, (x, y), width, w in zip(words, places, widths, row, strict=True):
            back = shade((w / most + 1) / 2 if signed else w / most, stops)
            axes.add_patch(plate_at(x, top + y, width, line - 0.04, hex_of(back)))
            middle = x + width / 2, top + y + line / 2 - 0.02
            axes.text(*middle, word, ha="center", va="center", color=hex_of(ink(back)))
    scale = place(0.2 + wide + 0.1, 0.14, 0.09, min(block - 0.16, 2.0))
    draw_scale(drawn, scale, weights, theme, most, signed, stops)
    return drawn


def _vectors_figure(picture: Picture, theme: str) -> Figure:
    if picture.points is None:
        raise InputError(f"{picture!r} has no points: no map of word vectors can be drawn")
    wide, high, edge, colours = 6.2, 4.6, 0.6, THEMES[theme]
    drawn, place = paper(0.14, wide, 0.14, 0.1, high, 0.2, picture.title, picture.note, theme)
    axes = drawn.add_axes(place(0.14, 0.1, wide, high))
    axes.set_xlim(0, wide)
    axes.set_ylim(0, high)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color(colours["quiet"])
        side.set_alpha(0.35)
    where = {visible(word): point for word, point in zip(picture.rows, picture.points.tolist(), strict=True)}
    low, most = ([reach(point[axis] for point in where.values()) for axis in (0, 1)] for reach in (min, max))
    spread = [(most[axis] - low[axis]) or 1 for axis in (0, 1)]
    dots = [
        [edge + (p[axis] - low[axis]) / spread[axis] * (size - 2 * edge) for axis, size in enumerate((wide, high))]
        for p in where.values()
    ]
    taken = [(x, y, 0.1, 0.1) for x, y in dots]  # middles and sizes of dots, then of words
    words = [cut(word, 24) for word in where]
    for i, (word, width) in enumerate(zip(words, widths_of(words), strict=True)):
        x, y = dots[i]
        others = taken[:i] + taken[i + 1 :]
        beside = [(x, y + 0.15), (x, y - 0.15), (x + width / 2 + 0.06, y), (x - width / 2 - 0.06, y)]
        free = (at for at in beside if all(_apart(at, width, each) for each in others))
        at = next(free, beside[0])
        taken.append((*at, width, 0.17))
        axes.plot([x], [y], "o", markersize=5, color=colours["link"])
        axes.text(*at, word, ha="center", va="center", color=colours["ink"])
    return drawn


def _apart(at: tuple[float, float], width: float, other: tuple[float, float, float, float]) -> bool:
    x, y, w, h = other
    return abs(at[0] - x) * 2 > width + w or abs(at[1] - y) * 2 > 0.17 + h


def _heads_figure(picture: Picture, theme: str) -> Figure:
    maps = len(picture.maps)
    across = 2 if maps == 4 else min(maps, 4 if maps <= 16 else 8 if maps <= 64 else 12)
    down = -(-maps // across)
    size, gap = {4: 1.9, 8: 1.15, 12: 0.85}.get(across, 1.9), 0.3
    wide, high = across * (size + gap) - gap, down * (size + gap) - gap
    drawn, place = paper(0.2, wide, 0.75, 0.3, high, 0.2, picture.title, picture.note, theme)
    names, room = picture.maps, int(size * 13)
    if picture.layers is not None and max(map(len, names)) > room:  # layer and head by their numbers
        names = [f"{layer + 1} · {picture.layers[:i].count(layer) + 1}" for i, layer in enumerate(picture.layers)]
    for i, name in enumerate(names):
        x, y = 0.2 + (i % across) * (size + gap), 0.3 + (i // across) * (size + gap)
        axes = drawn.add_axes(place(x, y, size, size))
        draw_matrix(
            axes,
            picture.weights[i],
            [""] * picture.weights.shape[1],
            [""] * picture.weights.shape[2],
            0.0,
            theme,
            most=picture.most,
            square=False,
        )
        axes.set_title(cut(name, room), fontsize=7, color=THEMES[theme]["quiet"], pad=3)
    draw_scale(drawn, place(0.2 + wide + 0.14, 0.3, 0.11, min(high, 2.4)), picture.weights, theme)
    return drawn


def _one(picture: Picture) -> tuple[Tensor, str]:
    named = picture.maps[0] if len(picture.maps) == 1 else f"mean of {len(picture.maps)} maps"
    return picture.weights.mean(0), " · ".join(x for x in (picture.title, named) if x)
