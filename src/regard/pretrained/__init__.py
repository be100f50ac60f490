"""The models that come with the library, by name. index.json, beside this file, says what there is:

    {"en-fr": {"folder": "translate", "task": "translate", "to": ["fr"], "about": "English into French"}}

The first one of a task is what its verb takes where no model is named. Several names may share a folder: a model of
several languages then takes the one language of its name where none is asked for.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from regard.core.shapes import InputError
from regard.mechanisms import nearest

if TYPE_CHECKING:
    from regard.tasks.model import Trained

HERE = Path(__file__).parent
INDEX = "index.json"
CURE = "the installation is damaged: pip install --force-reinstall --no-deps regard"


@dataclass(frozen=True)
class Shipped:
    """One line of the index."""

    name: str
    folder: Path
    task: str
    to: tuple[str, ...] = ()  # the languages that it translates into
    about: str = ""


@cache
def names() -> dict[str, Shipped]:
    """All models that are there. A name is looked up here and nowhere else: it never becomes part of a path."""
    try:
        listed = json.loads((HERE / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{HERE / INDEX}: {error}; {CURE}") from None
    folders = {path.name: path for path in HERE.iterdir() if path.is_dir()}
    return {
        name: Shipped(name, folders[line["folder"]], line["task"], tuple(line.get("to", ())), line.get("about", ""))
        for name, line in listed.items()
        if line["folder"] in folders
    }


def default(task: str, to: str | None = None) -> Shipped | None:
    """The first model for a task; into this language, if one is asked for."""
    fitting = (one for one in names().values() if one.task == task and (to is None or to in one.to))
    return next(fitting, None)


def folder(model: str | os.PathLike[str]) -> Path:
    """Where a model is: a name of the index, or a path. A name wins; write ./name for the folder."""
    if isinstance(model, str) and model in names():
        return names()[model].folder
    path = Path(model)
    if isinstance(model, str) and not path.exists() and len(path.parts) <= 1:
        known = f"of those that are shipped, {nearest(model, names())}" if names() else "none is shipped"
        raise InputError(f"no model {model!r}: no such folder here, and no such name; {known}")
    return path


def load(model: str | os.PathLike[str]) -> Trained:
    """A trained model, ready to answer."""
    from regard.tasks.model import load as load_
    from regard.tasks.translate import Translate

    named = names().get(model) if isinstance(model, str) else None
    try:
        trained = load_(folder(model))
    except InputError as error:
        if named is None:
            raise
        raise InputError(f"{error}; {CURE}") from None
    if named is not None and isinstance(trained.task, Translate) and len(named.to) == 1:
        trained.task.to = next((language for language in trained.task.labels if language == named.to[0]), None)
    return trained
