"""Terms added to a score that depend on where query and key stand, not on what they hold."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.parts import Part, described
from regard.core.shapes import Align, Extent, InputError, ShapeError, Tile

__all__ = ["Alibi", "Bias", "RelativeBias"]


class Bias(nn.Module, Part):
    """Base of all biases: `forward(tile)` gives the terms of one tile."""

    heads: int | None = None

    def forward(self, tile: Tile) -> Float[Tensor, "*batch r c"]:
        raise NotImplementedError(f"{type(self).__name__} must give the bias of a tile")

    def extra_repr(self) -> str:
        return described(self)

    def check(self, extent: Extent) -> None:
        """Raise if this bias cannot serve a problem of this extent."""


class Alibi(Bias):
    """-slope_h · |i - j|: nearer keys count more, in each head at its own rate 2^(-8(h+1)/heads)."""

    fields = ("slopes", "align")
    slopes: Tensor

    def __init__(self, heads: int, align: Align = None) -> None:
        super().__init__()
        if heads < 1:
            raise InputError(f"Alibi: heads={heads}; expected 1 or more")
        self.heads, self.align = heads, align
        slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
        self.register_buffer("slopes", slopes[:, None, None], persistent=False)

    def forward(self, tile: Tile) -> Float[Tensor, "heads r c"]:
        distance = (tile.i + tile.extent.offset(self.align, "Alibi") - tile.j).abs()
        return -self.slopes * distance

    def check(self, extent: Extent) -> None:
        extent.offset(self.align, "Alibi")


class RelativeBias(Bias):
    """A learned number for each distance j - i, per head; beyond `reach` on either side the last one."""

    fields = ("table", "align")

    def __init__(self, heads: int, reach: int, align: Align = None) -> None:
        super().__init__()
        if reach < 0:
            raise InputError(f"RelativeBias: reach={reach}; expected 0 or more")
        self.heads, self.align = heads, align
        self.table = nn.Parameter(torch.randn(heads, 2 * reach + 1) * 0.02)

    def forward(self, tile: Tile) -> Float[Tensor, "heads r c"]:
        reach = self.table.shape[-1] // 2
        distance = tile.j - tile.i - tile.extent.offset(self.align, "RelativeBias")
        return self.table[:, distance.clamp(-reach, reach) + reach]

    def check(self, extent: Extent) -> None:
        extent.offset(self.align, "RelativeBias")


class DenseBias(Bias):
    """Any float tensor that broadcasts to the scores; this one costs its own n_q x n_k."""

    fields = ("table",)

    def __init__(self, table: Float[Tensor, "*batch n_q n_k"]) -> None:
        super().__init__()
        self.table = table

    def forward(self, tile: Tile) -> Float[Tensor, "*batch r c"]:
        extent = tile.extent
        return self.table.expand(*self.table.shape[:-2], extent.n_q, extent.n_k)[..., tile.i, tile.j]

    def check(self, extent: Extent) -> None:
        shape, expected = tuple(self.table.shape), (*extent.batch, extent.n_q, extent.n_k)
        try:
            fits = torch.broadcast_shapes(shape, expected) == torch.Size(expected)
        except RuntimeError:
            fits = False
        if not fits:
            raise ShapeError(
                f"the bias has shape {shape}, the scores have {expected} (batch, heads, n_q, n_k); "
                f"each of its axes must be equal or 1"
            )
