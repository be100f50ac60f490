"""regard evaluate: how good a model is, on files it has not seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.answers import Device, device_of
from regard.cli.output import print_table
from regard.cli.told import shown
from regard.core.shapes import InputError

NAMES = {"bleu": "BLEU", "chrf": "chrF", "alignment error": "alignment error rate"}
SHARES, POINTS = ("accuracy", "exact", "alignment error"), ("bleu", "chrf")


def evaluate(
    model: Annotated[str, typer.Argument(help="A model's folder, or the name of one that is shipped")],
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Data as for training: one file, or two, aligned line by line")
    ],
    to: Annotated[str | None, typer.Option(help="The language of the targets, where the model knows several")] = None,
    beam: Annotated[int, typer.Option(min=1, help="For what is written; 1: greedy")] = 4,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="BLEU and chrF without regard to capitals")] = False,
    most: Annotated[int | None, typer.Option(min=1, help="Only the first so many examples")] = None,
    gold: Annotated[
        Path | None,
        typer.Option(help="Links of words, i-j (sure) or ipj (possible) from 1, a line a pair: alignment error rate"),
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="Between source and target in a table (else a tab, or a comma in .csv)")
    ] = None,
    answers: Annotated[Path | None, typer.Option(help="Write what the model answered into this file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object")] = False,
    device: Device = "auto",
) -> None:
    """Measure a model: loss, perplexity and accuracy; BLEU and chrF with their signatures; alignments.

    \b
    regard evaluate tagger test.conllu
    regard evaluate en-fr test.en test.fr --lowercase
    regard evaluate en-fr pairs.tsv --gold links.txt
    """
    from regard import pretrained
    from regard.cli.watching import counting
    from regard.tasks.atomic import write_whole
    from regard.tasks.measuring import measure

    trained = pretrained.load(model).to(device_of(device))
    if answers is not None and trained.task.name not in ("translate", "classify"):
        raise InputError(
            f"--answers {answers}: of what is translated or classified; this model can {trained.task.name}"
        )
    with counting("measuring", "texts") as report:
        measured = measure(
            trained,
            files,
            beam=beam,
            to=to,
            lowercase=lowercase,
            most=most,
            separator=separator,
            gold=gold,
            report=report,
        )
    if answers is not None:
        write_whole(answers, "".join(f"{shown(text)}\n" for text in measured.answers).encode())
    if as_json:
        print(json.dumps({"model": model, "task": trained.task.name, **measured.figures}))
    else:
        rows = [
            row(name, value, measured.figures) for name, value in measured.figures.items() if "signature" not in name
        ]
        print_table(["", model, ""], rows, left=[0, 2])


def row(name: str, value: Any, figures: dict[str, Any]) -> tuple[str, str, str]:
    """A figure as people write it, and how it was counted."""
    if isinstance(value, float):
        said = f"{100 * value:.1f}%" if name in SHARES else f"{value:.1f}" if name in POINTS else f"{value:.4g}"
    else:
        said = f"{value:,}"
    return NAMES.get(name, name), said, figures.get(f"{name} signature", "")
