"""Every normalizer: sums, sparsity, masking, kinks, and independent implementations of the same formula."""

import math

import entmax
import pytest
import torch
from torch import Tensor

from regard import InputError, attention, scores
from regard import normalizers as N
from regard.core import noise
from regard.core.shapes import Extent

INF = float("inf")
ROW = torch.tensor([[0.3, -1.2, 0.9, 0.0, 0.7]], dtype=torch.float64)
ALLOWED = torch.tensor([[True, True, False, True, False]])

SUM_TO_ONE = {
    "softmax": N.Softmax,
    "sparsemax": N.Sparsemax,
    "entmax 1.5": N.Entmax,
    "entmax 1.3": lambda: N.Entmax(1.3),
    "entmax 2.5": lambda: N.Entmax(2.5),
    "hard": N.Hard,
    "gumbel hard": N.GumbelHard,
}
ALL = SUM_TO_ONE | {
    "softmax, sink": lambda: N.Softmax(sink=True),
    "identity": N.Identity,
    "relu": N.ReLU,
    "sigmoid": N.Sigmoid,
}


def rows(*shape: int, seed: int = 0) -> Tensor:
    return 2 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def value_and_gradient(function, scores: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The weights, and the gradient of the scores: zeros where nothing depends on them."""
    scores = scores.detach().requires_grad_()
    weights = function(scores)
    if not weights.requires_grad:
        return weights, torch.zeros_like(scores)
    return weights.detach(), torch.autograd.grad(weights, scores, grad)[0]


@pytest.mark.parametrize("name", SUM_TO_ONE)
def test_weights_are_a_distribution(name: str) -> None:
    weights = SUM_TO_ONE[name]()(rows(50, 9))
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(50, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in SUM_TO_ONE if "hard" not in name])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_equal_scores_share_equally(name: str, n: int) -> None:
    weights = SUM_TO_ONE[name]()(torch.full((1, n), 3.0, dtype=torch.float64))
    torch.testing.assert_close(weights, torch.full_like(weights, 1 / n), rtol=0, atol=1e-12)


# Oracles.

ORACLES = {
    "softmax": (N.Softmax(), lambda s: torch.softmax(s, -1), 1e-12),
    "sigmoid": (N.Sigmoid(-1.5), lambda s: 1 / (1 + torch.exp(1.5 - s)), 1e-12),
    "relu": (N.ReLU(), lambda s: s.clamp(min=0), 0),
    "identity": (N.Identity(), lambda s: s, 0),
    "sparsemax": (N.Sparsemax(), lambda s: entmax.sparsemax(s, dim=-1), 1e-10),
    "entmax 1.5": (N.Entmax(1.5), lambda s: entmax.entmax15(s, dim=-1), 1e-10),
} | {
    f"entmax {alpha}": (
        N.Entmax(alpha),
        lambda s, alpha=alpha: entmax.entmax_bisect(s, alpha=alpha, dim=-1, n_iter=100),
        # Above 2 the slope is infinite at the threshold: the last bits of τ show in the gradient.
        1e-9 if alpha <= 2 else 1e-7,
    )
    for alpha in (1.1, 1.3, 1.5, 1.75, 2.0, 2.5, 4.0)
}


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_values_and_gradients_agree_with_an_independent_implementation(name: str, n: int) -> None:
    normalizer, oracle, tolerance = ORACLES[name]
    scores, grad = rows(30, n, seed=n), rows(30, n, seed=n + 1)
    ours, theirs = value_and_gradient(normalizer, scores, grad), value_and_gradient(oracle, scores, grad)
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


def test_sparsemax_is_entmax_2() -> None:
    torch.testing.assert_close(N.Sparsemax()(rows(9, 6)), N.Entmax(2.0)(rows(9, 6)), rtol=0, atol=0)


def test_entmax_near_1_is_nearly_softmax() -> None:
    torch.testing.assert_close(N.Entmax(1.0001)(rows(9, 6)), torch.softmax(rows(9, 6), -1), rtol=0, atol=1e-3)


def test_entmax_by_hand() -> None:
    # α = 2: s - τ sums to 1 over the support. 1 and 0.5 share: (1 - τ) + (0.5 - τ) = 1, so τ = 0.25.
    scores = torch.tensor([[1.0, 0.5, -9.0]])
    torch.testing.assert_close(N.Sparsemax()(scores), torch.tensor([[0.75, 0.25, 0.0]]))
    # α = 1.5: z = s/2 = (0.6, 0.4, ..), (0.6 - τ)² + (0.4 - τ)² = 1 at τ = 0.5 - sqrt(0.5 - 0.01) = -0.2
    scores = torch.tensor([[1.2, 0.8, -9.0]])
    torch.testing.assert_close(N.Entmax(1.5)(scores), torch.tensor([[0.64, 0.36, 0.0]]))


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0, 2.5])
def test_entmax_is_sparse_and_softmax_is_not(alpha: float) -> None:
    scores = torch.tensor([[5.0, 4.9, -5.0]])
    assert N.Entmax(alpha)(scores)[0, 2] == 0 < N.Softmax()(scores)[0, 2]


@pytest.mark.parametrize("heads", [None, 2])
def test_a_sink_is_one_more_logit_without_a_key(heads: int | None) -> None:
    normalizer = N.Softmax(sink=True, heads=heads).double()
    normalizer.sink.data = rows(*normalizer.sink.shape, seed=7)
    scores, grad = rows(3, 2, 4, 5), rows(3, 2, 4, 5, seed=1)
    sink = normalizer.sink.detach().clone().requires_grad_()
    with_sink = torch.cat([scores, sink.expand(3, 2, 4, 1)], dim=-1)
    expected = torch.softmax(with_sink, -1)[..., :-1]
    weights = normalizer(scores)
    torch.testing.assert_close(weights, expected)
    ours, theirs = torch.autograd.grad(weights, normalizer.sink, grad), torch.autograd.grad(expected, sink, grad)
    torch.testing.assert_close(ours, theirs)


def test_a_sink_of_zero_leaves_room_for_nothing() -> None:
    weights = N.Softmax(sink=True)(torch.zeros(1, 3))
    torch.testing.assert_close(weights, torch.full((1, 3), 1 / 4))


def test_sigmoid_with_bias_minus_log_n_sums_near_1() -> None:
    assert N.Sigmoid(-math.log(1000))(torch.zeros(1, 1000)).sum().item() == pytest.approx(1, rel=2e-3)


# Masking.


@pytest.mark.parametrize("name", ALL)
def test_a_masked_row_is_the_row_without_the_masked_keys(name: str) -> None:
    normalizer = ALL[name]()
    weights = normalizer(ROW, ALLOWED)
    torch.testing.assert_close(weights[ALLOWED], normalizer(ROW[ALLOWED][None])[0], rtol=0, atol=1e-12)
    assert (weights[~ALLOWED] == 0).all()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("hidden", [math.nan, INF, -INF, 1e300])
def test_what_a_masked_score_holds_does_not_matter(name: str, hidden: float) -> None:
    normalizer, grad = ALL[name](), torch.ones_like(ROW)
    plain = value_and_gradient(lambda s: normalizer(s, ALLOWED), ROW, grad)
    poisoned = value_and_gradient(lambda s: normalizer(s, ALLOWED), ROW.masked_fill(~ALLOWED, hidden), grad)
    torch.testing.assert_close(poisoned, plain, rtol=0, atol=0)
    assert (poisoned[1][~ALLOWED] == 0).all()


@pytest.mark.parametrize("name", ALL)
def test_a_score_of_minus_infinity_is_a_masked_one(name: str) -> None:
    normalizer = ALL[name]()
    torch.testing.assert_close(normalizer(ROW.masked_fill(~ALLOWED, -INF)), normalizer(ROW, ALLOWED), rtol=0, atol=0)


@pytest.mark.parametrize("name", ALL)
def test_an_empty_row_has_no_weight_and_no_gradient(name: str) -> None:
    normalizer, allowed = ALL[name](), torch.tensor([[True], [False], [True]]).expand(3, 5)
    weights, gradient = value_and_gradient(lambda s: normalizer(s, allowed), rows(3, 5), rows(3, 5, seed=1))
    assert (weights[1] == 0).all()
    assert (gradient[1] == 0).all()


@pytest.mark.parametrize("name", ALL)
def test_no_keys_at_all(name: str) -> None:
    assert ALL[name]()(torch.zeros(3, 0)).shape == (3, 0)
    assert ALL[name]()(torch.zeros(0, 3)).shape == (0, 3)


# Kinks: the documented subgradients.


def test_the_derivative_of_relu_at_0_is_0() -> None:
    _, gradient = value_and_gradient(N.ReLU(), torch.tensor([[-1.0, 0.0, 1.0]]), torch.ones(1, 3))
    assert gradient.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize(
    ("alpha", "scores", "expected"),
    # z = (α - 1) s. One key inside at z = 0 has τ = -1: no gradient at all, as for the constant (1, 0, 0).
    [(alpha, [0.0, -1 / (alpha - 1), -9.0], [0.0, 0.0, 0.0]) for alpha in (1.5, 2.0, 3.0)]
    # Two inside share: 2 (0 - τ)^(1/(α-1)) = 1, so τ = -1/2 for α = 2 and -1/4 for α = 3, where z = 2s.
    + [(2.0, [0.0, 0.0, -1 / 2], [-0.5, 0.5, 0.0]), (3.0, [0.0, 0.0, -1 / 8], [-1.0, 1.0, 0.0])],
)
def test_a_key_at_the_threshold_is_outside_the_support(
    alpha: float, scores: list[float], expected: list[float]
) -> None:
    weights, gradient = value_and_gradient(N.Entmax(alpha), torch.tensor([scores]), torch.tensor([[1.0, 2.0, 4.0]]))
    inside = 1 + (scores[1] == 0)
    assert weights.tolist() == [[1 / inside, 1 - 1 / inside, 0.0]]
    assert gradient.tolist() == [expected]


# Extremes.

BOUNDED = ["softmax", "softmax, sink", "sparsemax", "entmax 1.5", "entmax 1.3", "entmax 2.5", "sigmoid"]


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("backend", ["reference", "chunked"])
def test_scores_of_100_000_stay_finite_in_float16(name: str, backend: str) -> None:
    """float16 ends at 65,504: these scores exist in float32, inside the library, only."""
    query = torch.tensor([[500.0], [-500.0], [0.0]], dtype=torch.float16, requires_grad=True)
    key = torch.tensor([[200.0], [199.0], [0.0], [-200.0]], dtype=torch.float16, requires_grad=True)
    value = torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float16, requires_grad=True)
    out = attention(query, key, value, score=scores.Dot(), normalizer=ALL[name](), backend=backend)
    gradients = torch.autograd.grad(out.sum(), (query, key, value))
    assert all(x.isfinite().all() for x in (out, *gradients))
    if name != "sigmoid":  # 1e5 against 99,500: one key has it all
        assert out[:2].tolist() == [[1.0], [4.0]]


@pytest.mark.parametrize("name", BOUNDED)
def test_float16_scores_at_the_end_of_its_range_stay_finite(name: str) -> None:
    huge = torch.tensor([[65504.0, -65504.0, 0.0, 65472.0], [-65504.0] * 4], dtype=torch.float16)
    weights, gradient = value_and_gradient(ALL[name](), huge, torch.ones(2, 4))
    assert weights.isfinite().all()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax 1.5", "entmax 1.3"])
def test_a_common_shift_of_the_scores_changes_nothing(name: str) -> None:
    scores = torch.tensor([[1.0, 0.5, -2.0, 0.25]])
    torch.testing.assert_close(ALL[name]()(scores + 1024), ALL[name]()(scores), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_scores_give_float32_weights(name: str, half: torch.dtype) -> None:
    assert ALL[name]()(ROW.to(half)).dtype == torch.float32


# Hard choices.


def test_hard_takes_the_first_of_equals() -> None:
    assert N.Hard()(torch.tensor([[1.0, 3.0, 3.0, 2.0]])).tolist() == [[0, 1, 0, 0]]


def test_hard_skips_what_is_masked() -> None:
    allowed = torch.tensor([[True, False, False, True]])
    assert N.Hard()(torch.tensor([[1.0, 3.0, 3.0, 1.0]]), allowed).tolist() == [[1, 0, 0, 0]]


def test_the_choice_has_no_gradient() -> None:
    assert not N.Hard()(rows(2, 3).requires_grad_()).requires_grad


def uniform(n: int, keys: int, seed: int = 5) -> Tensor:
    tile = Extent((), n, keys, torch.device("cpu")).tile()
    return noise.uniform(torch.tensor(seed), tile, noise.GUMBEL)


def test_gumbel_choices_follow_softmax() -> None:
    """Pearson's χ² with 3 degrees of freedom; 16.27 is exceeded once in 1,000 seeds, and this seed is fixed."""
    draws = 20_000
    scores = torch.tensor([0.0, 1.0, -1.0, 0.5]).expand(draws, 4)
    chosen = N.GumbelHard()(scores, None, uniform(draws, 4))
    assert ((chosen == 0) | (chosen == 1)).all()
    expected = draws * torch.softmax(scores[0], 0)
    assert ((chosen.sum(0) - expected).square() / expected).sum() < 16.27


def test_gumbel_gradient_is_that_of_its_soft_surrogate() -> None:
    scores, grad, temperature = rows(6, 5), rows(6, 5, seed=1), 0.7
    u = uniform(6, 5)
    gumbel = -(-u.double().log()).log()
    hard, ours = value_and_gradient(lambda s: N.GumbelHard(temperature)(s, None, u), scores, grad)
    _, theirs = value_and_gradient(lambda s: torch.softmax((s + gumbel) / temperature, -1), scores, grad)
    torch.testing.assert_close(ours, theirs)
    assert torch.equal(hard, N.Hard()(scores + gumbel))


def test_gumbel_in_evaluation_is_the_largest_score() -> None:
    scores = rows(6, 5)
    assert torch.equal(N.GumbelHard().eval()(scores, None, uniform(6, 5)), N.Hard()(scores))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: N.Entmax(1.0), r"alpha=1.0; expected more than 1 \(alpha=1 is Softmax\(\)\)"),
        (lambda: N.Entmax(math.nan), r"alpha=nan; expected more than 1"),
        (lambda: N.GumbelHard(0.0), r"temperature=0.0; expected more than 0"),
    ],
)
def test_refuses_aloud(wrong, message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("alpha", [1.05, 1.3, 3.0, 4.0, 10.0])
@pytest.mark.parametrize("spread", [0.0, 1e-3, 1.0])
def test_entmax_sums_to_1_however_near_the_scores(alpha, spread, dtype):
    """n equal scores have τ = -n^(1-α): for α = 10 and n = 512 that is 4e-25, where only its relative precision counts."""
    weights = N.Entmax(alpha)(torch.randn(3, 512, dtype=dtype) * spread)
    assert torch.allclose(weights.sum(-1), torch.ones(3, dtype=dtype), atol=1e-5)
    if spread == 0:
        assert torch.allclose(weights, torch.full((3, 512), 1 / 512, dtype=dtype), rtol=1e-4)
