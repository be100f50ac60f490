"""regard fill: the word that is missing."""

from __future__ import annotations

from regard.cli.answers import AsJson, Asked, Batch, Device, Model, NBest, Out, Show, Text, answer


def fill(
    text: Text = None,
    n_best: NBest = 1,
    model: Model = None,
    as_json: AsJson = False,
    batch: Batch = 32,
    device: Device = "auto",
    show: Show = False,
    out: Out = None,
) -> None:
    """Fill in what is missing in a text, or in every line of stdin: write ____ for a word.

    regard fill "The cat ____ on the mat." --n-best 5
    """
    from regard.tasks.task import Options

    answer("fill", text, Options(n_best=n_best), Asked(model, as_json, batch, device, show, out))
