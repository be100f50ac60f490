"""Every score against its formula, written out as a loop over pairs."""

import math

import pytest
import torch
from torch import Tensor

from regard import DTypeError, InputError, ShapeError, attention, normalizers
from regard import scores as S

B, H, N_Q, N_K, D = 2, 2, 4, 5, 3


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def filled(score: S.Score) -> S.Score:
    """The score in float64 with parameters that are not zero."""
    score = score.double()
    for place, parameter in enumerate(score.parameters()):
        parameter.data = vectors(*parameter.shape, seed=100 + place)
    return score


def of_head(parameter: Tensor, heads: int | None, h: int) -> Tensor:
    return parameter if heads is None else parameter[h]


def pair_by_pair(formula, query: Tensor, key: Tensor) -> Tensor:
    """formula(q, k, h, i, j) for each single pair."""
    b, h, n_q, n_k = *query.shape[:-1], key.shape[-2]
    scores = torch.empty(b, h, n_q, n_k, dtype=torch.float64)
    for x in range(b):
        for y in range(h):
            for i in range(n_q):
                for j in range(n_k):
                    scores[x, y, i, j] = formula(query[x, y, i], key[x, y, j], y, i, j)
    return scores


def additive(score: S.Additive, q: Tensor, k: Tensor, h: int) -> float:
    w_q, w_k, v, b = (of_head(p, score.heads, h) for p in (score.w_q, score.w_k, score.v, score.b))
    total = 0.0
    for unit in range(v.shape[0]):
        inside = b[0, unit].item()
        inside += sum((q[d] * w_q[d, unit]).item() for d in range(len(q)))
        inside += sum((k[d] * w_k[d, unit]).item() for d in range(len(k)))
        total += v[unit].item() * math.tanh(inside)
    return total


def bilinear(score: S.Bilinear, q: Tensor, k: Tensor, h: int) -> float:
    W = of_head(score.weight, score.heads, h)
    return sum((q[a] * W[a, c] * k[c]).item() for a in range(len(q)) for c in range(len(k)))


def gated(score: S.Gated, q: Tensor, k: Tensor, h: int) -> float:
    W_g = of_head(score.gate, score.heads, h)
    both = torch.cat([q, k])  # [q; k], which the library never builds
    argument = sum((both[d] * W_g[d, 0]).item() for d in range(len(both)))
    return dot(q, k) / (1 + math.exp(-argument))


def tanh_sum(score: S.TanhSum, q: Tensor, k: Tensor, h: int) -> float:
    v = of_head(score.v, score.heads, h)
    return sum(v[d].item() * math.tanh(q[d] + k[d]) for d in range(len(q)))


def dot(q: Tensor, k: Tensor) -> float:
    return sum((q[d] * k[d]).item() for d in range(len(q)))


def squared_distance(q: Tensor, k: Tensor) -> float:
    return sum((q[d] - k[d]).item() ** 2 for d in range(len(q)))


ALIBI_SLOPES = [2**-4, 2**-8]  # 2^(-8(h+1)/heads) for 2 heads

