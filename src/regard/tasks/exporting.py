"""A trained network as one ONNX file, for programs without torch or this library.

The file holds the network from ids to logits, for batches and texts of any length, and beside it what makes ids
of a text and an answer of logits: its metadata has the task, the labels and the whole tokenizer.json.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.shapes import InputError, MissingError
from regard.tasks.atomic import make_folder, write_whole
from regard.tasks.model import Trained
from regard.tasks.silence import silent
from regard.tasks.task import Task
from regard.tasks.tokenizers import BOS, EOS, MASK, PAD, SPECIAL, UNK


class AllWords(nn.Module):
    """A tagger that gives as many rows as there are pieces; those behind the last word mean nothing."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, source: Tensor, lengths: Tensor, words: Tensor) -> Tensor:
        return self.inner(source, lengths, words, source.shape[1])


class AllBlanks(nn.Module):
    """What fills in, asked about every place; ask for those where <mask> stands."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, source: Tensor, lengths: Tensor) -> Tensor:
        return self.inner.out(self.inner.turn(self.inner.reader(source, lengths)), None)


class Wrote(nn.Module):
    """What writes, from the source and all that was written so far; the last row is the next piece."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, source: Tensor, given: Tensor, lengths: Tensor) -> Tensor:
        return self.inner(source, given, lengths)


@dataclass(frozen=True)
class Exported:
    path: Path
    inputs: tuple[str, ...]
    difference: float | None  # the largest between the file's logits and torch's; None: onnxruntime is not there


def export(trained: Trained, path: Path) -> Exported:
    """Write the file, and run it in onnxruntime where that is installed."""
    for library in ("onnx", "onnxscript"):
        try:
            __import__(library)
        except ImportError:
            raise MissingError(f"export needs {library}; pip install onnx onnxscript onnxruntime") from None
    task = trained.task
    if task.model.kind in ("rnn", "attentive"):
        raise InputError(
            f"a model of kind {task.model.kind!r} cannot be exported: ONNX has no loop for its steps; kinds that can: transformer, autoencoder"
        )
    network, given = wrapped(task, trained.network.cpu().eval()), inputs(task)
    example = given(2, 7)
    shapes: dict[str, Any] = {}
    batch = torch.export.Dim("batch", min=2, max=4096)
    for name, tensor in example.items():
        n = torch.export.Dim("written" if name == "given" else "n", min=2, max=task.longest)
        shapes[name] = {0: batch} if tensor.ndim == 1 else {0: batch, 1: n}
    with warnings.catch_warnings(), silent("torch.onnx", "onnxscript", "onnx_ir"):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network,
            tuple(example.values()),
            dynamo=True,
            dynamic_shapes=tuple(shapes.values()),
            verbose=False,
            input_names=list(example),
            output_names=["logits"],
        )
    assert program is not None
    program.model.metadata_props.update(described(task))
    try:
        whole = program.model_proto.SerializeToString()
    except ValueError:  # of a protocol that stops at 2 GiB
        raise InputError(f"{path}: the model is larger than the 2 GiB that one ONNX file can hold") from None
    make_folder(path.parent)
    write_whole(path, whole)
    return Exported(path, tuple(example), _difference(path, network, given))


def wrapped(task: Task, network: nn.Module) -> nn.Module:
    wrappers: dict[str, Callable[[Any], nn.Module]] = {
        "tag": AllWords,
        "fill": AllBlanks,
        "translate": Wrote,
        "denoise": Wrote,
    }
    return wrappers[task.name](network) if task.name in wrappers else network


def inputs(task: Task) -> Callable[[int, int], dict[str, Tensor]]:
    """Random ids of so many texts, the longest of n pieces."""

    def make(rows: int, n: int) -> dict[str, Tensor]:
        def ids(n: int) -> Tensor:
            return torch.randint(len(SPECIAL), max(len(task.tokenizer), len(SPECIAL) + 1), (rows, n))

        lengths = torch.arange(n, n - rows, -1).clamp(min=1)
        if task.name == "tag":
            words = torch.arange(n).expand(rows, n) // 2
            return {
                "source": ids(n),
                "lengths": lengths,
                "words": torch.where(torch.arange(n) < lengths[:, None], words, -1),
            }
        if task.name in ("translate", "denoise"):
            return {"source": ids(n), "given": ids(n + 2), "lengths": lengths}
        return {"source": ids(n), "lengths": lengths}

    return make


def described(task: Task) -> dict[str, str]:
    """What stands in the file's metadata."""
    return {
        "regard.task": task.name,
        "regard.labels": json.dumps(task.labels, ensure_ascii=False),
        "regard.longest": str(task.longest),
        "regard.special": json.dumps({"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK, "mask": MASK}),
        "tokenizer.json": task.tokenizer.to_json(),
    }


@torch.no_grad()
def _difference(path: Path, network: nn.Module, given: Callable[[int, int], dict[str, Tensor]]) -> float | None:
    """At a size that the network was not traced with."""
    try:
        import onnxruntime
    except ImportError:
        return None
    session = onnxruntime.InferenceSession(path)
    fed = given(3, 11)
    (found,) = session.run(None, {name: tensor.numpy() for name, tensor in fed.items()})
    expected = network(*fed.values())
    real = (
        torch.ones(expected.shape[:2], dtype=torch.bool)
        if "given" in fed
        else torch.arange(expected.shape[1]) < fed["lengths"][:, None]
    )
    return float((torch.from_numpy(found) - expected)[real if expected.ndim == 3 else ...].abs().max())
