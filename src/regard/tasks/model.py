"""A model is a folder: config.json, model.safetensors, tokenizer.json, README.md. Nothing in it is ever run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.shapes import InputError, MissingError
from regard.nn.embeddings import Pretrained
from regard.tasks import tokenizers
from regard.tasks.atomic import cure, make_folder, write_folder, write_whole
from regard.tasks.config import Model, Range
from regard.tasks.config import resolve as resolve_config
from regard.tasks.files import read_small, shown
from regard.tasks.task import Answer, Attended, Options, Task
from regard.tasks.writing import Aligner, NotFiniteError, Writing

FORMAT = "regard model 1"
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
MOST = 1 << 20  # bytes of a config.json
KEYS = ("labels", "vectors", "longest", "noise")  # what every task has, beside the sizes of its network


@dataclass
class Trained:
    """A trained network and its task.

    `model("The cat sleeps.")` answers one text, `model([…])` several; `model.attended(answer)` is what it looked at.
    """

    task: Task
    network: nn.Module
    path: Path
    figures: dict[str, Any] = field(default_factory=dict)  # on the validation data, where it was just trained

    def __call__(self, text: str | Sequence[str], **options: Any) -> Any:
        texts = [text] if isinstance(text, str) else list(text)
        answers = self.answer(texts, Options(**options))
        return answers[0] if isinstance(text, str) else answers

    def answer(self, texts: Sequence[str], options: Options | None = None) -> list[Answer]:
        try:
            return self.task.answer(self.network, texts, options or Options())
        except NotFiniteError as error:
            raise InputError(f"{self.path}: {error}") from None

    def attended(self, answer: Answer) -> list[Attended]:
        return self.task.attended(self.network, answer)

    def to(self, device: str | torch.device) -> Trained:
        self.network.to(device)
        return self

    def __repr__(self) -> str:
        numbers = sum(p.numel() for p in self.network.parameters())
        return f"{self.task.name} model {self.path.name}: {self.task.model.kind}, {numbers:,} parameters"


def describe(folder: Path, task: Task) -> None:
    """Everything but the weights."""
    make_folder(folder)
    for name, data in _described(task).items():
        write_whole(folder / name, data)


def save_weights(folder: Path, state: Mapping[str, Tensor]) -> None:
    write_whole(folder / WEIGHTS, _serialized(state))


def save(folder: Path | str, trained: Trained, half: bool = False, card: str = "") -> None:
    """A new folder, there whole or not at all; its weights in float16 if `half`."""
    folder = Path(folder)
    files = {**_described(trained.task), WEIGHTS: _serialized(trained.network.state_dict(), half)}
    try:
        make_folder(folder.parent)
        write_folder(folder, {**files, **({CARD: card.encode()} if card else {})})
    except OSError as error:
        raise InputError(f"{folder}: not written: {error.strerror or error}; {cure(error)}") from error


def _described(task: Task) -> dict[str, bytes]:
    state = {"format": FORMAT, "task": task.name, "model": asdict(task.model), **task.state()}
    config = json.dumps(state, indent=1, ensure_ascii=False) + "\n"
    return {tokenizers.FILE: task.tokenizer.to_json().encode(), CONFIG: config.encode()}


def _serialized(state: Mapping[str, Tensor], half: bool = False) -> bytes:
    own = {
        name: (tensor.half() if half and tensor.is_floating_point() else tensor).detach().cpu().contiguous().clone()
        for name, tensor in state.items()
    }
    return _safetensors().torch.save(own)


def load(path: Path | str) -> Trained:
    """A trained model from its folder, ready to answer."""
    folder = Path(path)
    task = read_task(folder)
    _check_layers(folder, task)
    try:
        shapes = {name: tuple(tensor.shape) for name, tensor in empty(task).state_dict().items()}
    except InputError as error:
        raise InputError(f"{folder / CONFIG}: {error}") from None
    weights = _read_weights(folder, shapes)
    network = task.network(embedding=blank(task))  # no larger than the file that was just checked
    network.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    return Trained(task, network.eval(), folder)


def read_task(folder: Path) -> Task:
    from regard.tasks.catalogue import TASKS, restore

    path = folder / CONFIG
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected a model that `regard train` made")
    state = _read_json(path)
    if state.get("format") != FORMAT:
        raise InputError(f"{path}: format is {str(state.get('format'))[:40]!r}; expected {FORMAT!r}")
    if state.get("task") not in tuple(TASKS):  # which may be asked for what cannot be hashed
        raise InputError(f"{path}: task is {str(state.get('task'))[:40]!r}; expected one of {', '.join(TASKS)}")
    if not isinstance(state.get("model"), dict):
        raise InputError(f"{path}: model is no table; expected the sizes of the network")
    sizes = {key: value for key, value in state["model"].items() if value is not None}
    model = resolve_config(Model, sizes, source=f"{path}: model")
    _check(path, state)
    task = restore(state["task"], tokenizers.load(folder / tokenizers.FILE), state, model)
    if "aligner" in state:
        task.aligner = _aligner(path, state["aligner"], task)  # pyright: ignore[reportAttributeAccessIssue]
    return task


def _aligner(path: Path, state: Any, task: Task) -> Aligner:
    layers = task.model.layers if task.model.kind == "transformer" else 1
    heads = task.model.heads if task.model.kind == "transformer" else 1
    there = [[layer, head] for layer in range(layers) for head in range(heads)]
    known = (
        isinstance(task, Writing)
        and isinstance(state, dict)
        and set(state) == {"heads", "late"}
        and isinstance(state["heads"], list)
        and 0 < len(state["heads"]) <= len(there)
        and all(each in there and not {type(n) for n in each} - {int} for each in state["heads"])
        and type(state["late"]) is int
        and state["late"] in (0, 1)
    )
    if not known:
        raise InputError(
            f"{path}: aligner is {str(state)[:60]}; expected heads, as [layer (below {layers}), head (below {heads})], "
            f"and late (0 or 1) of a model that writes"
        )
    return Aligner(tuple((layer, head) for layer, head in state["heads"]), state["late"])


def _check(path: Path, state: dict[str, Any]) -> None:
    """The types of what a task reads back; anybody may have written the file."""
    from regard.tasks.catalogue import READ_BY_VECTORS, TASKS

    labels, vectors, longest, noise = (state.get(key) for key in KEYS)
    right = (
        state.keys() >= set(KEYS)
        and isinstance(labels, list)
        and len(labels) >= TASKS[state["task"]].labelled
        and all(isinstance(label, str) for label in labels)
        and type(longest) is int
        and longest in Range(1, 2**20)
        and isinstance(noise, int | float)
        and 0 <= noise < 1
        and (
            vectors is None
            or (
                state["task"] in READ_BY_VECTORS
                and isinstance(vectors, list)
                and [type(n) for n in vectors] == [int, int]
                and vectors[0] in Range(1, 2**31)
                and vectors[1] in Range(1, 2**16)
            )
        )
    )
    if not right:
        raise InputError(f"{path}: labels, vectors, longest or noise is not as regard writes it; restore the file")


def blank(task: Task) -> nn.Module | None:
    """In the place of pretrained vectors, whose numbers are among the weights."""
    from regard.tasks.networks import embedding_of

    if task.vectors is None:
        return None
    return embedding_of(task.model, Pretrained(torch.zeros(task.vectors), padding_index=tokenizers.PAD))


def empty(task: Task) -> nn.Module:
    """The network's shapes without its numbers."""
    try:
        with torch.device("meta"):
            return task.network(embedding=blank(task))
    except (RuntimeError, OverflowError, TypeError) as error:  # a size beyond all numbers
        raise InputError(f"no network has these sizes: {str(error).splitlines()[0][:100]}") from None


