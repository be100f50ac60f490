"""Two custom operators, so that torch.compile and torch.export see one node whatever the length."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.backends.cpu.plan import Inputs, Options
from regard.core.memory import FEWER, typed_out_of_memory
from regard.core.parts import rebuild
from regard.core.shapes import BackendError

_library = torch.library.Library("regard", "FRAGMENT")
_ARGUMENTS = (
    "Tensor query, Tensor key, Tensor value, Tensor? units, Tensor? line, Tensor? table, Tensor? sink, "
    "Tensor[] masks, str spec, SymInt[] batch, float dropout, Tensor seed, bool noisy"
)
_library.define(f"cpu({_ARGUMENTS}) -> (Tensor, Tensor)")
_library.define(f"cpu_backward(Tensor grad, Tensor stat, {_ARGUMENTS}, bool[] wanted) -> Tensor[]")


def options_of(spec: str, masks: list[Tensor], dropout: float, seed: Tensor, noisy: bool) -> Options:
    content, factor, cap, normalizer, number, mask = rebuild(spec, masks)
    return Options(content, factor, cap, normalizer, number, mask, dropout, seed if noisy else None)


def _cpu(query, key, value, units, line, table, sink, masks, spec, batch, dropout, seed, noisy):
    from regard.backends.cpu import run

    inputs = Inputs(query, key, value, units, line, table, sink)
    return run.forward(inputs, options_of(spec, masks, dropout, seed, noisy), tuple(batch))


def _cpu_backward(
    grad, stat, query, key, value, units, line, table, sink, masks, spec, batch, dropout, seed, noisy, wanted
):
    from regard.backends.cpu import run

    inputs = Inputs(query, key, value, units, line, table, sink)
    with typed_out_of_memory(query, key, FEWER):
        return run.backward(grad, stat, inputs, options_of(spec, masks, dropout, seed, noisy), tuple(batch), wanted)


class _Last(torch.autograd.Function):
    """A gradient that refuses to be differentiated again, aloud: a wrong zero would be silent."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *sources: Tensor | None) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        raise BackendError("cpu: no second derivatives; use backend='reference'")


def _save(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
    *tensors, masks, spec, batch, dropout, seed, noisy = inputs
    ctx.save_for_backward(output[1], seed, *tensors, *masks)
    ctx.mark_non_differentiable(output[1])
    ctx.spec, ctx.batch, ctx.dropout, ctx.noisy = spec, batch, dropout, noisy
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple:
    stat, seed, *rest = ctx.saved_tensors
    tensors, masks = rest[:7], rest[7:]
    wanted = list(ctx.needs_input_grad[:7])
    # An empty list of whole numbers is taken for a list of tensors, whose gradient must be a list.
    others = ([None] * len(masks), None, None if ctx.batch else [], None, None, None)
    if grad is None:
        return *[None] * 7, *others
    grads = torch.ops.regard.cpu_backward(
        grad, stat, *tensors, masks, ctx.spec, ctx.batch, ctx.dropout, seed, ctx.noisy, wanted
    )
    if torch.is_grad_enabled():  # under create_graph: what is asked for next is a second derivative
        grads = [_Last.apply(g, grad, *tensors) for g in grads]
    return *[g if want else None for g, want in zip(grads, wanted, strict=True)], *others


def _fake(query, key, value, units, line, table, sink, masks, spec, batch, dropout, seed, noisy):
    lead = (*batch, query.shape[-2])
    return value.new_empty(*lead, value.shape[-1]), value.new_empty(*lead, 2)


def _fake_backward(
    grad, stat, query, key, value, units, line, table, sink, masks, spec, batch, dropout, seed, noisy, wanted
):
    inputs = (query, key, value, units, line, table, sink)
    return [
        x.new_empty(x.shape) if want and x is not None else value.new_empty(0)
        for x, want in zip(inputs, wanted, strict=True)
    ]


_library.impl("cpu", _cpu, "CompositeExplicitAutograd")
_library.impl("cpu_backward", _cpu_backward, "CompositeExplicitAutograd")
torch.library.register_fake("regard::cpu", _fake, lib=_library)
torch.library.register_fake("regard::cpu_backward", _fake_backward, lib=_library)
torch.library.register_autograd("regard::cpu", _backward, setup_context=_save, lib=_library)