FORMULAS = {
    "dot": (S.Dot, lambda s, q, k, h, i, j: dot(q, k)),
    "scaled dot": (S.ScaledDot, lambda s, q, k, h, i, j: dot(q, k) / math.sqrt(D)),
    "scaled dot, own scale": (lambda: S.ScaledDot(0.3), lambda s, q, k, h, i, j: 0.3 * dot(q, k)),
    "tanh sum": (lambda: S.TanhSum(D), lambda s, q, k, h, i, j: tanh_sum(s, q, k, h)),
    "tanh sum, per head": (lambda: S.TanhSum(D, heads=H), lambda s, q, k, h, i, j: tanh_sum(s, q, k, h)),
    "additive": (lambda: S.Additive(D, D, 4), lambda s, q, k, h, i, j: additive(s, q, k, h)),
    "additive, per head": (lambda: S.Additive(D, D, 4, heads=H), lambda s, q, k, h, i, j: additive(s, q, k, h)),
    "bilinear": (lambda: S.Bilinear(D, D), lambda s, q, k, h, i, j: bilinear(s, q, k, h)),
    "bilinear, per head": (lambda: S.Bilinear(D, D, heads=H), lambda s, q, k, h, i, j: bilinear(s, q, k, h)),
    "gated": (lambda: S.Gated(D, D), lambda s, q, k, h, i, j: gated(s, q, k, h)),
    "gated, per head": (lambda: S.Gated(D, D, heads=H), lambda s, q, k, h, i, j: gated(s, q, k, h)),
    "gaussian": (lambda: S.Gaussian(1.3), lambda s, q, k, h, i, j: -squared_distance(q, k) / (2 * 1.3**2)),
    "exact": (S.Exact, lambda s, q, k, h, i, j: float(squared_distance(q, k) == 0)),
    "alibi": (
        lambda: S.Dot() + S.Alibi(H, align="start"),
        lambda s, q, k, h, i, j: dot(q, k) - ALIBI_SLOPES[h] * abs(i - j),
    ),
    "alibi, aligned at the end": (
        lambda: S.Dot() + S.Alibi(H, align="end"),
        lambda s, q, k, h, i, j: dot(q, k) - ALIBI_SLOPES[h] * abs(i + N_K - N_Q - j),
    ),
    "relative bias": (
        lambda: S.Dot() + S.RelativeBias(H, 2, align="start"),
        lambda s, q, k, h, i, j: dot(q, k) + s.bias.table[h, max(-2, min(2, j - i)) + 2].item(),
    ),
    "soft cap": (lambda: S.SoftCap(S.Dot(), 2.0), lambda s, q, k, h, i, j: 2 * math.tanh(dot(q, k) / 2)),
    "soft cap of a biased score": (
        lambda: S.SoftCap(S.Dot() + S.Alibi(H, align="start"), 1.5),
        lambda s, q, k, h, i, j: 1.5 * math.tanh((dot(q, k) - ALIBI_SLOPES[h] * abs(i - j)) / 1.5),
    ),
    "biased soft cap": (
        lambda: S.SoftCap(S.Dot(), 1.5) + S.Alibi(H, align="start"),
        lambda s, q, k, h, i, j: 1.5 * math.tanh(dot(q, k) / 1.5) - ALIBI_SLOPES[h] * abs(i - j),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_the_score_is_its_formula_pair_by_pair(name: str) -> None:
    make, formula = FORMULAS[name]
    score = filled(make())
    query, key = vectors(B, H, N_Q, D, seed=1), vectors(B, H, N_K, D, seed=2)
    key[..., 1, :] = query[..., 0, :]  # one exact match
    expected = pair_by_pair(lambda q, k, h, i, j: formula(score, q, k, h, i, j), query, key)
    torch.testing.assert_close(score(query, key), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("make", "formula"), [(S.Bilinear, bilinear), (lambda a, b: S.Additive(a, b, 4), additive)])
def test_queries_and_keys_of_different_widths(make, formula) -> None:
    score = filled(make(2, 5))
    query, key = vectors(1, 1, 3, 2, seed=1), vectors(1, 1, 4, 5, seed=2)
    expected = pair_by_pair(lambda q, k, h, i, j: formula(score, q, k, h), query, key)
    torch.testing.assert_close(score(query, key), expected, rtol=1e-12, atol=1e-12)


def test_the_lectures_scalar_form_is_w_tanh_of_q_plus_k() -> None:
    """F7: with scalar queries and keys, α = w · tanh(q + k)."""
    w, q, k = 0.5, [0.1, -0.2], [0.3, 0.0, 1.0]
    score = S.TanhSum(1).double()
    score.v.data.fill_(w)
    scores = score(torch.tensor(q).double()[:, None], torch.tensor(k).double()[:, None])
    expected = [[w * math.tanh(a + b) for b in k] for a in q]
    torch.testing.assert_close(scores, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-7)


def test_tanh_sum_is_keras_additive_attention() -> None:
    """Keras' AdditiveAttention: reduce_sum(scale * tanh(query + key), axis=-1), with `scale` of shape [d]."""
    score = filled(S.TanhSum(D))
    query, key = vectors(B, N_Q, D, seed=1), vectors(B, N_K, D, seed=2)
    keras = (score.v * torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3))).sum(-1)
    torch.testing.assert_close(score(query, key), keras)


