"""regard walk: one attention of one sentence, step by step, in tables of the actual numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Annotated

import torch
import typer
from rich import box
from rich.cells import cell_len, set_cell_size
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor, nn

from regard.cli.output import printable
from regard.cli.sentence import Tour, take
from regard.core.shapes import InputError
from regard.mechanisms import NORMALIZERS, SCORES, formula, nearest, usages
from regard.nn.baselines import parameter_counts
from regard.steps import LAYOUTS

FORMS = ("scalar", "channels", "matrices")
SHOWN = 20  # words in a table; more would be pages of numbers


def walk(
    text: Annotated[str, typer.Argument(help="The words: 'This is a cat'")],
    score: Annotated[str, typer.Option(help=f"One of {usages(SCORES)}")] = "scaled-dot",
    normalizer: Annotated[str, typer.Option(help=f"One of {usages(NORMALIZERS)}")] = "softmax",
    mask: Annotated[
        str | None, typer.Option(help="Who may attend to whom: causal, window:1,1, dilated:1,1,2, strided:2, blocks:2")
    ] = None,
    form: Annotated[
        str, typer.Option(help="What a word's q, k, v are: scalar (a number), channels (M heads of width 1), matrices")
    ] = "matrices",
    layout: Annotated[str, typer.Option(help="Words are rows, or columns as in some lecture notes")] = "rows",
    width: Annotated[int, typer.Option(min=1, help="Numbers per word (and additive's hidden units)")] = 4,
    seed: Annotated[int, typer.Option(help="The numbers are random, and the same for the same seed")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object with every number.")] = False,
) -> None:
    """Walk through one attention, step by step: a → q, k, v → α → α′ → b.

    regard walk "This is a cat" --score additive --form scalar
    """
    for name, given, known in (("form", form, FORMS), ("layout", layout, LAYOUTS)):
        if given not in known:
            raise InputError(f"no {name} is called {given!r}; {nearest(given, known)}")
    tour = take(text, score, normalizer, mask, form, layout, width, seed)
    if json:
        print(as_json(tour))
    else:
        _Guide(tour, Console(highlight=False)).lead()


def as_json(tour: Tour) -> str:
    steps = {f.name: getattr(tour.steps, f.name) for f in fields(tour.steps)}
    own = {
        part: {name: p.tolist() for name, p in module.named_parameters()}
        for part, module in (("score", tour.score), ("normalizer", tour.normalizer))
    }
    result = {
        "words": tour.words,
        **tour.asked,
        "trained": False,
        **{name: w.tolist() for name, w in tour.w.items()},
        "parameters": own,
        "steps": {name: None if x is None else x.tolist() for name, x in steps.items()},
        "parameter_counts": _counts(tour, len(tour.words), 1),
    }
    return json.dumps(result, ensure_ascii=False)


def _counts(tour: Tour, n_max: int, reach: int) -> dict[str, int]:
    d, d_out = tour.w["W_v"].shape
    return parameter_counts(d, d_out, n_max=n_max, left=reach, right=reach)


# Showing them.


@dataclass(frozen=True)
class _Grid:
    """One table. Columns come in groups, which a narrow terminal keeps together as long as it can."""

    corner: str
    rows: list[str]
    groups: list[tuple[list[str], list[list[str]]]]  # labels of columns; cells[row][column]


class _Guide:
    """Prints one tour."""

    def __init__(self, tour: Tour, console: Console) -> None:
        self.tour, self.console = tour, console
        self.words = [_short(printable(word)) for word in tour.words[:SHOWN]]
        self.columns = tour.asked["layout"] == "columns"
        self.channels = tour.asked["form"] == "channels"

    def lead(self) -> None:
        s, asked, n = self.tour.steps, self.tour.asked, len(self.tour.words)
        self.say(
            f"{n} word{'s' * (n > 1)}, {asked['width']} numbers each; random from seed {asked['seed']}, not trained"
        )
        self.note("Inputs have one decimal, to be checked by hand. Equal words have equal vectors.")
        if n > SHOWN:
            self.note(f"The tables show the first {SHOWN} words; {n - SHOWN} more are left out (--json has all).")

        self.say("a: the input, one vector for each word")
        assert s.a is not None
        self.show([self.tokens(1, {"a": s.a})])
        self.say("W_q, W_k, W_v: the same for every word")
        rows = _numbered("a", asked["width"])
        self.show([_Grid("", rows, [(_numbered(x[-1], w.shape[-1]), _cells(w, 1)) for x, w in self.tour.w.items()])])

        made = "q = W_qᵀ a,  k = W_kᵀ a,  v = W_vᵀ a" if self.columns else "q = a W_q,  k = a W_k,  v = a W_v"
        self.say(f"{made}: what each word asks, offers, and says")
        self.show([self.tokens(2, {"q": s.q, "k": s.k, "v": s.v})])
        self.own_parameters("score", self.tour.score)
        self.projected()

        self.say("α = score(q, k)", f"{asked['score']}: {formula(self.tour.score)}  (s is α)")
        if s.allowed is not None:
            self.note(f"– is a pair that the mask {asked['mask']} does not allow")
        self.pairs(s.scores, hidden=None if s.allowed is None else ~s.allowed)
        self.own_parameters("normalizer", self.tour.normalizer)
        name = asked["normalizer"].partition(":")[0]
        self.say(f"α′ = {name}(α)", f"{asked['normalizer']}: {formula(self.tour.normalizer)}  (s is α, w is α′)")
        self.note(f"Each {'column' if self.columns else 'row'} is the attention of one word; Σ is its sum.")
        self.pairs(s.weights, sums=True)
        self.say(f"b = {'v α′' if self.columns else 'α′ v'}: the output, a weighted sum of the values")
        self.show([self.tokens(3, {"b": s.b})])
        self.replaced()

    def say(self, heading: str, note: str = "") -> None:
        self.console.print()
        self.console.print(Text(heading, style="bold"))
        self.note(note)

    def note(self, text: str) -> None:
        if text:
            self.console.print(Text(text, style="dim"))

    def tokens(self, decimals: int, tensors: dict[str, Tensor], corner: str = "") -> _Grid:
        """What each word has: a row for each word, or a column."""
        shown = {name: (x.mT if self.columns else x)[:SHOWN] for name, x in tensors.items()}  # n m
        labels = {name: _numbered(name, x.shape[-1]) for name, x in shown.items()}
        if not self.columns:
            return _Grid(corner, self.words, [(labels[name], _cells(x, decimals)) for name, x in shown.items()])
        rows = [label for name in shown for label in labels[name]]
        return _Grid(corner, rows, [(self.words, _cells(torch.cat([*shown.values()], -1).mT, decimals))])

    def pairs(self, x: Tensor, sums: bool = False, hidden: Tensor | None = None) -> None:
        """What each pair of words has: queries are the rows, or the columns; one table for each channel."""
        tables = x.movedim(-1, 0) if self.channels else x[None]  # M n n
        hidden = hidden.movedim(-1, 0) if hidden is not None and self.channels else hidden
        hidden = torch.zeros_like(tables, dtype=torch.bool) if hidden is None else hidden.expand_as(tables)
        grids = []
        for channel, (table, blank) in enumerate(zip(tables, hidden, strict=True), start=1):
            cells = _cells(table[:SHOWN, :SHOWN], 3, blank)
            rows, groups = [*self.words], [(self.words, cells)]
            if sums and self.columns:
                rows.append("Σ")
                cells += _cells(table.sum(0)[None, :SHOWN], 3)
            elif sums:
                groups.append((["Σ"], _cells(table.sum(1)[:SHOWN, None], 3)))
            corner = "k \\ q" if self.columns else "q \\ k"
            grids.append(_Grid(f"{corner} {channel}" if self.channels else corner, rows, groups))
        if self.channels:
            self.note(f"one table for each of the {len(tables)} channels")
        self.show(grids)

    def own_parameters(self, what: str, part: nn.Module) -> None:
        """The matrices inside a score or a normalizer; those of equal width share a table."""
        by_width: dict[int, _Grid] = {}
        for name, p in part.named_parameters():
            table = p.detach().reshape(-1, p.shape[-1] if p.ndim > 1 else p.numel())
            table = table.mT if table.shape[-1] == 1 else table
            size = table.shape[-1]
            grid = by_width.setdefault(size, _Grid("", [], [([str(j + 1) for j in range(size)], [])]))
            grid.rows.extend(_numbered(name, len(table)))
            grid.groups[0][1].extend(_cells(table, 1))
        if by_width:
            self.say(f"inside the {what}: {self.tour.asked[what]}'s own parameters")
            self.show([*by_width.values()])

    def projected(self) -> None:
        """What the score makes of q and k, where it makes anything."""
        made = {"q′": self.tour.steps.q_projected, "k′": self.tour.steps.k_projected}
        made = {name: x for name, x in made.items() if x is not None}
        if not made:
            return
        self.say(
            f"{' and '.join(made)}: what the score makes of {' and '.join(n[0] for n in made)}, once for each word"
        )
        if not self.channels:
            return self.show([self.tokens(3, made)])
        grids = []
        for channel in range(self.tour.asked["width"]):
            part = {name: x[channel].mT if self.columns else x[:, channel] for name, x in made.items()}
            grids.append(self.tokens(3, part, f"channel {channel + 1}"))
        self.show(grids)

    def replaced(self) -> None:
        """F8: what the same would cost with the two earlier ideas."""
        lengths = (len(self.tour.words), 512)
        names = {
            "fully connected, window of 3": ("window", 1),
            "fully connected, window of 11": ("window", 5),
            "fully connected, whole sequence": ("sequence", 1),
            "self-attention: W_q, W_k, W_v": ("self-attention", 1),
        }
        counts = [[f"{_counts(self.tour, n, reach)[kind]:,}" for n in lengths] for kind, reach in names.values()]
        self.say("parameters: what self-attention replaces, for sentences of at most …")
        self.show([_Grid("", [*names], [([f"{n} words" for n in lengths], counts)])])
        own = sum(p.numel() for p in self.tour.score.parameters())
        if own:
            self.note(f"the score {self.tour.asked['score']} adds {own} of its own, however long the sentence")

    def show(self, grids: list[_Grid]) -> None:
        """Tables that fit the width of the terminal, side by side where they can be."""
        tables = [table for grid in grids for table in _tables(grid, self.console.width)]
        self.console.print(Columns(tables, padding=(1, 4)) if len(tables) > 1 else tables[0])


def _tables(grid: _Grid, width: int) -> list[Table]:
    label = max(map(cell_len, [grid.corner, *grid.rows]))
    pieces: list[list[tuple[str, list[str]]]] = [[]]  # columns of each table
    left = width - label
    for labels, cells in grid.groups:
        group = [(name, [row[j] for row in cells]) for j, name in enumerate(labels)]
        if pieces[-1]:
            group[0] = (f" {group[0][0]}", [f" {cell}" for cell in group[0][1]])  # a wider gap between groups
        needs = [1 + max(map(cell_len, [name, *column])) for name, column in group]
        if sum(needs) > left and pieces[-1]:
            pieces.append([])
            left = width - label
        for column, need in zip(group, needs, strict=True):
            if need > left and pieces[-1]:
                pieces.append([])
                left = width - label
            pieces[-1].append(column)
            left -= need
    return [_table(grid.corner, grid.rows, columns) for columns in pieces]


def _table(corner: str, rows: list[str], columns: list[tuple[str, list[str]]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0, pad_edge=False, header_style="bold cyan")
    table.add_column(Text(corner, style="dim"), style="cyan", no_wrap=True)
    for name, _ in columns:
        table.add_column(Text(name), justify="right", no_wrap=True)
    for i, label in enumerate(rows):
        table.add_row(Text(label), *(Text(column[i]) for _, column in columns))
    return table


def _short(label: str, most: int = 12) -> str:
    return label if cell_len(label) <= most else set_cell_size(label, most - 1) + "…"


def _numbered(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}{j + 1}" for j in range(count)]


def _cells(x: Tensor, decimals: int, hidden: Tensor | None = None) -> list[list[str]]:
    blank = torch.zeros_like(x, dtype=torch.bool) if hidden is None else hidden
    return [
        ["–" if no else f"{round(number, decimals) + 0.0:.{decimals}f}" for number, no in zip(row, skip, strict=False)]
        for row, skip in zip(x.tolist(), blank.tolist(), strict=False)
    ]
