"""The output layer and its cross-entropy in one, against torch's own formula."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch.nn import functional as F

from regard.core import products
from regard.core.shapes import InputError, ShapeError
from regard.models.autoencoder import Autoencoder
from regard.models.rnn import AttentiveRNN, RNNEncoderDecoder
from regard.models.transformer import Transformer, TransformerDecoder
from regard.nn import word_loss as module
from regard.nn.word_loss import word_loss


@pytest.fixture(params=[True, False], ids=["onednn", "mkl"])
def library(request, monkeypatch):
    """Both of torch's libraries, where there are two."""
    if request.param and not products.ONEDNN:
        pytest.skip("torch has no oneDNN here, or no need of it")
    monkeypatch.setattr(products, "ONEDNN", request.param)


def made(dtype=torch.float64, V=23, shape=(3, 5), bias=True):
    torch.manual_seed(0)
    x = torch.randn(*shape, 7, dtype=dtype).requires_grad_()
    weight = torch.randn(V, 7, dtype=dtype).requires_grad_()
    b = torch.randn(V, dtype=dtype).requires_grad_() if bias else None
    target = torch.randint(V, shape)
    target.view(-1)[::4] = -100
    return x, weight, b, target


def torchs(x, weight, b, target, smoothing):
    logits = F.linear(x, weight, b).flatten(0, -2)
    return F.cross_entropy(logits, target.flatten(), label_smoothing=smoothing, reduction="sum")


def gradients(loss, *inputs):
    return torch.autograd.grad(loss, [x for x in inputs if x is not None])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("chunk", [1, 2**22])  # 16 rows at a time, and all
def test_loss_and_gradients_are_those_of_the_formula(monkeypatch, library, smoothing, bias, chunk):
    monkeypatch.setitem(module.CHUNK, "cpu", chunk)
    x, weight, b, target = made(shape=(9, 11), bias=bias)
    ours, right = word_loss(x, weight, b, target=target, smoothing=smoothing), torchs(x, weight, b, target, smoothing)
    torch.testing.assert_close(ours, right)
    for found, expected in zip(gradients(ours * 3, x, weight, b), gradients(right * 3, x, weight, b), strict=True):
        torch.testing.assert_close(found, expected)
        assert found.is_contiguous()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_in_float32_too(library, smoothing):
    x, weight, b, target = made(torch.float32, V=301, shape=(4, 40))
    ours = word_loss(x, weight, b, target=target, smoothing=smoothing)
    exact = [t.detach().double().requires_grad_() for t in (x, weight, b)]
    right = torchs(*exact, target, smoothing)
    torch.testing.assert_close(ours, right.float())
    for found, expected in zip(gradients(ours, x, weight, b), gradients(right, *exact), strict=True):
        torch.testing.assert_close(found, expected.float(), atol=2e-6, rtol=1e-5)


def test_second_derivatives():
    x, weight, b, target = made(V=5)
    assert torch.autograd.gradgradcheck(lambda *each: word_loss(*each, target=target, smoothing=0.2), (x, weight, b))


def test_only_what_learns_gets_a_gradient():
    x, weight, b, target = made()
    word_loss(x.detach(), weight, b.detach(), target=target).backward()
    assert weight.grad is not None
    assert x.grad is None
    word_loss(x, weight.detach(), None, target=target).backward()
    assert x.grad is not None


def test_twice_backward_gives_twice_the_gradient():
    x, weight, b, target = made()
    loss = word_loss(x, weight, b, target=target)
    loss.backward(retain_graph=True)
    once = weight.grad.clone()
    loss.backward()
    torch.testing.assert_close(weight.grad, 2 * once)


def test_weights_that_changed_before_backward_are_noticed():
    x, weight, b, target = made()
    loss = word_loss(x, weight, b, target=target)
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_word_that_is_all_but_impossible_has_a_finite_loss():
    x, weight = torch.tensor([[1.0]]), torch.tensor([[0.0], [500.0]])
    assert float(word_loss(x, weight, target=torch.tensor([0]))) == 500.0


