"""Kernels called on plans: outputs, weights, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.backends.cpu import codes
from regard.backends.cpu.plan import Inputs, Options, Plan, record
from regard.backends.cpu.threads import borrow, give_back, share


def forward(inputs: Inputs, options: Options, batch: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """(output [*batch, n_q, d_v], two numbers for each row that backward wants)."""
    plan = Plan(inputs, options, batch)
    out = inputs.value.new_empty(*batch, plan.n_r, plan.d_v)
    stat = inputs.value.new_empty(*batch, plan.n_r, 2)
    _forward(plan, out, stat, None)
    plan.close()
    return out, stat


def weights(inputs: Inputs, options: Options, batch: tuple[int, ...], chosen: Tensor | None) -> tuple[Tensor, Tensor]:
    """(weights of the chosen rows over all keys, their two numbers)."""
    plan = Plan(inputs, options, batch, chosen)
    out = inputs.value.new_zeros(*batch, plan.n_r, plan.n_k)
    stat = inputs.value.new_empty(*batch, plan.n_r, 2)
    _forward(plan, None, stat, out)
    plan.close()
    return out, stat


def _forward(plan: Plan, out: Tensor | None, stat: Tensor, to: Tensor | None) -> None:
    arrays = {"stat": stat} | ({} if out is None else {"out": out}) | ({} if to is None else {"weights": to})
    output = record(plan.kernels.OUTPUT, {name: x.numpy() for name, x in arrays.items()}, {})
    for seen, problem in plan.problems():
        groups = seen.last_group - seen.first_group
        strip, rows = seen.rows * seen.ld + plan.lanes, seen.rows * plan.depth + plan.lanes
        numbers = 2 * strip + 2 * rows + seen.ld + plan.lanes + seen.rows * (plan.width + 1)

        def run(
            begin: int, end: int, seen: Any = seen, problem: Any = problem, groups: int = groups, numbers: int = numbers
        ) -> None:
            memory, spans = borrow(numbers, plan.dtype), np.empty(seen.rows, np.int64)
            plan.kernels.forward(problem, groups, seen.first_group, begin, end, output, memory, spans)
            give_back(memory)

        share(run, plan.size * groups, plan.work(seen))


def backward(
    grad: Tensor, stat: Tensor, inputs: Inputs, options: Options, batch: tuple[int, ...], wanted: list[bool]
) -> list[Tensor]:
    """Gradients of all inputs, in order; empty tensors for those that are not wanted."""
    plan = Plan(inputs, options, batch)
    size, n_r, n_k, content = plan.size, plan.n_r, plan.n_k, options.content
    products = content in (codes.DOT, codes.GATED)
    parts = max(1, min(-(-2 * torch.get_num_threads() // size), -(-n_r // 8)))
    to_query = any(wanted[:2]) or any(wanted[3:])

    def new(*shape: int) -> Tensor:  # by numpy, which wakes no threads: on a busy machine each time is a wait
        return torch.from_numpy(np.zeros(shape, plan.dtype))

    none = new(0)
    has = [x is not None for x in inputs]
    gated = content == codes.GATED
    query, stored = new(size, n_r, plan.depth), (n_k, plan.wide) if products else (plan.tiles, plan.depth, plan.tile)
    key, value = new(size, parts, *stored), new(size, parts, n_k, plan.width)
    gate_q, gate_k = (new(size, n_r), new(size, parts, plan.span)) if gated else (none, none)
    units = new(size, parts, plan.depth) if has[3] else none
    length = 0 if inputs.line is None else inputs.line.shape[-1]
    line = new(size, parts, length) if has[4] else none
    table = new(size, n_r, n_k) if has[5] and wanted[5] else none
    sink = new(size, parts)
    value_t, _ = plan.transposed(codes.VALUE_T, plan.value)
    query_rows = plan.put(codes.QUERY_ROWS, plan.in_registers(plan.query) if products else None, 2)
    if content == codes.DOT and options.factor != 1:
        query_rows = query_rows * plan.dtype.type(options.factor)
    key_rows = plan.put(codes.KEY_ROWS, plan.in_registers(plan.key) if products else None, 2)
    grad = plan.in_registers(grad.to(inputs.value.dtype)).contiguous()
    stat = stat.contiguous()
    written = {
        "out": grad, "stat": stat, "query": query, "key": key, "value": value, "gate_q": gate_q, "gate_k": gate_k,
        "units": units, "line": line, "table": table, "sink": sink,
    }  # fmt: skip
    arrays = {name: x.numpy() for name, x in written.items()}
    gradients = record(
        plan.kernels.GRADIENTS,
        arrays | {"value_t": value_t, "query_rows": query_rows, "key_rows": key_rows},
        {
            "parts": parts,
            "wide": plan.wide,
            "span": plan.span,
            "length": length,
            "to_query": to_query,
            "to_value": wanted[2],
        },
    )
    for seen, problem in plan.problems():
        strip, rows = seen.rows * seen.ld + plan.lanes, seen.rows * plan.wide + plan.lanes
        numbers = 4 * strip + 3 * rows + plan.depth * plan.lanes

        def run(begin: int, end: int, seen: Any = seen, problem: Any = problem, numbers: int = numbers) -> None:
            memory, spans = borrow(numbers, plan.dtype), np.empty(seen.rows, np.int64)
            plan.kernels.backward(problem, gradients, seen.first_group, seen.last_group, begin, end, memory, spans)
            give_back(memory)

        share(run, size * parts, plan.work(seen) * 3)
    plan.close()
    key, value, gate_k, units, line, sink = (_sum(x) for x in (key, value, gate_k, units, line, sink))
    key = key[..., : plan.depth] if products else key.mT.reshape(size, plan.span, plan.depth)[:, :n_k]
    if gated:
        query = torch.cat([query, gate_q[..., None]], -1)
        key = torch.cat([key, gate_k[:, :n_k, None]], -1)
    found = [
        query,
        key,
        value[..., : plan.d_v],
        units,
        line,
        table,
        sink,
    ]
    return [
        x.reshape((*batch, *x.shape[1:])).sum_to_size(of.shape).contiguous()
        if want and of is not None
        else none.clone()
        for x, of, want in zip(found, inputs, wanted, strict=True)
    ]


def _sum(parts: Tensor) -> Tensor:
    """Of what each thread found; nothing stays nothing."""
    return torch.from_numpy(parts.numpy().sum(1)) if parts.ndim > 1 else parts
