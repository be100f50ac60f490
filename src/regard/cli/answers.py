"""What the six task verbs share: a text as an argument, lines of stdin in order, or a prompt on a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.told import Told
from regard.core.shapes import InputError
from regard.mechanisms import nearest

if TYPE_CHECKING:
    from regard.tasks.model import Trained
    from regard.tasks.task import Answer, Options

FORMATS = (".html", ".png", ".svg", ".pdf")

# The options of every verb.
Text = Annotated[list[str] | None, typer.Argument(help="The text (else: lines of stdin, or a prompt on a terminal)")]
Model = Annotated[str | None, typer.Option(help="A model's folder, or the name of one that is shipped")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one object a line, with confidence and unknown words")]
NBest = Annotated[int, typer.Option(min=1, help="So many answers to each text, the best first, with their confidence")]
Batch = Annotated[int, typer.Option(min=1, help="So many lines of stdin are read and answered together")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1")]
Show = Annotated[bool, typer.Option("--show", help="Draw what the model looked at")]
Out = Annotated[Path | None, typer.Option(help="Draw it into a file: x.html, x.png, x.svg or x.pdf")]


@dataclass(frozen=True)
class Asked:
    """How a verb was called, apart from its text and what only it knows."""

    model: str | None
    as_json: bool = False
    batch: int = 32
    device: str = "auto"
    show: bool = False
    out: Path | None = None


def answer(task: str, text: list[str] | None, options: Options, asked: Asked, ready: Any = None) -> None:
    """Answer what was asked, from wherever it comes; `ready` is what answers in a model's place."""
    if asked.out is not None and asked.out.suffix.lower() not in FORMATS:
        raise InputError(f"{asked.out}: expected a name that ends in {', '.join(FORMATS)}")
    if asked.out is not None and not text:
        raise InputError(f"--out {asked.out}: one picture is of one text; give it as an argument")
    trained, options = (ready, options) if ready else open_model(task, asked.model, asked.device, options)
    told = Told(trained, options, asked.as_json, asked.show, asked.out)
    if text:
        told.one(trained.answer([" ".join(text)], options)[0])
    elif sys.stdin is not None and sys.stdin.isatty():
        _prompt(trained, options, told)
    else:
        _lines(trained, options, told, asked.batch)


def open_model(task: str, model: str | None, device: str, options: Options) -> tuple[Trained, Options]:
    """The model for a task, on its device; by default the first one that is shipped for it."""
    from regard import pretrained

    if model is None:
        shipped = pretrained.default(task, options.to)
        if shipped is None:
            into = f" into {options.to}" if options.to else ""
            known = pretrained.default(task)
            others = f" (there is {', '.join(known.to)})" if known and known.to else ""
            raise InputError(
                f"{task}{into}: which model? none is shipped for it{others}; "
                f"--model FOLDER takes one that `regard train` made"
            )
        model = shipped.name
        if shipped.to == (options.to,):
            options = replace(options, to=None)  # it cannot do anything else
    place = device_of(device)
    trained = pretrained.load(model).to(place)
    if trained.task.name != task:
        raise InputError(
            f"{model}: this model cannot {task}, it can {trained.task.name}: regard {trained.task.name} --model {model}"
        )
    return trained, options


def device_of(device: str) -> str:
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):  # torch says either, by the kind of device
        kind = device.partition(":")[0]
        why = (
            f"torch sees {torch.cuda.device_count()} of that kind" if kind == "cuda" else nearest(kind, ("cpu", "cuda"))
        )
        raise InputError(f"--device {device}: there is no such device; {why}") from None
    return device


def _prompt(trained: Trained, options: Options, told: Told) -> None:
    """Until Ctrl-D. What is wrong with one text is said, and the next one is asked for."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  the prompt has a history, and arrow keys
    print(f"{trained!r}; Ctrl-D ends", file=sys.stderr)
    while True:
        try:
            text = input(f"{trained.task.name}> ")
        except (EOFError, KeyboardInterrupt):
            print(file=sys.stderr)
            return
        if text.strip():
            try:
                told.one(trained.answer([text], options)[0])
            except InputError as error:
                print(f"regard: {error}", file=sys.stderr)


def _lines(trained: Trained, options: Options, told: Told, batch: int) -> None:
    """A line for a line, in order."""
    for texts in _batches(batch):
        try:
            answers: Iterable[Answer] = trained.answer(texts, options)
        except InputError:
            answers = _until_wrong(trained, texts, options, told)
        for each in answers:
            told.line(each)
        sys.stdout.flush()
    told.end()


def _until_wrong(trained: Trained, texts: list[str], options: Options, told: Told) -> Iterator[Answer]:
    """One at a time, up to the one that cannot be answered: its row is named."""
    for text in texts:
        try:
            (one,) = trained.answer([text], options)
        except InputError as error:
            raise InputError(f"standard input, row {told.rows + 1}: {error}") from None
        yield one


def _batches(size: int) -> Iterator[list[str]]:
    """Lines of stdin, so many at a time; what stands before a line that cannot be read is answered first."""
    texts: list[str] = []
    try:
        for text in _read():
            texts.append(text)
            if len(texts) == size:
                yield texts
                texts = []
    except InputError:
        yield texts
        raise
    yield texts


def _read() -> Iterator[str]:
    """The lines of stdin; they end at line feeds only."""
    byte = 0
    for row, content in enumerate(sys.stdin.buffer, 1):
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"standard input, row {row} (byte {byte + error.start}): not UTF-8: "
                f"byte 0x{content[error.start]:02x}; convert it to UTF-8"
            ) from None
        byte += len(content)
        yield text.removesuffix("\n").removesuffix("\r").removeprefix("\ufeff" if row == 1 else "")
