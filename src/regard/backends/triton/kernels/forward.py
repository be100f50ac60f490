# The bodies are Triton's language, not Python's: branches on constants are no ternaries, loops are not Python's.
# ruff: noqa: RUF059
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportReturnType=false, reportIndexIssue=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
"""The forward template: one program computes the output of a tile of queries of one head, key block by key block.

Softmax keeps a running maximum and sum; every other normalizer needs neither: its threshold, if it has one, is
known before.
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.backends.triton import codes
from regard.backends.triton.kernels.device import (
    LOG2E,
    SOFTMAX,
    exists,
    kept,
    lead,
    modify,
    numbers_of,
    place,
    tile_of,
    weights,
)
from regard.backends.triton.kernels.scores import product, split_units, units
from regard.backends.triton.kernels.walk import block_at, steps, walk

GATED = tl.constexpr(codes.GATED)
TANH = tl.constexpr(codes.TANH)
SPARSEMAX = tl.constexpr(codes.SPARSEMAX)


@triton.jit
def rows_of(X, b, h):
    """(where the tokens of one head start, their distance) of (tensor, strides of batch, head, token)."""
    return lead(X[0], X, 1, b, h), X[3]


@triton.jit
def units_of(U, X, b, h):
    """What `units` takes of one side: hidden-major numbers and the original ones."""
    return lead(U[0], U, 1, b, h), U[3], lead(X[0], X, 1, b, h), X[3]


@triton.jit
def tanh_of(TANH_V, h):
    """(-2v, Σ v, the limits) of one head."""
    return TANH_V[0] + h * TANH_V[3], TANH_V[1] + h * TANH_V[4], TANH_V[2]


@triton.jit
def one_side(X, PART, b, h, start, offs, n, SCORE: tl.constexpr, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr):
    """A tile of queries or keys, and what each token brings alone."""
    x, part = 0.0, 0.0
    if SCORE < TANH:
        base, stride = rows_of(X, b, h)
        x = tile_of(base, stride, start, offs, tl.arange(0, BLOCK_D), n, WIDTH, BLOCK_D, True)
        if SCORE >= GATED:
            part = tl.load(place(PART[0], PART, 1, b, h) + start + offs, mask=start + offs < n, other=0.0)
    return x, part


@triton.jit
def own_side(X, PART, b, h, start, offs, n, SCORE: tl.constexpr, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr):
    """The same, for tokens that are a tile's rows."""
    x, part = one_side(X, PART, b, h, start, offs, n, SCORE, WIDTH, BLOCK_D)
    if SCORE >= GATED and SCORE < TANH:
        part = part[:, None]
    return x, part


@triton.jit
def score_tile(
    q, a, k, c, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, WIDTH: tl.constexpr, FLIP: tl.constexpr,
    FAST: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr, first_i, first_j, SPLIT: tl.constexpr,
    SINCE: tl.constexpr = -1,
):  # fmt: skip
    """(content before gates, score before its factor, the score's derivative by its content, or by the bias at SINCE) of one tile. i and j
    say where tokens are stored, at_i and at_j where they stand; SPLIT, the tile's rows and columns, that they begin at
    first_i and first_j and are split over threads."""
    if SCORE >= TANH and SPLIT[0] > 0:
        u = split_units(
            q_units, k_units, tanh_v, first_i, first_j, n_q, n_k, SCORE, WIDTH, UNROLL, SPLIT[0], SPLIT[1], FLIP
        )
    elif SCORE >= TANH:
        u = units(q_units, k_units, tanh_v, i, j, n_q, n_k, SCORE, WIDTH, UNROLL)
    elif FLIP:
        u = tl.dot(k, tl.trans(q), input_precision=PRECISION)
    else:
        u = tl.dot(q, tl.trans(k), input_precision=PRECISION)
    s = product(u, a, c, SCORE, FAST)
    if PRE:
        s = s * pre
    s, slope = modify(MODS, 0, SINCE, s, 1.0, tensors, ints, floats, b, h, at_i, at_j)
    return u, s, slope


