"""x wᵀ + b by either of torch's libraries, with gradients to any order."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad
from torch.nn import functional as F

from regard.core import products
from regard.core.products import Linear, linear


@pytest.fixture(autouse=True)
def _everything(monkeypatch):
    """However small."""
    monkeypatch.setattr(products, "SMALL", 0)


def made(shape=(2, 5), dtype=torch.float32):
    torch.manual_seed(0)
    return [torch.randn(s, dtype=dtype, requires_grad=True) for s in ((*shape, 7), (4, 7), (4,))]


def agree(found, right):
    torch.testing.assert_close(found, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 5), (5,), (), (0, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_torchs(shape, bias):
    x, w, b = made(shape)
    inputs = [x, w, *([b] if bias else [])]
    found, right = linear(*inputs), F.linear(*inputs)
    agree(found, right)
    weight = torch.randn_like(right)
    for one, other in zip(*(torch.autograd.grad((y * weight).sum(), inputs) for y in (found, right)), strict=True):
        agree(one, other)


def test_transposed_weights_and_rows_that_lie_apart():
    x, w, b = made()
    agree(linear(x[:, ::2], w.detach().T.contiguous().T, b), F.linear(x[:, ::2], w, b))


@pytest.mark.parametrize(
    "w",
    [
        torch.randn(1, 7).expand(4, 7),
        torch.randn(4, 1).expand(4, 7),
        torch.randn(8, 7)[::2],
        torch.randn(4, 14)[:, ::2],
        torch.randn(14, 8).T[::2, ::2],
        torch.randn(40).as_strided((4, 7), (3, 1)),
    ],
)
def test_weights_however_they_lie(w):
    x = torch.randn(3, 7)
    agree(products.product(x, w), F.linear(x, w))


def test_only_what_learns_gets_a_gradient():
    x, w, b = made()
    linear(x.detach(), w, b.detach()).sum().backward()
    assert x.grad is None
    agree(w.grad, x.detach().sum((0, 1)).expand(4, 7))


def test_second_derivatives():
    x, w, b = made()

    def twice(apply):
        found = torch.autograd.grad(apply(x, w, b).square().sum(), (x, w), create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in found), (x, w, b))

    for one, other in zip(twice(linear), twice(F.linear), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-2)


def test_whoever_looks_inside_sees_torchs_own():
    x, w, b = made()
    right, ones = F.linear(x, w, b), torch.ones(7)
    agree(torch.compile(linear, fullgraph=True, backend="aot_eager")(x, w, b), right)
    agree(torch.func.grad(lambda w: linear(x.detach(), w, b.detach()).sum())(w), x.detach().sum((0, 1)).expand(4, 7))
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(linear(forward_ad.make_dual(x, ones.expand_as(x)), w, b)).tangent
    agree(tangent, F.linear(ones.expand_as(x), w))
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, w, b).dtype == torch.bfloat16


def test_other_types_go_torchs_way():
    x, w, b = made(dtype=torch.float64)
    assert torch.equal(linear(x, w, b), F.linear(x, w, b))


def test_a_layer_is_torchs_layer():
    layer = Linear(7, 4)
    x = made()[0]
    agree(layer(x), torch.nn.Linear.forward(layer, x))
    assert isinstance(layer, torch.nn.Linear)


def test_where_it_is_used_it_is_another_library(monkeypatch):
    """Else these tests would compare torch with itself."""
    if not products.ONEDNN:
        pytest.skip("this processor, or this torch, has no use for it")
    called = []
    real = torch.ops.mkldnn._linear_pointwise
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", lambda *args: called.append(1) or real(*args))
    x, w, b = made()
    linear(x, w, b).sum().backward()
    assert len(called) == 3
