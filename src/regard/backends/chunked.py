"""Plain torch, any score, normalizer and mask, in memory O(n · block): a block of rows at a time.

Nothing of a block is kept; backward computes it again. Built-in parts run inside two custom operators,
so torch.compile and torch.export see one node whatever the length. Parts of your own may close over
tensors that no operator could know, so they run under torch's activation checkpointing instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual
from torch.utils.checkpoint import checkpoint

from regard.core.formula import BUDGET, Call, blend, extent_of, rows_at_once, weigh, weights_of
from regard.core.memory import FEWER, typed_out_of_memory
from regard.core.parts import built_in, flatten, rebuild
from regard.core.shapes import BackendError, Extent, Spans, wide
from regard.core.statistics import Summary, summarize
from regard.core.visibility import BLOCK, columns_of


def why_not(query: Tensor, key: Tensor, value: Tensor, call: Call) -> str | None:
    if torch.onnx.is_in_onnx_export():
        return "ONNX knows no operator of ours"
    if torch.compiler.is_compiling() and not _is_built_in(call):
        return "a score, normalizer or mask of your own compiles through backend='reference'"
    if not torch.compiler.is_compiling() and any(unpack_dual(x).tangent is not None for x in (query, key, value)):
        return "no forward-mode derivatives"
    return None


def forward(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    call: Call,
) -> Float[Tensor, "*batch n_q d_v"]:
    extent = extent_of(call.score, query, key)
    query, key = call.score.project(query, key)
    if not _is_built_in(call):
        return _checkpointed(query, key, wide(value), call, extent).to(value.dtype)
    parts: list[Tensor] = []
    spec = flatten((call.score, call.normalizer, call.mask), parts)
    seed = torch.zeros((), dtype=torch.int64, device=query.device) if call.seed is None else call.seed
    noisy = call.seed is not None
    out = torch.ops.regard.chunked(query, key, wide(value), parts, spec, extent.batch, float(call.dropout), seed, noisy)
    return out.to(value.dtype)


def rows(
    query: Tensor, key: Tensor, call: Call, rows: Int[Tensor, " r"] | None = None
) -> Float[Tensor, "*batch r n_k"]:
    return weights_of(query, key, call, rows)


def summary(query: Tensor, key: Tensor, call: Call, top: int, pool: int) -> Summary:
    return summarize(query, key, call, top, pool)


def _is_built_in(call: Call) -> bool:
    return built_in(call.score) and built_in(call.normalizer) and built_in(call.mask)


Cols = slice | Tensor


def _blocks(extent: Extent, call: Call, width: int) -> Iterator[tuple[slice, Cols]]:
    """Blocks of rows, each with the keys that it may see at all; rows that see none are left out."""
    if 0 in (*extent.batch, extent.n_q, extent.n_k):
        return
    size = rows_at_once(extent, call.score.work(width), BUDGET)
    group = size * max(1, BLOCK // size)
    visible: Iterator[Tensor | None] | None = None
    # Where the mask's tensors are on a GPU, asking which keys are needed would make the host wait.
    if call.mask is not None and extent.device.type == "cpu":
        maybe = call.mask.classify(Spans.of_blocks(extent, group, BLOCK)).maybe
        visible = columns_of(maybe.flatten(0, -3).any(0) if maybe.ndim > 2 else maybe, extent)
    for start in range(0, extent.n_q, group):
        cols: Cols = slice(0, extent.n_k)
        if visible is not None:
            chosen = next(visible)
            if chosen is None:
                continue
            first, last = int(chosen[0]), int(chosen[-1])
            cols = slice(first, last + 1) if last - first + 1 == len(chosen) else chosen
        stop = min(start + group, extent.n_q)
        for row in range(start, stop, size):
            yield slice(row, min(row + size, stop)), cols


def _positions(where: Cols, device: torch.device) -> Tensor:
    return torch.arange(where.start, where.stop, device=device) if isinstance(where, slice) else where


def _attend(query: Tensor, key: Tensor, value: Tensor, call: Call, extent: Extent, row: slice, cols: Cols) -> Tensor:
    """The output of some rows, from queries, keys and values already cut to those rows and columns."""
    tile = extent.tile(_positions(row, extent.device), _positions(cols, extent.device))
    return blend(weigh(query, key, tile, call), value)


def _output(query: Tensor, value: Tensor, extent: Extent) -> Tensor:
    batch = torch.broadcast_shapes(extent.batch, value.shape[:-2])
    return value.new_zeros(*batch, extent.n_q, value.shape[-1])


def _checkpointed(query: Tensor, key: Tensor, value: Tensor, call: Call, extent: Extent) -> Tensor:
    batch = torch.broadcast_shapes(extent.batch, value.shape[:-2])
    chunks, reached = [], 0

    def nothing(n: int) -> Tensor:
        # Still a function of its inputs, so that backward finds gradients: zeros.
        none = query[..., :0, :].sum() + key[..., :0, :].sum() + value[..., :0, :].sum()
        return none.to(value.dtype).expand(*batch, n, value.shape[-1])

    for row, cols in _blocks(extent, call, query.shape[-1]):
        if row.start > reached:
            chunks.append(nothing(row.start - reached))
        arguments = (query[..., row, :], key[..., cols, :], value[..., cols, :], call, extent, row, cols)
        out = checkpoint(_attend, *arguments, use_reentrant=False) if torch.is_grad_enabled() else _attend(*arguments)
        chunks.append(out.expand(*batch, -1, -1))
        reached = row.stop
    if reached < extent.n_q or not chunks:
        chunks.append(nothing(extent.n_q - reached))
    return torch.cat(chunks, dim=-2)


# Two custom operators. They are defined on a Library rather than by torch.library.custom_op because
# backward differentiates each block with autograd, which custom_op switches off inside its body.

_library = torch.library.Library("regard", "FRAGMENT")
_ARGUMENTS = "Tensor query, Tensor key, Tensor value, Tensor[] parts, str spec, SymInt[] batch, float dropout, Tensor seed, bool noisy"
_library.define(f"chunked({_ARGUMENTS}) -> Tensor")
_library.define(f"chunked_backward(Tensor grad, {_ARGUMENTS}, bool[] wanted) -> Tensor[]")


def _call(spec: str, parts: list[Tensor], dropout: float, seed: Tensor, noisy: bool) -> Call:
    score, normalizer, mask = rebuild(spec, parts)
    return Call(score, normalizer, mask, dropout, seed if noisy else None)


def _chunked(query, key, value, parts, spec, batch, dropout, seed, noisy):  # noqa: ANN
    call = _call(spec, parts, dropout, seed, noisy)
    extent = Extent(tuple(batch), query.shape[-2], key.shape[-2], query.device)
    out = _output(query, value, extent)
    with torch.no_grad():
        for row, cols in _blocks(extent, call, query.shape[-1]):
            out[..., row, :] = _attend(
                query[..., row, :], key[..., cols, :], value[..., cols, :], call, extent, row, cols
            )
    return out


def _chunked_backward(grad, query, key, value, parts, spec, batch, dropout, seed, noisy, wanted):  # noqa: ANN
    """Gradients of query, key, value and every part that is wanted (empty tensors for the others)."""
    inputs = [query, key, value, *parts]
    parts = [part.detach().requires_grad_(want) for part, want in zip(parts, wanted[3:], strict=True)]
    call = _call(spec, parts, dropout, seed, noisy)
    extent = Extent(tuple(batch), query.shape[-2], key.shape[-2], query.device)
    with typed_out_of_memory(query, key, FEWER):  # autograd's own message would be a bare RuntimeError
        return _added_up(grad, inputs, parts, call, extent, wanted)


def _added_up(
    grad: Tensor, inputs: list[Tensor], parts: list[Tensor], call: Call, extent: Extent, wanted: list[bool]
) -> list[Tensor]:
    """The gradients of one block of rows after another."""
    total = [torch.zeros_like(x) if want else x.new_empty(0) for x, want in zip(inputs, wanted, strict=True)]
    for row, cols in _blocks(extent, call, inputs[0].shape[-1]):
        places = [row, cols, cols]
        with torch.enable_grad():
            q, k, v = (
                x[..., place, :].detach().requires_grad_(want)
                for x, place, want in zip(inputs[:3], places, wanted[:3], strict=True)
            )
            out = _attend(q, k, v, call, extent, row, cols)
            leaves = [q, k, v, *parts]
            asked = [n for n, want in enumerate(wanted) if want]
            grads = (
                torch.autograd.grad(out, [leaves[n] for n in asked], grad[..., row, :], allow_unused=True)
                if out.requires_grad
                else [None] * len(asked)
            )
        for n, gradient in zip(asked, grads, strict=True):
            if gradient is None:
                continue
            if n >= 3:
                total[n] += gradient
            elif isinstance(places[n], slice):
                total[n][..., places[n], :] += gradient
            else:
                total[n].index_add_(-2, places[n], gradient)
    return total


class _Last(torch.autograd.Function):
    """A gradient that refuses to be differentiated again, aloud: a wrong zero would be silent."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *sources: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        raise BackendError("chunked: no second derivatives; use backend='reference'")


