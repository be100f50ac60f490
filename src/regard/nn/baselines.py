"""What self-attention replaces: two fully connected layers that let words see each other.

Both map (*batch, n, d) to (*batch, n, d_out), as self-attention does; their sizes tell why it won.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.core.shapes import InputError, ShapeError


class FullyConnectedWindow(nn.Module):
    """One fully connected layer for all positions: it sees the word, `left` words before it and `right`
    after it; beyond the ends of the sequence there are zeros."""

    def __init__(self, d: int, d_out: int, left: int, right: int) -> None:
        super().__init__()
        _check_sizes("FullyConnectedWindow", least=1, d=d, d_out=d_out)
        _check_sizes("FullyConnectedWindow", least=0, left=left, right=right)
        self.d, self.left, self.right = d, left, right
        self.linear = nn.Linear((left + 1 + right) * d, d_out)

    def forward(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d_out"]:
        _check_width(self, x)
        n = x.shape[-2]
        padded = F.pad(x, (0, 0, self.left, self.right))  # *batch left+n+right d
        shifts = range(self.left + 1 + self.right)
        neighbours = torch.cat([padded[..., s : s + n, :] for s in shifts], dim=-1)  # *batch n window·d
        return self.linear(neighbours)


class FullyConnectedSequence(nn.Module):
    """One fully connected layer over the longest sequence there may be: n_max·d numbers in, n_max·d_out
    out. Shorter sequences are padded with zeros."""

    def __init__(self, d: int, d_out: int, n_max: int) -> None:
        super().__init__()
        _check_sizes("FullyConnectedSequence", least=1, d=d, d_out=d_out, n_max=n_max)
        self.d, self.d_out, self.n_max = d, d_out, n_max
        self.linear = nn.Linear(n_max * d, n_max * d_out)

    def forward(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d_out"]:
        _check_width(self, x)
        n = x.shape[-2]
        if n > self.n_max:
            raise ShapeError(
                f"x has n={n}, FullyConnectedSequence was made for at most n_max={self.n_max}; "
                f"cut x, or make a new layer with n_max={n}"
            )
        padded = F.pad(x, (0, 0, 0, self.n_max - n))  # *batch n_max d
        out = self.linear(padded.flatten(-2))  # *batch n_max·d_out
        return out.unflatten(-1, (self.n_max, self.d_out))[..., :n, :]


def parameter_counts(d: int, d_out: int, n_max: int, left: int, right: int) -> dict[str, int]:
    """Parameters of both layers, and of self-attention's W_q, W_k and W_v, counted in the real modules.

    The window's grow with the window, the whole sequence's with n_max squared, self-attention's with neither.

    >>> parameter_counts(d=4, d_out=4, n_max=10, left=1, right=1)
    {'window': 52, 'sequence': 1640, 'self-attention': 48}
    >>> parameter_counts(d=4, d_out=4, n_max=1000, left=5, right=5)
    {'window': 180, 'sequence': 16004000, 'self-attention': 48}
    """
    with torch.device("meta"):  # shapes without memory: the whole sequence's weights may need terabytes
        modules = {
            "window": FullyConnectedWindow(d, d_out, left, right),
            "sequence": FullyConnectedSequence(d, d_out, n_max),
            "self-attention": nn.ModuleList(nn.Linear(d, d_out, bias=False) for _ in ("W_q", "W_k", "W_v")),
        }
    return {name: sum(p.numel() for p in module.parameters()) for name, module in modules.items()}


def _check_sizes(who: str, least: int, **sizes: int) -> None:
    for name, size in sizes.items():
        if size < least:
            raise InputError(f"{who}: {name}={size}; expected {least} or more")


def _check_width(layer: FullyConnectedWindow | FullyConnectedSequence, x: Tensor) -> None:
    if x.ndim < 2 or x.shape[-1] != layer.d:
        raise ShapeError(
            f"x has shape {tuple(x.shape)}, {type(layer).__name__} was made for [*batch n d] with d={layer.d}"
        )
