"""What the page needs to walk through one attention. (That its numbers are torch's is tested in the browser.)"""

import json

import pytest
import torch

from regard import InputError, masks
from regard.normalizers import Normalizer, Softmax
from regard.scores import Additive, Alibi, Bilinear, ScaledDot, SoftCap
from regard.see.walkthrough import normalizer_of, score_of, walk_of
from regard.steps import step_by_step

WORDS = ["This", "is", "a", "cat"]


def test_it_holds_what_the_steps_hold():
    a, *w = (torch.randn(4, 4, dtype=torch.float64) for _ in range(4))
    score, normalizer = ScaledDot(), Softmax()
    steps = step_by_step(a, *w, score=score, normalizer=normalizer, mask=masks.causal())
    walk = walk_of(
        WORDS, steps, dict(zip("qkv", w, strict=True)), {"scaled-dot": score}, {"softmax": normalizer},
        score="scaled-dot", normalizer="softmax",
    )  # fmt: skip
    read = json.loads(json.dumps(walk, allow_nan=False))
    assert read["a"] == a.tolist()
    assert read["W"]["k"] == w[1].tolist()
    assert read["torch"]["b"] == steps.b.tolist()
    assert read["allowed"][0] == [True, False, False, False]
    assert read["scores"]["scaled-dot"]["formula"].startswith("s = q · k / √d_k")


def test_a_score_that_the_page_does_not_know_brings_its_numbers():
    q, k = torch.randn(3, 2), torch.randn(3, 2)

    class Mine(ScaledDot):
        """s = −|q − k|"""

        def pair(self, query, key):
            return -torch.cdist(query, key)

    assert score_of(Mine(), q, k)["kind"] == "Given"
    torch.testing.assert_close(torch.tensor(score_of(Mine(), q, k)["given"]), Mine()(q, k))
    inner = score_of(SoftCap(Mine(), 2.0), q, k)
    assert (inner["kind"], inner["score"]["kind"]) == ("SoftCap", "Given")


def test_biases_become_their_numbers():
    q = torch.randn(3, 2)
    found = score_of(ScaledDot() + Alibi(1), q, q)
    assert found["kind"] == "Biased"
    bias = torch.tensor(found["bias"])
    torch.testing.assert_close(
        bias, (ScaledDot() + Alibi(1))(q, q).reshape(3, 3) - ScaledDot()(q, q), atol=1e-6, rtol=0
    )


def test_parts_with_heads_of_their_own_are_not_taken_for_one_head():
    q = torch.randn(1, 3, 2)
    for score in (Bilinear(2, 2, heads=1), Additive(2, 2, 4, heads=1)):
        assert score_of(score, q, q)["kind"] == "Given"


def test_bad_input():
    class Mine(Normalizer):
        """w = s"""

        def weigh(self, scores, allowed):
            return scores

    with pytest.raises(InputError, match="no walk-through for the normalizer Mine"):
        normalizer_of(Mine())
    a, *w = (torch.randn(2, 4, 4) for _ in range(4))
    steps = step_by_step(a, *(x[0] for x in w))
    with pytest.raises(InputError, match="needs one sentence and one head"):
        walk_of(WORDS, steps, None, {}, {}, score="", normalizer="")
