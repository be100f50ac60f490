"""regard classify: a label for the whole text."""

from __future__ import annotations

from regard.cli.answers import AsJson, Asked, Batch, Device, Model, NBest, Out, Show, Text, answer


def classify(
    text: Text = None,
    n_best: NBest = 1,
    model: Model = None,
    as_json: AsJson = False,
    batch: Batch = 32,
    device: Device = "auto",
    show: Show = False,
    out: Out = None,
) -> None:
    """Give a text, or every line of stdin, the label that fits it best.

    regard classify "What a day!" --model sentiment --show
    """
    from regard.tasks.task import Options

    answer("classify", text, Options(n_best=n_best), Asked(model, as_json, batch, device, show, out))