def test_additive_with_unit_projections_is_tanh_sum() -> None:
    score, plain = filled(S.Additive(D, D, D)), filled(S.TanhSum(D))
    score.w_q.data = score.w_k.data = torch.eye(D, dtype=torch.float64)
    score.b.data.zero_()
    score.v.data = plain.v.data
    query, key = vectors(N_Q, D, seed=1), vectors(N_K, D, seed=2)
    torch.testing.assert_close(score(query, key), plain(query, key))


def test_luongs_general_score_with_the_unit_matrix_is_his_dot() -> None:
    general = S.Bilinear(D, D).double()
    general.weight.data = torch.eye(D, dtype=torch.float64)
    query, key = vectors(N_Q, D, seed=1), vectors(N_K, D, seed=2)
    torch.testing.assert_close(general(query, key), S.Dot()(query, key))


def test_a_gate_of_zero_halves_the_dot_product() -> None:
    score = S.Gated(D, D).double()
    score.gate.data.zero_()  # σ(0) = 1/2
    query, key = vectors(N_Q, D, seed=1), vectors(N_K, D, seed=2)
    torch.testing.assert_close(score(query, key), 0.5 * query @ key.mT)


def test_gaussian_keeps_its_digits_far_from_zero() -> None:
    """Near neighbours at 10,000: an expanded square would lose the difference in float32."""
    query, key = torch.tensor([[1e4]]), torch.tensor([[1e4], [1e4 + 1], [1e4 + 2]])
    torch.testing.assert_close(S.Gaussian(1.0)(query, key), torch.tensor([[0.0, -0.5, -2.0]]), rtol=0, atol=0)


def test_exact_is_a_lookup_with_no_result_of_zero() -> None:
    majors = torch.tensor([[1.0], [2.0], [3.0]])
    students = torch.tensor([[10.0], [20.0], [10.0]])
    asked = torch.tensor([[20.0], [10.0], [99.0]])
    found = attention(asked, students, majors, score=S.Exact(), normalizer=normalizers.Identity())
    assert found.tolist() == [[2.0], [4.0], [0.0]]  # one match; two matches, added; none


def test_alibi_slopes_of_8_heads() -> None:
    """The slopes of the ALiBi paper: 1/2, 1/4, ..., 1/256."""
    zero = torch.zeros(1, 8, 1, 1)
    at_distance_1 = (S.Dot() + S.Alibi(8, align=1))(zero, zero)
    assert at_distance_1.flatten().tolist() == [-(2.0**-power) for power in range(1, 9)]


def test_relative_bias_is_clipped_at_its_reach() -> None:
    score = S.Dot() + S.RelativeBias(1, 1)
    score.bias.table.data = torch.tensor([[10.0, 20.0, 30.0]])  # j - i of -1, 0, 1
    zero = torch.zeros(1, 4, 2)
    assert score(zero, zero)[0].tolist() == [
        [20.0, 30.0, 30.0, 30.0],
        [10.0, 20.0, 30.0, 30.0],
        [10.0, 10.0, 20.0, 30.0],
        [10.0, 10.0, 10.0, 20.0],
    ]


def test_biases_add_up() -> None:
    query = vectors(1, H, N_Q, D, seed=1)
    once, twice = S.Dot() + S.Alibi(H), S.Dot() + S.Alibi(H) + S.Alibi(H)
    torch.testing.assert_close(twice(query, query) - once(query, query), once(query, query) - S.Dot()(query, query))


def test_soft_cap_bounds_without_changing_small_scores() -> None:
    query = torch.tensor([[1e-3], [1e6]], dtype=torch.float64)
    capped = S.SoftCap(S.Dot(), 5.0)(query, torch.ones(1, 1, dtype=torch.float64))
    torch.testing.assert_close(capped, torch.tensor([[1e-3], [5.0]], dtype=torch.float64), rtol=1e-6, atol=0)