def test_nothing_asked_is_nothing_lost():
    x, weight, b, _ = made()
    loss = word_loss(x, weight, b, target=torch.full((3, 5), -100))
    loss.backward()
    assert float(loss.detach()) == 0
    assert not x.grad.any()
    assert not weight.grad.any()
    assert float(word_loss(x[:0].detach(), weight.detach(), target=torch.zeros(0, 5, dtype=torch.long))) == 0


def test_under_autocast_products_are_in_bfloat16_and_sums_in_float32():
    x, weight, b, target = made(torch.float32, V=301, shape=(4, 40))
    with torch.autocast("cpu", torch.bfloat16):
        ours, right = word_loss(x, weight, b, target=target), torchs(x, weight, b, target, 0.0)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, right, rtol=1e-3, atol=0)
    for found, expected in zip(gradients(ours, x, weight, b), gradients(right, x, weight, b), strict=True):
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02 * float(expected.abs().max()))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_a_gpu(dtype):
    x, weight, b, target = made(torch.float32, V=301, shape=(4, 40))
    there = [t.detach().to("cuda", dtype).requires_grad_() for t in (x, weight, b)]
    ours = word_loss(*there, target=target.cuda(), smoothing=0.1)
    right = torchs(*(t.double() for t in there), target.cuda(), 0.1)
    rtol = 1e-4 if dtype == torch.float32 else 0.02
    torch.testing.assert_close(ours, right.float(), rtol=rtol, atol=0)
    for found, expected in zip(gradients(ours, *there), gradients(right, *there), strict=True):
        torch.testing.assert_close(found, expected, rtol=rtol, atol=rtol * float(expected.abs().max()))


def test_compiled_it_is_the_same():
    x, weight, b, target = made(torch.float32)
    compiled = torch.compile(word_loss, fullgraph=True, backend="aot_eager")
    ours, right = compiled(x, weight, b, target=target, smoothing=0.1), torchs(x, weight, b, target, 0.1)
    torch.testing.assert_close(ours, right)
    for found, expected in zip(gradients(ours, x, weight), gradients(right, x, weight), strict=True):
        torch.testing.assert_close(found, expected)


def test_what_does_not_fit_is_said():
    x, weight, b, target = made()
    with pytest.raises(ShapeError, match=r"target has shape \(3, 4\), x has \(3, 5, 7\).*a target for each"):
        word_loss(x, weight, b, target=target[:, :4])
    with pytest.raises(InputError, match=r"smoothing=1\.5; expected a share, 0 to 1"):
        word_loss(x, weight, b, target=target, smoothing=1.5)


MODELS = {
    "rnn": lambda: RNNEncoderDecoder(20, 20, 8, 8),
    "attentive": lambda: AttentiveRNN(20, 20, 8, 8, cell="gru", bidirectional=True),
    "feeding": lambda: AttentiveRNN(20, 20, 8, 8, input_feeding=True),
    "transformer": lambda: Transformer(20, 20, 8, 2, 1),
    "shared": lambda: Transformer(20, 20, 8, 2, 1, shared=True),
    "untied": lambda: Transformer(20, 20, 8, 2, 1, tied=False),
    "autoencoder": lambda: Autoencoder(20, 8, 2, 1, slots=2, d_latent=4, n_max=12),
}


@pytest.mark.parametrize("name", [*MODELS, "decoder"])
def test_every_model_that_writes_can_be_read_by_it(name):
    torch.manual_seed(0)
    model = (TransformerDecoder(20, 8, 2, 1) if name == "decoder" else MODELS[name]()).double()
    source, given = torch.randint(20, (3, 6)), torch.randint(20, (3, 4))
    lengths = torch.tensor([6, 2, 4])
    inputs = (given, None) if name == "decoder" else (source, given, lengths)
    target = torch.randint(20, (3, 4))
    target[1, 2:] = -100
    learned = list(model.parameters())
    logits = model(*inputs)
    right = F.cross_entropy(logits.flatten(0, 1), target.flatten(), label_smoothing=0.1, reduction="sum")
    ours = model(*inputs, read=partial(word_loss, target=target, smoothing=0.1))
    torch.testing.assert_close(ours, right)
    expected = torch.autograd.grad(right, learned, allow_unused=True)
    for found, wanted in zip(torch.autograd.grad(ours, learned, allow_unused=True), expected, strict=True):
        torch.testing.assert_close(found, wanted)
