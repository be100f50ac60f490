"""Checkpoints of a training run that survive kill -9, a full disk and a cut of power. Nothing is ever pickled.

    runs/tagger/step-000500/  state.json  tensors.safetensors  SHA256SUMS
    runs/tagger/step-001000/  ...

A folder appears by one rename and says all about itself: its step, its place in the order of saving, whether it
was the best so far. So there is no pointer to it that could be stale. `sha256sum -c SHA256SUMS` checks it by hand.
One process writes to a folder of checkpoints, any number may read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from regard.core.shapes import InputError, MissingError
from regard.tasks.atomic import clean_up, cure, make_folder, remove_folder, write_folder
from regard.tasks.files import shown

logger = logging.getLogger(__name__)

FORMAT = "regard checkpoint 1"
STATE, TENSORS, SUMS = "state.json", "tensors.safetensors", "SHA256SUMS"
NAME = re.compile(r"step-(\d{6,18})(?:\.(\d{1,9}))?")  # step-000500.2: step 500 was saved once more

DTYPES = {
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    *(torch.float8_e4m3fn, torch.float8_e5m2),
}


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read. Its tensors are on the CPU."""

    path: Path
    step: int
    best: bool
    state: dict[str, Any]


@dataclass(frozen=True)
class _Entry:
    """A checkpoint on the disk whose state.json is whole; its tensors have not been looked at."""

    path: Path
    step: int
    number: int  # the n-th save of the folder; steps do not tell the order, since a run may go back to an earlier one
    best: bool
    passing: bool
    structure: Any
    sums: Mapping[str, str]


def save(
    folder: Path | str,
    step: int,
    state: Mapping[str, Any],
    keep: int = 3,
    *,
    best: bool = False,
    passing: bool = False,
) -> Path:
    """Write a checkpoint and return its folder. Kept are the newest `keep` and the newest that was `best`.

    One that is `passing` (a run was stopped where it happened to be) pushes out no other, and goes when the next
    one is there: a run that was stopped leaves the same checkpoints as one that was not.
    `state`: dicts (keys may be numbers), lists, tuples, tensors, texts, numbers, None, as deep as you like.
    A tensor that occurs twice is stored once, and is one tensor again after `load`.
    """
    folder = Path(folder)
    if step < 0 or keep < 1:
        raise InputError(f"{folder}: step={step}, keep={keep}; expected step ≥ 0 and keep ≥ 1")
    structure, tensors = _take_apart(state)
    try:
        make_folder(folder)
        clean_up(folder)
        earlier = [entry for path in _named(folder) if (entry := _try_entry(path))]
        number = 1 + max((entry.number for entry in earlier), default=0)
        kind = {"best": best, "passing": passing}
        head = {"format": FORMAT, "step": step, "number": number, **kind, "state": structure}
        files = {STATE: json.dumps(head).encode("ascii"), TENSORS: _serialized(tensors)}
        sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        files[SUMS] = _listed(sums)
        path = _free(folder, step)
        write_folder(path, files)
    except OSError as error:
        raise InputError(
            f"{folder}: step {step} was not saved: {error.strerror or error}; {cure(error)} and resume: "
            f"the earlier checkpoints are intact"
        ) from error
    _prune([*earlier, _Entry(path, step, number, best, passing, None, sums)], keep)
    return path


def load(folder: Path | str, which: Literal["last", "best"] | int = "last") -> Checkpoint:
    """Read a checkpoint: the last that was saved, the best, or the one of a step.

    Where the last or the best is damaged, the newest whole one is taken instead, and a warning is logged.
    A step that was asked for by its number is never replaced by another.
    """
    folder = Path(folder)
    if isinstance(which, str) and which not in ("last", "best"):
        raise InputError(f"{folder}: which={which!r}; expected 'last', 'best' or the number of a step")
    entries: list[_Entry] = []
    damaged: list[InputError] = []
    paths = _named(folder)
    for path in paths:
        try:
            entries.append(_entry(path))
        except InputError as error:
            if isinstance(which, str) or _step(path) == which:
                damaged.append(error)
    entries.sort(key=lambda entry: entry.number, reverse=True)
    if isinstance(which, int):
        entries = [entry for entry in entries if entry.step == which]
    elif which == "best":
        entries.sort(key=lambda entry: not entry.best)  # stable: the newest of the best, then the newest
    for error in damaged:
        logger.warning("%s", error)
    for entry in entries:
        try:
            state = _put_together(entry)
        except InputError as error:
            logger.warning("%s", error)
            damaged.append(error)
            continue
        if damaged:
            logger.warning("%s: going on from the newest whole checkpoint, step %d", entry.path, entry.step)
        elif which == "best" and not entry.best:
            logger.warning("%s: no checkpoint is marked best; taking the last, step %d", entry.path, entry.step)
        return Checkpoint(entry.path, entry.step, entry.best, state)
    if damaged:
        raise damaged[0]
    there = ", ".join(str(_step(path)) for path in paths) or "none"
    raise InputError(f"{folder}: no checkpoint {which!r} here; steps that are here: {there}")


