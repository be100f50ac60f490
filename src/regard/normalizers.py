"""The public names of `regard.core.normalizers`: from one query's scores to its weights."""

from regard.core.normalizers import (
    Entmax,
    GumbelHard,
    Hard,
    Identity,
    Normalizer,
    ReLU,
    Sigmoid,
    Softmax,
    Sparsemax,
)

__all__ = [
    "Entmax",
    "GumbelHard",
    "Hard",
    "Identity",
    "Normalizer",
    "ReLU",
    "Sigmoid",
    "Softmax",
    "Sparsemax",
]
