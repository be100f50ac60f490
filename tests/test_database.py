"""A1 and A2 of the catalogue: exact and soft lookup."""

import datetime
import math

import pytest
import torch

from regard import InputError, ShapeError
from regard import normalizers as N
from regard import scores as S
from regard.database import Database

MAJORS = Database(["Ann", "Bob", "Eve"], ["Physics", "Law", "Physics"])
GPA, SALARY = [3.0, 3.4, 3.5, 3.6, 4.0], [51000.0, 58500.0, 62000.0, 63500.0, 78000.0]


# A1: exact lookup


def test_the_weights_are_one_hot_and_the_answer_is_the_stored_value():
    answer = MAJORS.query("Bob")
    assert answer.weights.tolist() == [0, 1, 0]
    assert answer.found == [("Bob", "Law", 1.0)]
    assert answer.value is None  # "Law" has no weighted sum


def test_several_equal_keys_return_all_their_values():
    answer = Database(["Ann", "Bob", "Ann"], ["Physics", "Law", "Music"]).query("Ann")
    assert answer.found == [("Ann", "Physics", 1.0), ("Ann", "Music", 1.0)]


def test_equal_keys_add_their_numbers_as_the_formula_says():
    assert Database([1, 2, 1], [10, 20, 30]).query(1).value == 40


def test_a_query_that_matches_nothing_finds_nothing():
    assert MAJORS.query("Zoe").found == []
    assert str(MAJORS.query("Zoe")) == "nothing found"
    answer = Database(GPA, SALARY).query(3.7)
    assert answer.weights.tolist() == [0] * 5
    assert answer.value == 0


def test_only_keys_can_be_queried_and_the_inverse_exchanges_them_with_the_values():
    assert MAJORS.query("Physics").found == []
    assert [name for _, name, _ in MAJORS.inverse().query("Physics").found] == ["Ann", "Eve"]
    assert MAJORS.inverse().inverse().query("Bob").found == [("Bob", "Law", 1.0)]


@pytest.mark.parametrize(
    "keys",
    [
        ["a", "b"],
        [1, 2],
        [0.1, 0.2],
        [True, False],
        [(1, 2), (1, 3)],
        [("a", 1), ("a", 2)],
        [[1], [1, 2]],
        [{"a": 1}, {"a": 2}],
        [None, "x"],
        [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)],
        [2**53, 2**53 + 1],
        [2**70, 2**70 + 1],
        [b"a", object],
        [torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0])],
    ],
    ids=str,
)
def test_keys_and_values_of_any_type(keys):
    database = Database(keys, ["first", "second"])
    assert [value for _, value, _ in database.query(keys[0]).found] == ["first"]
    assert [value for _, value, _ in database.query(keys[1]).found] == ["second"]
    assert len(database.inverse().query("second").found) == 1


def test_large_whole_numbers_are_not_mixed_up():
    ids = torch.tensor([2**53, 2**53 + 1, -(2**62)])
    database = Database(ids, [1, 2, 3])
    assert database.query(ids).value.tolist() == [1, 2, 3]
    assert database.query(2**53 + 2).found == []
    assert database.query(0.5).found == []


def test_a_decimal_fraction_is_found_again():
    assert Database(torch.tensor([3.4, 3.5]), [1, 2]).query(3.4).value == 1
    assert Database([3.4, 3.5], [1, 2]).query(3.4).value == 1


# A2: soft lookup


def test_near_keys_weigh_most():
    answer = Database(GPA, SALARY).query(3.5, score=S.Gaussian(0.1))
    raw = [math.exp(-((3.5 - k) ** 2) / (2 * 0.1**2)) for k in GPA]
    weights = [w / sum(raw) for w in raw]
    assert answer.weights.tolist() == pytest.approx(weights, rel=1e-12)
    assert answer.value.item() == pytest.approx(sum(w * s for w, s in zip(weights, SALARY, strict=True)), rel=1e-12)
    assert answer.found[0][:2] == (3.5, 62000.0)
    assert {key for key, _, _ in answer.found[-2:]} == {3.0, 4.0}


