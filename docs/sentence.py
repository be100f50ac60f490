"""The sentence that every mechanism of the gallery is shown on, and a vector for each of its words, made by hand so
that anybody can see why two words are alike."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

TEXT = "When he saw his owner, the dog was happy, so he wagged his tail"
WORDS = TEXT.replace(",", "").split()
MEANINGS = ("person", "animal", "body", "act", "feeling", "refers back", "binds", "joy")
VECTORS = {
    "When": (0.0, 0.0, 0.0, 0.2, 0.0, 0.0, 1.0, 0.0),
    "he": (0.2, 0.8, 0.0, 0.0, 0.1, 0.9, 0.0, 0.0),
    "saw": (0.1, 0.1, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0),
    "his": (0.1, 0.6, 0.2, 0.0, 0.0, 1.0, 0.0, 0.0),
    "owner": (1.0, 0.3, 0.0, 0.1, 0.0, 0.0, 0.0, 0.2),
    "the": (0.0, 0.1, 0.0, 0.0, 0.0, 0.2, 0.5, 0.0),
    "dog": (0.1, 1.2, 0.2, 0.0, 0.2, 0.0, 0.0, 0.3),
    "was": (0.0, 0.0, 0.0, 0.5, 0.3, 0.0, 0.3, 0.0),
    "happy": (0.1, 0.2, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0),
    "so": (0.0, 0.0, 0.0, 0.0, 0.1, 0.1, 1.0, 0.1),
    "wagged": (0.0, 0.5, 0.6, 0.9, 0.2, 0.0, 0.0, 0.6),
    "tail": (0.0, 0.7, 1.0, 0.0, 0.0, 0.0, 0.0, 0.3),
}


def vectors() -> Float[Tensor, "14 8"]:
    """Twice as long as in the table, so that weights differ well under softmax."""
    return 2 * torch.tensor([VECTORS[word] for word in WORDS])
