"""Encoder and decoder layers: the residuals written out, order, stacks, compilation, saving."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

import regard
from regard import masks as M
from regard import normalizers as N
from regard import scores as S
from regard.nn import (
    Cache,
    DecoderLayer,
    DecoderStack,
    EncoderLayer,
    EncoderStack,
    FeedForward,
    LayerCache,
    Learned,
    Rotary,
    Sinusoidal,
)
from regard.scores import Alibi

D, HEADS, HIDDEN = 8, 2, 16


def test_feed_forward_by_hand():
    layer = FeedForward(1, 2, activation="relu")
    with torch.no_grad():
        layer.w_1.weight[:], layer.w_1.bias[:] = torch.tensor([[1.0], [-1.0]]), 0
        layer.w_2.weight[:], layer.w_2.bias[:] = torch.tensor([[1.0, 1.0]]), 0
    assert layer(torch.tensor([[3.0], [-2.0]])).tolist() == [[3.0], [2.0]]  # relu(x) + relu(-x) = |x|
    with pytest.raises(regard.InputError, match="activation='swish'; expected one of relu, gelu, silu"):
        FeedForward(1, 2, activation="swish")


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_an_encoder_layer_written_out(norm):
    layer, x = EncoderLayer(D, HEADS, HIDDEN, norm=norm), torch.randn(2, 5, D)
    a, f = layer.attention, layer.feed_forward
    n_1, n_2 = layer.around_attention.norm, layer.around_feed_forward.norm
    for one in (n_1, n_2):
        nn.init.normal_(one.weight)
    if norm == "pre":
        y = x + a(n_1(x))
        expected = y + f(n_2(y))
    else:
        y = n_1(x + a(x))
        expected = n_2(y + f(y))
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_decoder_layer_written_out(norm):
    layer = DecoderLayer(D, HEADS, HIDDEN, norm=norm, d_memory=6)
    x, memory, mask, seen = torch.randn(2, 5, D), torch.randn(2, 7, 6), M.causal(), M.padding(torch.tensor([7, 2]))
    blocks = [
        (layer.around_attention.norm, lambda x: layer.attention(x, mask=mask)),
        (layer.around_cross_attention.norm, lambda x: layer.cross_attention(x, memory, mask=seen)),
        (layer.around_feed_forward.norm, layer.feed_forward),
    ]
    expected = x
    for one, f in blocks:
        expected = expected + f(one(expected)) if norm == "pre" else one(expected + f(expected))
    torch.testing.assert_close(layer(x, memory, mask, seen), expected)


def test_no_other_norm():
    with pytest.raises(regard.InputError, match="norm='both'; expected 'pre' or 'post'"):
        EncoderLayer(D, HEADS, HIDDEN, norm="both")


def test_dropout_only_in_training():
    layer, x = EncoderLayer(D, HEADS, HIDDEN, dropout=0.3), torch.randn(2, 5, D)
    torch.manual_seed(3)
    a, b = layer(x), layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), a)
    assert not torch.equal(a, b)
    layer.eval()
    assert torch.equal(layer(x), layer(x))
    assert not torch.equal(layer(x), a)


def test_both_attentions_of_a_decoder_layer_have_parameters_of_their_own():
    layer = DecoderLayer(D, HEADS, HIDDEN, score=S.Additive(4, 4, 3), normalizer=N.Softmax(sink=True))
    a, b = layer.attention.attentions[0], layer.cross_attention.attentions[0]
    assert a.score.v is not b.score.v
    assert a.normalizer.sink is not b.normalizer.sink


def test_layers_of_a_stack_have_parameters_of_their_own():
    stack = EncoderStack(3, D, HEADS, HIDDEN, score=S.Additive(4, 4, 3))
    assert len({id(p) for p in stack.parameters()}) == 3 * len(list(stack.layers[0].parameters())) + 2
    assert len({id(layer.attention.attentions[0].score.v) for layer in stack.layers}) == 3


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_stack_is_its_layers_in_order(norm):
    x, memory = torch.randn(2, 5, D), torch.randn(2, 7, D)
    encoder = EncoderStack(2, D, HEADS, HIDDEN, norm=norm)
    last = encoder.norm if norm == "pre" else lambda x: x
    torch.testing.assert_close(encoder(x), last(encoder.layers[1](encoder.layers[0](x))))
    decoder = DecoderStack(2, D, HEADS, HIDDEN, norm=norm)
    last = decoder.norm if norm == "pre" else lambda x: x
    torch.testing.assert_close(decoder(x, memory), last(decoder.layers[1](decoder.layers[0](x, memory), memory)))


# Order: without a position a stack cannot tell it, with any it can


def _with(position: str | None) -> nn.Module:
    stack = EncoderStack(2, D, HEADS, HIDDEN, position=position if position in ("rotary", "alibi") else None)
    added = {"sinusoidal": Sinusoidal(D), "learned": Learned(9, D)}
    if position == "learned":
        nn.init.normal_(added["learned"].weight)
    return nn.Sequential(added[position], stack) if position in added else stack


@pytest.mark.parametrize("position", [None, "sinusoidal", "learned", "rotary", "alibi"])
def test_permuting_the_input_permutes_the_output_only_without_a_position(position):
    module, x = _with(position).eval(), torch.randn(2, 6, D)
    order = torch.tensor([4, 0, 2, 5, 1, 3])
    difference = (module(x[:, order]) - module(x)[:, order]).abs().max().item()
    assert difference < 1e-5 if position is None else difference > 1e-3


def test_alibi_goes_within_a_text_and_not_between_two():
    stack = DecoderStack(1, D, HEADS, HIDDEN, position="alibi")
    layer, memory = stack.layers[0], torch.randn(1, 6, D)
    assert isinstance(layer.attention.attentions[0].score.bias, Alibi)
    x = torch.randn(1, 4, D)
    torch.testing.assert_close(stack(x, memory), stack(x, memory.flip(1)))  # between them order says nothing
    rotary = DecoderStack(1, D, HEADS, HIDDEN, position="rotary")
    torch.testing.assert_close(rotary(x, memory), rotary(x, memory.flip(1)))


def test_alibi_with_a_score_for_each_head_keeps_each_head_s_slope():
    x = torch.randn(2, 5, D)
    one = EncoderStack(1, D, HEADS, HIDDEN, position="alibi", score=S.Dot())
    apart = EncoderStack(1, D, HEADS, HIDDEN, position="alibi", score=[S.Dot(), S.Dot()])
    apart.load_state_dict(one.state_dict())
    torch.testing.assert_close(apart(x), one(x))


def test_positions_that_a_stack_does_not_know():
    with pytest.raises(regard.InputError, match="position='sinusoidal'; expected 'rotary', 'alibi' or None"):
        EncoderStack(1, D, HEADS, HIDDEN, position="sinusoidal")


@pytest.mark.parametrize("position", [None, "rotary", "alibi"])
def test_a_decoder_step_by_step_is_all_at_once(position):
    stack = DecoderStack(2, D, HEADS, HIDDEN, position=position).eval()
    x, memory, seen = torch.randn(2, 6, D), torch.randn(2, 4, D), M.padding(torch.tensor([4, 1]))
    caches = [LayerCache() for _ in stack.layers]
    steps = [stack(x[:, t : t + 1], memory, M.causal(), seen, caches) for t in range(6)]
    torch.testing.assert_close(torch.cat(steps, 1), stack(x, memory, M.causal(), seen), atol=1e-5, rtol=1e-5)
    for cache in caches:
        cache.select(torch.tensor([1]))
        assert cache.itself.key.shape[0] == cache.memory.key.shape[0] == 1


def test_as_many_caches_as_layers():
    with pytest.raises(ValueError, match="shorter"):
        EncoderStack(2, D, HEADS, HIDDEN)(torch.randn(1, 3, D), caches=[Cache()])


def test_padding_changes_nothing():
    stack = EncoderStack(2, D, HEADS, HIDDEN).eval()
    x = torch.randn(3, 7, D)
    lengths = torch.tensor([7, 2, 4])
    clean = stack(x, M.padding(lengths))
    x[1, 2:], x[2, 4:] = 1e4, float("nan")
    spoilt = stack(x, M.padding(lengths))
    for row, n in enumerate(lengths.tolist()):
        assert torch.equal(clean[row, :n], spoilt[row, :n])
        torch.testing.assert_close(clean[row, :n], stack(x[row : row + 1, :n])[0])


# What PyTorch does with modules


@pytest.mark.parametrize(
    "parts",
    [{"rotary": Rotary(4)}, {"score": [S.Additive(4, 4, 3), S.Gaussian(1.0)]}],
    ids=["rotary", "a score for each head"],
)
def test_a_training_step_compiles_to_one_graph_for_all_lengths(parts):
    layer = EncoderLayer(D, HEADS, HIDDEN, dropout=0.1, **parts)
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("eager")
    step = torch.compile(lambda x, lengths: layer(x, M.padding(lengths)), fullgraph=True, backend=counter)
    for n in (5, 7, 9):
        step(torch.randn(2, n, D), torch.tensor([3, n])).sum().backward()
    assert counter.frame_count <= 2  # the first length, and then all others
    layer.eval()
    x, lengths = torch.randn(2, 8, D), torch.tensor([3, 8])
    torch.testing.assert_close(step(x, lengths), layer(x, M.padding(lengths)))


@pytest.mark.parametrize("parts", [{}, {"score": S.Additive(4, 4, 3)}], ids=["dot", "additive"])
def test_export_with_any_length(parts):
    layer = EncoderLayer(D, HEADS, HIDDEN, **parts).eval()
    length = torch.export.Dim("n", min=2, max=64)
    program = torch.export.export(
        layer,
        (torch.randn(2, 5, D),),
        dynamic_shapes={"x": {1: length}},
        prefer_deferred_runtime_asserts_over_guards=True,  # additive scores leave a guard that always holds
    )
    x = torch.randn(2, 11, D)
    torch.testing.assert_close(program.module()(x), layer(x))


def test_save_and_load_is_exact(tmp_path):
    torch.manual_seed(1)
    parts = {"score": S.Additive(4, 4, 3), "normalizer": N.Softmax(sink=True), "position": "alibi"}
    one, x = EncoderStack(2, D, HEADS, HIDDEN, **parts).eval(), torch.randn(2, 5, D)
    state = {name: tensor.clone() for name, tensor in one.state_dict().items()}
    torch.manual_seed(2)
    two = EncoderStack(2, D, HEADS, HIDDEN, **parts).eval()
    assert not torch.equal(one(x), two(x))
    two.load_state_dict(state)
    assert torch.equal(one(x), two(x))