@pytest.mark.parametrize(
    "normalizer",
    [N.Softmax(), N.Sparsemax(), N.Entmax(1.5), N.Sigmoid(-1.0), N.ReLU(), N.Identity(), N.Hard()],
    ids=repr,
)
@pytest.mark.parametrize(
    "score", [S.Dot(), S.ScaledDot(), S.Gaussian(0.5), S.Exact(), S.Additive(1, 1, 4), S.Bilinear(1, 1)], ids=repr
)
def test_any_score_and_normalizer_over_a_table(score, normalizer):
    answer = Database(GPA, SALARY).query(3.5, score=score, normalizer=normalizer)
    expected = (answer.weights * torch.tensor(SALARY, dtype=torch.float64)).sum()
    torch.testing.assert_close(answer.value, expected)
    assert answer.weights.isfinite().all()


def test_a_drawn_key_is_the_one_that_answers():
    """GumbelHard: the weights shown and the value are of the same draw."""
    database = Database([1.0, 2.0, 3.0], [10, 20, 30])
    for _ in range(20):
        answer = database.query(2.0, score=S.Gaussian(5.0), normalizer=N.GumbelHard())
        assert answer.value.item() == answer.found[0][1]


def test_a_score_of_your_own():
    answer = Database([1.0, 2.0], [10, 20]).query(2.0, score=lambda q, k: q @ k.mT, normalizer=N.Identity())
    assert answer.weights.tolist() == [2, 4]
    assert answer.value == 100


def test_vector_keys_and_values():
    answer = Database(torch.eye(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]])).query([0, 1])
    assert answer.value.tolist() == [3, 4]


def test_a_batch_of_queries_adds_a_leading_axis():
    answer = Database([1, 2, 3], [10, 20, 30]).query([3, 7])
    assert answer.weights.tolist() == [[0, 0, 1], [0, 0, 0]]
    assert answer.value.tolist() == [30, 0]
    assert answer.found == [[(3, 30, 1.0)], []]
    assert str(answer).endswith("query 1: nothing found")
    assert Database(torch.eye(2), [5, 6]).query(torch.eye(2)).value.tolist() == [5, 6]


def test_the_answer_is_differentiable():
    keys = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    Database(keys, [0.0, 1.0]).query(0.5, score=S.Gaussian(1.0)).value.backward()
    # w1 = 1/2 and s1 = -(q - k1)²/2, so d value / d k1 = w1 (1 - w1) (q - k1) = -1/8; the same for k0
    assert keys.grad.tolist() == pytest.approx([-0.125, -0.125])


def test_a_query_too_far_for_any_weight_gives_zeros_not_nan():
    answer = Database([1.0, 2.0], [10, 20]).query(1e300, score=S.Gaussian(1.0))
    assert answer.value == 0
    assert str(answer) == "nothing found"


# What is wrong is said


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        ([1, 2], [1], r"keys has n=2, values has n=1: each key needs one value"),
        ([], [], "the database is empty"),
        ([1.0, math.nan], [1, 2], r"keys\[1\] is nan: expected finite numbers; drop that pair"),
        ([1.0, 2.0], [math.inf, 2], r"values\[0\] is inf"),
        (torch.zeros(2, 2, 2), [1, 2], r"keys has shape \(2, 2, 2\); expected \(n,\) or \(n, d\)"),
        ("ab", [1, 2], "keys is str; expected a list"),
        (3, [1, 2], "keys is int; expected a list"),
    ],
)
def test_a_table_that_is_none(keys, values, message):
    with pytest.raises(InputError, match=message):
        Database(keys, values)


def test_a_query_of_the_wrong_width():
    with pytest.raises(ShapeError, match=r"query has shape \(3,\), each key is a vector of d=2; expected \(2,\)"):
        Database(torch.eye(2), [1, 2]).query([1, 2, 3])
    with pytest.raises(ShapeError, match=r"query has shape \(1, 1\), each key is a number; expected one number"):
        Database([1, 2], [1, 2]).query([[1]])
    with pytest.raises(InputError, match="query 'Ann' is not a number"):
        Database([1, 2], [1, 2]).query("Ann")
    with pytest.raises(InputError, match="query nan is not finite"):
        Database([1, 2], [1, 2]).query(math.nan)


def test_texts_are_near_to_nothing():
    with pytest.raises(InputError, match=r"Gaussian compares numbers.*'Ann'.*use Exact\(\)"):
        MAJORS.query("Ann", score=S.Gaussian(1.0))


def test_scores_beyond_the_range_are_an_error_not_nan():
    with pytest.raises(InputError, match="weights that are not finite"):
        Database([1e200, 2e200], [1, 2]).query(1e200, score=S.Dot())