def test_a_function_is_a_score() -> None:
    query, key = vectors(N_Q, D, seed=1), vectors(N_K, D, seed=2)
    value = vectors(N_K, 2, seed=3)
    torch.testing.assert_close(
        attention(query, key, value, score=lambda q, k: q @ k.mT), attention(query, key, value, score=S.Dot())
    )


def test_a_score_of_ones_own_is_one_small_class() -> None:
    class Cosine(S.Score):
        def pair(self, query: Tensor, key: Tensor) -> Tensor:
            return torch.cosine_similarity(query[..., :, None, :], key[..., None, :, :], dim=-1)

    query = torch.tensor([[1.0, 0.0]])
    key = torch.tensor([[2.0, 0.0], [0.0, 3.0], [-4.0, 0.0]])
    assert Cosine()(query, key).tolist() == [[1.0, 0.0, -1.0]]


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_scores_are_computed_in_float32(half: torch.dtype) -> None:
    assert S.Dot()(torch.ones(1, 4, dtype=half), torch.ones(1, 4, dtype=half)).dtype == torch.float32


# What is wrong is said with the axis, both sizes and the cure.

X, Y = torch.zeros(1, 2, 4), torch.zeros(1, 2, 6)

REFUSALS = [
    (lambda: S.Dot()(X, Y), ShapeError, r"key has d_k=6, query has d_q=4: Dot needs equal sizes; try Bilinear\(4, 6\)"),
    (lambda: S.Gaussian()(X, Y), ShapeError, r"Gaussian needs equal sizes; try Bilinear\(4, 6\)"),
    (lambda: S.Exact()(X, Y), ShapeError, r"Exact needs equal sizes"),
    (lambda: S.SoftCap(S.Dot(), 1.0)(X, Y), ShapeError, r"Dot needs equal sizes"),
    (lambda: S.Bilinear(5, 6)(X, Y), ShapeError, r"query has d_q=4, Bilinear was made for d_q=5"),
    (lambda: S.Additive(4, 5, 3)(X, Y), ShapeError, r"key has d_k=6, Additive was made for d_k=5"),
    (lambda: S.TanhSum(4)(X, Y), ShapeError, r"key has d_k=6, TanhSum was made for d_k=4"),
    (lambda: S.Gated(4, 6), ShapeError, r"Gated: d_q=4, d_k=6: .* needs equal sizes"),
    (lambda: S.Gaussian(0.0), InputError, r"sigma=0.0; expected more than 0"),
    (lambda: S.Gaussian(math.nan), InputError, r"sigma=nan; expected more than 0"),
    (lambda: S.SoftCap(S.Dot(), -1.0), InputError, r"cap=-1.0; expected more than 0"),
    (lambda: S.Alibi(0), InputError, r"Alibi: heads=0; expected 1 or more"),
    (lambda: S.RelativeBias(1, -1), InputError, r"RelativeBias: reach=-1; expected 0 or more"),
    (lambda: S.Dot() + torch.ones(2, 2), DTypeError, r"score \+ Tensor: expected a bias .* goes into mask="),
    (lambda: S.Additive(4, 4, 3, heads=2) + S.Alibi(4), ShapeError, r"score has heads=2, the bias has heads=4"),
    (lambda: (S.Dot() + S.Alibi(1))(X, torch.zeros(1, 3, 4)), ShapeError, r"Alibi: n_q=2, n_k=3: .* align='start'"),
    (
        lambda: attention(X, X[:, :1], X[:, :1], score=lambda q, k: q),
        ShapeError,
        r"your score returned .*; expected .* n_q=2, n_k=1",
    ),
    (lambda: attention(X, X, X, score=lambda q, k: 1.0), ShapeError, r"your score returned float"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSALS, ids=[message for _, _, message in REFUSALS])
def test_refuses_aloud(wrong, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()
