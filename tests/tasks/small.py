"""Runs that take a second: a few lines of data, a network of a few thousand numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from regard.tasks import checkpoints, config, training
from regard.tasks.config import Run
from regard.tasks.model import Trained

LETTERS = "abcdef"
SWAPPED = "".join(f"{a} {b}\t{b} {a}\n" for a in LETTERS for b in LETTERS)  # each pair, and its mirror image


def run_of(task: str, train: Path, **keys: Any) -> Run:
    """A run with a small network; keys are written as on the command line: `optim__lr=1e-2`."""
    table: dict[str, Any] = {
        "task": task,
        "data": {"train": [str(train)], "tokenizer": "word", "tokens": 64, "longest": 16},
        "model": {"d": 16, "heads": 2, "layers": 1, "hidden": 32, "slots": 2, "latent": 8},
        "schedule": {"steps": 12, "evaluate": 6, "written": 0},
        "checkpoint": {"every": 4},
    }
    for key, value in keys.items():
        *section, name = key.split("__")
        (
            table[section[0]]
            if section and section[0] in table
            else table.setdefault(*section, {})
            if section
            else table
        )[name] = value
    return config.resolve(Run, table)


def swaps(folder: Path, **keys: Any) -> Run:
    """Two letters are translated into the same two, the other way round."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "swapped.tsv"
    path.write_text(SWAPPED)
    return run_of("translate", path, **{"data__valid": [str(path)], **keys})


def train(run: Run, folder: Path, report: Any = lambda _: None) -> Trained:
    torch.set_num_threads(1)
    return training.train(run, folder, report)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """The finished model's, as they are in the file."""
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    """To the last bit."""
    return sorted(a) == sorted(b) and all(torch.equal(a[name], b[name]) for name in a)


def apart(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> float:
    """The largest difference of two numbers."""
    assert sorted(a) == sorted(b)
    return max(float((a[name].double() - b[name].double()).abs().max()) for name in a)


def steps(folder: Path) -> list[int]:
    return checkpoints.steps(folder / training.CHECKPOINTS)
