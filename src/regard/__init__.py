"""Any attention mechanism, at fused speed, in linear memory, and you can see it."""

from __future__ import annotations

__version__ = "0.1.0"

import os
from typing import TYPE_CHECKING

from regard import masks, normalizers, scores
from regard.core.memory import OutOfMemoryError
from regard.core.shapes import (
    BackendError,
    DeviceError,
    DTypeError,
    Extent,
    InputError,
    MissingError,
    ShapeError,
)
from regard.core.statistics import Summary
from regard.database import Answer, Database
from regard.dispatch import Explanation, attention, explain
from regard.inspection import attention_summary, attention_weights
from regard.recording import Record, Records, record
from regard.sampling import Sample, sample_attention
from regard.steps import Steps, step_by_step

if TYPE_CHECKING:
    from regard.tasks.model import Trained

__all__ = [
    "Answer",
    "BackendError",
    "DTypeError",
    "Database",
    "DeviceError",
    "Explanation",
    "Extent",
    "InputError",
    "MissingError",
    "OutOfMemoryError",
    "Record",
    "Records",
    "Sample",
    "ShapeError",
    "Steps",
    "Summary",
    "attention",
    "attention_summary",
    "attention_weights",
    "explain",
    "load",
    "masks",
    "normalizers",
    "record",
    "sample_attention",
    "scores",
    "step_by_step",
]


def load(model: str | os.PathLike[str]) -> Trained:
    """A trained model, ready to answer: the name of one that is shipped, or the folder of one of your own.

    `load("en-fr")("The cat sleeps.").output` is the translation.
    """
    from regard.pretrained import load as load_

    return load_(model)
