"""Figures for papers and lectures, by matplotlib: a matrix, an alignment with ribbons, all heads side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.shapes import InputError, MissingError
from regard.see.alignment import Links
from regard.see.fonts import families
from regard.see.labels import visible
from regard.see.palette import CIVIDIS, SIGNED, Colour, ink, weigh_colour
from regard.see.picture import Picture
from regard.tasks.atomic import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
KINDS = ("matrix", "alignment", "heads", "compare")
NUMBERS = 12  # words up to which cells carry their numbers
LABELS = 64  # words up to which all have their label
# Paper, ink, quiet ink, and the ribbons: a link, one that runs backwards, one of several to the same key.
THEMES = {
    "light": {
        "paper": "#ffffff",
        "ink": "#16181d",
        "quiet": "#5c6370",
        "link": "#5b7fb5",
        "inverted": "#d06a10",
        "shared": "#178a72",
    },
    "dark": {
        "paper": "#14161a",
        "ink": "#eceff4",
        "quiet": "#9aa3b2",
        "link": "#7ea6e0",
        "inverted": "#ff9e4a",
        "shared": "#4fd1b0",
    },
}


def figure(picture: Picture, kind: str = "matrix", *, theme: str = "light") -> Figure:
    """A matplotlib figure: "matrix" (of several maps, their mean), "alignment" (ribbons above the matrix),
    "heads" (every map, small) or "compare" (every map with its words; of two, their difference too).

    Letters are drawn in the system's own fonts; where none has a letter, an error names the package to install.
    """
    for name, given, known in (("kind", kind, KINDS), ("theme", theme, THEMES)):
        if given not in known:
            raise InputError(f"{name}={given!r}; expected {', '.join(known)}")
    if not picture.weights.numel():
        raise InputError(f"{picture!r}: there is nothing to draw")
    with _matplotlib(picture, theme):
        draw = {
            "matrix": _matrix_figure,
            "alignment": _alignment_figure,
            "heads": _heads_figure,
            "compare": _compare_figure,
        }
        return draw[kind](picture, theme)


def kind_of(picture: Picture) -> str:
    """The figure that says what a page of this picture shows first, as far as its words can be read."""
    readable = not picture.pooled and max(picture.weights.shape[1:]) <= LABELS
    if picture.view in ("alignment", "compare") and readable and (picture.view, len(picture.maps)) != ("compare", 1):
        return picture.view
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
    with _matplotlib(picture, theme):
        made.savefig(written, format=form, dpi=dpi, metadata=undated)
    return written.getvalue()


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


def _new(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height))
    FigureCanvasAgg(drawn)  # no window, no pyplot state
    return drawn


def _matrix_figure(picture: Picture, theme: str) -> Figure:
    weights, title = _one(picture)
    rows, columns = _names(picture.rows, len(weights)), _names(picture.columns, weights.shape[1])
    cell = _cell(len(rows), len(columns))
    left, top = _inches(rows) + 0.35, _header(columns, cell)
    wide, high = len(columns) * cell, len(rows) * cell
    bar = 0.62
    drawn, place = _paper(left, wide, bar, top, high, 0.2, title, picture.note, theme)
    axes = drawn.add_axes(place(left, top, wide, high))
    _draw_matrix(axes, weights, rows, columns, cell, theme, labels=True)
    _draw_scale(drawn, place(left + wide + 0.14, top, 0.11, min(high, 2.4)), weights, theme)
    return drawn


def _alignment_figure(picture: Picture, theme: str) -> Figure:
    weights, title = _one(picture)
    if picture.pooled or max(weights.shape) > LABELS:
        raise InputError(
            f"an alignment of {len(picture.rows)} x {len(picture.columns)} words cannot be read; expected at most {LABELS}"
        )
    rows, columns = _names(picture.rows, len(weights)), _names(picture.columns, weights.shape[1])
    widest = max(_inches([c]) for c in columns)
    cell = max(0.36, min(widest + 0.16, 1.3))
    high = max(0.3, min(cell, 0.42))
    left = max(_inches(rows) + 0.35, 0.6)
    wide, tall = max(len(columns) * cell, sum(_inches([r]) + 0.18 for r in rows)), len(rows) * high
    cell = wide / len(columns)
    ribbons, head = 1.7, 0.34
    top = head + ribbons + head
    drawn, place = _paper(left, wide, 0.62, top, tall, 0.5, title, picture.note, theme)
    upper = drawn.add_axes(place(left, head, wide, ribbons))
    colours, links = THEMES[theme], Links.of(weights)
    _draw_ribbons(upper, weights, links, theme)
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
    _draw_matrix(axes, weights, rows, [""] * len(columns), min(cell, high + 0.1), theme, labels=True, square=False)
    for i, j in enumerate(links.key):
        if links.inverted[i] or j in links.shared:
            axes.add_patch(_box(j - 0.5, i - 0.5, colours["inverted" if links.inverted[i] else "shared"]))
    _draw_scale(drawn, place(left + wide + 0.14, top, 0.11, min(tall, 2.4)), weights, theme)
    _legend(drawn, place(0.14, top + tall + 0.12, left + wide, 0.3), links, theme)
    return drawn


def _compare_figure(picture: Picture, theme: str) -> Figure:
    if picture.pooled or max(picture.weights.shape[1:]) > LABELS:
        count = f"{len(picture.rows)} x {len(picture.columns)}"
        raise InputError(f"maps of {count} words cannot be read side by side; expected at most {LABELS}; draw heads")
    rows, columns = map(_names, (picture.rows, picture.columns), picture.weights.shape[1:])
    blocks = list(zip(picture.maps, picture.weights, strict=True))
    if len(blocks) == 2:
        blocks.append(("the first less the second", picture.weights[0] - picture.weights[1]))
    across = 2 if len(blocks) == 4 else min(len(blocks), 3)
    cell = min(_cell(len(rows), len(columns)), 4.6 / max(len(rows), len(columns)))
    left, head = _inches(rows) + 0.35, _header(columns, cell) + 0.3
    wide, high = len(columns) * cell, len(rows) * cell
    each, tall = max(wide, _inches([name for name, _ in blocks])) + 0.75, head + high
    lines = -(-len(blocks) // across)
    total = across * each - 0.75, lines * (tall + 0.15) - 0.15 - head
    drawn, place = _paper(left, total[0], 0.62, head, total[1], 0.2, picture.title, picture.note, theme)
    for at, (name, weights) in enumerate(blocks):
        first = at % across == 0
        x, y = left + (at % across) * each, (at // across) * (tall + 0.15) + head
        less = at == len(picture.maps)
        most = weights.abs().max().item() if less else picture.most
        axes = drawn.add_axes(place(x, y, wide, high))
        signed = less or picture.signed
        _draw_matrix(
            axes, weights, rows if first else [""] * len(rows), columns, cell, theme, labels=True, most=most,
            signed=signed,
        )  # fmt: skip
        where = place(x, y - head + 0.02, wide, 0.2)
        drawn.text(where[0], where[1], name, ha="left", va="bottom", fontsize=10, color=THEMES[theme]["quiet"])
        _draw_scale(drawn, place(x + wide + 0.12, y, 0.09, min(high, 2.4)), weights, theme, most, signed)
    return drawn


def _heads_figure(picture: Picture, theme: str) -> Figure:
    maps = len(picture.maps)
    across = min(maps, 4 if maps <= 16 else 8 if maps <= 64 else 12)
    down = -(-maps // across)
    size, gap = {4: 1.9, 8: 1.15, 12: 0.85}.get(across, 1.9), 0.3
    wide, high = across * (size + gap) - gap, down * (size + gap) - gap
    drawn, place = _paper(0.2, wide, 0.75, 0.3, high, 0.2, picture.title, picture.note, theme)
    names, room = picture.maps, int(size * 13)
    if picture.layers is not None and max(map(len, names)) > room:  # layer and head by their numbers
        names = [f"{layer + 1} · {picture.layers[:i].count(layer) + 1}" for i, layer in enumerate(picture.layers)]
    for i, name in enumerate(names):
        x, y = 0.2 + (i % across) * (size + gap), 0.3 + (i // across) * (size + gap)
        axes = drawn.add_axes(place(x, y, size, size))
        _draw_matrix(
            axes,
            picture.weights[i],
            [""] * picture.weights.shape[1],
            [""] * picture.weights.shape[2],
            0.0,
            theme,
            most=picture.most,
            square=False,
        )
        axes.set_title(_cut(name, room), fontsize=7, color=THEMES[theme]["quiet"], pad=3)
    _draw_scale(drawn, place(0.2 + wide + 0.14, 0.3, 0.11, min(high, 2.4)), picture.weights, theme)
    return drawn


def _paper(
    left: float, wide: float, right: float, top: float, high: float, bottom: float, title: str, note: str, theme: str
) -> tuple[Figure, Any]:
    """A sheet that holds this much, in inches, and a function from inches (from the top left) to its places."""
    width = left + wide + right
    heading, lines = _wrapped(title, width - 0.28, 12), _wrapped(note, width - 0.28, 8)
    over = 0.1 + 0.28 * min(len(heading), 1) + 0.22 * max(len(heading) - 1, 0)
    height = over + top + high + bottom + 0.17 * len(lines)
    drawn = _new(width, height)
    for i, line in enumerate(heading):
        at = 0.14 / width, 1 - (0.12 + 0.22 * i) / height
        drawn.text(*at, line, ha="left", va="top", fontsize=12, color=THEMES[theme]["ink"])
    if lines:
        drawn.text(
            0.14 / width,
            0.1 / height,
            "\n".join(lines),
            ha="left",
            va="bottom",
            fontsize=8,
            color=THEMES[theme]["quiet"],
        )

    def place(x: float, y: float, w: float, h: float) -> tuple[float, float, float, float]:
        return x / width, 1 - (over + y + h) / height, w / width, h / height

    return drawn, place


def _wrapped(text: str, inches: float, points: float) -> list[str]:
    """Lines that are no wider than this, as far as can be guessed."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and _inches([longer]) * points / 10 <= inches:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _one(picture: Picture) -> tuple[Tensor, str]:
    named = picture.maps[0] if len(picture.maps) == 1 else f"mean of {len(picture.maps)} maps"
    return picture.weights.mean(0), " · ".join(x for x in (picture.title, named) if x)