@triton.jit
def forward_step(
    acc, top, total, block, first, q, a, K, C, V, q_units, k_units, tanh_v, i, at_i, n_q, n_k, pre, factor, dropout, SEED,
    element, tensors, ints, floats, b, h, stat,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_N: tl.constexpr,
    DROPOUT: tl.constexpr, CHECK: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr,
    UNROLL: tl.constexpr, WIDE: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    start = block * BLOCK_N
    offs = tl.arange(0, BLOCK_N)
    j = (start + offs)[None, :]
    at_j = j
    if CHECK:
        at_j = tl.minimum(j, n_k - 1)
    k, c = 0.0, 0.0
    if SCORE < TANH:
        k = tile_of(K[0], K[1], start, offs, tl.arange(0, BLOCK_D), n_k, WIDTH, BLOCK_D, CHECK)
        if SCORE >= GATED:
            c = numbers_of(C, start, offs, n_k, 0.0, CHECK)[None, :]
    u, s, slope = score_tile(
        q, a, k, c, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
        SCORE, MODS, PRE, WIDTH, False, FAST, PRECISION, UNROLL, first, start, SPLIT,
    )  # fmt: skip
    if CHECK:
        ok = exists(TREE, tensors, ints, b, h, j, at_i, at_j, n_k)
    if NORM == SOFTMAX:
        if CHECK:
            s = tl.where(ok, s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1) * factor)
        base = tl.where(new == float("-inf"), 0.0, new)
        p = tl.exp2(s * factor - base[:, None])
        shrink = tl.exp2(top - base)
        total = total * shrink + tl.sum(p, 1)
        top = new
        acc = acc * shrink[:, None]
    else:
        p = weights(s, stat, factor, floats, NORM, FAST)
        if CHECK:
            p = tl.where(ok, p, 0.0)
    if DROPOUT:
        p = tl.where(kept(SEED, element, at_i, at_j, dropout), p, 0.0)
    value = tile_of(V[0], V[1], start, offs, tl.arange(0, BLOCK_V), n_k, WIDTH_V, BLOCK_V, CHECK)
    if WIDE:
        value = value.to(tl.float32)
    acc = tl.dot(p.to(value.dtype), value, acc, input_precision=PRECISION)
    return acc, top, total


@triton.jit(do_not_specialize=["n_q", "n_k", "heads", "ints"])
def forward(
    Q, K, V, A, C, Q_UNITS, K_UNITS, TANH_V, OUT, STAT, SINK, SEED, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, after, dropout,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, HAS_SINK: tl.constexpr,
    DROPOUT: tl.constexpr, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr,
    WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, FAST: tl.constexpr,
    PRECISION: tl.constexpr, UNROLL: tl.constexpr, WIDE: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(n_q, BLOCK_M)
    element = tl.program_id(0) // tiles
    tile = tiles - 1 - tl.program_id(0) % tiles  # under a causal mask the last tiles work longest: they start first
    b, h = element // heads, element % heads
    first = tile * BLOCK_M
    offs = tl.arange(0, BLOCK_M)
    i = (first + offs)[:, None]
    at_i = tl.minimum(i, n_q - 1)
    live = first + offs < n_q
    stats = STAT + element.to(tl.int64) * n_q + first + offs
    q, a = own_side(Q, A, b, h, first, offs, n_q, SCORE, WIDTH, BLOCK_D)
    keys, values, c = rows_of(K, b, h), rows_of(V, b, h), place(C[0], C, 1, b, h)
    q_units, k_units, tanh_v = units_of(Q_UNITS, Q, b, h), units_of(K_UNITS, K, b, h), tanh_of(TANH_V, h)
    acc = tl.zeros([BLOCK_M, BLOCK_V], dtype=tl.float32)
    top = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    if HAS_SINK:
        top = total + tl.load(place(SINK[0], SINK, 1, b, h)) * LOG2E
        total += 1.0
    stat = 0.0
    if NORM >= SPARSEMAX:
        stat = tl.load(stats, mask=live, other=float("inf"))[:, None]

    path = walk(
        MAP, tile, b, h, first, tl.minimum(first + BLOCK_M, n_q) - 1, ints, n_k, BAND, LEFT, RIGHT, WALK, BLOCK_N, False
    )
    for phase in tl.static_range(2):
        begin, end = steps(path, phase)
        for t in range(begin, end):
            block = block_at(path, t, phase, WALK)
            acc, top, total = forward_step(
                acc, top, total, block, first, q, a, keys, c, values, q_units, k_units, tanh_v, i, at_i, n_q, n_k, pre,
                factor, dropout, SEED, element, tensors, ints, floats, b, h, stat,
                SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_D, WIDTH_V, BLOCK_V, BLOCK_N, DROPOUT,
                phase == 0, FAST, PRECISION, UNROLL, WIDE, SPLIT,
            )  # fmt: skip

    if NORM == SOFTMAX:
        # Nothing to attend to: the statistic is such that every weight computed from it is 0.
        tl.store(stats, tl.where(total > 0, top + tl.log2(total), float("inf")), mask=live)
        acc = acc / tl.where(total > 0, total, 1.0)[:, None]
    acc = acc * after
    cols = tl.arange(0, BLOCK_V)
    places = lead(OUT[0], OUT, 1, b, h) + first.to(tl.int64) * OUT[3] + offs[:, None] * OUT[3] + cols[None, :]
    tl.store(places, acc.to(OUT[0].dtype.element_ty), mask=live[:, None] & (cols < WIDTH_V)[None, :])
