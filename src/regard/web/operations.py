"""What the server can do: one plain function for each operation, which Python can call as well. No HTTP here."""

from __future__ import annotations

import math
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from regard import __version__
from regard.cli.pictures import Asked, picture_of
from regard.cli.sentence import MASKS, take
from regard.cli.walk import as_json
from regard.core.shapes import InputError
from regard.mechanisms import NORMALIZERS, SCORES, Named, formula, make_normalizer, make_score
from regard.see.figure import LABELS, save
from regard.see.page import page
from regard.see.payload import pack
from regard.see.picture import Picture
from regard.tasks.task import Answer, Options
from regard.web.asked import WIDTHS, Attend, Fill, Read, Walk, Write
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
    name = models.name_of(task, asked.model)
    with models.use(name) as trained:
        try:
            answer = trained.answer([asked.text], options_of(asked))[0]
        except InputError as error:
            if task != "translate":
                raise
            raise UnknownModelError(str(error).replace("--to", "to")) from None  # a language that it does not know
        if not all(math.isfinite(p) for p in (answer.confidence, *(p for _, p in answer.others))):
            raise UnableError(f"the model {name} gives numbers that are not finite; train it anew")
        return name, answer, picture_of_answer(name, trained, answer) if asked.show else None


def options_of(asked: Read) -> Options:
    if isinstance(asked, Write):
        return Options(**asked.model_dump(exclude={"text", "model", "show"}))
    return Options(n_best=asked.n_best) if isinstance(asked, Fill) else Options()


def picture_of_answer(name: str, trained: Any, answer: Answer) -> Picture | None:
    """Every attention of one answer that has the same words on both sides as the most telling one."""
    found = trained.attended(answer)
    if not found:
        return None
    first = found[0]
    same = [each for each in found if each.rows == first.rows and each.columns == first.columns]
    writes = trained.task.name == "translate" and first.row_words is not None
    return Picture(
        torch.stack([each.weights for each in same]),
        first.rows,
        first.columns,
        title=answer.output if len(answer.output) <= 200 else answer.output[:199] + "…",
        maps=[each.name for each in same],
        note=f"Model {name}: weights of its attention, the mean over heads.",
        row_words=first.row_words,
        column_words=first.column_words,
        layers=None,
        view="alignment" if writes else "matrix",
    )


def told(name: str, task: str, answer: Answer, picture: Picture | None) -> dict[str, Any]:
    """An answer as JSON."""
    fields = asdict(answer)
    for inner in ("source", "target"):
        del fields[inner]
    return {"model": name, "task": task, **fields, "attention": None if picture is None else pack(picture)}


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
    kind = "heads" if len(picture.maps) > 1 and picture.view != "alignment" else "matrix"
    if picture.view == "alignment":
        picture = picture.only(0)
        kind = "alignment" if max(picture.weights.shape[1:]) <= LABELS else "matrix"
    with _alone, tempfile.TemporaryDirectory(prefix="regard-") as folder:
        try:
            return save(picture, Path(folder) / f"picture.{form}", kind, theme=theme).read_bytes()
        except InputError as error:
            raise UnableError(str(error)) from None


def weights_of(picture: Picture | None) -> dict[str, Any]:
    """The numbers themselves."""
    if picture is None:
        raise UnableError("this answer came without attention; there are no weights")
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
            "name": name,
            "task": task.name,
            "kind": task.model.kind,
            "labels": list(task.labels) if task.name != "translate" else [],
            "languages": list(task.labels) if task.name == "translate" else [],
            "source": "given" if name in models.given else "shipped",
        }
        for name, task in models.tasks.items()
    ]


def health(models: Models, inside: int, room: int) -> dict[str, Any]:
    return {"status": "ok", "version": __version__, "models": len(models), "inside": inside, "room": room}