def _names(tokens: Sequence[str], cells: int) -> list[str]:
    """Labels of the cells; where there are too many, of some of them."""
    n = len(tokens)
    step = -(-cells // LABELS)
    first = [(i * n + cells - 1) // cells for i in range(cells)]
    return [_cut(visible(tokens[f]), 24) if i % step == 0 else "" for i, f in enumerate(first)]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(most - 1, 1)] + "…"


def _cell(rows: int, columns: int) -> float:
    """The side of a cell in inches: roomy for a sentence, and a page for a long text."""
    n = max(rows, columns)
    return max(0.46 if n <= NUMBERS else 0.25 if n <= 40 else 8.0 / n, 8.0 / 4096)


def _inches(labels: Sequence[str]) -> float:
    """A generous guess at the width of the longest label at 10 points."""
    from unicodedata import category, east_asian_width

    wide = {"W": 0.155, "F": 0.155}
    return max(
        (
            sum(
                0.0 if category(c) == "Mn" else wide.get(east_asian_width(c), 0.14 if c in "MWmw@%" else 0.088)
                for c in label
            )
            for label in labels
        ),
        default=0.0,
    )


def _slanted(columns: Sequence[str], cell: float) -> bool:
    return _inches(columns) > cell - 0.04


def _header(columns: Sequence[str], cell: float) -> float:
    return _inches(columns) * (0.72 if _slanted(columns, cell) else 0.0) + 0.26


def _draw_matrix(
    axes: Axes, weights: Float[Tensor, "n_q n_k"], rows: Sequence[str], columns: Sequence[str], cell: float, theme: str,
    *, labels: bool = False, most: float | None = None, square: bool = True, signed: bool | None = None,
) -> None:  # fmt: skip
    most = weights.abs().max().item() if most is None else most
    signed = bool((weights < 0).any()) if signed is None else signed
    most = most or 1.0
    axes.imshow(
        weights.numpy(), cmap=_colours(signed, theme), vmin=-most if signed else 0.0, vmax=most,
        aspect="equal" if square else "auto", interpolation="nearest" if max(weights.shape) <= 512 else "antialiased", rasterized=True,
    )  # fmt: skip
    colours = THEMES[theme]
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, pad=4)
    axes.set_xticks([], [])
    axes.set_yticks([], [])
    if not labels:
        return
    size = 10 if cell >= 0.2 else max(4, cell * 60) if len(rows) <= LABELS else 7
    axes.set_yticks([i for i, r in enumerate(rows) if r], [r for r in rows if r], fontsize=size)
    shown = [j for j, c in enumerate(columns) if c]
    axes.xaxis.tick_top()
    slanted = _slanted(columns, cell)
    axes.set_xticks(
        shown,
        [columns[j] for j in shown],
        fontsize=size,
        rotation=45 if slanted else 0,
        ha="left" if slanted else "center",
        rotation_mode="anchor",
    )
    if max(len(rows), len(columns)) <= 40:
        axes.set_xticks([j - 0.5 for j in range(1, len(columns))], minor=True)
        axes.set_yticks([i - 0.5 for i in range(1, len(rows))], minor=True)
        axes.grid(which="minor", color=colours["paper"], linewidth=0.8)
        axes.tick_params(which="minor", length=0)
    if max(len(rows), len(columns)) <= NUMBERS:
        for i, row in enumerate(weights.tolist()):
            for j, w in enumerate(row):
                axes.text(
                    j,
                    i,
                    _number(w),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=_hex(ink(weigh_colour(w, most, signed, theme))),
                )


