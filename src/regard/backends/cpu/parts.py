"""Which parts the kernels know, by number; imports neither numba nor a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.backends.cpu import codes
from regard.core.biases import Alibi, Bias, DenseBias, RelativeBias
from regard.core.formula import Call
from regard.core.normalizers import Entmax, GumbelHard, Hard, Identity, Normalizer, ReLU, Sigmoid, Softmax, Sparsemax
from regard.core.scores import (
    Additive,
    Biased,
    Bilinear,
    Dot,
    Exact,
    Gated,
    Gaussian,
    ScaledDot,
    Score,
    SoftCap,
    TanhSum,
)
from regard.core.shapes import Extent, Tile, wide

CONTENTS: dict[type[Score], int] = {
    Dot: codes.DOT,
    ScaledDot: codes.DOT,
    Bilinear: codes.DOT,
    Gated: codes.GATED,
    TanhSum: codes.TANH,
    Additive: codes.TANH,
    Gaussian: codes.GAUSSIAN,
    Exact: codes.EXACT,
}
NORMALIZERS: dict[type[Normalizer], int] = {
    Softmax: codes.SOFTMAX,
    Identity: codes.IDENTITY,
    ReLU: codes.RELU,
    Sigmoid: codes.SIGMOID,
    Sparsemax: codes.ENTMAX,
    Entmax: codes.ENTMAX,
    Hard: codes.HARD,
    GumbelHard: codes.GUMBEL,
}


@dataclass
class Parts:
    """A score, taken apart: what is between query and key, the biases added to it, a cap around all."""

    content: Score
    biases: list[Bias] = field(default_factory=list)
    cap: float = 0.0  # 0: none

    @property
    def code(self) -> int:
        return CONTENTS[type(self.content)]

    def project(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, float]:
        """What is computed once per token, and a number by which the kernels multiply what a pair gives."""
        if isinstance(self.content, ScaledDot):  # they scale queries while reading them
            return wide(query), wide(key), self.content.factor(key.shape[-1])
        factor = -0.5 / self.content.sigma**2 if isinstance(self.content, Gaussian) else 1.0
        return *self.content.project(query, key), factor


def take_apart(score: Score) -> Parts | str:
    """The parts, or the name of the one that no kernel knows."""
    cap, biases = 0.0, []
    if type(score) is SoftCap:
        cap, score = score.cap, score.score
    while type(score) is Biased:
        if type(score.bias) not in (Alibi, RelativeBias, DenseBias):
            return type(score.bias).__name__
        biases.append(score.bias)
        score = score.score
    if type(score) is SoftCap:
        return "SoftCap inside another part"
    return Parts(score, biases, cap) if type(score) in CONTENTS else type(score).__name__


def normalizer_code(call: Call) -> tuple[int, float]:
    """Its number, and the one number it was made with."""
    normalizer = call.normalizer
    code, number = NORMALIZERS[type(normalizer)], 0.0
    if isinstance(normalizer, Sigmoid):
        number = normalizer.bias
    elif isinstance(normalizer, Entmax):
        number = normalizer.alpha
    elif isinstance(normalizer, GumbelHard):
        if not normalizer.training or call.seed is None:
            return codes.HARD, 0.0
        number = normalizer.temperature
    return code, number


WIDEST = 256


def tile_columns(content: int, itemsize: int, n_k: int, lanes: int) -> int:
    """Columns of a tile: 256 bytes for matrix products; more where sums are kept along it; not much more than keys."""
    columns = (WIDEST if content in (codes.TANH, codes.GAUSSIAN) else 64) * 4 // itemsize
    return min(columns, -(-n_k // lanes) * lanes)


def line_of(biases: list[Bias], extent: Extent) -> Tensor | None:
    """The biases that depend on the distance j - i only: their sum for each distance from -(n_q - 1) on, up to
    the end of the last tile."""
    some = [bias for bias in biases if not isinstance(bias, DenseBias)]
    if not some:
        return None
    span = (extent.n_k + WIDEST - 1) // WIDEST * WIDEST
    distance = torch.arange(extent.n_q + span, device=extent.device) - (extent.n_q - 1)
    seen_from_0 = Tile(extent, torch.zeros(1, dtype=torch.long, device=extent.device), distance)
    total = some[0](seen_from_0)
    for bias in some[1:]:
        total = total + bias(seen_from_0)
    return total[..., 0, :]


def table_of(biases: list[Bias], extent: Extent) -> Tensor | None:
    """The biases that are written out; one row serves for all queries where it is the same."""
    tables = [bias.table for bias in biases if isinstance(bias, DenseBias)]
    if not tables:
        return None
    total = tables[0]
    for table in tables[1:]:
        total = total + table
    return total.expand(*total.shape[:-1], extent.n_k)
