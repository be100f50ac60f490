"""The command line, one file per verb. This file joins the verbs and says what went wrong, in one line.

A verb is a plain function with typer's annotations. It raises InputError or OSError, never exits.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

from regard import __version__
from regard.core.shapes import InputError

LONGEST = 1500  # characters of an error

# regard.cli.<verb> has a function <verb>; this is the order of --help.
VERBS = (
    *("translate", "tag", "classify", "fill", "denoise", "generate"),
    *("lookup", "walk", "show", "ls", "bench", "serve", "doctor"),
    *("train", "evaluate", "average", "export"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one verb and exit: 0 if done, 2 if the input was not as it must be."""
    try:
        app = _app()
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(_refuse("the command line needs typer and rich; pip install 'regard[cli]'"))
    try:
        app(args=arguments, prog_name="regard")
    except InputError as error:
        sys.exit(_refuse(str(error)))
    except OSError as error:
        sys.exit(_refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error)))


def _app() -> Any:
    import typer

    app = typer.Typer(
        help="Any attention mechanism, and you can see it.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help and errors: they stay one line when piped
    )

    def version(asked: bool) -> None:
        if asked:
            print(f"regard {__version__}")
            raise typer.Exit

    @app.callback()
    def options(
        version: bool = typer.Option(False, "--version", callback=version, is_eager=True, help="Print it and exit."),
    ) -> None:
        pass

    for verb in VERBS:
        if importlib.util.find_spec(f"regard.cli.{verb}"):
            app.command(verb)(getattr(importlib.import_module(f"regard.cli.{verb}"), verb))
    return app


def _refuse(message: str) -> int:
    """One line, whatever a file had in it that the message quotes."""
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(message.split()))
    print(
        "regard:",
        line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}",
        file=sys.stderr,
    )
    return 2
