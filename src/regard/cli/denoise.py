"""regard denoise: the whole text from a damaged one."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli.answers import AsJson, Asked, Batch, Device, Model, NBest, Out, Show, Text, answer


def denoise(
    text: Text = None,
    beam: Annotated[int, typer.Option(min=1, help="Beginnings that are followed at a time; 1: greedy")] = 4,
    n_best: NBest = 1,
    model: Model = None,
    as_json: AsJson = False,
    batch: Batch = 32,
    device: Device = "auto",
    show: Show = False,
    out: Out = None,
) -> None:
    """Restore a text, or every line of stdin: words missing, out of order, or unreadable (____).

    regard denoise "cat The ____ on mat the" --model denoiser
    """
    from regard.tasks.task import Options

    answer("denoise", text, Options(beam=beam, n_best=n_best), Asked(model, as_json, batch, device, show, out))
