"""Weights and statistics: what is read off without an n x n tensor equals what the dense weights say."""

from __future__ import annotations

import math

import pytest
import torch

import regard
from regard import masks as M
from regard import normalizers as N
from regard import scores as S
from regard.core import statistics
from tests.mechanisms import MASKS, NORMALIZERS, SCORES, Row, ids, mask, normalizer, problem, score


def test_equal_scores_by_hand() -> None:
    """Four equal keys: weight 1/4 each, entropy log 4, lse log 4 (the scores are 0), mass 4 · 1/4."""
    x = torch.zeros(4, 2)
    seen = regard.attention_summary(x, x, top=2, pool=2)
    assert torch.equal(regard.attention_weights(x, x), torch.full((4, 4), 0.25))
    assert torch.allclose(seen.entropy, torch.full((4,), math.log(4)))
    assert seen.lse is not None
    assert torch.allclose(seen.lse, torch.full((4,), math.log(4)))
    assert torch.allclose(seen.mass, torch.ones(4))
    assert torch.allclose(seen.pooled, torch.full((2, 2), 0.5))  # two keys of 1/4 in each cell
    assert torch.equal(seen.top_weights, torch.full((4, 2), 0.25))


def test_a_row_without_a_key() -> None:
    x = torch.randn(3, 2)
    seen = regard.attention_summary(x, x, mask=M.padding(torch.tensor(0)))
    assert seen.lse is not None
    assert seen.lse.tolist() == [-math.inf] * 3
    assert seen.entropy.tolist() == [0.0] * 3
    assert (seen.top_indices == -1).all()
    assert seen.mass.tolist() == [0.0] * 3


def check(of_score: Row, of_normalizer: Row, of_mask: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the dense weights, with blocks so small that there are many."""
    real = statistics.rows_at_once
    monkeypatch.setattr(statistics, "rows_at_once", lambda extent, work: min(2, real(extent, work)))
    query, key, _ = problem()
    parts = {"score": score(of_score), "normalizer": normalizer(of_normalizer).eval(), "mask": mask(of_mask)}
    weights = regard.attention_weights(query, key, **parts)
    seen = regard.attention_summary(query, key, top=3, pool=2, **parts)
    share = weights.abs() / weights.abs().sum(-1, keepdim=True).clamp(min=1e-300)
    assert torch.allclose(seen.entropy, torch.special.entr(share).sum(-1), atol=1e-12)
    assert torch.allclose(seen.mass, weights.sum(-2), atol=1e-12)
    largest = weights.abs().topk(3, dim=-1).values
    assert torch.allclose(seen.top_weights.abs(), largest, atol=1e-12)
    chosen = weights.gather(-1, seen.top_indices.clamp(min=0))
    assert torch.equal(seen.top_weights, torch.where(seen.top_indices >= 0, chosen, 0.0))
    cells = torch.tensor([0, 0, 0, 1, 1])  # five positions in two cells
    pooled = torch.stack([weights[..., cells == c].sum(-1) for c in (0, 1)], -1)
    pooled = torch.stack([pooled[..., cells == c, :].mean(-2) for c in (0, 1)], -2)
    assert torch.allclose(seen.pooled, pooled, atol=1e-12)


@pytest.mark.parametrize("of_normalizer", **ids(NORMALIZERS))
@pytest.mark.parametrize("of_mask", **ids(MASKS))
def test_the_summary_is_that_of_the_weights(of_normalizer: Row, of_mask: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    check(SCORES[1], of_normalizer, of_mask, monkeypatch)


@pytest.mark.parametrize("of_score", **ids(SCORES))
def test_of_every_score(of_score: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    check(of_score, NORMALIZERS[0], MASKS[1], monkeypatch)


def test_lse_is_the_logarithm_of_the_sum() -> None:
    query, key, _ = problem()
    allowed = M.causal().allowed(regard.Extent((), 5, 5, torch.device("cpu")).tile())
    expected = S.Dot()(query, key).masked_fill(~allowed, -math.inf).logsumexp(-1)
    seen = regard.attention_summary(query, key, score=S.Dot(), mask=M.causal())
    assert seen.lse is not None
    assert torch.allclose(seen.lse, expected)
    assert regard.attention_summary(query, key, normalizer=N.ReLU()).lse is None


def test_the_summary_of_many_costly_pairs_stays_within_its_budget() -> None:
    """8 heads x 1024 x 1024 pairs x 64 hidden numbers would be 2 GB at once, and one row of it 2 MB."""
    extent = regard.Extent((1, 8), 1024, 1024, torch.device("cpu"))
    rows = statistics.rows_at_once(extent, S.Additive(8, 8, 64).work(64))
    assert 1 <= rows * 8 * 1024 * 64 <= statistics.rows_at_once.__defaults__[0]


def test_weights_are_differentiable() -> None:
    query, key, _ = problem()
    (gradient,) = torch.autograd.grad(regard.attention_weights(query, key).square().sum(), query)
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize(("options", "message"), [({"top": -1}, "top=-1"), ({"pool": 0}, "pool=0")])
def test_bad_sizes(options: dict, message: str) -> None:
    x = torch.zeros(2, 2)
    with pytest.raises(regard.InputError, match=message):
        regard.attention_summary(x, x, **options)