def _check_layers(folder: Path, task: Task) -> None:
    """Before there are as many: a thousand of them take a while even without numbers."""
    path = folder / WEIGHTS
    if task.model.kind not in ("transformer", "autoencoder") or not path.is_file():
        return
    with suppress(OSError, _safetensors().SafetensorError), _safetensors().safe_open(path, "pt") as opened:
        tensors = len(opened.keys())
        if task.model.layers > tensors:
            raise InputError(
                f"{folder / CONFIG}: model.layers={task.model.layers}, but {WEIGHTS} has {tensors} tensors; "
                f"the two files are not of one model"
            )


def _read_weights(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    safetensors = _safetensors()
    path = folder / WEIGHTS
    if not path.is_file():
        hint = " its training has not finished: resume it with `regard train`" if (folder / "run.toml").exists() else ""
        raise InputError(f"{path}: there is no such file;{hint or ' expected a whole model folder'}")
    try:
        with safetensors.safe_open(path, "pt", device="cpu") as opened:
            found = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
            for name in {**shapes, **found}:
                if shapes.get(name) != found.get(name):
                    raise InputError(
                        f"{path}: {shown(name)} is {_shape(found.get(name))}, {CONFIG} says {_shape(shapes.get(name))}; "
                        f"the two files are not of one model"
                    )
            tensors = {name: opened.get_tensor(name) for name in shapes}
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; expected the weights of a model") from None
    except safetensors.SafetensorError as error:
        raise InputError(f"{path}: not a whole safetensors file: {shown(str(error), 200)}") from None
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise InputError(f"{path}: {name} holds numbers that are not finite; the file is damaged, restore it")
    return tensors


def _shape(shape: tuple[int, ...] | None) -> str:
    return "not there" if shape is None else " x ".join(map(str, shape)) or "one number"


def _read_json(path: Path) -> dict[str, Any]:
    raw = read_small(path, MOST, f"expected the {CONFIG} of a model")
    try:
        state = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(state, dict):
        raise InputError(f"{path}: holds no object; expected the {CONFIG} of a model")
    return state


def _safetensors() -> Any:
    try:
        import safetensors
        import safetensors.torch
    except ImportError:
        raise MissingError("models need safetensors; pip install 'regard[tasks]'") from None
    return safetensors


def is_model(path: str | os.PathLike[str]) -> bool:
    return (Path(path) / CONFIG).is_file()
