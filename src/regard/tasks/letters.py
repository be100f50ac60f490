"""How a word is spelled, as numbers: its bytes in UTF-8, so that no script needs an alphabet of its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

LETTERS = 256
MOST = 48  # bytes of a word; of a longer one the first and the last


def spelled(word: str) -> tuple[int, ...]:
    """Numbers from 1; 0 is for pads.

    >>> spelled("né")
    (111, 196, 170)
    """
    raw = word.encode("utf-8", "replace")
    raw = raw if len(raw) <= MOST else raw[: MOST // 2] + raw[-MOST // 2 :]
    return tuple(byte + 1 for byte in raw)


def side_by_side(rows: Sequence[Sequence[Sequence[int]]]) -> Int[Tensor, "B n c"]:
    """The letters of the words of several sentences, with zeros behind."""
    n = max(map(len, rows), default=0)
    c = max((len(word) for row in rows for word in row), default=0)
    flat = [[*word, *[0] * (c - len(word))] for row in rows for word in (*row, *[()] * (n - len(row)))]
    return torch.tensor(flat, dtype=torch.long).reshape(len(rows), n, c)
