"""What figures are put together from: a sheet, words at their places, a matrix, ribbons, a scale. Sizes are inches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.see.alignment import Links
from regard.see.labels import visible
from regard.see.palette import CIVIDIS, SIGNED, Colour, ink, weigh_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def new_figure(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height))
    FigureCanvasAgg(drawn)  # no window, no pyplot state
    return drawn


def widths_of(words: Sequence[str]) -> list[float]:
    """How wide each is as it is drawn, with a little room beside it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    sheet = new_figure(1, 1)
    renderer = FigureCanvasAgg(sheet).get_renderer()
    return [sheet.text(0, 0, word).get_window_extent(renderer).width / sheet.dpi + 0.08 for word in words]


def paper(
    left: float, wide: float, right: float, top: float, high: float, bottom: float, title: str, note: str, theme: str
) -> tuple[Figure, Any]:
    """A sheet that holds this much, in inches, and a function from inches (from the top left) to its places."""
    width = left + wide + right
    heading, lines = wrapped(title, width - 0.28, 12), wrapped(note, width - 0.28, 8)
    over = 0.1 + 0.28 * min(len(heading), 1) + 0.22 * max(len(heading) - 1, 0)
    height = over + top + high + bottom + 0.17 * len(lines)
    drawn = new_figure(width, height)
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


def wrapped(text: str, inches: float, points: float) -> list[str]:
    """Lines that are no wider than this, as far as can be guessed."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and inches_of([longer]) * points / 10 <= inches:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def names_of(tokens: Sequence[str], cells: int) -> list[str]:
    """Labels of the cells; where there are too many, of some of them."""
    n = len(tokens)
    step = -(-cells // LABELS)
    first = [(i * n + cells - 1) // cells for i in range(cells)]
    return [cut(visible(tokens[f]), 24) if i % step == 0 else "" for i, f in enumerate(first)]


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(most - 1, 1)] + "…"


def cell_of(rows: int, columns: int) -> float:
    """The side of a cell in inches: roomy for a sentence, and a page for a long text."""
    n = max(rows, columns)
    return max(0.46 if n <= NUMBERS else 0.25 if n <= 40 else 8.0 / n, 8.0 / 4096)


def inches_of(labels: Sequence[str]) -> float:
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


def is_slanted(columns: Sequence[str], cell: float) -> bool:
    return inches_of(columns) > cell - 0.04


def header_of(columns: Sequence[str], cell: float) -> float:
    return inches_of(columns) * (0.72 if is_slanted(columns, cell) else 0.0) + 0.26


def draw_matrix(
    axes: Axes, weights: Float[Tensor, "n_q n_k"], rows: Sequence[str], columns: Sequence[str], cell: float, theme: str,
    *, labels: bool = False, most: float | None = None, square: bool = True, signed: bool | None = None,
) -> None:  # fmt: skip
    most = weights.abs().max().item() if most is None else most
    signed = bool((weights < 0).any()) if signed is None else signed
    most = most or 1.0
    axes.imshow(
        weights.numpy(), cmap=colour_map(signed, theme), vmin=-most if signed else 0.0, vmax=most,
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
    slanted = is_slanted(columns, cell)
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
                    number_of(w),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=hex_of(ink(weigh_colour(w, most, signed, theme))),
                )


def draw_ribbons(axes: Axes, weights: Float[Tensor, "n_q n_k"], links: Links, theme: str) -> None:
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


def draw_scale(
    drawn: Figure, place: tuple[float, float, float, float], weights: Tensor, theme: str,
    most: float | None = None, signed: bool | None = None, stops: list[Colour] | None = None,
) -> None:  # fmt: skip
    most = (weights.abs().max().item() if most is None else most) or 1.0
    signed = bool((weights < 0).any()) if signed is None else signed
    axes = drawn.add_axes(place)
    steps = torch.linspace(1, -1 if signed else 0, 256)[:, None]
    axes.imshow(
        steps.numpy(),
        cmap=colour_map(signed, theme, stops),
        vmin=-1 if signed else 0,
        vmax=1,
        aspect="auto",
        extent=(0, 1, -most if signed else 0, most),
    )
    axes.set_xticks([])
    axes.yaxis.tick_right()
    axes.set_yticks([-most, 0, most] if signed else [0, most / 2, most])
    axes.yaxis.set_major_formatter(lambda w, _: number_of(w))
    axes.tick_params(length=0, labelsize=8, pad=3, colors=THEMES[theme]["quiet"])
    for side in axes.spines.values():
        side.set_visible(False)


def draw_legend(drawn: Figure, place: tuple[float, float, float, float], links: Links, theme: str) -> None:
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


def box_at(x: float, y: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x + 0.02, y + 0.03), 0.96, 0.94, fill=False, edgecolor=colour, linewidth=1.6)


def plate_at(x: float, y: float, width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=colour, edgecolor="none")


def colour_map(signed: bool, theme: str, stops: list[Colour] | None = None) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    stops = stops or (SIGNED[theme] if signed else CIVIDIS)
    return LinearSegmentedColormap.from_list("regard", [hex_of(colour) for colour in stops])


def rgb_of(text: str) -> Colour:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def hex_of(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def number_of(w: float) -> str:
    return ("0" if w == 0 else f"{w:.2f}" if abs(w) < 100 else f"{w:.3g}").replace("-", "−")
