"""regard translate: from one language to another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import typer

from regard.cli.answers import AsJson, Asked, Batch, Device, Model, NBest, Out, Show, Text, answer
from regard.core.shapes import InputError


def translate(
    text: Text = None,
    to: Annotated[
        str | None, typer.Option(help="The language to translate into, where the model knows several")
    ] = None,
    beam: Annotated[int, typer.Option(min=1, help="Beginnings that are followed at a time; 1: greedy")] = 4,
    n_best: NBest = 1,
    word_by_word: Annotated[
        bool, typer.Option("--word-by-word", help="No model: each word by its entry in a dictionary, to compare with")
    ] = False,
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
    regard translate "The black cat sleeps." --to fr --word-by-word
    regard translate --model en-de --show "The cat sleeps."
    regard translate --model en-de < lines.en > lines.de
    """
    from regard.tasks.task import Options

    options, asked = Options(beam=beam, n_best=n_best, to=to), Asked(model, as_json, batch, device, show, out)
    answer("translate", text, options, asked, _dictionary(to, asked) if word_by_word else None)


def _dictionary(to: str | None, asked: Asked) -> Any:
    """What answers as a model does, but has nothing to look at."""
    from regard.tasks.word_by_word import from_grammar

    for given, name in ((asked.model, "--model"), (asked.show, "--show"), (asked.out, "--out")):
        if given:
            raise InputError(f"--word-by-word looks words up in a dictionary, without a model: leave out {name}")
    if to is None:
        raise InputError("--word-by-word: into which language? --to fr")
    table = from_grammar(to)
    return SimpleNamespace(answer=table.answer, task=SimpleNamespace(name="translate"), attended=lambda _: [])
