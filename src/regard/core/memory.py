"""Memory that runs out is one error, by type, on every device. On a GPU torch has torch.OutOfMemoryError; on the CPU it
raises a bare RuntimeError, and numpy a MemoryError: both become a torch.OutOfMemoryError here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

FEWER = "take fewer at a time"


class OutOfMemoryError(torch.OutOfMemoryError, MemoryError):
    """There is not enough memory for a call; nothing was changed, and a smaller call works."""


@contextmanager
def typed_out_of_memory(query: Tensor, key: Tensor, cure: str) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        lacking = re.search(r"(can't allocate|not enough) memory: you tried to allocate (\d+)", str(error))
        if (lacking is None and not isinstance(error, MemoryError)) or isinstance(error, OutOfMemoryError):
            raise
        size = f": {int(lacking[2]):,} bytes more were asked for" if lacking else ""
        raise OutOfMemoryError(
            f"not enough memory for {_axes(query)} queries and {_axes(key)} keys{size}; {cure}"
        ) from error


def _axes(x: Tensor) -> str:
    return " x ".join(f"{size:,}" for size in x.shape[:-1])
