"""Where a word stands: encodings added to the input (sinusoidal, learned) or turned into q and k (rotary).

ALiBi adds to the scores instead, so it is a part of the score: `ScaledDot() + regard.scores.Alibi(heads)`.

All take `offset`, the position of the first row: how many rows a cache already holds, one number or one
per sequence. A tensor of offsets or `positions` lines up with the leading axes from the left, as lengths
do: (B,) serves (B, heads, n, d).
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.core.shapes import DTypeError, Extent, InputError, ShapeError, wide

__all__ = ["Learned", "Rotary", "Sinusoidal"]


class Sinusoidal(nn.Module):
    """x + P with P[i, 2m] = sin(i / base^(2m/d)), P[i, 2m+1] = cos(i / base^(2m/d)), for any length.

    >>> Sinusoidal(2)(torch.zeros(3, 2))  # d = 2: sin(i), cos(i)
    tensor([[ 0.0000,  1.0000],
            [ 0.8415,  0.5403],
            [ 0.9093, -0.4161]])
    """

    def __init__(self, d: int, base: float = 10000.0) -> None:
        super().__init__()
        _check_sizes("Sinusoidal", d=d, base=base)
        self.d, self.base = d, base

    def forward(
        self,
        x: Float[Tensor, "*batch n d"],
        offset: int | Int[Tensor, "*lead"] = 0,
        positions: Int[Tensor, "*lead n"] | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        _check_width("Sinusoidal", "x", x, self.d)
        at = _positions("Sinusoidal", x, offset, positions)
        angle = _angles(at, self.d, self.base)  # *lead n ⌈d/2⌉
        encoding = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)[..., : self.d]
        return (wide(x) + encoding.to(wide(x).dtype)).to(x.dtype)

    def extra_repr(self) -> str:
        return f"d={self.d}, base={self.base:g}"


class Learned(nn.Module):
    """x + P with a learned row P[i] for each of n_max positions; there is none for longer inputs."""

    def __init__(self, n_max: int, d: int) -> None:
        super().__init__()
        _check_sizes("Learned", n_max=n_max, d=d)
        self.n_max, self.d = n_max, d
        self.weight = nn.Parameter(torch.empty(n_max, d))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.02)

    def forward(
        self,
        x: Float[Tensor, "*batch n d"],
        offset: int | Int[Tensor, "*lead"] = 0,
        positions: Int[Tensor, "*lead n"] | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        _check_width("Learned", "x", x, self.d)
        at = _positions("Learned", x, offset, positions)
        if positions is None and isinstance(offset, int):
            self._check_reach(offset, offset + x.shape[-2])
        elif at.device.type == "cpu" and at.numel() and not torch.compiler.is_compiling():
            self._check_reach(0, int(at.max()) + 1)  # elsewhere a look would make the device wait
        # Before the first position there is only the padding on the left, whose encoding never matters.
        encoding = F.embedding(at.clamp(min=0), self.weight)
        return (x + encoding).to(x.dtype)

    def _check_reach(self, first: int, end: int) -> None:
        if first < 0:
            raise InputError(f"Learned: offset={first}; expected 0 or more")
        if end > self.n_max:
            raise ShapeError(
                f"Learned: the input reaches position {end - 1}, the last of n_max={self.n_max} is {self.n_max - 1}; "
                f"cut the input, make Learned(n_max={end}, d={self.d}), or use Sinusoidal or Rotary, which have no end"
            )

    def extra_repr(self) -> str:
        return f"n_max={self.n_max}, d={self.d}"


class Rotary(nn.Module):
    """Turns each pair of numbers (a, b) of q and k by the angle i / base^(2m/d), where i is the position and
    m the pair, so that q_i · k_j depends on i - j only.

    layout="interleaved" pairs the numbers (0, 1), (2, 3), ...; "split" pairs (0, d/2), (1, d/2 + 1), ...:
    weights trained with one are wrong with the other. `rotated=r` turns the first r numbers only.

    >>> rotary = Rotary(2)
    >>> q, k = rotary(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    >>> q @ k.mT  # cos(i - j)
    tensor([[1.0000, 0.5403],
            [0.5403, 1.0000]])
    """

    def __init__(
        self,
        d: int,
        base: float = 10000.0,
        layout: Literal["interleaved", "split"] = "interleaved",
        rotated: int | None = None,
    ) -> None:
        super().__init__()
        _check_sizes("Rotary", d=d, base=base)
        rotated = d if rotated is None else rotated
        if layout not in ("interleaved", "split"):
            raise InputError(f"Rotary: layout={layout!r}; expected 'interleaved' or 'split'")
        if rotated % 2 or not 0 < rotated <= d:
            raise InputError(
                f"Rotary: {rotated} of d={d} numbers cannot be turned in pairs; expected an even number from 2 to d, "
                f"such as rotated={max(2, min(rotated, d) // 2 * 2)}"
            )
        self.d, self.base, self.layout, self.rotated = d, base, layout, rotated

    def forward(
        self,
        query: Float[Tensor, "*batch n d"],
        key: Float[Tensor, "*batch_k n d"],
        offset: int | Int[Tensor, "*lead"] = 0,
        positions: Int[Tensor, "*lead n"] | None = None,
    ) -> tuple[Float[Tensor, "*batch n d"], Float[Tensor, "*batch_k n d"]]:
        _check_width("Rotary", "query", query, self.d)
        _check_width("Rotary", "key", key, self.d)
        n_q, n_k = query.shape[-2], key.shape[-2]
        if n_q != n_k:
            raise ShapeError(
                f"Rotary: n_q={n_q}, n_k={n_k}: one offset cannot serve both; turn keys before they enter the cache, "
                f"or turn each by itself: rotary.rotate(query, offset), rotary.rotate(key)"
            )
        return self.rotate(query, offset, positions), self.rotate(key, offset, positions)

    def rotate(
        self,
        x: Float[Tensor, "*batch n d"],
        offset: int | Int[Tensor, "*lead"] = 0,
        positions: Int[Tensor, "*lead n"] | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        """Queries or keys alone, turned by their positions; in float32 at least, given back in x's type."""
        _check_width("Rotary", "x", x, self.d)
        turned, rest = wide(x[..., : self.rotated]), x[..., self.rotated :]
        angle = _angles(_positions("Rotary", x, offset, positions), self.rotated, self.base)  # *lead n r/2
        cos, sin = angle.cos().to(turned.dtype), angle.sin().to(turned.dtype)
        if self.layout == "interleaved":
            a, b = turned.unflatten(-1, (-1, 2)).unbind(-1)  # *batch n r/2, twice
            turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
        else:
            a, b = turned.chunk(2, dim=-1)
            turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
        return torch.cat((turned.to(x.dtype), rest), dim=-1)

    def extra_repr(self) -> str:
        return f"d={self.d}, base={self.base:g}, layout={self.layout!r}, rotated={self.rotated}"


def _angles(positions: Int[Tensor, "*lead n"], d: int, base: float) -> Float[Tensor, "*lead n half"]:
    """i / base^(2m/d). In float32 the angle at position 100,000 is wrong by up to 0.004, and with it every
    distance: so float64, except where Apple's GPUs have none."""
    dtype = torch.float32 if positions.device.type == "mps" else torch.float64
    exponent = torch.arange(0, d, 2, device=positions.device, dtype=dtype) / d
    return positions[..., None].to(dtype) * base**-exponent


def _positions(who: str, x: Tensor, offset: int | Tensor, positions: Tensor | None) -> Int[Tensor, "*lead n"]:
    """The position of each row of x."""
    n = x.shape[-2]
    extent = Extent(tuple(x.shape[:-2]), n, n, x.device)
    if positions is not None:
        if isinstance(offset, Tensor) or offset != 0:
            raise InputError(f"{who}: both offset and positions are given; expected one; add the offset to positions")
        _check_whole(who, "positions", positions)
        if positions.ndim == 0 or positions.shape[-1] != n:
            raise ShapeError(
                f"{who}: positions has shape {tuple(positions.shape)}, the input has n={n}; expected [*batch, {n}]"
            )
        return extent.left_aligned(positions, 1, who, "positions")
    if isinstance(offset, Tensor):
        _check_whole(who, "offset", offset)
        lead = extent.left_aligned(offset, 0, who, "offset")
        return lead[..., None] + torch.arange(n, device=x.device)
    return torch.arange(offset, offset + n, device=x.device)


def _check_sizes(who: str, **sizes: float) -> None:
    for name, size in sizes.items():
        if name == "base" and size <= 0:
            raise InputError(f"{who}: base={size}; expected more than 0")
        if name != "base" and size < 1:
            raise InputError(f"{who}: {name}={size}; expected 1 or more")


def _check_width(who: str, name: str, x: Tensor, d: int) -> None:
    if x.ndim < 2 or x.shape[-1] != d:
        raise ShapeError(f"{name} has shape {tuple(x.shape)}, {who} was made for [*batch n d] with d={d}")
    if not x.is_floating_point():
        raise DTypeError(f"{name} is {x.dtype}; {who} expects a floating type; try {name}.float()")


def _check_whole(who: str, name: str, x: Tensor) -> None:
    if x.is_floating_point() or x.dtype == torch.bool:
        raise DTypeError(f"{who}: {name} is {x.dtype}; expected whole numbers; try {name}.long()")
