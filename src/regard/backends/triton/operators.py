"""Two custom operators behind which the kernels run: torch.compile and torch.export see one node of each, whatever
the length. Their bodies import Triton; this module does not."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.core.formula import Call
from regard.core.normalizers import Softmax
from regard.core.parts import rebuild
from regard.core.scores import TanhSum
from regard.core.shapes import BackendError, Extent

_library = torch.library.Library("regard", "FRAGMENT")
_ARGUMENTS = (
    "Tensor query, Tensor key, Tensor value, Tensor[] gate, Tensor[] parts, str spec, SymInt[] batch, float scale, "
    "float dropout, Tensor seed, bool noisy"
)
_library.define(f"triton({_ARGUMENTS}) -> (Tensor, Tensor)")
_library.define(f"triton_backward(Tensor grad, Tensor out, Tensor stat, {_ARGUMENTS}, bool[] wanted) -> Tensor[]")


def call_of(spec: str, parts: list[Tensor], dropout: float, seed: Tensor, noisy: bool) -> Call:
    score, normalizer, mask = rebuild(spec, parts)
    return Call(score, normalizer, mask, dropout, seed if noisy else None)


def _forward(query, key, value, gate, parts, spec, batch, scale, dropout, seed, noisy):
    from regard.backends.triton.launch import Problem, attend

    extent = Extent(tuple(batch), query.shape[-2], key.shape[-2], query.device)
    problem = Problem.of(query, key, value, gate, call_of(spec, parts, dropout, seed, noisy), extent, scale)
    out, stat = attend(problem)
    return out.reshape(*extent.batch, *out.shape[-2:]), stat.reshape(*extent.batch, extent.n_q)


def _backward(grad, out, stat, query, key, value, gate, parts, spec, batch, scale, dropout, seed, noisy, wanted):
    """Gradients of query, key, value, gate and parts, as far as they are wanted (empty tensors for the others)."""
    from regard.backends.triton import launch
    from regard.backends.triton.plan import two_axes

    inputs = [query, key, value, *gate, *parts]
    extent = Extent(tuple(batch), query.shape[-2], key.shape[-2], query.device)
    call = call_of(spec, parts, dropout, seed, noisy)
    problem = launch.Problem.of(query, key, value, gate, call, extent, scale)
    grad, out = (two_axes(x, extent, 2) for x in (grad, out))
    stat = stat.reshape(problem.elements, extent.n_q)
    found = launch.gradients(problem, grad, out, stat)
    result: list[Tensor] = []
    for x, g, want in zip(inputs[:3], [found.query, found.key, found.value], wanted[:3], strict=True):
        result.append(_summed(g.reshape(*extent.batch, *g.shape[2:]), x) if want else x.new_empty(0))
    for x, want in zip(gate, wanted[3 : 3 + len(gate)], strict=True):
        assert found.gate is not None
        result.append(_summed(found.gate[..., None], x) if want else x.new_empty(0))
    for part, want in zip(parts, wanted[3 + len(gate) :], strict=True):
        if want and any(part is table for table, _, _ in problem.plan.relative):
            sums = launch.of_relative(problem, part, grad, stat, found.delta)
            result.append(_summed(sums.reshape(*extent.batch, sums.shape[-1]), part))
        else:
            result.append(_of_part(part, call, found) if want else part.new_empty(0))
    return result


def _of_part(part: Tensor, call: Call, found: Any) -> Tensor:
    """The gradient of a parameter that the kernels read."""
    if isinstance(call.normalizer, Softmax) and call.normalizer.sink is part:
        gradient = found.sink[..., None, None]
        return gradient.sum_to_size(part.shape if part.ndim else (1, 1, 1, 1)).reshape(part.shape).to(part.dtype)
    from regard.backends.triton.plan import content_of

    content = content_of(call.score)
    if isinstance(content, TanhSum) and content.v is part:
        return _summed(found.v, part)
    raise BackendError("triton: no gradient for this parameter; use backend='chunked'")


def _summed(gradient: Tensor, like: Tensor) -> Tensor:
    """Summed over the axes along which the input was broadcast."""
    return gradient.sum_to_size(like.shape).to(like.dtype)


class _Last(torch.autograd.Function):
    """A gradient that refuses to be differentiated again, aloud: a wrong zero would be silent."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *sources: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        raise BackendError("triton: no second derivatives; use backend='reference'")


def _save(ctx: Any, inputs: tuple, output: tuple) -> None:
    query, key, value, gate, parts, spec, batch, scale, dropout, seed, noisy = inputs
    out, stat = output
    ctx.mark_non_differentiable(stat)
    ctx.save_for_backward(out, stat, query, key, value, seed, *gate, *parts)
    ctx.gates, ctx.spec, ctx.batch, ctx.scale, ctx.dropout, ctx.noisy = len(gate), spec, batch, scale, dropout, noisy


def _autograd(ctx: Any, grad: Tensor, _: Tensor) -> tuple:
    out, stat, query, key, value, seed, *rest = ctx.saved_tensors
    gate, parts = rest[: ctx.gates], rest[ctx.gates :]
    needs = ctx.needs_input_grad
    wanted = [*needs[:3], *needs[3], *needs[4]]
    arguments = (query, key, value, gate, parts, ctx.spec, ctx.batch, ctx.scale, ctx.dropout, seed, ctx.noisy)
    grads = torch.ops.regard.triton_backward(grad, out, stat, *arguments, wanted)
    if torch.is_grad_enabled():  # under create_graph: what is asked for next is a second derivative
        grads = [_Last.apply(g, grad, query, key, value, *gate, *parts) for g in grads]
    grads = [g if want else None for g, want in zip(grads, wanted, strict=True)]
    # An empty list of whole numbers is taken for a list of tensors, whose gradient must be a list.
    batch = None if ctx.batch else []
    return *grads[:3], grads[3 : 3 + ctx.gates], grads[3 + ctx.gates :], None, batch, None, None, None, None


def _fake(query, key, value, gate, parts, spec, batch, scale, dropout, seed, noisy):
    out = value.new_empty(*batch, query.shape[-2], value.shape[-1])
    return out, query.new_empty(*batch, query.shape[-2], dtype=torch.float32)


def _fake_backward(grad, out, stat, query, key, value, gate, parts, spec, batch, scale, dropout, seed, noisy, wanted):
    inputs = [query, key, value, *gate, *parts]
    return [
        torch.empty(x.shape, dtype=x.dtype, device=x.device) if want else x.new_empty(0)
        for x, want in zip(inputs, wanted, strict=True)
    ]


_library.impl("triton", _forward, "CompositeExplicitAutograd")
_library.impl("triton_backward", _backward, "CompositeExplicitAutograd")
torch.library.register_fake("regard::triton", _fake, lib=_library)
torch.library.register_fake("regard::triton_backward", _fake_backward, lib=_library)
torch.library.register_autograd("regard::triton", _autograd, setup_context=_save, lib=_library)
