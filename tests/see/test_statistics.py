"""Numbers about maps that a person can check by hand."""

import math

import pytest
import torch

from regard import InputError
from regard.see.statistics import entropy, patterns, rollout


def test_entropy_counts_over_how_many_keys_a_query_spreads():
    weights = torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.0, 1.0, 0.0, 0.0], [0.5, -0.5, 0.0, 0.0], [0.0] * 4])
    assert entropy(weights).exp().tolist() == pytest.approx([4, 1, 2, 1])
    assert entropy(10 * weights)[0] == pytest.approx(math.log(4))  # of |w| / Σ|w|


def test_patterns():
    itself = torch.eye(4)
    before = torch.eye(4).roll(-1, 1)
    before[0] = 0  # the first has none before it
    first = torch.zeros(4, 4)
    first[:, 0] = 1
    found = patterns(torch.stack([itself, before, first]))
    assert found["diagonal"].tolist() == [1, 0, 0.25]
    assert found["previous"].tolist() == pytest.approx([0, 1, 1 / 3])
    assert found["first"].tolist() == [0.25, 0.25, 1]
    assert patterns(torch.zeros(2, 3, 0))["first"].tolist() == [0, 0]


def test_rollout_multiplies_from_the_first_layer_to_the_last():
    swap, first = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    # Half of each layer is the token itself: [[1, 0], [½, ½]] · [[½, ½], [½, ½]]
    assert rollout(torch.stack([swap, first]), [0, 1]).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert rollout(torch.stack([first, swap]), [0, 1]).tolist() == [[0.75, 0.25], [0.75, 0.25]]
    assert rollout(torch.stack([first, swap]), [1, 0]).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    heads = rollout(torch.stack([swap, torch.eye(2)]), [0, 0])  # the mean of a layer's heads
    assert heads.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    with pytest.raises(InputError, match="rollout: 2 queries and 3 keys; expected self-attention"):
        rollout(torch.zeros(1, 2, 3), [0])
