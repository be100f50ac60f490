"""The sentence that every mechanism of the gallery is shown on, and a vector for each of its words, made by hand so
that anybody can see why two words are alike."""

from __future__ import annotations

from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from regard.nn.vectors import read_vectors

TEXT = "When he saw his owner, the dog was happy, so he wagged his tail"
WORDS = TEXT.replace(",", "").split()
MEANINGS = ("person", "animal", "body", "act", "feeling", "refers back", "binds", "joy")
VECTORS = read_vectors(Path(__file__).parents[1] / "examples" / "sentence.glove.txt")


def vectors() -> Float[Tensor, "14 8"]:
    return VECTORS.tensor[[VECTORS.row(word) for word in WORDS]]
