"""From word numbers to vectors: one-hot rows, learned rows, rows that someone else trained.

The three are one thing, a row of a matrix for each word; they differ in where the matrix comes from.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.core.shapes import DTypeError, InputError, ShapeError
from regard.nn.vectors import Vectors

__all__ = ["Embedding", "OneHot", "Pretrained"]

logger = logging.getLogger(__name__)


class OneHot(nn.Module):
    """Each word a one-hot row of width vocabulary_size, times a matrix W, without ever building such a row.

    The product picks row `id` of W, so the module picks it: `module(ids)` equals `module.dense(ids) @
    module.weight`, in values and in gradients, whatever the size of the vocabulary.

    >>> module = OneHot(3, 2)
    >>> ids = torch.tensor([2, 0])
    >>> module.dense(ids)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    >>> torch.equal(module(ids), module.dense(ids) @ module.weight)
    True
    """

    def __init__(self, vocabulary_size: int, d_out: int) -> None:
        super().__init__()
        _check_sizes("OneHot", vocabulary_size=vocabulary_size, d_out=d_out)
        self.weight = nn.Parameter(torch.empty(vocabulary_size, d_out))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5)  # rows of length about 1

    def forward(self, ids: Int[Tensor, "*n"]) -> Float[Tensor, "*n d_out"]:
        return _rows("OneHot", ids, self.weight)

    def dense(self, ids: Int[Tensor, "*n"]) -> Float[Tensor, "*n vocabulary_size"]:
        """The one-hot rows themselves, for a look at a small vocabulary."""
        _check_ids("OneHot", ids, len(self.weight))
        return F.one_hot(ids.long(), len(self.weight)).to(self.weight.dtype)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"


class Embedding(nn.Module):
    """A learned vector for each word. The row of `padding_index` is zero and stays zero.

    `scaled=True` starts with rows of length about 1 and multiplies them by √d, as the first Transformer
    did: then one matrix can serve the input and the output layer.
    """

    def __init__(self, vocabulary_size: int, d: int, padding_index: int | None = None, *, scaled: bool = False) -> None:
        super().__init__()
        _check_sizes("Embedding", vocabulary_size=vocabulary_size, d=d)
        _check_padding("Embedding", padding_index, vocabulary_size)
        self.padding_index, self.scaled = padding_index, scaled
        self.weight = nn.Parameter(torch.empty(vocabulary_size, d))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5 if self.scaled else 1.0)
        if self.padding_index is not None:
            with torch.no_grad():
                self.weight[self.padding_index] = 0

    def forward(self, ids: Int[Tensor, "*n"]) -> Float[Tensor, "*n d"]:
        rows = _rows("Embedding", ids, self.weight, self.padding_index)
        return rows * math.sqrt(self.weight.shape[1]) if self.scaled else rows

    def extra_repr(self) -> str:
        return (
            f"{self.weight.shape[0]}, {self.weight.shape[1]}, padding_index={self.padding_index}, scaled={self.scaled}"
        )


class Pretrained(nn.Module):
    """Vectors that someone else trained: row i is the vector of word i. `frozen=False` trains them on."""

    def __init__(
        self, vectors: Float[Tensor, "vocabulary_size d"], frozen: bool = True, padding_index: int | None = None
    ) -> None:
        super().__init__()
        if vectors.ndim != 2 or not vectors.is_floating_point():
            raise ShapeError(
                f"Pretrained: vectors is {vectors.dtype} of shape {tuple(vectors.shape)}; expected floating numbers "
                f"[vocabulary_size, d], the word of id i in row i; try Pretrained.from_vectors(vocabulary, vectors)"
            )
        _check_padding("Pretrained", padding_index, len(vectors))
        self.padding_index = padding_index
        # A copy: training must not change the vectors that were given.
        self.weight = nn.Parameter(vectors.detach().clone(), requires_grad=not frozen)

    @classmethod
    def from_vectors(
        cls,
        vocabulary: Sequence[str],
        vectors: Vectors,
        frozen: bool = True,
        *,
        unknown: Literal["zeros", "normal"] = "zeros",
        padding_index: int | None = None,
    ) -> Pretrained:
        """Row i is the vector of `vocabulary[i]`; a word that `vectors` lacks is logged and gets zeros, or,
        with unknown="normal", a random row with the mean and spread of those that are known.

        >>> vectors = Vectors(["cat", "dog"], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> Pretrained.from_vectors(["<pad>", "dog"], vectors).weight
        Parameter containing:
        tensor([[0., 0.],
                [3., 4.]])
        """
        if unknown not in ("zeros", "normal"):
            raise InputError(f"Pretrained: unknown={unknown!r}; expected 'zeros' or 'normal'")
        if isinstance(vocabulary, str):
            raise InputError(f"Pretrained: vocabulary is the text {vocabulary!r}; expected a list of words")
        known = [i for i, word in enumerate(vocabulary) if word in vectors]
        table = vectors.tensor.new_zeros(len(vocabulary), vectors.tensor.shape[1])
        if known:
            found = vectors.tensor[[vectors.row(vocabulary[i]) for i in known]]
            if unknown == "normal":
                spread = found.std(0, correction=0)
                table = torch.randn_like(table) * spread + found.mean(0)
            table[known] = found
        if padding_index is not None:
            _check_padding("Pretrained", padding_index, len(vocabulary))
            table[padding_index] = 0
        if len(known) < len(vocabulary):
            count = len(vocabulary) - len(known)
            logger.warning("%d of %d words have no vector: unknown=%r", count, len(vocabulary), unknown)
        return cls(table, frozen, padding_index)

    def forward(self, ids: Int[Tensor, "*n"]) -> Float[Tensor, "*n d"]:
        return _rows("Pretrained", ids, self.weight, self.padding_index)

    def extra_repr(self) -> str:
        frozen = not self.weight.requires_grad
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}, frozen={frozen}, padding_index={self.padding_index}"


def _rows(
    who: str, ids: Int[Tensor, "*n"], table: Float[Tensor, "v d"], padding: int | None = None
) -> Float[Tensor, "*n d"]:
    _check_ids(who, ids, len(table))
    return F.embedding(ids.long(), table, padding_idx=padding)


def _check_ids(who: str, ids: Tensor, vocabulary_size: int) -> None:
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise DTypeError(f"{who}: ids are {ids.dtype}; expected whole numbers, one for each word; try ids.long()")
    # On a GPU a look at the numbers would make it wait; there the lookup itself stops at a wrong one.
    if ids.device.type == "cpu" and ids.numel() and not torch.compiler.is_compiling():
        low, high = (int(x) for x in ids.aminmax())
        if low < 0 or high >= vocabulary_size:
            raise InputError(
                f"{who}: id {low if low < 0 else high} is not in the vocabulary; expected 0 to {vocabulary_size - 1}, "
                f"vocabulary_size={vocabulary_size}; is this the tokenizer that the model was made for?"
            )


def _check_sizes(who: str, **sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"{who}: {name}={size}; expected 1 or more")


def _check_padding(who: str, padding_index: int | None, vocabulary_size: int) -> None:
    if padding_index is not None and not 0 <= padding_index < vocabulary_size:
        raise InputError(f"{who}: padding_index={padding_index}; expected None, or 0 to {vocabulary_size - 1}")
