"""The mean of the last checkpoints' weights: often better than any one of them, and free."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from regard.core.shapes import InputError
from regard.tasks import checkpoints


def mean_of(folder: Path, last: int = 0, best: bool = False) -> dict[str, Tensor]:
    """The weights of a run: the mean of its `last` checkpoints; 0: of one, the best if there is such a one."""
    if last <= 1:
        return checkpoints.load(folder, "best" if best else "last").state["model"]
    steps = list(dict.fromkeys(reversed(checkpoints.steps(folder))))[:last]  # each once, the newest first
    if not steps:
        raise InputError(f"{folder}: no checkpoint here; expected a run that has trained")
    states = (checkpoints.load(folder, step).state["model"] for step in steps)
    newest = next(states)
    sums = {name: tensor.double() for name, tensor in newest.items() if tensor.is_floating_point()}
    for state in states:
        for name in sums:
            sums[name] += state[name].double()
    # Whole numbers have no mean.
    return newest | {name: (total / len(steps)).to(newest[name].dtype) for name, total in sums.items()}
