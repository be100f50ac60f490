"""regard ls: which backend can do which score with which normalizer, as the backends say themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import torch
import typer

from regard.cli.output import print_table
from regard.dispatch import BACKENDS, resolve
from regard.mechanisms import NORMALIZERS, SCORES, make_normalizer, make_score

N, D = 4, 4  # a small problem, only to be asked about


@dataclass(frozen=True)
class Cell:
    """One score with one normalizer: why each backend refuses it, or None."""

    score: str
    normalizer: str
    refusals: dict[str, str | None]

    @property
    def backends(self) -> list[str]:
        return [name for name, reason in self.refusals.items() if reason is None]


def ls(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False) -> None:
    """List scores, normalizers and the backends that can run each pair of them here."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cells = [_cell(score, normalizer, device) for score in SCORES for normalizer in NORMALIZERS]
    if as_json:
        listed = [
            {
                "score": cell.score,
                "normalizer": cell.normalizer,
                "backends": cell.backends,
                "refusals": {name: reason for name, reason in cell.refusals.items() if reason is not None},
            }
            for cell in cells
        ]
        print(json.dumps(listed))
        return
    letters = _letters(BACKENDS)
    print(f"On {device}: {', '.join(f'{letter} = {name}' for name, letter in letters.items())}\n")
    rows = [
        [score, *("".join(letters[name] for name in cell.backends) for cell in cells if cell.score == score)]
        for score in SCORES
    ]
    # A long name breaks at its hyphen: the table fits 80 columns.
    print_table(["score", *(name.replace("-", "-\n") for name in NORMALIZERS)], rows, left=range(len(rows[0])), gap=1)
    for name in BACKENDS:
        reasons = dict.fromkeys(reason for cell in cells if (reason := cell.refusals[name]) is not None)
        if reasons:
            print(f"\n{name} refuses, because")
            print("\n".join(f"  {reason}" for reason in _merged(reasons)))


def _cell(score: str, normalizer: str, device: str) -> Cell:
    x = torch.zeros(1, 1, N, D, device=device)
    parts = make_score(score, D, D).to(device), make_normalizer(normalizer).to(device)
    call, query, key, value = resolve(x, x, x, *parts, mask=None)
    return Cell(score, normalizer, {name: b.why_not(query, key, value, call) for name, b in BACKENDS.items()})


def _letters(names: dict) -> dict[str, str]:
    """The first letter of each name that no earlier name has."""
    letters: dict[str, str] = {}
    for name in names:
        letters[name] = next(c for c in name if c.isalpha() and c not in letters.values())
    return letters


def _merged(reasons: Iterable[str]) -> list[str]:
    """Reasons that differ in their last word only, such as the name of what is refused, on one line."""
    lasts: dict[str, list[str]] = {}
    for reason in reasons:
        start, _, last = reason.rpartition(" ")
        lasts.setdefault(start, []).append(last)
    return [f"{start} {', '.join(words)}" for start, words in lasts.items()]
