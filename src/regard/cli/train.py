"""regard train: a model from your own files, or on with a run that was stopped."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.core.shapes import InputError
from regard.mechanisms import nearest

if TYPE_CHECKING:
    from regard.tasks.config import Run

KEY = re.compile(r"[a-z_]+(\.[a-z_]+)*\s*=")
TASKS = ("tag", "classify", "translate", "fill", "denoise", "generate")


def train(
    what: Annotated[
        str | None,
        typer.Argument(
            help=f"What to train ({', '.join(TASKS)}), a configuration (run.toml), or the folder of a run to go on with"
        ),
    ] = None,
    rest: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE…] [KEY=VALUE…]", help="Training files, and keys as optim.lr=3e-4"),
    ] = None,
    valid: Annotated[
        list[str] | None, typer.Option(help="A validation file; twice where there are two, aligned line by line")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The model's folder: a new one, or that of a run to go on with")
    ] = None,
    keys: Annotated[
        bool, typer.Option("--keys", help="List all keys, what they may be and what they are, and exit")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="At the end print the figures as one line of JSON")] = False,
) -> None:
    """Train a model on your own files. Stop it with Ctrl-C; the same command goes on where it was.

    \b
    regard train tag train.conllu --valid dev.conllu --out tagger
    regard train classify train.tsv --valid dev.tsv --out sentiment          (label<TAB>text)
    regard train translate train.en train.fr --valid dev.en --valid dev.fr --out en-fr
    regard train translate pairs.tsv --out en-fr model.d=128 optim.lr=1e-3   (source<TAB>target)
    regard train run.toml --out tagger                                       (task, data and keys in a file)
    regard train tagger                                                      (on with a run that was stopped)
    """
    if keys:
        return print(_listed())
    if what is None:
        raise InputError(
            f"train what? one of {', '.join(TASKS)}, a .toml file, or a run's folder; see regard train --help"
        )
    run, folder = _asked(what, rest or [], valid or [], out)

    from regard.cli.watching import watching
    from regard.tasks.training import Stopped
    from regard.tasks.training import train as train_

    first = os.environ.get("RANK", "0") == "0"
    with watching(quiet=not first) as watch:
        try:
            trained = train_(run, folder, watch)
        except Stopped as stopped:
            if first:
                watch.close()
                where = shlex.quote(str(folder))
                print(f"regard: {str(stopped).partition(';')[0]}; go on: regard train {where}", file=sys.stderr)
            raise typer.Exit(130) from None  # as a shell counts an interrupt
    if first:
        _tell(run, folder, trained, watch.steps, as_json)


def _asked(what: str, rest: list[str], valid: list[str], out: Path | None) -> tuple[Run, Path]:
    """The run that the command line describes, and its folder."""
    from regard.tasks import config

    path = Path(what)
    given = [text for text in rest if KEY.match(text) and not Path(text).exists()]
    files = [text for text in rest if text not in given]
    if KEY.match(what) and not path.exists():
        raise InputError(f"{what}: first say what to train: one of {', '.join(TASKS)}, a .toml file, or a run's folder")
    valid_key = [f"data.valid={json.dumps(valid)}"] if valid else []
    if what in TASKS:
        if not files:
            raise InputError(f"train {what}: on which files? give one or more: {_wants(what)}")
        table: dict[str, Any] = {"task": what, "data": {"train": files, **({"valid": valid} if valid else {})}}
        run = config.resolve(config.Run, table, given, source="command line")
        return run, _folder(out, what)
    if path.is_dir():
        if not (path / "run.toml").is_file():
            raise InputError(
                f"{what}: no run is in this folder (no run.toml); to begin one: regard train TASK FILE --out {what}"
            )
        _no_files(files, "a run's folder")
        if out is not None and out.resolve() != path.resolve():
            raise InputError(f"--out {out}: the run in {what} goes on where it is; leave --out away")
        return config.read(path / "run.toml", [*valid_key, *given]), path
    if path.suffix.lower() == ".toml":
        _no_files(files, "a configuration")
        return config.read(path, [*valid_key, *given]), _folder(out, what)
    known = nearest(what, TASKS).replace("there is: ", "")
    raise InputError(f"{what!r} is no task, no .toml file and no folder; expected one of these; tasks: {known}")


def _no_files(files: list[str], what: str) -> None:
    if files:
        raise InputError(f"{files[0]}: {what} names its files itself; to change them: data.train=FILE")


def _folder(out: Path | None, what: str) -> Path:
    if out is None:
        raise InputError(f"where to? give the folder of the new model: --out {Path(what).stem}-model")
    return out


def _wants(task: str) -> str:
    from regard.tasks import catalogue

    return catalogue.TASKS[task].files


def _tell(run: Run, folder: Path, trained: Any, steps: int, as_json: bool) -> None:
    from regard.cli.watching import figures

    where = shlex.quote(str(folder))
    if as_json:
        return print(json.dumps({"folder": str(folder), "task": run.task, "steps": steps, **trained.figures}))
    done = "" if steps else " (it had finished before; nothing was left to train)"
    numbers = sum(p.numel() for p in trained.network.parameters())
    kind = {"rnn": "an RNN", "attentive": "an RNN with attention", "autoencoder": "an autoencoder"}
    print(
        f"{folder}: {kind.get(trained.task.model.kind, 'a transformer')} that can {run.task}, {numbers:,} parameters{done}"
    )
    if trained.figures:
        print(f"validation: {figures(trained.figures)}")
    sample = {"fill": "The cat ____ .", "generate": "The cat"}.get(run.task, "The cat sleeps.")
    print(f'try it: regard {run.task} "{sample}" --model {where}')


def _listed() -> str:
    """All keys with their defaults."""
    from regard.tasks.config import keys

    rows = [(key, said, "(must be given)" if default is None else default) for key, said, default in keys()]
    rows = [(key, said.replace("a list of a text", "texts, between commas"), default) for key, said, default in rows]
    wide = max(len(key) for key, *_ in rows)
    told = max(len(default) for *_, default in rows)
    return "\n".join(f"{key:<{wide}}  {default:<{told}}  {said}" for key, said, default in rows)
