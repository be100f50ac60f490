"""Hard attention by drawing: the draws follow softmax, and REINFORCE's gradient is right on average."""

from __future__ import annotations

import pytest
import torch

import regard
from regard import masks as M
from regard import sampling
from tests.mechanisms import MASKS, SCORES, Row, ids, mask, problem, score


def test_the_draws_follow_softmax() -> None:
    """20,000 equal queries over keys of probability 0.1, 0.2, 0.3, 0.4: chi-squared below the 0.999 quantile, 16.3."""
    probability = torch.tensor([0.1, 0.2, 0.3, 0.4])
    query, key = torch.ones(20_000, 1), probability.log()[:, None]
    drawn = regard.sample_attention(query, key, torch.arange(4.0)[:, None], seed=5)
    counts = torch.bincount(drawn.index, minlength=4)
    expected = 20_000 * probability
    assert ((counts - expected).square() / expected).sum() < 16.3
    assert torch.equal(drawn.output[:, 0], drawn.index.float())
    assert torch.allclose(drawn.log_prob, probability.log()[drawn.index], atol=1e-6)
    assert torch.allclose(drawn.entropy, torch.special.entr(probability).sum().expand(20_000), atol=1e-6)


@pytest.mark.parametrize("of_score", **ids(SCORES))
@pytest.mark.parametrize("of_mask", **ids(MASKS))
def test_log_prob_and_entropy_are_those_of_the_weights(
    of_score: Row, of_mask: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "rows_at_once", lambda *_: 2)  # several blocks, drawn again in backward
    query, key, value = problem()
    parts = {"score": score(of_score), "mask": mask(of_mask)}
    drawn = regard.sample_attention(query, key, value, seed=1, **parts)
    weights = regard.attention_weights(query, key, **parts)
    alive = weights.sum(-1) > 0
    chosen = weights.gather(-1, drawn.index.clamp(min=0)[..., None])[..., 0]
    log_prob = torch.where(alive, torch.where(alive, chosen, 1.0).log(), 0.0)
    assert torch.equal(drawn.index >= 0, alive)
    assert torch.allclose(drawn.log_prob, log_prob)
    assert torch.allclose(drawn.entropy, torch.special.entr(weights).sum(-1))
    assert (drawn.output[~alive] == 0).all()
    if not log_prob.requires_grad:  # Exact is a step: it has no gradient anywhere
        return
    expected = torch.autograd.grad(log_prob.sum(), query, allow_unused=True)[0]
    found = torch.autograd.grad(drawn.log_prob.sum(), query, allow_unused=True)[0]
    expected, found = (torch.zeros_like(query) if g is None else g for g in (expected, found))
    assert torch.allclose(found, expected, atol=1e-12)


def test_reinforce_estimates_the_enumerated_gradient() -> None:
    """The reward of key i is r_i; d/dq Σ_i p_i r_i, enumerated, within 3 standard errors of the estimate."""
    reward = torch.tensor([1.0, 0.0, 3.0, -2.0])
    key, query = torch.randn(4, 2), torch.randn(1, 2)
    one = query.clone().requires_grad_()
    (exact,) = torch.autograd.grad((regard.attention_weights(one, key) @ reward).sum(), one)
    many = query.expand(20_000, 2).clone().requires_grad_()
    drawn = regard.sample_attention(many, key, reward[:, None], seed=3)
    (each,) = torch.autograd.grad((drawn.output[:, 0].detach() * drawn.log_prob).sum(), many)
    error = each.std(0) / 20_000**0.5
    assert ((each.mean(0) - exact[0]).abs() < 3 * error).all()


def test_the_seed_decides() -> None:
    query, key, value = problem(n_q=50, n_k=50)
    draw = [regard.sample_attention(query, key, value, seed=seed).index for seed in (7, 7, 8)]
    assert torch.equal(draw[0], draw[1])
    assert not torch.equal(draw[0], draw[2])


def test_no_keys_at_all() -> None:
    drawn = regard.sample_attention(torch.zeros(2, 3), torch.zeros(0, 3), torch.zeros(0, 4), mask=M.causal("end"))
    assert drawn.index.tolist() == [-1, -1]
    assert torch.equal(drawn.output, torch.zeros(2, 4))
