"""The trained models that a server has: found once, looked up by name, loaded when first asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from regard import pretrained
from regard.core.shapes import InputError
from regard.tasks.model import Trained, load, read_task
from regard.tasks.task import Task
from regard.web.work import LateError, mindful, remaining


class UnknownModelError(InputError):
    """No model of this name, or none for this task or language."""


@dataclass
class Entry:
    """A model by its name."""

    name: str
    folder: Path
    task: Task
    to: tuple[str, ...]  # the languages that it translates into
    about: str
    given: bool  # on the command line; else it came with the installation
    loaded: Trained | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Models:
    """A name never becomes a path: it is a key of a table that is made before the first request."""

    def __init__(self, places: Mapping[str, Path] | None = None, shipped: Iterable[pretrained.Shipped] = ()) -> None:
        self.entries: dict[str, Entry] = {}
        for name, folder in (places or {}).items():
            task = read_task(folder)
            to = task.labels if task.name == "translate" else ()
            self.entries[name] = Entry(name, folder, task, to, "", given=True)
        for one in shipped:
            if one.name not in self.entries:
                task = read_task(one.folder)
                self.entries[one.name] = Entry(one.name, one.folder, task, one.to, one.about, given=False)

    def find(self, task: str, name: str | None, to: str | None = None) -> Entry:
        """The model that was asked for, or the first one of the task: those given by name before those shipped."""
        able = {each.name: each for each in self.entries.values() if each.task.name == task}
        if name in able:
            return able[str(name)]
        if name is not None:
            there = f"there is: {', '.join(able)}" if able else "there is none"
            raise UnknownModelError(f"no model for {task} is called {name!r}; {there}")
        found = next((each for each in able.values() if to is None or to in each.to), None)
        if found is None and able:
            languages = dict.fromkeys(language for each in able.values() for language in each.to)
            raise UnknownModelError(f"no model translates into {to!r}; there is: {', '.join(languages) or 'none'}")
        if found is None:
            raise UnknownModelError(f"no model can {task} here; regard serve --model NAME=FOLDER brings one")
        return found

    @contextmanager
    def use(self, entry: Entry) -> Iterator[Trained]:
        """One request at a time for each model: what watches its attention must see this request only."""
        if not entry.lock.acquire(timeout=max(remaining(), 0.0)):
            raise LateError
        try:
            if entry.loaded is None:
                trained = load(entry.folder)
                mindful(trained.network)
                entry.loaded = trained
            yield entry.loaded
        finally:
            entry.lock.release()


def parse(given: list[str]) -> dict[str, Path]:
    """NAME=FOLDER, as on the command line; FOLDER alone is called by its own name."""
    places: dict[str, Path] = {}
    for one in given:
        name, equals, folder = one.partition("=")
        path = Path(folder if equals else one)
        name = name if equals else path.resolve().name
        if not name or (equals and not folder) or len(name) > 64 or not name.isprintable():
            raise InputError(f"--model {one!r}: expected NAME=FOLDER, such as --model en-fr=runs/en-fr")
        if name in places:
            raise InputError(f"--model {one!r}: {name} was given before; choose another name")
        places[name] = path
    return places
