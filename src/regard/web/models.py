"""The trained models that a server has: found once, looked up by name, loaded when first asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from regard.core.shapes import InputError
from regard.tasks.model import Trained, load, read_task
from regard.tasks.task import Task
from regard.web.work import LateError, mindful, remaining


class UnknownModelError(InputError):
    """No model of this name, or none for this task."""


class Models:
    """A name never becomes a path: it is a key of a table that is made before the first request."""

    def __init__(self, places: Mapping[str, Path] | None = None, shipped: Mapping[str, Path] | None = None) -> None:
        self._places = {**(shipped or {}), **(places or {})}
        self.given = frozenset(places or {})
        self.tasks: dict[str, Task] = {name: read_task(Path(place)) for name, place in self._places.items()}
        self._loaded: dict[str, Trained] = {}
        self._locks = {name: threading.Lock() for name in self._places}

    def __iter__(self) -> Iterator[str]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def name_of(self, task: str, name: str | None) -> str:
        """The model that was asked for, or the first one of the task: those given by name before those shipped."""
        able = [name for name, its in self.tasks.items() if its.name == task]
        able.sort(key=lambda name: name not in self.given)
        if name is None and able:
            return able[0]
        if name in able:
            return str(name)
        there = f"there is: {', '.join(able)}" if able else "there is none; regard serve --model NAME=FOLDER brings one"
        if name is None:
            raise UnknownModelError(f"no model can {task} here; {there.removeprefix('there is none; ')}")
        raise UnknownModelError(f"no model for {task} is called {name!r}; {there}")

    @contextmanager
    def use(self, name: str) -> Iterator[Trained]:
        """One request at a time for each model: what watches its attention must see this request only."""
        lock = self._locks[name]
        if not lock.acquire(timeout=max(remaining(), 0.0)):
            raise LateError
        try:
            if name not in self._loaded:
                trained = load(self._places[name])
                mindful(trained.network)
                self._loaded[name] = trained
            yield self._loaded[name]
        finally:
            lock.release()


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


def shipped() -> dict[str, Path]:
    """The models that come with the installation, by name."""
    return {}
