# The bodies are Triton's language, not Python's: branches on constants are no ternaries, loops are not Python's.
# ruff: noqa: RUF059
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportReturnType=false, reportIndexIssue=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
"""What there is to know about the weights without holding them: the forward pass again, without values.

`row_statistics` finds each query's log-sum-exp and entropy in one pass, `column_sums` what each key receives from each
cell of queries, `top_weights` each query's largest weights. Weights lack what is the same for all (keep, a factor).
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.backends.triton import codes
from regard.backends.triton.kernels.device import LOG2E, SOFTMAX, exists, kept, number, place, weights
from regard.backends.triton.kernels.forward import one_side, own_side, score_tile, tanh_of, units_of
from regard.backends.triton.kernels.walk import block_at, steps, walk

GATED = tl.constexpr(codes.GATED)
TANH = tl.constexpr(codes.TANH)
SPARSEMAX = tl.constexpr(codes.SPARSEMAX)


@triton.jit
def scores_at(
    block, q, a, K, C, b, h, q_units, k_units, tanh_v, i, at_i, first, n_q, n_k, pre, tensors, ints, floats,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, TREE: tl.constexpr, WIDTH: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr, CHECK: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr,
    UNROLL: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """(scores of one block of keys, -inf where there is no pair; which pairs exist; where the keys stand)."""
    start = block * BLOCK_N
    offs = tl.arange(0, BLOCK_N)
    j = (start + offs)[None, :]
    at_j = tl.minimum(j, n_k - 1)
    k, c = one_side(K, C, b, h, start, offs, n_k, SCORE, WIDTH, BLOCK_D)
    if SCORE >= GATED and SCORE < TANH:
        c = c[None, :]
    u, s, slope = score_tile(
        q, a, k, c, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
        SCORE, MODS, PRE, WIDTH, False, FAST, PRECISION, UNROLL, first, start, SPLIT,
    )  # fmt: skip
    ok = (i + j) >= 0
    if CHECK:
        ok = exists(TREE, tensors, ints, b, h, j, at_i, at_j, n_k)
        s = tl.where(ok, s, float("-inf"))
    return s, ok, at_j


@triton.jit
def magnitude(p):
    """|w| log2 |w|, 0 where there is no weight."""
    size = tl.abs(p)
    return size * tl.log2(tl.where(size > 0, size, 1.0))


@triton.jit(do_not_specialize=["n_q", "n_k", "heads", "ints"])
def row_statistics(
    Q, K, A, C, Q_UNITS, K_UNITS, TANH_V, STAT, ENTROPY, SINK, SEED, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, dropout,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, HAS_SINK: tl.constexpr,
    DROPOUT: tl.constexpr, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    FAST: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """Softmax's statistic, and for all the entropy log A - Σ|w| log|w| / A with A = Σ|w|. Softmax does it while its
    maximum still moves: log2 w is then a score x below the maximum, and Σ 2^x x moves along."""
    tiles = tl.cdiv(n_q, BLOCK_M)
    element = tl.program_id(0) // tiles
    tile = tiles - 1 - tl.program_id(0) % tiles
    b, h = element // heads, element % heads
    first = tile * BLOCK_M
    offs = tl.arange(0, BLOCK_M)
    i = (first + offs)[:, None]
    at_i = tl.minimum(i, n_q - 1)
    live = first + offs < n_q
    here = element.to(tl.int64) * n_q + first + offs
    q, a = own_side(Q, A, b, h, first, offs, n_q, SCORE, WIDTH, BLOCK_D)
    q_units, k_units, tanh_v = units_of(Q_UNITS, Q, b, h), units_of(K_UNITS, K, b, h), tanh_of(TANH_V, h)
    zero = tl.zeros([BLOCK_M], dtype=tl.float32)
    top, total, size, turned = zero + float("-inf"), zero, zero, zero
    if HAS_SINK:
        top = zero + tl.load(place(SINK[0], SINK, 1, b, h)) * LOG2E
        total += 1.0
    stat = 0.0
    if NORM >= SPARSEMAX:
        stat = tl.load(STAT + here, mask=live, other=float("inf"))[:, None]
    path = walk(
        MAP, tile, b, h, first, tl.minimum(first + BLOCK_M, n_q) - 1, ints, n_k, BAND, LEFT, RIGHT, WALK, BLOCK_N, False
    )
    for phase in tl.static_range(2):
        begin, end = steps(path, phase)
        for t in range(begin, end):
            block = block_at(path, t, phase, WALK)
            s, ok, at_j = scores_at(
                block, q, a, K, C, b, h, q_units, k_units, tanh_v, i, at_i, first, n_q, n_k, pre, tensors, ints,
                floats, SCORE, MODS, PRE, TREE, WIDTH, BLOCK_D, BLOCK_N, phase == 0, FAST, PRECISION, UNROLL, SPLIT,
            )  # fmt: skip
            if NORM == SOFTMAX:
                new = tl.maximum(top, tl.max(s, 1) * factor)
                base = tl.where(new == float("-inf"), 0.0, new)
                x = s * factor - base[:, None]
                p = tl.exp2(x)
                moved = tl.where(top == float("-inf"), 0.0, top - base)
                shrink = tl.exp2(top - base)
                total = total * shrink + tl.sum(p, 1)
                if DROPOUT:
                    p = tl.where(kept(SEED, element, at_i, at_j, dropout), p, 0.0)
                turned = shrink * (turned + size * moved) + tl.sum(p * tl.maximum(x, -1e4), 1)
                size = size * shrink + tl.sum(p, 1)
                top = new
            else:
                p = weights(s, stat, factor, floats, NORM, FAST)
                if phase == 0:
                    p = tl.where(ok, p, 0.0)
                if DROPOUT:
                    p = tl.where(kept(SEED, element, at_i, at_j, dropout), p, 0.0)
                size += tl.sum(tl.abs(p), 1)
                turned += tl.sum(magnitude(p), 1)
    if NORM == SOFTMAX:
        tl.store(STAT + here, tl.where(total > 0, top + tl.log2(total), float("inf")), mask=live)
    some = tl.where(size > 0, size, 1.0)
    tl.store(ENTROPY + here, (tl.log2(some) - turned / some) / LOG2E, mask=live)


@triton.jit(do_not_specialize=["n_q", "n_k", "heads", "ints", "cells", "per"])
def column_sums(
    Q, K, A, C, Q_UNITS, K_UNITS, TANH_V, STAT, SUMS, KINDS, EDGES, SEED, tensors, ints, floats,
    n_q, n_k, heads, cells, per, pre, factor, dropout,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    DROPOUT: tl.constexpr, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    FAST: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """For a tile of keys: the weights that each receives, summed over each of `per` cells of queries,
    which begin at EDGES. KINDS says of a
    cell and a tile of keys whether no (0), some (1) or all (2) pairs exist."""
    tiles, groups = tl.cdiv(n_k, BLOCK_N), tl.cdiv(cells, per)
    element = tl.program_id(0) // (tiles * groups)
    group = tl.program_id(0) // tiles % groups
    tile = tl.program_id(0) % tiles
    b, h = element // heads, element % heads
    start = tile * BLOCK_N
    cols = tl.arange(0, BLOCK_N)
    j = (start + cols)[:, None]
    at_j = tl.minimum(j, n_k - 1)
    k, c = one_side(K, C, b, h, start, cols, n_k, SCORE, WIDTH, BLOCK_D)
    if SCORE >= GATED and SCORE < TANH:
        c = c[:, None]
    q_units, k_units, tanh_v = units_of(Q_UNITS, Q, b, h), units_of(K_UNITS, K, b, h), tanh_of(TANH_V, h)
    offs = tl.arange(0, BLOCK_M)
    for cell in range(group * per, tl.minimum(group * per + per, cells)):
        first, end = tl.load(EDGES + cell), tl.load(EDGES + cell + 1)
        kind = tl.load(place(KINDS[0], KINDS, 1, b, h) + cell * number(KINDS, 3) + tile * number(KINDS, 4))
        blocks = tl.where(kind > 0, tl.cdiv(end - first, BLOCK_M), 0)
        acc = tl.zeros([BLOCK_N, BLOCK_M], dtype=tl.float32)
        for block in range(blocks):
            begin = first + block * BLOCK_M
            i = (begin + offs)[None, :]
            at_i = tl.minimum(i, n_q - 1)
            q, a = one_side(Q, A, b, h, begin, offs, n_q, SCORE, WIDTH, BLOCK_D)
            if SCORE >= GATED and SCORE < TANH:
                a = a[None, :]
            stat = 0.0
            if NORM == SOFTMAX or NORM >= SPARSEMAX:
                places = STAT + element.to(tl.int64) * n_q + begin + offs
                stat = tl.load(places, mask=begin + offs < n_q, other=float("inf"))[None, :]
            u, s, slope = score_tile(
                q, a, k, c, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
                SCORE, MODS, PRE, WIDTH, True, FAST, PRECISION, UNROLL, 0, 0, (0, 0),
            )  # fmt: skip
            p = weights(s, stat, factor, floats, NORM, FAST)
            if kind == 2:
                p = tl.where(i < end, p, 0.0)  # keys behind the last one are not stored
            else:
                p = tl.where((i < end) & exists(TREE, tensors, ints, b, h, j, at_i, at_j, n_k), p, 0.0)
            if DROPOUT:
                p = tl.where(kept(SEED, element, at_i, at_j, dropout), p, 0.0)
            acc += p
        places = SUMS + (element.to(tl.int64) * cells + cell) * n_k + start + cols
        tl.store(places, tl.sum(acc, 1), mask=start + cols < n_k)


@triton.jit(do_not_specialize=["n_q", "n_k", "heads", "ints"])
def top_weights(
    Q, K, A, C, Q_UNITS, K_UNITS, TANH_V, STAT, TOP, SEED, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, dropout,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, DROPOUT: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, FAST: tl.constexpr,
    PRECISION: tl.constexpr, UNROLL: tl.constexpr, MOST: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """The `MOST` largest |w| of each query, in no order. A weight and its key are one whole number: the bits of |w|
    (which for floats from 0 on are ordered as the floats are), then the key, lower ones first, then the sign. Blocks
    without a number above the least on the list cost one comparison for each pair."""
    tiles = tl.cdiv(n_q, BLOCK_M)
    element = tl.program_id(0) // tiles
    tile = tiles - 1 - tl.program_id(0) % tiles
    b, h = element // heads, element % heads
    first = tile * BLOCK_M
    offs = tl.arange(0, BLOCK_M)
    i = (first + offs)[:, None]
    at_i = tl.minimum(i, n_q - 1)
    live = first + offs < n_q
    here = element.to(tl.int64) * n_q + first + offs
    q, a = own_side(Q, A, b, h, first, offs, n_q, SCORE, WIDTH, BLOCK_D)
    q_units, k_units, tanh_v = units_of(Q_UNITS, Q, b, h), units_of(K_UNITS, K, b, h), tanh_of(TANH_V, h)
    stat = 0.0
    if NORM == SOFTMAX or NORM >= SPARSEMAX:
        stat = tl.load(STAT + here, mask=live, other=float("inf"))[:, None]
    slot = tl.arange(0, SLOTS)[None, :].to(tl.int64) + tl.zeros([BLOCK_M, 1], dtype=tl.int64)
    best = tl.where(slot < MOST, slot - MOST, 0x7FFFFFFFFFFFFFFF)  # below every weight, no two alike
    least = tl.min(best, 1)
    path = walk(
        MAP, tile, b, h, first, tl.minimum(first + BLOCK_M, n_q) - 1, ints, n_k, BAND, LEFT, RIGHT, WALK, BLOCK_N, False
    )
    for t in range(path[0], path[3]):
        block = block_at(path, t, 1, WALK)
        s, ok, at_j = scores_at(
            block, q, a, K, C, b, h, q_units, k_units, tanh_v, i, at_i, first, n_q, n_k, pre, tensors, ints, floats,
            SCORE, MODS, PRE, TREE, WIDTH, BLOCK_D, BLOCK_N, True, FAST, PRECISION, UNROLL, (0, 0),
        )  # fmt: skip
        p = tl.where(ok, weights(s, stat, factor, floats, NORM, FAST), 0.0)
        if DROPOUT:
            p = tl.where(kept(SEED, element, at_i, at_j, dropout), p, 0.0)
        bits = tl.abs(p).to(tl.int32, bitcast=True).to(tl.int64)
        negative = tl.where(p < 0, 1, 0)
        number = (bits << 32) | ((0x7FFFFFFF - at_j).to(tl.int64) << 1) | negative.to(tl.int64)
        number = tl.where(p == 0.0, -0x7FFFFFFFFFFFFFFF, number)
        found = tl.max(number, 1)
        more = tl.max(tl.where(found > least, 1, 0), 0)
        while more > 0:
            taken = (best == least[:, None]) & (found > least)[:, None]
            best = tl.where(taken, found[:, None], best)
            number = tl.where(number == found[:, None], -0x7FFFFFFFFFFFFFFF, number)
            least = tl.min(best, 1)
            found = tl.max(number, 1)
            more = tl.max(tl.where(found > least, 1, 0), 0)
    slots = tl.arange(0, SLOTS)[None, :]
    tl.store(TOP + here[:, None] * MOST + slots, best, mask=live[:, None] & (slots < MOST))
