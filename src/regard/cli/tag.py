"""regard tag: a label for each word."""

from __future__ import annotations

from regard.cli.answers import AsJson, Asked, Batch, Device, Model, Out, Show, Text, answer


def tag(
    text: Text = None,
    model: Model = None,
    as_json: AsJson = False,
    batch: Batch = 32,
    device: Device = "auto",
    show: Show = False,
    out: Out = None,
) -> None:
    """Tag each word of a text, or of every line of stdin: word/TAG.

    regard tag "The cat sleeps." --model tagger
    """
    from regard.tasks.task import Options

    answer("tag", text, Options(), Asked(model, as_json, batch, device, show, out))
