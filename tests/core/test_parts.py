"""Parts as text and tensors, and back: what is rebuilt computes the same, what is your own is not flattened."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from regard import masks as M
from regard import normalizers as N
from regard import scores as S
from regard.core.formula import extent_of
from regard.core.parts import built_in, flatten, rebuild
from regard.core.scores import as_score
from tests.mechanisms import MASKS, NORMALIZERS, SCORES, Row, ids, laplace, mask, normalizer, problem, score


def round_trip(part: object) -> object:
    tensors: list[Tensor] = []
    return rebuild(flatten(part, tensors), tensors)


@pytest.mark.parametrize("row", **ids([row for row in SCORES if row.name != "own function"]))
def test_a_rebuilt_score_scores_the_same_pairs(row: Row) -> None:
    query, key, _ = problem()
    part = score(row)
    assert built_in(part)
    tile = extent_of(part, query, key).tile()
    projected = part.project(query, key)
    assert torch.equal(round_trip(part).tile(*projected, tile), part.tile(*projected, tile))


@pytest.mark.parametrize("row", **ids(NORMALIZERS))
@pytest.mark.parametrize("training", [True, False])
def test_a_rebuilt_normalizer_weighs_the_same(row: Row, training: bool) -> None:
    part = normalizer(row).train(training)
    scores, noise = torch.randn(2, 2, 5, 5).double(), torch.rand(2, 2, 5, 5)
    allowed = torch.rand(2, 2, 5, 5) < 0.7
    assert built_in(part)
    assert torch.equal(round_trip(part)(scores, allowed, noise), part(scores, allowed, noise))


@pytest.mark.parametrize("row", **ids(MASKS))
def test_a_rebuilt_mask_allows_the_same_pairs(row: Row) -> None:
    part = mask(row)
    assert built_in(part)
    rebuilt = round_trip(part)
    if part is None:
        assert rebuilt is None
        return
    query, key, _ = problem()
    extent = extent_of(S.Dot(), query, key)
    assert torch.equal(rebuilt.allowed(extent.tile()), part.allowed(extent.tile()))
    for rebuilt_kind, kind in zip(rebuilt.blocks(extent, 2, 2), part.blocks(extent, 2, 2), strict=True):
        assert torch.equal(rebuilt_kind, kind)


def test_tensors_are_listed_in_order_and_numbers_are_written_out() -> None:
    tensors: list[Tensor] = []
    lengths, rows = torch.tensor([1]), torch.tensor([2])
    spec = flatten((M.padding(lengths, rows), S.Gaussian(1 / 3), M.causal()), tensors)
    assert len(tensors) == 2
    assert tensors[0] is lengths
    assert tensors[1] is rows
    padding, gaussian, causal = rebuild(spec, tensors)
    assert padding.lengths is lengths
    assert padding.side == "right"
    assert gaussian.sigma == 1 / 3  # every bit of the double
    assert (causal.left, causal.right, causal.align) == (None, 0, None)


def test_gradients_pass_through_a_rebuilt_part() -> None:
    additive = S.Additive(4, 4, 3)
    projected = additive.project(torch.randn(2, 4), torch.randn(3, 4))
    round_trip(additive).pair(*projected).sum().backward()
    assert additive.v.grad is not None
    assert additive.v.grad.abs().sum() > 0


class OwnScore(S.Dot):
    """Looks like a built-in score, and is not."""


class OwnNormalizer(N.Softmax):
    """Looks like a built-in normalizer, and is not."""


class OwnMask(M.Mask):
    """A rule that the library does not have."""


class Dot(S.Score):
    """Has the name of a built-in score, and is not it."""


class OwnBias(S.Alibi):
    """Looks like a built-in bias, and is not."""


class CallableModule(nn.Module):
    """A score as a module that is no `Score`."""


@pytest.mark.parametrize(
    "part",
    [
        as_score(laplace),
        as_score(CallableModule()),
        S.SoftCap(laplace, 1.0),
        as_score(laplace) + S.Alibi(2),
        S.Dot() + OwnBias(2),
        OwnScore(),
        S.SoftCap(OwnScore(), 1.0),
        Dot(),
        OwnNormalizer(),
        OwnMask(),
        OwnMask() & M.causal(),
        M.causal() | ~OwnMask(),
        M.per_head([M.causal(), OwnMask()]),
    ],
    ids=lambda part: type(part).__name__,
)
def test_what_is_your_own_is_not_built_in(part: object) -> None:
    assert not built_in(part)
