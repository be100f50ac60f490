"""regard generate: a text goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli.answers import AsJson, Asked, Batch, Device, Model, NBest, Out, Show, Text, answer


def generate(
    text: Text = None,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="More is bolder; 0: nothing is drawn, the likeliest text is searched for")
    ] = 0.8,
    top_k: Annotated[int | None, typer.Option(min=1, help="Draw from the k likeliest pieces only")] = None,
    top_p: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Draw from the fewest that reach this probability")
    ] = 0.95,
    length: Annotated[int | None, typer.Option(min=1, help="At most so many pieces")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same text for the same seed (else: another each time)")
    ] = None,
    n_best: NBest = 1,
    model: Model = None,
    as_json: AsJson = False,
    batch: Batch = 32,
    device: Device = "auto",
    show: Show = False,
    out: Out = None,
) -> None:
    """Go on with a text, or with every line of stdin.

    regard generate "Once upon a time" --temperature 0.7 --seed 1
    """
    from regard.tasks.task import Options

    answer(
        "generate",
        text,
        Options(n_best=n_best, longest=length, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed),
        Asked(model, as_json, batch, device, show, out),
    )
