"""The public names of `regard.core.scores` and `biases`: s(q, k), and what may be added to it."""

from regard.core.biases import Alibi, Bias, RelativeBias
from regard.core.scores import (
    Additive,
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

__all__ = [
    "Additive",
    "Alibi",
    "Bias",
    "Bilinear",
    "Dot",
    "Exact",
    "Gated",
    "Gaussian",
    "RelativeBias",
    "ScaledDot",
    "Score",
    "SoftCap",
    "TanhSum",
]
