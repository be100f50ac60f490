"""The one table of mechanisms: it drives values, gradients, agreement of backends, `regard ls` and the docs.

A new score is one class in regard.core.scores and one row here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard import masks as M
from regard import normalizers as N
from regard import scores as S
from regard.masks import Mask
from regard.normalizers import Normalizer

D, HEADS = 4, 2  # what the rows below are made for: queries and keys (..., HEADS, n, D)


@dataclass(frozen=True)
class Row:
    """One mechanism: its name and how to make it."""

    name: str
    make: Callable[[], object]

    def __str__(self) -> str:
        return self.name


def laplace(query: Tensor, key: Tensor) -> Tensor:
    """A score of one's own, as a plain function."""
    return -(query[..., :, None, :] - key[..., None, :, :]).abs().sum(-1)


SCORES = [
    Row("dot", S.Dot),
    Row("scaled dot", S.ScaledDot),
    Row("scaled dot, own scale", lambda: S.ScaledDot(0.3)),
    Row("tanh sum", lambda: S.TanhSum(D)),
    Row("additive", lambda: S.Additive(D, D, 5)),
    Row("additive, per head", lambda: S.Additive(D, D, 5, heads=HEADS)),
    Row("bilinear", lambda: S.Bilinear(D, D)),
    Row("bilinear, per head", lambda: S.Bilinear(D, D, heads=HEADS)),
    Row("gated", lambda: S.Gated(D, D)),
    Row("gated, per head", lambda: S.Gated(D, D, heads=HEADS)),
    Row("gaussian", lambda: S.Gaussian(1.3)),
    Row("exact", S.Exact),
    Row("alibi", lambda: S.ScaledDot() + S.Alibi(HEADS, align="start")),
    Row("relative bias", lambda: S.ScaledDot() + S.RelativeBias(HEADS, 2, align="start")),
    Row("soft cap", lambda: S.SoftCap(S.Dot(), 2.0)),
    Row("soft cap, biased additive", lambda: S.SoftCap(S.Additive(D, D, 3) + S.Alibi(HEADS, align="start"), 1.5)),
    Row("own function", lambda: laplace),
]

NORMALIZERS = [
    Row("softmax", N.Softmax),
    Row("softmax, sink", lambda: N.Softmax(sink=True)),
    Row("softmax, sink per head", lambda: N.Softmax(sink=True, heads=HEADS)),
    Row("identity", N.Identity),
    Row("relu", N.ReLU),
    Row("sigmoid", lambda: N.Sigmoid(bias=-1.0)),
    Row("sparsemax", N.Sparsemax),
    Row("entmax 1.5", lambda: N.Entmax(1.5)),
    Row("entmax 1.3", lambda: N.Entmax(1.3)),
    Row("entmax 2.5", lambda: N.Entmax(2.5)),
    Row("hard", N.Hard),
    Row("gumbel hard", lambda: N.GumbelHard(0.7)),
]

# (batch 2, heads HEADS, n_q 5, n_k 5); every kind once, and combinations that leave rows without a key.
MASKS = [
    Row("none", lambda: None),
    Row("causal", M.causal),
    Row("window", lambda: M.window(1, 2)),
    Row("dilated", lambda: M.dilated(1, 1, 2)),
    Row("strided", lambda: M.strided(2)),
    Row("padding", lambda: M.padding(torch.tensor([5, 3]))),
    Row("padding, left", lambda: M.padding(torch.tensor([5, 3]), side="left")),
    Row("padding, an empty sequence", lambda: M.padding(torch.tensor([4, 0]))),
    Row("padding of queries too", lambda: M.padding(torch.tensor([5, 3]), torch.tensor([4, 2]))),
    Row("documents", lambda: M.documents(torch.tensor([[0, 0, 1, 1, 2], [0, 1, 1, 1, -1]]))),
    Row("blocks", lambda: M.blocks(2)),
    Row("block layout", lambda: M.blocks(2, torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 0]]).bool())),
    Row("global tokens", lambda: M.global_tokens([0]) | M.window(0, 1)),
    Row("random blocks", lambda: M.random_blocks(2, 1, seed=3)),
    Row("positions", lambda: M.positions([1, 3])),
    Row("positions per query", lambda: M.positions(torch.tensor([[0, 1], [2, -1], [-1, -1], [4, 0], [3, 3]]))),
    Row("dense", lambda: M.dense(torch.arange(25).reshape(5, 5) % 3 == 0)),
    Row("per head", lambda: M.per_head([M.causal(), M.padding(torch.tensor([2, 4]))])),
    Row("causal and padding", lambda: M.causal() & M.padding(torch.tensor([5, 3]))),
    Row("neither window nor first key", lambda: ~(M.window(1, 1) | M.positions([0]))),
]


def ids(rows: list[Row]) -> dict:
    """For pytest.mark.parametrize: `**ids(SCORES)`."""
    return {"argvalues": rows, "ids": [row.name for row in rows]}


def make(row: Row, dtype: torch.dtype = torch.float64, seed: int = 0) -> object:
    """The mechanism with fresh, repeatable parameters that are not zero."""
    torch.manual_seed(seed)
    part = row.make()
    if isinstance(part, torch.nn.Module):
        part = part.to(dtype)
        for parameter in part.parameters():
            torch.nn.init.normal_(parameter, std=0.7)
    return part


def score(row: Row, **kwargs: object) -> S.Score:
    return make(row, **kwargs)  # type: ignore[return-value, arg-type]


def normalizer(row: Row, **kwargs: object) -> Normalizer:
    return make(row, **kwargs)  # type: ignore[return-value, arg-type]


def mask(row: Row) -> Mask | None:
    return row.make()  # type: ignore[return-value]


def problem(
    n_q: int = 5, n_k: int = 5, dtype: torch.dtype = torch.float64, seed: int = 1, batch: int = 2, d_v: int = 3
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values that require gradients."""
    torch.manual_seed(seed)
    query = torch.randn(batch, HEADS, n_q, D, dtype=dtype, requires_grad=True)
    key = torch.randn(batch, HEADS, n_k, D, dtype=dtype, requires_grad=True)
    value = torch.randn(batch, HEADS, n_k, d_v, dtype=dtype, requires_grad=True)
    return query, key, value
