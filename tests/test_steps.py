"""F7: the lecture's four words, every intermediate, in numbers that can be checked in the head."""

import math

import pytest
import torch

import regard
from regard import masks, normalizers, scores
from regard.steps import step_by_step, steps
from tests.mechanisms import MASKS, NORMALIZERS, SCORES, ids, mask, normalizer, problem, score

THIS_IS_A_CAT = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])  # four words, d = 2
TO_SUM, TO_FIRST, TO_TEN = (torch.tensor(w)[:, None] for w in ([1.0, 1.0], [1.0, 0.0], [10.0, 20.0]))  # d x 1
Q, K, V = [1.0, 1.0, 2.0, 3.0], [1.0, 0.0, 1.0, 2.0], [10.0, 20.0, 30.0, 40.0]  # what they make of the words


def column(numbers: list[float]) -> torch.Tensor:
    return torch.tensor(numbers)[:, None]


def columns(s: torch.Tensor) -> torch.Tensor:
    return s.transpose(-3, -2)


def test_scalar_q_k_v_and_dot():
    s = step_by_step(THIS_IS_A_CAT, TO_SUM, TO_FIRST, TO_TEN, score=scores.Dot(), normalizer=normalizers.Identity())
    assert s.a is THIS_IS_A_CAT
    assert s.q.equal(column(Q))
    assert s.k.equal(column(K))
    assert s.v.equal(column(V))
    expected = [[1, 0, 1, 2], [1, 0, 1, 2], [2, 0, 2, 4], [3, 0, 3, 6]]  # q_i · k_j
    assert s.scores.tolist() == s.weights.tolist() == expected
    assert s.b.equal(column([120.0, 120.0, 240.0, 360.0]))  # 1·10 + 0·20 + 1·30 + 2·40 = 120
    assert (s.q_projected, s.k_projected, s.allowed) == (None, None, None)


def test_scalar_additive_is_w_tanh_of_the_sum():
    additive = scores.TanhSum(1)
    torch.nn.init.constant_(additive.v, 2.0)
    s = step_by_step(THIS_IS_A_CAT, TO_SUM, TO_FIRST, TO_TEN, score=additive)
    by_hand = [[2 * math.tanh(q + k) for k in K] for q in Q]
    torch.testing.assert_close(s.scores, torch.tensor(by_hand))
    torch.testing.assert_close(s.weights, torch.tensor(by_hand).softmax(-1))
    torch.testing.assert_close(s.b, torch.tensor(by_hand).softmax(-1) @ column(V))


def test_equal_scores_give_one_nth():
    s = step_by_step(THIS_IS_A_CAT, torch.zeros(2, 1), TO_FIRST, TO_TEN)
    assert s.weights.equal(torch.full((4, 4), 1 / 4))
    assert s.b.equal(column([25.0] * 4))  # the mean of 10, 20, 30, 40


def test_causal_mask_by_hand():
    s = step_by_step(THIS_IS_A_CAT, torch.zeros(2, 1), TO_FIRST, TO_TEN, mask=masks.causal())
    assert s.allowed is not None
    assert s.allowed.equal(torch.ones(4, 4).tril().bool())
    torch.testing.assert_close(s.b, column([10.0, 15.0, 20.0, 25.0]))  # the mean of the words so far


def test_matrices():
    w_v = torch.eye(2)
    s = step_by_step(THIS_IS_A_CAT, 2 * torch.eye(2), torch.eye(2), w_v, normalizer=normalizers.Identity())
    assert s.q_projected is not None
    torch.testing.assert_close(s.q_projected, s.q / math.sqrt(2))  # the scale of ScaledDot, once per token
    assert s.k_projected is None
    torch.testing.assert_close(s.scores, 2 * (THIS_IS_A_CAT @ THIS_IS_A_CAT.mT) / math.sqrt(2))
    assert s.scores.shape == (4, 4)
    assert s.b.shape == (4, 2)


def test_channels_by_hand():
    """Two channels: the first has equal scores, so 1/n; the second sees every word as in the scalar form."""
    w_q = torch.cat([torch.zeros(2, 1), TO_SUM], 1)
    w_k = torch.cat([TO_FIRST, TO_FIRST], 1)
    w_v = torch.cat([TO_TEN, TO_TEN], 1)
    s = step_by_step(THIS_IS_A_CAT, w_q, w_k, w_v, score=scores.Dot(), channels=True)
    one = step_by_step(THIS_IS_A_CAT, TO_SUM, TO_FIRST, TO_TEN, score=scores.Dot())
    assert s.scores.shape == s.weights.shape == (4, 4, 2)
    assert s.scores[3, 0].tolist() == [0, 3]  # cat -> This: 1 x M
    assert s.weights[..., 0].equal(torch.full((4, 4), 1 / 4))
    torch.testing.assert_close(s.weights[..., 1], one.weights)
    torch.testing.assert_close(s.b, torch.cat([column([25.0] * 4), one.b], 1))


