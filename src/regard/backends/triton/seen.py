"""What a summary shows of the weights, from the kernels of kernels/statistics.py: only __init__ imports this, when a
summary is asked for."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from regard.backends.triton import codes
from regard.backends.triton.kernels import statistics
from regard.backends.triton.launch import Problem, grid, launching, start, statistic, strided, tiles_of
from regard.backends.triton.plan import two_axes
from regard.core.formula import Call
from regard.core.listed import Dense
from regard.core.mask import Mask
from regard.core.shapes import Extent, Spans
from regard.core.statistics import Summary, cells_of

PROGRAMS = 4096  # enough to fill any GPU: where there would be more, one program serves several cells


def summarized(p: Problem, top: int, pool: int) -> Summary:
    stat, entropy = _rows(p)
    cells_q, cells_k = min(pool, p.n_q), min(pool, p.n_k)
    sums = _columns(p, stat, cells_q)
    pooled = _pooled(sums, cells_k) / _per_cell(p.n_q, cells_q, p.device)[:, None]
    mass = sums.sum(1)
    best, indices = _top(p, stat, min(top, p.n_k))
    after = p.keep * p.linear
    if after != 1:
        best, mass, pooled = best * after, mass * after, pooled * after
    lse = None
    if p.plan.normalizer == codes.SOFTMAX:
        lse = torch.where(stat == math.inf, -math.inf, stat / math.log2(math.e))

    def whole(x: Tensor) -> Tensor:
        return x.reshape(*p.extent.batch, *x.shape[1:])

    return Summary(
        None if lse is None else whole(lse), whole(entropy), whole(best), whole(indices), whole(mass), whole(pooled)
    )


def _pooled(sums: Tensor, cells: int) -> Tensor:
    """[elements, cells of queries, cells of keys], from sums for every key."""
    n = sums.shape[-1]
    if n % cells == 0:
        return sums.unflatten(-1, (cells, -1)).sum(-1)
    pooled = sums.new_zeros(*sums.shape[:2], cells)
    return pooled.index_add_(-1, cells_of(n, cells, sums.device), sums)


# What depends on lengths alone is computed once: many small launches would take longer than the kernels.


@lru_cache(maxsize=64)
def _edges(n: int, cells: int, device: torch.device) -> Tensor:
    """Where the cells of `cells_of` begin, and where the last one ends."""
    return torch.tensor([-(-cell * n // cells) for cell in range(cells + 1)], dtype=torch.int32, device=device)


@lru_cache(maxsize=64)
def _per_cell(n: int, cells: int, device: torch.device) -> Tensor:
    edges = _edges(n, cells, device)
    return (edges[1:] - edges[:-1]).float()


@lru_cache(maxsize=64)
def _all_exist(cells: int, blocks: int, device: torch.device) -> Tensor:
    return torch.full((cells, blocks), 2, dtype=torch.uint8, device=device)


def _constants(p: Problem, block_m: int, block_n: int, without: tuple[str, ...] = ()) -> dict[str, Any]:
    constants = p.constants(block_m, block_n)
    return {name: value for name, value in constants.items() if name not in ("WIDTH_V", "BLOCK_V", *without)}


def _rows(p: Problem) -> tuple[Tensor, Tensor]:
    stat = statistic(p)
    entropy = torch.empty(p.elements, p.n_q, dtype=torch.float32, device=p.device)
    m, n, options = launching(p.sizes("forward"))
    start(
        statistics.row_statistics, grid(p.n_q, m, p.elements),
        strided(p.query), strided(p.key), p.a, p.c, p.q_units, p.k_units, p.tanh_v, stat, entropy, p.sink, p.seed,
        p.map(m, n, False), p.plan.tensors, p.plan.ints, p.plan.floats, p.n_q, p.n_k, p.heads, p.pre, p.log_factor(),
        p.call.dropout, HAS_SINK=p.has_sink, DROPOUT=p.dropout,
        SPLIT=p.split(m, n), **_constants(p, m, n),
        **options,
    )  # fmt: skip
    return stat, entropy


def _columns(p: Problem, stat: Tensor, cells: int) -> Tensor:
    """[elements, cells, n_k]: the weights that a key receives, summed over the queries of a cell."""
    m, n, options = launching(p.sizes("column_sums"))
    sums = torch.empty(p.elements, cells, p.n_k, dtype=torch.float32, device=p.device)
    tiles = tiles_of(p.n_k, n)
    edges = _edges(p.n_q, cells, p.device)
    per = max(1, cells * tiles * p.elements // PROGRAMS)
    start(
        statistics.column_sums, (tiles * tiles_of(cells, per) * p.elements,),
        strided(p.query), strided(p.key), p.a, p.c, p.q_units, p.k_units, p.tanh_v, stat, sums,
        _kinds(p.call, p.extent, edges, n), edges, p.seed, p.plan.tensors, p.plan.ints, p.plan.floats, p.n_q, p.n_k, p.heads,
        cells, per, p.pre, p.log_factor(), p.call.dropout, DROPOUT=p.dropout,
        **_constants(p, m, n, ("WALK", "BAND", "LEFT", "RIGHT")), **options,
    )  # fmt: skip
    return sums


def _kinds(call: Call, extent: Extent, edges: Tensor, block: int) -> tuple[Any, ...]:
    """Of each cell of queries and block of keys: whether no (0), some (1) or all (2) pairs exist; and its strides."""
    shape, device = (len(edges) - 1, tiles_of(extent.n_k, block)), extent.device
    if call.mask is None:
        kinds = _all_exist(*shape, device)
    elif _written(call.mask):  # its rectangles would be counted in a table many times its size
        kinds = torch.ones(shape, dtype=torch.uint8, device=device)
    else:
        j = torch.arange(0, extent.n_k, block, device=device)[None, :]
        j_last = (j + block).clamp(max=extent.n_k) - 1
        maybe, full = call.mask.classify(Spans(extent, edges[:-1, None], edges[1:, None] - 1, j, j_last))
        kinds = maybe.to(torch.uint8) + (maybe & full).to(torch.uint8)
    kinds = two_axes(kinds, extent, 2)
    return kinds, *codes.varying(*kinds.stride())


def _written(mask: Mask) -> bool:
    if isinstance(mask, Dense):
        return True
    values = [getattr(mask, name) for name in mask.fields]
    parts = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
    return any(_written(part) for part in parts if isinstance(part, Mask))


def _top(p: Problem, stat: Tensor, top: int) -> tuple[Tensor, Tensor]:
    if top == 0:
        empty = torch.empty(p.elements, p.n_q, 0, device=p.device)
        return empty, empty.long()
    m, n, options = launching(p.sizes("top_weights"))
    best = torch.empty(p.elements, p.n_q, top, dtype=torch.int64, device=p.device)
    start(
        statistics.top_weights, grid(p.n_q, m, p.elements),
        strided(p.query), strided(p.key), p.a, p.c, p.q_units, p.k_units, p.tanh_v, stat, best, p.seed,
        p.map(m, n, False), p.plan.tensors, p.plan.ints, p.plan.floats, p.n_q, p.n_k, p.heads, p.pre, p.log_factor(),
        p.call.dropout, DROPOUT=p.dropout, MOST=top, SLOTS=1 << (top - 1).bit_length(), **_constants(p, m, n),
        **options,
    )  # fmt: skip
    best = best.sort(-1, descending=True).values
    size = (best >> 32).int().view(torch.float32)
    weight = torch.where(best < 0, 0.0, torch.where((best & 1).bool(), -size, size))
    return weight, torch.where(best < 0, -1, 0x7FFFFFFF - (best & 0xFFFFFFFF) // 2)
