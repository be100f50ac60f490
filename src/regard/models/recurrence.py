"""h_t = tanh(a_t + W h_{t-1}) over a whole sequence, with its gradient written out.

Only the products with h must wait for the step before. So the gradient of W, which autograd would find as one product
for each step, is one product for all.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.products import product, seen_through


def states(
    a: Float[Tensor, "B n hidden"],
    W: Float[Tensor, "hidden hidden"],
    h: Float[Tensor, "B hidden"],
    lengths: Int[Tensor, " B"] | None = None,
) -> Float[Tensor, "B n hidden"]:
    """All states; after the end of a row its last one is repeated."""
    if (
        not a.shape[1]
        or seen_through()
        or torch.is_autocast_enabled(a.device.type)
        or not a.dtype == W.dtype == h.dtype
    ):
        return steps(a, W, h, lengths)
    return _States.apply(a, W, h, lengths)


def steps(a: Tensor, W: Tensor, h: Tensor, lengths: Tensor | None = None) -> Tensor:
    """The same, step by step, for autograd or a compiler to see through."""
    states = []
    for t, a_t in enumerate(a.unbind(1)):
        new = torch.tanh(a_t + h @ W.T)
        h = new if lengths is None else torch.where((t < lengths)[:, None], new, h)
        states.append(h)
    return torch.stack(states, 1) if states else a


class _States(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, W: Tensor, h: Tensor, lengths: Tensor | None) -> Tensor:
        states = torch.empty_like(a, memory_format=torch.contiguous_format)
        before = h
        for t in range(a.shape[1]):
            new = product(before, W).add_(a[:, t]).tanh_()
            before = new if lengths is None else torch.where((t < lengths)[:, None], new, before)
            states[:, t] = before
        ctx.save_for_backward(a, W, h, lengths, states)
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        a, W, h, lengths, states = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph: what can be differentiated again
            places = [i for i in range(3) if ctx.needs_input_grad[i]]
            again = torch.autograd.grad(
                steps(a, W, h, lengths), [(a, W, h)[i] for i in places], grad, create_graph=True
            )
            filled = dict(zip(places, again, strict=True))
            return *[filled.get(i) for i in range(3)], None
        of_a = torch.empty_like(states)
        carried = torch.zeros_like(h)  # d loss / d h_t, from the steps after t
        for t in range(a.shape[1] - 1, -1, -1):
            of_h = carried + grad[:, t]
            of_sum = torch.ops.aten.tanh_backward(of_h, states[:, t])
            if lengths is None:
                carried = product(of_sum, W.T)
            else:
                real = (t < lengths)[:, None]
                of_sum = of_sum.masked_fill(~real, 0.0)
                carried = product(of_sum, W.T) + of_h.masked_fill(real, 0.0)
            of_a[:, t] = of_sum
        of_W = None
        if ctx.needs_input_grad[1]:
            before = torch.cat([h[:, None], states[:, :-1]], 1).flatten(0, 1)
            of_W = product(of_a.flatten(0, 1).T, before.T)
        return of_a, of_W, carried, None