def steps(folder: Path | str) -> list[int]:
    """The steps of the checkpoints here that are whole as far as their description goes, in the order of saving;
    without what is passing."""
    found = [entry for path in _named(Path(folder)) if (entry := _try_entry(path)) and not entry.passing]
    return [entry.step for entry in sorted(found, key=lambda entry: entry.number)]


# The order of the checkpoints in a folder


def _named(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; expected a folder with checkpoints in it") from error


def _step(path: Path) -> int:
    found = NAME.fullmatch(path.name)
    assert found
    return int(found[1])


def _free(folder: Path, step: int) -> Path:
    path, again = folder / f"step-{step:06d}", 1
    while path.exists() or path.is_symlink():
        again += 1
        path = folder / f"step-{step:06d}.{again}"
    return path


def _prune(entries: list[_Entry], keep: int) -> None:
    """Called once the newest is durable. What cannot be read is left for a person to look at."""
    newest = sorted(entries, key=lambda entry: entry.number, reverse=True)
    staying = [entry for entry in newest if not entry.passing]
    kept = newest[:1] + staying[:keep] + [entry for entry in staying if entry.best][:1]
    for entry in newest:
        if entry not in kept:
            try:
                remove_folder(entry.path)
            except OSError as error:
                logger.warning("%s: could not be removed: %s", entry.path, error.strerror or error)


# Reading: every byte is checked against its sum before anything interprets it


def _broken(path: Path, why: str) -> InputError:
    return InputError(f"{path}: {why}; not a whole checkpoint: remove the folder {path.parent.name}, or restore it")


def _listed(sums: Mapping[str, str]) -> bytes:
    """As `sha256sum` writes and checks it."""
    return "".join(f"{sums[name]}  {name}\n" for name in (STATE, TENSORS)).encode("ascii", "replace")


def _read(path: Path, most: int = -1) -> bytes:
    try:
        if not path.is_file():  # a pipe would be waited for
            raise _broken(path, "there is no such file")
        with open(path, "rb") as file:
            return file.read(most)
    except OSError as error:
        raise _broken(path, str(error.strerror)) from error


def _try_entry(path: Path) -> _Entry | None:
    try:
        return _entry(path)
    except InputError:
        return None


def _entry(path: Path) -> _Entry:
    listed = _read(path / SUMS, 1000)
    words = listed.decode("ascii", "replace").split()
    sums = dict(zip(words[1::2], words[::2], strict=False))
    if set(sums) != {STATE, TENSORS} or listed != _listed(sums):
        raise _broken(path / SUMS, f"is not the list of the checksums of {STATE} and {TENSORS}")
    text = _read(path / STATE)
    if hashlib.sha256(text).hexdigest() != sums[STATE]:
        raise _broken(path / STATE, f"its bytes are not those that {SUMS} promises")
    try:
        head = json.loads(text)
        form = head["format"]
        entry = _Entry(path, head["step"], head["number"], head["best"], head["passing"], head["state"], sums)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _broken(path / STATE, "is not the description of a checkpoint") from None
    if form != FORMAT:
        raise _broken(path / STATE, f"is not written as {FORMAT!r}")
    kinds = tuple(map(type, (entry.step, entry.number, entry.best, entry.passing)))
    if kinds != (int, int, bool, bool):
        raise _broken(path / STATE, "its step, number, best or passing is of the wrong type")
    return entry


def _put_together(entry: _Entry) -> dict[str, Any]:
    safetensors, _ = _safetensors()
    path = entry.path / TENSORS
    try:
        if not path.is_file():
            raise _broken(path, "there is no such file")
        with open(path, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != entry.sums[TENSORS]:
                raise _broken(path, f"its bytes are not those that {SUMS} promises")
        with safetensors.safe_open(path, "pt", device="cpu") as opened:
            # A copy: what is mapped would depend on a file that a later save removes.
            tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
    except OSError as error:
        raise _broken(path, str(error.strerror or error)) from error
    except safetensors.SafetensorError as error:
        raise _broken(path, shown(str(error), 200)) from None
    try:
        state = _decoded(entry.structure, tensors)
    except (ValueError, KeyError, TypeError, RecursionError):
        state = None
    if not isinstance(state, dict):
        raise _broken(entry.path / STATE, "its structure is not one that regard writes")
    return state


def _decoded(node: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(node, list):
        return [_decoded(item, tensors) for item in node]
    if not isinstance(node, dict):
        return node
    if not any(key.startswith("$") for key in node):
        return {key: _decoded(value, tensors) for key, value in node.items()}
    ((kind, value),) = node.items()
    if kind == "$tensor":
        return tensors[value]
    if kind == "$float":
        return float(value)
    if kind == "$tuple":
        return tuple(_decoded(item, tensors) for item in value)
    if kind == "$items":
        return {_decoded(key, tensors): _decoded(item, tensors) for key, item in value}
    raise ValueError(kind)


# Writing: a state is a structure (JSON) whose leaves may be names of tensors (safetensors)


def _safetensors() -> tuple[Any, Any]:
    try:
        import safetensors
        import safetensors.torch
    except ImportError:
        raise MissingError("checkpoints need safetensors; pip install 'regard[tasks]'") from None
    return safetensors, safetensors.torch


def _serialized(tensors: Mapping[str, Tensor]) -> bytes:
    """safetensors refuses tensors that share memory; those that are equal were already stored once."""
    own, seen = {}, set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        storage = plain.untyped_storage().data_ptr()
        own[name] = plain.clone() if storage in seen else plain
        seen.add(storage)
    return _safetensors()[1].save(own)


def _take_apart(state: Mapping[str, Any]) -> tuple[Any, dict[str, Tensor]]:
    """What JSON cannot say is an object with one key that begins with $; a dict with such keys is one of $items."""
    tensors: dict[str, Tensor] = {}
    names: dict[tuple, str] = {}  # by what a tensor is a view of

    def encoded(node: Any, where: tuple[str, ...]) -> Any:
        if isinstance(node, Tensor):
            return {"$tensor": named(node, where)}
        if node is None or isinstance(node, (bool, int, str)):
            return node
        if isinstance(node, float):
            return node if math.isfinite(node) else {"$float": str(float(node))}
        if isinstance(node, list):
            return [encoded(item, (*where, str(i))) for i, item in enumerate(node)]
        if isinstance(node, tuple):
            return {"$tuple": [encoded(item, (*where, str(i))) for i, item in enumerate(node)]}
        if isinstance(node, Mapping):
            plain = all(isinstance(key, str) and not key.startswith("$") for key in node)
            items = [(key, encoded(value, (*where, str(key)))) for key, value in node.items()]
            return dict(items) if plain else {"$items": [[encoded(key, where), value] for key, value in items]}
        raise InputError(
            f"a checkpoint cannot hold the {type(node).__name__} at {'.'.join(where)}; "
            f"expected tensors, texts, numbers, None, and dicts, lists and tuples of them"
        )

    def named(tensor: Tensor, where: tuple[str, ...]) -> str:
        kind = (
            "distributed"
            if hasattr(tensor, "full_tensor")
            else "meta"
            if tensor.is_meta
            else f"{tensor.layout}"
            if tensor.layout != torch.strided
            else f"{tensor.dtype}"
            if tensor.dtype not in DTYPES
            else None
        )
        if kind:
            raise InputError(
                f"a checkpoint cannot hold the {kind} tensor at {'.'.join(where)}; "
                f"gather it or convert it: expected numbers in memory, of a type that safetensors knows"
            )
        memory = tensor.data_ptr(), tensor.device, tensor.dtype, tensor.shape, tensor.stride()
        identity = (*memory, tensor.is_conj(), tensor.is_neg())
        if tensor.numel() and identity in names:
            return names[identity]
        name = ".".join(where).encode("ascii", "backslashreplace").decode("ascii")
        while name in tensors or name == "__metadata__":  # a.b and a → b have the same name
            name += "_"
        names[identity] = name
        tensors[name] = tensor
        return name

    return encoded(state, ()), tensors
