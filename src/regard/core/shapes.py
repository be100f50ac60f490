"""The axis legend of the whole library, the errors that name those axes, and which pairs a tile holds.

*batch   any leading axes, heads last among them
n_q n_k  queries and keys;  d_q d_k d_v  their widths and the values'
r c      the rows (queries) and columns (keys) of one tile
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

Align = str | int | None  # where query 0 stands among the keys: "start", "end", at key k, or not said


class InputError(ValueError):
    """A call that cannot be answered: says what came, what was expected, and the cure."""


class ShapeError(InputError):
    """Two axes that should agree and do not."""


class DTypeError(InputError, TypeError):
    """A tensor of the wrong kind of number."""


class DeviceError(InputError):
    """Tensors that live on different devices."""


class BackendError(InputError):
    """The backend that was asked for by name cannot do this; it never falls back in silence."""


class MissingError(InputError, ImportError):
    """An optional package that this feature needs and that is not installed."""


def real(who: str, name: str, value: Any, above: float | None = None) -> float:
    """A finite or infinite number, not a text or a tensor; or an error that says what came."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DTypeError(f"{who}: {name}={value!r} is {type(value).__name__}; expected a number")
    if above is not None and not value > above:
        raise InputError(f"{who}: {name}={value}; expected more than {above:g}")
    return float(value)


def sizes(who: str, **values: Any) -> None:
    """Widths and counts are whole numbers; 0 is one, with a defined result."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InputError(f"{who}: {name}={value!r}; expected a whole number, 0 or more")


@dataclass(frozen=True)
class Extent:
    """The whole problem: its leading axes, its numbers of queries and keys, and where it lives."""

    batch: tuple[int, ...]
    n_q: int
    n_k: int
    device: torch.device

    def tile(self, rows: Int[Tensor, " r"] | None = None, cols: Int[Tensor, " c"] | None = None) -> Tile:
        rows = torch.arange(self.n_q, device=self.device) if rows is None else rows
        cols = torch.arange(self.n_k, device=self.device) if cols is None else cols
        return Tile(self, rows, cols)

    def offset(self, align: str | int | None, who: str) -> int:
        """Where query 0 stands among the keys. Guessing it wrong is silent, so n_q != n_k must say."""
        if isinstance(align, int):
            return align
        if align == "start":
            return 0
        if align == "end":
            return self.n_k - self.n_q
        if align is not None:
            raise InputError(f"{who}: align={align!r} is not 'start', 'end' or a whole number")
        if self.n_q != self.n_k:
            raise ShapeError(
                f"{who}: n_q={self.n_q}, n_k={self.n_k}: which key does query 0 stand at? "
                f"align='start' (at key 0), align='end' (the last query at the last key, as when "
                f"decoding with a cache), or align=k"
            )
        return 0

    def left_aligned(self, tensor: Tensor, trailing: int, who: str, axis: str) -> Tensor:
        """Line a tensor's leading axes up with the batch from the left: lengths (B,) serve (B, heads)."""
        lead = tensor.shape[: tensor.ndim - trailing]
        if len(lead) > len(self.batch):
            raise ShapeError(
                f"{who}: {axis} has leading axes {tuple(lead)}, the attention has {self.batch}; "
                f"they line up from the left, so {axis} may have at most {len(self.batch)} of them"
            )
        for place, (size, expected) in enumerate(zip(lead, self.batch, strict=False)):
            if size != 1 and size != expected:
                raise ShapeError(
                    f"{who}: axis {place} of {axis} has size {size}, the attention has {expected} "
                    f"there (leading axes {self.batch}); expected {expected} or 1"
                )
        missing = len(self.batch) - len(lead)
        return tensor.reshape(*lead, *([1] * missing), *tensor.shape[len(lead) :])


@dataclass(frozen=True)
class Tile:
    """Some pairs of the problem: every query position in `rows` with every key position in `cols`."""

    extent: Extent
    rows: Int[Tensor, " r"]
    cols: Int[Tensor, " c"]

    @property
    def i(self) -> Int[Tensor, "r 1"]:
        return self.rows[:, None]

    @property
    def j(self) -> Int[Tensor, "1 c"]:
        return self.cols[None, :]


@dataclass(frozen=True)
class Spans:
    """Rectangles of pairs, one per (row span, column span): first and last position, inclusive."""

    extent: Extent
    i_first: Int[Tensor, "R 1"]
    i_last: Int[Tensor, "R 1"]
    j_first: Int[Tensor, "1 C"]
    j_last: Int[Tensor, "1 C"]
    block: tuple[int, int] | None = None  # their size, where they are all blocks of the problem, in order

    @staticmethod
    def of_blocks(extent: Extent, block_q: int, block_k: int) -> Spans:
        i = torch.arange(0, extent.n_q, block_q, device=extent.device)[:, None]
        j = torch.arange(0, extent.n_k, block_k, device=extent.device)[None, :]
        i_last, j_last = (i + block_q).clamp(max=extent.n_q) - 1, (j + block_k).clamp(max=extent.n_k) - 1
        return Spans(extent, i, i_last, j, j_last, (block_q, block_k))


def wide(x: Tensor) -> Tensor:
    """The same numbers in the precision we compute in: float32 for the half types, else unchanged."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def repeat_heads(x: Float[Tensor, "*batch h_k n d"], heads: int) -> Float[Tensor, "*batch heads n d"]:
    """Grouped queries: each key head serves heads / h_k query heads that stand side by side."""
    return x if x.ndim < 3 or x.shape[-3] in (1, heads) else x.repeat_interleave(heads // x.shape[-3], dim=-3)


def common_batch(**tensors: Tensor) -> tuple[int, ...]:
    """The leading axes that the named tensors broadcast to."""
    batches = {name: tuple(t.shape[:-2]) for name, t in tensors.items()}
    first, *others = batches.values()
    if all(other == first for other in others):  # torch takes ten times as long to say so
        return first
    try:
        return tuple(torch.broadcast_shapes(*batches.values()))
    except RuntimeError:
        listed = ", ".join(f"{name} {batch}" for name, batch in batches.items())
        raise ShapeError(
            f"leading axes do not broadcast: {listed}; every pair of sizes must be equal or 1 "
            f"(only the heads of key and value may divide those of query)"
        ) from None


def pairs(extent: Extent) -> int:
    return prod(extent.batch) * extent.n_q * extent.n_k