def _draw_ribbons(axes: Axes, weights: Float[Tensor, "n_q n_k"], links: Links, theme: str) -> None:
    """Each query above sends its weight down to the keys, in bands as wide as the weights."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    colours = THEMES[theme]
    sizes = weights.abs()
    n_q, n_k = sizes.shape
    # One unit of width for all bands, such that neither a query nor a key is wider than its place.
    unit = 0.8 * min(1 / n_q / max(sizes.sum(1).max().item(), 1e-9), 1 / n_k / max(sizes.sum(0).max().item(), 1e-9))
    above = [(i + 0.5) / n_q - unit * sizes[i].sum().item() / 2 for i in range(n_q)]
    below = [(j + 0.5) / n_k - unit * sizes[:, j].sum().item() / 2 for j in range(n_k)]
    bands = []
    for i in range(n_q):
        for j in range(n_k):
            w = unit * sizes[i, j].item()
            bands.append((i, j, above[i], below[j], w))
            above[i] += w
            below[j] += w
    for i, j, x, y, w in sorted(bands, key=lambda band: (links.key[band[0]] == band[1], -band[4])):
        share = w / unit
        if share < 0.01:
            continue
        main = links.key[i] == j
        colour = (
            colours["inverted"]
            if main and links.inverted[i]
            else colours["shared"]
            if main and j in links.shared
            else colours["link"]
        )
        points = [(x, 1), (x, 0.5), (y, 0.5), (y, 0), (y + w, 0), (y + w, 0.5), (x + w, 0.5), (x + w, 1), (x, 1)]
        codes = [Curve.MOVETO, *[Curve.CURVE4] * 3, Curve.LINETO, *[Curve.CURVE4] * 3, Curve.CLOSEPOLY]
        axes.add_patch(PathPatch(Curve(points, codes), facecolor=colour, edgecolor="none", alpha=0.8 if main else 0.28))
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.axis("off")


def _draw_scale(
    drawn: Figure, place: tuple[float, float, float, float], weights: Tensor, theme: str,
    most: float | None = None, signed: bool | None = None,
) -> None:  # fmt: skip
    most = (weights.abs().max().item() if most is None else most) or 1.0
    signed = bool((weights < 0).any()) if signed is None else signed
    axes = drawn.add_axes(place)
    steps = torch.linspace(1, -1 if signed else 0, 256)[:, None]
    axes.imshow(
        steps.numpy(),
        cmap=_colours(signed, theme),
        vmin=-1 if signed else 0,
        vmax=1,
        aspect="auto",
        extent=(0, 1, -most if signed else 0, most),
    )
    axes.set_xticks([])
    axes.yaxis.tick_right()
    axes.set_yticks([-most, 0, most] if signed else [0, most / 2, most])
    axes.yaxis.set_major_formatter(lambda w, _: _number(w))
    axes.tick_params(length=0, labelsize=8, pad=3, colors=THEMES[theme]["quiet"])
    for side in axes.spines.values():
        side.set_visible(False)


def _legend(drawn: Figure, place: tuple[float, float, float, float], links: Links, theme: str) -> None:
    axes = drawn.add_axes(place)
    axes.axis("off")
    axes.set_xlim(0, place[2] * drawn.get_figwidth())
    axes.set_ylim(0, 1)
    entries = [
        ("strongest link", "link", True),
        ("order inverted", "inverted", any(links.inverted)),
        ("several to one", "shared", bool(links.shared)),
    ]
    x = 0.0
    for text, colour, there in entries:
        if there:
            axes.plot(
                [x, x + 0.22], [0.5, 0.5], color=THEMES[theme][colour], linewidth=5, alpha=0.8, solid_capstyle="butt"
            )
            axes.text(x + 0.3, 0.47, text, va="center", fontsize=8, color=THEMES[theme]["quiet"])
            x += 0.6 + 0.062 * len(text)


def _box(x: float, y: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x + 0.02, y + 0.03), 0.96, 0.94, fill=False, edgecolor=colour, linewidth=1.6)


def _colours(signed: bool, theme: str) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    stops = SIGNED[theme] if signed else CIVIDIS
    return LinearSegmentedColormap.from_list("regard", [_hex(colour) for colour in stops])


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _number(w: float) -> str:
    return ("0" if w == 0 else f"{w:.2f}" if abs(w) < 100 else f"{w:.3g}").replace("-", "−")