@pytest.mark.parametrize("row", [row for row in SCORES if row.name in ("dot", "gaussian", "own function")], ids=str)
def test_channels_are_heads_of_width_one(row):
    q, k, v = torch.randn(3, 2, 5, 4, dtype=torch.float64)  # batch 2, n 5, M 4
    s = steps(q, k, v, score=score(row), channels=True)
    heads = [x.mT[..., None] for x in (q, k, v)]  # batch 2, M heads, n 5, width 1
    torch.testing.assert_close(s.b, regard.attention(*heads, score=score(row), backend="reference").squeeze(-1).mT)
    weights = regard.attention_weights(*heads[:2], score=score(row))
    torch.testing.assert_close(s.weights, weights.movedim(-3, -1))


def test_channels_keep_what_the_score_makes_of_them():
    s = steps(*torch.randn(3, 5, 4), score=scores.Additive(1, 1, hidden=6), channels=True)
    assert s.q_projected is not None
    assert s.q_projected.shape == (5, 4, 6)  # each of 4 channels becomes 6 hidden units
    assert s.q.shape == (5, 4)


@pytest.mark.parametrize("channels", [False, True])
def test_columns_layout_is_the_transpose(channels):
    w_q, w_k, w_v = torch.randn(3, 2, 3)
    gated = scores.Gated(1, 1) if channels else scores.Gated(3, 3)
    common = {"score": gated, "mask": masks.causal(), "channels": channels}
    rows = step_by_step(THIS_IS_A_CAT, w_q, w_k, w_v, **common)
    cols = step_by_step(THIS_IS_A_CAT.mT, w_q, w_k, w_v, layout="columns", **common)
    torch.testing.assert_close(cols.weights.sum(0), torch.ones_like(cols.weights.sum(0)))
    turned = columns if channels else torch.t
    for name in ("a", "q", "k", "v", "b"):
        torch.testing.assert_close(getattr(cols, name), getattr(rows, name).mT)
    for name in ("q_projected", "k_projected", "scores", "allowed", "weights"):
        torch.testing.assert_close(getattr(cols, name), turned(getattr(rows, name)))


@pytest.mark.parametrize("mask_row", [row for row in MASKS if row.name in ("none", "causal", "padding")], ids=str)
@pytest.mark.parametrize(
    "normalizer_row",
    [row for row in NORMALIZERS if row.name in ("softmax, sink per head", "entmax 1.5", "sigmoid", "gumbel hard")],
    ids=str,
)
@pytest.mark.parametrize("score_row", **ids(SCORES))
def test_it_is_what_attention_computes(score_row, normalizer_row, mask_row):
    q, k, v = problem()
    parts = {"score": score(score_row), "normalizer": normalizer(normalizer_row), "mask": mask(mask_row), "seed": 7}
    s = steps(q, k, v, **parts)
    assert s.b.equal(regard.attention(q, k, v, backend="reference", **parts))
    torch.testing.assert_close(s.weights @ s.v, s.b)
    assert s.scores.shape == s.weights.shape == (2, 2, 5, 5)
    assert s.allowed is None or s.allowed.shape == (2, 2, 5, 5)
    if normalizer_row.name != "gumbel hard":  # its noise comes between scores and weights
        torch.testing.assert_close(s.weights, parts["normalizer"](s.scores, s.allowed))


def test_half_precision_follows_attention():
    q, k, v = torch.randn(3, 5, 4, dtype=torch.bfloat16)
    assert steps(q, k, v).b.equal(regard.attention(q, k, v, backend="reference"))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = torch.randn(5, 4)
        assert steps(x, x, x).b.equal(regard.attention(x, x, x, backend="reference"))


def test_gradients_reach_every_matrix():
    weights = torch.randn(3, 2, 2, requires_grad=True)
    step_by_step(THIS_IS_A_CAT, *weights).b.sum().backward()
    assert weights.grad is not None
    assert (weights.grad.flatten(1).abs().sum(-1) > 0).all()


def test_errors_name_the_axis_and_the_cure():
    w = torch.ones(3, 1)
    with pytest.raises(regard.ShapeError, match=r"w_q has d=3, a \[n d\] has d=2"):
        step_by_step(THIS_IS_A_CAT, w, w, w)
    with pytest.raises(regard.ShapeError, match="try layout='rows'"):
        step_by_step(THIS_IS_A_CAT, TO_SUM, TO_SUM, TO_SUM, layout="columns")
    with pytest.raises(regard.ShapeError, match=r"w_q has shape \(2,\); expected a matrix; try w_q\[:, None\]"):
        step_by_step(THIS_IS_A_CAT, TO_SUM[:, 0], TO_SUM, TO_SUM)
    with pytest.raises(regard.ShapeError, match="have 4, 3 and 4 channels"):
        steps(torch.ones(5, 4), torch.ones(5, 3), torch.ones(5, 4), channels=True)
    with pytest.raises(regard.InputError, match="layout='diagonal' is unknown; expected 'rows' or 'columns'"):
        steps(w, w, w, layout="diagonal")
