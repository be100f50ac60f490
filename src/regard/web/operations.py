"""What the server can do: one plain function for each operation, which Python can call as well. No HTTP here."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import Any

from regard import __version__
from regard.cli import told
from regard.cli.pictures import Asked, picture_of
from regard.cli.sentence import MASKS, take
from regard.cli.walk import as_json
from regard.core.shapes import InputError
from regard.mechanisms import NORMALIZERS, SCORES, Named, formula, make_normalizer, make_score
from regard.see.figure import encoded, kind_of
from regard.see.page import page
from regard.see.payload import pack
from regard.see.picture import Picture
from regard.tasks.model import Trained
from regard.tasks.task import Answer, Options
from regard.web.asked import WIDTHS, Attend, Read, Walk
from regard.web.models import Models, UnknownModelError

# What touches the whole process: torch's random state, from which parameters are drawn, and matplotlib's settings.
_alone = threading.Lock()


class UnableError(InputError):
    """A request as it should be, that cannot be answered here: nothing to draw, no font for a script."""


# A sentence under mechanisms


def attend(asked: Attend) -> Picture:
    """As `regard show` draws it."""
    wanted = [Asked(one.score, one.normalizer) for one in asked.mechanisms]
    with _alone:
        return picture_of(asked.text, wanted, asked.mask, width=asked.width, seed=asked.seed, walk=True)


def walk(asked: Walk) -> str:
    """As `regard walk --json` prints it."""
    with _alone:
        given = (asked.score, asked.normalizer, asked.mask, asked.form, asked.layout, asked.width, asked.seed)
        return as_json(take(asked.text, *given))


# A text for a trained model


def ask(models: Models, task: str, asked: Read) -> tuple[str, Answer, Picture | None]:
    """The model's name, its answer, and the attention that led to it, if that is wanted and there is any."""
    options = options_of(asked)
    entry = models.find(task, asked.model, options.to)
    if not entry.task.labels and options.to in entry.to:
        options = replace(options, to=None)  # it cannot do anything else
    with models.use(entry) as trained:
        try:
            answer = trained.answer([asked.text], options)[0]
        except InputError as error:
            if task != "translate":
                raise
            raise UnknownModelError(str(error).replace("--to", "to")) from None  # a language that it does not know
        others = [p for _, p in answer.others] + [p for blank in answer.blanks for _, p in blank]
        if not all(map(math.isfinite, [answer.confidence, *others])):
            raise UnableError(f"the model {entry.name} gives numbers that are not finite; train it anew")
        return entry.name, answer, picture_of_answer(entry.name, trained, answer) if asked.show else None


def options_of(asked: Read) -> Options:
    """With the defaults of the verbs."""
    given = asked.model_dump(exclude={"text", "model", "show"})
    if "length" in given:
        given["longest"] = given.pop("length")
    return Options(**given)


def picture_of_answer(name: str, trained: Trained, answer: Answer) -> Picture | None:
    """As the verb's --show draws it."""
    found = trained.attended(answer)
    if not found or not found[0].weights.numel():
        return None
    return told.picture_of(answer, found, trained.task.name, name)


def answered(name: str, task: str, answer: Answer, picture: Picture | None) -> dict[str, Any]:
    """What the verb's --json prints, the model that said it, and what view.js draws."""
    attention = None if picture is None else pack(picture)
    return {"model": name, "task": task, **told.as_json(answer, task), "attention": attention}


# Pictures in other forms

TYPES = {
    "html": "text/html; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
}


def drawn(picture: Picture | None, form: str, theme: str) -> bytes:
    """The file that `regard show --out x.png` writes."""
    if picture is None:
        raise UnableError("this answer came without attention; there is nothing to draw")
    if form == "html":
        return page(picture, theme=theme).encode()
    picture = (picture.only(0) if picture.view == "alignment" else picture).at_first()
    with _alone:
        try:
            return encoded(picture, form, kind_of(picture), theme=theme)
        except InputError as error:
            raise UnableError(str(error)) from None


def weights_of(picture: Picture | None) -> dict[str, Any]:
    """The numbers themselves."""
    if picture is None:
        raise UnableError("this answer came without attention; there are no weights")
    picture = picture.at_first()
    maps = [{"name": n, "weights": w.tolist()} for n, w in zip(picture.maps, picture.weights, strict=True)]
    said = {"title": picture.title, "note": picture.note, "rows": picture.rows, "columns": picture.columns}
    return {**said, "maps": maps}


# What there is


def mechanisms() -> dict[str, Any]:
    def part(name: str, named: Named, made: Any) -> dict[str, Any]:
        return {"name": name, "number": named.number, "default": named.default, "formula": formula(made)}

    with _alone:
        return {
            "scores": [part(name, named, make_score(name, 4, 4)) for name, named in SCORES.items()],
            "normalizers": [part(name, named, make_normalizer(name)) for name, named in NORMALIZERS.items()],
            "masks": [name + (":" + ",".join("1" * len(WIDTHS[name])) if name in WIDTHS else "") for name in MASKS],
        }


def listed(models: Models) -> list[dict[str, Any]]:
    """No paths: where a model lies is nobody's business."""
    return [
        {
            "name": entry.name,
            "task": entry.task.name,
            "kind": entry.task.model.kind,
            "labels": list(entry.task.labels) if entry.task.labelled else [],
            "languages": list(entry.to),
            "about": entry.about,
            "shipped": not entry.given,
        }
        for entry in models.entries.values()
    ]


def health(models: Models, inside: int, room: int) -> dict[str, Any]:
    return {"status": "ok", "version": __version__, "models": len(models.entries), "inside": inside, "room": room}
