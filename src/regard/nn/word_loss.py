"""What a model's words cost: the output layer over the vocabulary and its cross-entropy in one.

The logits of all positions are the largest tensor of a training step. Here a few rows exist at a time: as soon as
their softmax is known, so is their gradient, which takes their place and is multiplied into the gradients of states
and weights. Rows that ask for no word are never computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.core.products import product, seen_through
from regard.core.shapes import InputError, ShapeError, wide

# What becomes of (states, weight, bias) of an output layer, in the place of logits.
Read = Callable[[Tensor, Tensor, Tensor | None], Tensor]

CHUNK = {"cpu": 2**21, "other": 2**27}  # logits at a time: what stays in a cache; what keeps a GPU busy


def word_loss(
    x: Float[Tensor, "*n d"],
    weight: Float[Tensor, "V d"],
    bias: Float[Tensor, " V"] | None = None,
    *,
    target: Int[Tensor, "*n"],
    smoothing: float = 0.0,
    ignored: int = -100,
) -> Float[Tensor, ""]:
    """cross_entropy(x weightᵀ + bias, target), summed over all targets but `ignored`; `smoothing` is that share of
    each target spread over all words. At least in float32, whatever x is.

    >>> import torch
    >>> x, weight = torch.zeros(2, 3), torch.randn(4, 3)
    >>> word_loss(x, weight, target=torch.tensor([1, -100]))  # four words, equally likely: log 4
    tensor(1.3863)
    """
    if x.shape[:-1] != target.shape:
        raise ShapeError(
            f"word_loss: target has shape {tuple(target.shape)}, x has {tuple(x.shape)}; expected a target for each "
            f"vector, {tuple(x.shape[:-1])}"
        )
    if not 0 <= smoothing <= 1:
        raise InputError(f"word_loss: smoothing={smoothing}; expected a share, 0 to 1")
    x, target = x.reshape(-1, x.shape[-1]), target.reshape(-1)
    if seen_through():
        return _formula(x, weight, bias, target, smoothing, ignored)
    kind = x.device.type
    low = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    loss, *_ = _WordLoss.apply(x, weight, bias, target, smoothing, ignored, low, torch.is_grad_enabled())
    return loss


def words(linear: nn.Linear, x: Float[Tensor, "*n d"], read: Read | None) -> Tensor:
    """Logits, or what `read` makes of the states."""
    return linear(x) if read is None else read(x, linear.weight, linear.bias)


def _formula(x: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float, ignored: int) -> Tensor:
    logits = wide(F.linear(x, weight, bias))
    return F.cross_entropy(logits, target, ignore_index=ignored, label_smoothing=smoothing, reduction="sum")


class _WordLoss(torch.autograd.Function):
    """Gradients are found on the way forward; backward multiplies them by its one number."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        smoothing: float,
        ignored: int,
        low: torch.dtype | None,
        learning: bool,
    ) -> tuple[Tensor]:
        wanted = [learning and need for need in ctx.needs_input_grad[:3]]
        with torch.autocast(x.device.type, enabled=False):
            loss, found = _sums(x, weight, bias, target, smoothing, ignored, low or x.dtype, wanted)
        ctx.save_for_backward(x, weight, bias, target, *found)
        ctx.options = smoothing, ignored, low
        return (loss,)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        x, weight, bias, target, *found = ctx.saved_tensors
        rest = [None] * 5
        if not torch.is_grad_enabled():
            return *[None if g is None else g * grad.to(g.dtype) for g in found], *rest
        # Under create_graph: gradients that can be differentiated again come from the formula.
        smoothing, ignored, low = ctx.options
        with torch.autocast(x.device.type, dtype=low, enabled=low is not None):
            loss = _formula(x, weight, bias, target, smoothing, ignored)
        places = [i for i in range(3) if ctx.needs_input_grad[i]]
        again = torch.autograd.grad(loss, [(x, weight, bias)[i] for i in places], grad, create_graph=True)
        filled = dict(zip(places, again, strict=True))
        return *[filled.get(i) for i in range(3)], *rest


def _sums(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    smoothing: float,
    ignored: int,
    low: torch.dtype,
    wanted: list[bool],
) -> tuple[Tensor, list[Tensor | None]]:
    """The loss, and the gradients of x, weight and bias that are wanted. Products are in `low`, sums at least in
    float32."""
    V, d = weight.shape
    high = torch.promote_types(low, torch.float32)
    asked = (target != ignored).nonzero()[:, 0]
    whole = len(asked) == len(target)
    rows, y = (x if whole else x[asked]).to(low), target[asked, None]
    w, b = weight.to(low), None if bias is None else bias.to(low)
    of_rows = rows.new_empty(rows.shape, dtype=x.dtype) if wanted[0] else None
    of_weight = w.new_zeros(d, V, dtype=high) if wanted[1] else None  # transposed: so its sums run along memory
    of_bias = w.new_zeros(V, dtype=high) if wanted[2] else None
    losses = rows.new_empty(len(rows), dtype=high)
    chunk = min(max(CHUNK.get(x.device.type, CHUNK["other"]) // max(V, 1), 16), max(len(rows), 1))
    memory = rows.new_empty(chunk, V, dtype=high)
    for begin in range(0, len(rows), chunk):
        here = slice(begin, begin + chunk)
        few, right = rows[here], y[here]
        logits = wide(product(few, w, b))
        p = torch.softmax(logits, -1, out=memory[: len(few)])
        # The largest weight is never too small for its logarithm: it gives the sum of all exponentials.
        total = logits.amax(-1) - p.amax(-1).log()
        loss = total - (1 - smoothing) * logits.gather(1, right)[:, 0]
        losses[here] = loss - smoothing * logits.mean(-1) if smoothing else loss
        if not any(wanted):
            continue
        # dloss/dlogits = p - target, in place
        if smoothing:
            p -= smoothing / V
        p.scatter_add_(1, right, p.new_full(right.shape, smoothing - 1))
        if of_bias is not None:
            of_bias += p.sum(0)
        g = p.to(low)
        if of_rows is not None:
            of_rows[here] = product(g, w.T)
        if of_weight is not None:
            of_weight += product(few.T, g.T)
    of_x = of_rows
    if of_rows is not None and not whole:
        of_x = torch.zeros_like(x).index_copy_(0, asked, of_rows)
    found = [
        of_x,
        None if of_weight is None else of_weight.T.to(weight.dtype).contiguous(),
        None if of_bias is None else of_bias.to(weight.dtype),
    ]
    return losses.sum(), found
