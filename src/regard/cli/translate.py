"""regard translate: from one language to another."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli.answers import AsJson, Asked, Batch, Device, Model, NBest, Out, Show, Text, answer


def translate(
    text: Text = None,
    to: Annotated[
        str | None, typer.Option(help="The language to translate into, where the model knows several")
    ] = None,
    beam: Annotated[int, typer.Option(min=1, help="Beginnings that are followed at a time; 1: greedy")] = 4,
    n_best: NBest = 1,
    model: Model = None,
    as_json: AsJson = False,
    batch: Batch = 32,
    device: Device = "auto",
    show: Show = False,
    out: Out = None,
) -> None:
    """Translate a text, or every line of stdin.

    \b
    regard translate "The cat sleeps." --to fr
    regard translate --model en-de --show "The cat sleeps."
    regard translate --model en-de < lines.en > lines.de
    """
    from regard.tasks.task import Options

    answer("translate", text, Options(beam=beam, n_best=n_best, to=to), Asked(model, as_json, batch, device, show, out))
