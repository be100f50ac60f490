"""F8: the two layers that self-attention replaces, and what they cost."""

import pytest
import torch

import regard
from regard.nn import FullyConnectedSequence, FullyConnectedWindow, parameter_counts


@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 1), (2, 0), (0, 3), (7, 7)])
def test_window_is_an_explicit_loop(left, right):
    layer = FullyConnectedWindow(d=3, d_out=2, left=left, right=right)
    x = torch.randn(2, 5, 3)
    for row, out in zip(x, layer(x), strict=True):
        for i in range(5):
            seen = [row[j] if 0 <= j < 5 else torch.zeros(3) for j in range(i - left, i + right + 1)]
            torch.testing.assert_close(out[i], layer.linear(torch.cat(seen)))


def test_window_by_hand():
    layer = FullyConnectedWindow(d=1, d_out=1, left=1, right=1)
    torch.nn.init.constant_(layer.linear.weight, 1.0)
    torch.nn.init.constant_(layer.linear.bias, 0.0)
    assert layer(torch.tensor([[1.0], [2.0], [4.0]])).flatten().tolist() == [3, 7, 6]  # 0+1+2, 1+2+4, 2+4+0


def test_a_word_outside_the_window_is_not_seen():
    layer, x = FullyConnectedWindow(d=2, d_out=2, left=1, right=0), torch.randn(6, 2)
    changed = x.clone()
    changed[2] += 1
    differs = (layer(x) != layer(changed)).any(-1)
    assert differs.tolist() == [False, False, True, True, False, False]


def test_sequence_pads_with_zeros():
    layer, x = FullyConnectedSequence(d=2, d_out=3, n_max=4), torch.randn(5, 3, 2)
    padded = torch.cat([x, torch.zeros(5, 1, 2)], 1)
    assert layer(x).shape == (5, 3, 3)
    torch.testing.assert_close(layer(x), layer(padded)[:, :3])
    torch.testing.assert_close(layer(padded).flatten(1), layer.linear(padded.flatten(1)))


def test_sequence_refuses_what_is_longer():
    with pytest.raises(regard.ShapeError, match=r"x has n=5, .* at most n_max=4; cut x, or .* n_max=5"):
        FullyConnectedSequence(d=2, d_out=2, n_max=4)(torch.randn(5, 2))


@pytest.mark.parametrize("layer", [FullyConnectedWindow(3, 2, 1, 1), FullyConnectedSequence(3, 2, 4)], ids=["w", "s"])
def test_no_words_and_wrong_widths(layer):
    assert layer(torch.zeros(0, 3)).shape == (0, 2)
    assert layer(torch.zeros(0, 4, 3)).shape == (0, 4, 2)
    with pytest.raises(regard.ShapeError, match=r"x has shape \(4, 5\), FullyConnected.* with d=3"):
        layer(torch.zeros(4, 5))


def test_sizes_that_cannot_be():
    with pytest.raises(regard.InputError, match="left=-1; expected 0 or more"):
        FullyConnectedWindow(2, 2, -1, 0)
    with pytest.raises(regard.InputError, match="n_max=0; expected 1 or more"):
        FullyConnectedSequence(2, 2, 0)


def test_parameter_counts_by_hand():
    counts = parameter_counts(d=2, d_out=3, n_max=10, left=1, right=2)
    assert counts == {
        "window": 4 * 2 * 3 + 3,  # four words of two numbers to three numbers, and three biases
        "sequence": 20 * 30 + 30,
        "self-attention": 3 * 2 * 3,  # W_q, W_k, W_v
    }


def test_what_each_count_grows_with():
    base = parameter_counts(8, 8, n_max=100, left=1, right=1)
    wider = parameter_counts(8, 8, n_max=100, left=4, right=4)
    longer = parameter_counts(8, 8, n_max=200, left=1, right=1)
    assert wider["window"] - 8 == 3 * (base["window"] - 8)  # three times the window, without the biases
    assert longer["sequence"] - 1600 == 4 * (base["sequence"] - 800)  # twice the length: four times
    assert base["self-attention"] == wider["self-attention"] == longer["self-attention"]


def test_counting_needs_no_memory():
    assert parameter_counts(512, 512, n_max=4096, left=0, right=0)["sequence"] == (4096 * 512) ** 2 + 4096 * 512