def _save(ctx: Any, inputs: tuple, output: Tensor) -> None:
    query, key, value, parts, spec, batch, dropout, seed, noisy = inputs
    ctx.save_for_backward(query, key, value, seed, *parts)
    ctx.spec, ctx.batch, ctx.dropout, ctx.noisy = spec, batch, dropout, noisy


def _backward(ctx: Any, grad: Tensor) -> tuple:
    query, key, value, seed, *parts = ctx.saved_tensors
    needs = ctx.needs_input_grad
    wanted = [*needs[:3], *needs[3]]
    grads = torch.ops.regard.chunked_backward(
        grad, query, key, value, parts, ctx.spec, ctx.batch, ctx.dropout, seed, ctx.noisy, wanted
    )
    if torch.is_grad_enabled():  # under create_graph: what is asked for next is a second derivative
        grads = [_Last.apply(g, grad, query, key, value, *parts) for g in grads]
    grads = [g if want else None for g, want in zip(grads, wanted, strict=True)]
    # An empty list of whole numbers is taken for a list of tensors, whose gradient must be a list.
    return *grads[:3], grads[3:], None, None if ctx.batch else [], None, None, None


def _fake(query, key, value, parts, spec, batch, dropout, seed, noisy):  # noqa: ANN
    return value.new_empty(*torch.broadcast_shapes(batch, value.shape[:-2]), query.shape[-2], value.shape[-1])


def _fake_backward(grad, query, key, value, parts, spec, batch, dropout, seed, noisy, wanted):  # noqa: ANN
    inputs = [query, key, value, *parts]
    return [torch.empty_like(x) if want else x.new_empty(0) for x, want in zip(inputs, wanted, strict=True)]


_library.impl("chunked", _chunked, "CompositeExplicitAutograd")
_library.impl("chunked_backward", _chunked_backward, "CompositeExplicitAutograd")
torch.library.register_fake("regard::chunked", _fake, lib=_library)
torch.library.register_fake("regard::chunked_backward", _fake_backward, lib=_library)
torch.library.register_autograd("regard::chunked", _backward, setup_context=_save, lib=_library)
