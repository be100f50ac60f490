"""Attention modules: many heads against one head at a time written out, caches, noise, LengthMap."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import regard
from regard import masks as M
from regard import normalizers as N
from regard import scores as S
from regard.nn import Attention, Cache, LengthMap, MultiHeadAttention, Rotary
from tests.mechanisms import NORMALIZERS, SCORES, Row, ids

D, HEADS = 8, 2
LENGTHS = torch.tensor([5, 3])


def one_head(module: MultiHeadAttention, head: int, query: Tensor, memory: Tensor, score=None, mask=None) -> Tensor:
    """Head `head` alone, by its own rows of W_q, W_k and W_v: (*batch, n_q, d_v)."""

    def rows(linear: nn.Linear, head: int, width: int) -> tuple[Tensor, Tensor]:
        part = slice(head * width, (head + 1) * width)
        return linear.weight[part], linear.bias[part]

    shared = head * module.key_heads // module.heads
    q = nn.functional.linear(query, *rows(module.w_q, head, module.d_head))
    k = nn.functional.linear(memory, *rows(module.w_k, shared, module.d_head))
    v = nn.functional.linear(memory, *rows(module.w_v, shared, module.d_v))
    return regard.attention(q, k, v, score=score, mask=mask, backend="reference")


def all_heads(module: MultiHeadAttention, query: Tensor, memory: Tensor, scores=None, masks=None) -> Tensor:
    scores, masks = scores or [None] * module.heads, masks or [None] * module.heads
    heads = [one_head(module, h, query, memory, scores[h], masks[h]) for h in range(module.heads)]
    return module.w_o(torch.cat(heads, dim=-1))


# One attention


def test_the_module_is_the_call():
    q, k, v = torch.randn(3, 4, D), torch.randn(3, 6, D), torch.randn(3, 6, 5)
    module = Attention(S.Gaussian(1.0), N.Sparsemax())
    expected = regard.attention(q, k, v, score=S.Gaussian(1.0), normalizer=N.Sparsemax())
    assert torch.equal(module(q, k, v), expected)


def test_dropout_is_noise_in_training_only():
    q, v = torch.randn(2, 6, D), torch.randn(2, 6, D)
    module = Attention(dropout=0.5)
    torch.manual_seed(1)
    a, b = module(q, q, v), module(q, q, v)
    torch.manual_seed(1)
    assert torch.equal(module(q, q, v), a)
    assert not torch.equal(a, b)
    module.eval()
    assert torch.equal(module(q, q, v), regard.attention(q, q, v))


def test_gumbel_draws_in_training_and_chooses_in_evaluation():
    q, v = torch.randn(1, 50, D), torch.randn(1, 50, D)
    module = Attention(normalizer=N.GumbelHard())
    assert not torch.equal(module(q, q, v), module(q, q, v))
    module.eval()
    assert torch.equal(module(q, q, v), regard.attention(q, q, v, normalizer=N.Hard()))


# Many heads


@pytest.mark.parametrize(
    "sizes",
    [
        {"heads": 1},
        {"heads": 2},
        {"heads": D, "d_head": 1},
        {"heads": 2, "d_head": 3, "d_v": 5},
        {"heads": 4, "key_heads": 2},
        {"heads": 4, "key_heads": 1, "d_v": 3},
    ],
    ids=str,
)
def test_heads_side_by_side_are_heads_one_by_one(sizes):
    module, x = MultiHeadAttention(D, **sizes), torch.randn(3, 5, D)
    torch.testing.assert_close(module(x), all_heads(module, x, x), atol=1e-5, rtol=1e-4)


def test_cross_attention_of_other_widths():
    module = MultiHeadAttention(D, HEADS, d_key=6, d_value=4, d_out=3)
    assert module(torch.randn(2, 5, D), torch.randn(2, 7, 6), torch.randn(2, 7, 4)).shape == (2, 5, 3)
    module, x, memory = MultiHeadAttention(D, HEADS, d_key=6), torch.randn(2, 5, D), torch.randn(2, 7, 6)
    torch.testing.assert_close(module(x, memory), all_heads(module, x, memory))


def test_a_key_that_is_copied_weighs_double_and_value_goes_its_own_way():
    """By hand: with all weights zero but values passed through, every query gets the mean of the values."""
    module = MultiHeadAttention(2, 1, bias=False)
    for linear in (module.w_q, module.w_k):
        nn.init.zeros_(linear.weight)
    for linear in (module.w_v, module.w_o):
        nn.init.eye_(linear.weight)
    x, value = torch.randn(1, 3, 2), torch.tensor([[[0.0, 3.0], [3.0, 3.0], [6.0, 3.0]]])
    torch.testing.assert_close(module(x, x, value), torch.tensor([[[3.0, 3.0]] * 3]))


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_a_score_for_each_head(key_heads):
    scores = [
        S.Dot(),
        S.Additive(2, 2, 3),
        S.Gaussian(2.0),
        lambda q, k: q.sum(-1)[..., None] * k.sum(-1)[..., None, :],
    ]
    module, x = MultiHeadAttention(D, 4, score=scores, key_heads=key_heads), torch.randn(3, 5, D)
    torch.testing.assert_close(module(x), all_heads(module, x, x, scores=scores), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("own_scores", [False, True])
@pytest.mark.parametrize(
    ("mask", "of_head"),
    [
        ([M.causal(), M.window(1, 1)], lambda h: [M.causal(), M.window(1, 1)][h]),
        (
            [M.causal(), M.padding(LENGTHS)],  # one of them knows the batch, the other does not
            lambda h: [M.causal(), M.padding(LENGTHS)][h],
        ),
        (
            M.per_head([M.blocks(2), M.causal()]) & M.padding(LENGTHS),
            lambda h: [M.blocks(2), M.causal()][h] & M.padding(LENGTHS),
        ),
        (M.causal() & M.padding(LENGTHS), lambda h: M.causal() & M.padding(LENGTHS)),
    ],
    ids=["two rules", "rule and padding", "rules and padding", "one for all"],
)
def test_a_mask_for_each_head(mask, of_head, own_scores):
    scores = [S.Dot(), S.Gaussian(1.0)] if own_scores else None
    module, x = MultiHeadAttention(D, HEADS, score=scores), torch.randn(2, 5, D)
    expected = all_heads(module, x, x, scores, [of_head(0), of_head(1)])
    torch.testing.assert_close(module(x, mask=mask), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("own_scores", [False, True])
@pytest.mark.parametrize("kind", ["bool", "bias", "dense"])
@pytest.mark.parametrize("shape", [(5, 5), (HEADS, 5, 5), (2, 1, 5, 5), (2, HEADS, 5, 5)], ids=str)
def test_a_mask_written_out(shape, kind, own_scores):
    allowed = torch.rand(shape) < 0.7
    bias = torch.where(allowed, torch.randn(shape), float("-inf"))
    mask = {"bool": allowed, "bias": bias, "dense": M.dense(allowed)}[kind]
    full = (bias if kind == "bias" else allowed).expand(2, HEADS, 5, 5)
    scores = [S.Dot(), S.Gaussian(1.0)] if own_scores else None
    module, x = MultiHeadAttention(D, HEADS, score=scores), torch.randn(2, 5, D)
    expected = all_heads(module, x, x, scores, [full[:, 0], full[:, 1]])
    torch.testing.assert_close(module(x, mask=mask), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("row", **ids(SCORES))
def test_every_score_trains(row: Row):
    module, x = MultiHeadAttention(8, HEADS, score=row.make()), torch.randn(2, 5, 8)
    module(x, mask=M.padding(LENGTHS)).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.w_v.parameters())


@pytest.mark.parametrize("row", **ids(NORMALIZERS))
def test_every_normalizer_trains(row: Row):
    module, x = MultiHeadAttention(8, HEADS, normalizer=row.make()), torch.randn(2, 5, 8)
    module(x, mask=M.causal()).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.w_v.parameters())


def test_heads_with_scores_of_their_own_have_sinks_of_their_own():
    module = MultiHeadAttention(D, 2, score=[S.Dot(), S.ScaledDot()], normalizer=N.Softmax(sink=True))
    sinks = [one.normalizer.sink for one in module.attentions]
    assert sinks[0] is not sinks[1]
    with pytest.raises(
        regard.InputError, match=r"normalizer has heads=2, .* expected a normalizer for one head \(heads=None"
    ):
        MultiHeadAttention(D, 2, score=[S.Dot(), S.Dot()], normalizer=N.Softmax(sink=True, heads=2))


def test_batch_axes_are_free():
    module, x = MultiHeadAttention(D, HEADS), torch.randn(2, 3, 5, D)
    lengths = torch.tensor([[5, 1, 3], [2, 4, 5]])
    out = module(x, mask=M.padding(lengths))
    torch.testing.assert_close(out[1, 1, :4], module(x[1, 1, :4]))
    torch.testing.assert_close(module(x[0, 0]), module(x)[0, 0])


def test_sizes_that_cannot_be():
    with pytest.raises(regard.ShapeError, match="d=8 does not divide into heads=3; give d_head"):
        MultiHeadAttention(8, 3)
    with pytest.raises(regard.ShapeError, match="key_heads=3 does not divide heads=4"):
        MultiHeadAttention(8, 4, key_heads=3)
    with pytest.raises(regard.InputError, match="a list of 3 for heads=2; expected one for each head"):
        MultiHeadAttention(8, 2, score=[S.Dot()] * 3)


# Order


def test_without_a_position_order_is_not_seen():
    module, x, order = MultiHeadAttention(D, HEADS), torch.randn(2, 6, D), torch.randperm(6)
    torch.testing.assert_close(module(x[:, order]), module(x)[:, order])


def test_with_a_rotary_position_it_is():
    module, x = MultiHeadAttention(D, HEADS, rotary=Rotary(D // HEADS)), torch.randn(2, 6, D)
    order = torch.tensor([1, 0, 2, 3, 4, 5])
    assert (module(x[:, order]) - module(x)[:, order]).abs().max() > 1e-3


# Caches


@pytest.mark.parametrize(
    "sizes", [{}, {"key_heads": 1}, {"rotary": Rotary(D // HEADS)}, {"score": [S.Dot(), S.Dot()]}], ids=str
)
@pytest.mark.parametrize("pieces", [[1] * 6, [3, 1, 2], [6]], ids=str)
@pytest.mark.parametrize(
    "mask",
    [M.causal(), M.window(2, 0), M.causal() & M.blocks(3), [M.causal(), M.window(1, 0)]],
    ids=["causal", "window", "blocks", "per head"],
)
def test_step_by_step_is_all_at_once(sizes, pieces, mask):
    """With a cache, a mask speaks of the whole sequence: each piece sees what its rows see in it."""
    module, x, cache = MultiHeadAttention(D, HEADS, **sizes), torch.randn(2, 6, D), Cache()
    steps = [module(piece, mask=mask, cache=cache) for piece in x.split(pieces, dim=1)]
    assert len(cache) == 6
    torch.testing.assert_close(torch.cat(steps, dim=1), module(x, mask=mask), atol=1e-5, rtol=1e-5)


def test_cross_attention_projects_its_memory_once():
    module, cache = MultiHeadAttention(D, HEADS), Cache()
    x, memory = torch.randn(2, 3, D), torch.randn(2, 5, D)
    first = module(x[:, :1], memory, cache=cache)
    kept = cache.key
    second = module(x[:, 1:], memory, cache=cache)
    assert cache.key is kept
    torch.testing.assert_close(torch.cat([first, second], 1), module(x, memory))


def test_a_cache_cannot_know_where_rotated_queries_stand_in_a_memory():
    module, x = MultiHeadAttention(D, HEADS, rotary=Rotary(D // HEADS)), torch.randn(2, 3, D)
    with pytest.raises(regard.InputError, match=r"where do the queries stand .* use rotary=None"):
        module(x, x, cache=Cache())


def test_a_cache_keeps_chosen_rows():
    module, x, cache = MultiHeadAttention(D, HEADS), torch.randn(3, 4, D), Cache()
    module(x, cache=cache)
    cache.select(torch.tensor([2, 0, 2]))
    again = Cache()
    module(x[[2, 0, 2]], cache=again)
    torch.testing.assert_close(cache.key, again.key)
    torch.testing.assert_close(cache.value, again.value)


# Another length


def test_length_map_by_hand():
    layer = LengthMap(n=3, n_out=2, d_v=1, d_out=2)
    with torch.no_grad():
        layer.w_o[:] = 0
        layer.w_o[0, :, 0] = 1  # output 0, word 0: the sum of all positions
        layer.w_o[1, 2, 1] = 5  # output 1, word 1: five times the last position
    assert layer(torch.tensor([[[1.0], [2.0], [4.0]]])).tolist() == [[[7, 0], [0, 20]]]
    assert layer(torch.tensor([[[1.0], [2.0]]])).tolist() == [[[3, 0], [0, 0]]]  # shorter: zeros after it


def test_length_map_is_an_explicit_sum():
    layer, b = LengthMap(n=4, n_out=3, d_v=2, d_out=5), torch.randn(2, 4, 2)
    out = layer(b)
    assert out.shape == (2, 3, 5)
    for m in range(3):
        for c in range(5):
            by_hand = sum(layer.w_o[m, i, c, v] * b[:, i, v] for i in range(4) for v in range(2))
            torch.testing.assert_close(out[:, m, c], by_hand)


def test_length_map_adds_nothing_for_padding():
    layer, b = LengthMap(n=4, n_out=3, d_v=2, d_out=5), torch.randn(2, 4, 2)
    b[1, 2:] = float("nan")
    out = layer(b, lengths=torch.tensor([4, 2]))
    torch.testing.assert_close(out[1], layer(b[1, :2]))
    torch.testing.assert_close(out[0], layer(b[0]))


def test_length_map_refuses():
    layer = LengthMap(n=4, n_out=3, d_v=2, d_out=5)
    with pytest.raises(regard.ShapeError, match=r"b has n=6, LengthMap was made for at most n=4; cut b, or .*n=6"):
        layer(torch.randn(6, 2))
    with pytest.raises(regard.ShapeError, match="b has d_v=3, LengthMap was made for d_v=2"):
        layer(torch.randn(4, 3))
