"""A plain RNN over a whole sequence, its gradient written out: against the same steps by autograd."""

from __future__ import annotations

import pytest
import torch

from regard.core import products
from regard.models import recurrence
from regard.models.cells import Plain

LENGTHS = [None, torch.tensor([5, 0, 1, 3])]


def made(dtype=torch.float64, n=5):
    torch.manual_seed(0)
    shapes = (4, n, 6), (6, 6), (4, 6)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("lengths", LENGTHS, ids=["whole", "lengths"])
@pytest.mark.parametrize("onednn", [True, False])
def test_states_and_gradients_are_those_of_the_steps(monkeypatch, lengths, onednn):
    monkeypatch.setattr(products, "ONEDNN", onednn and products.ONEDNN)
    for dtype, tolerance in ((torch.float64, {}), (torch.float32, {"rtol": 1e-5, "atol": 1e-5})):
        inputs = made(dtype)
        found, right = recurrence.states(*inputs, lengths), recurrence.steps(*inputs, lengths)
        torch.testing.assert_close(found, right, **tolerance)
        weight = torch.randn_like(right)
        ours, theirs = (torch.autograd.grad((s * weight).sum(), inputs) for s in (found, right))
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other, **tolerance)


@pytest.mark.parametrize("lengths", LENGTHS, ids=["whole", "lengths"])
def test_second_derivatives(lengths):
    assert torch.autograd.gradgradcheck(lambda *each: recurrence.states(*each, lengths), made(n=3))


@pytest.mark.parametrize("n", [0, 1])
def test_the_shortest_sequences(n):
    a, W, h = made(n=n)
    found = recurrence.states(a, W, h)
    assert found.shape == (4, n, 6)
    (found.sum() + h.sum()).backward()
    assert W.grad is None or W.grad.shape == W.shape


@pytest.mark.parametrize("lengths", LENGTHS, ids=["whole", "lengths"])
def test_compiled_and_under_autocast_it_is_the_same(lengths):
    torch.manual_seed(0)
    cell, x, state = Plain(3, 6), torch.randn(4, 5, 3), (torch.randn(4, 6),)
    right, (last,) = cell(x, state, lengths)
    assert torch.equal(right[:, -1], last)
    compiled = torch.compile(cell, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, state, lengths)[0], right)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(cell(x, state, lengths)[0].float(), right, atol=0.05, rtol=0.05)


def test_it_can_be_mapped():
    a, W, h = made()
    right = torch.autograd.grad(recurrence.steps(a, W, h).sum(), W)[0]
    torch.testing.assert_close(torch.func.grad(lambda W: recurrence.states(a.detach(), W, h.detach()).sum())(W), right)
