# The bodies are Triton's language, not Python's: branches on constants are no ternaries, loops are not Python's.
# ruff: noqa: RUF059
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportReturnType=false, reportIndexIssue=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
"""The backward of the tanh sum. Its gradients are no matrix products: for each unit, dS · (1 - tanh²) is summed over
keys (for queries and v) or over queries (for keys). The axis that is summed lies first in a tile, where its numbers
belong to one thread; 1 - tanh² = 4 (r - r²) with the r = 1 / (1 + E) of the forward pass, computed again.
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.backends.triton import codes
from regard.backends.triton.kernels.backward import score_gradient
from regard.backends.triton.kernels.device import SOFTMAX, exists, lead, numbers_of, reciprocal, tanh, tile_of, weights
from regard.backends.triton.kernels.forward import rows_of, score_tile, tanh_of, units_of
from regard.backends.triton.kernels.walk import block_at, steps, walk

SPARSEMAX = tl.constexpr(codes.SPARSEMAX)


@triton.jit
def add2(a, b, c, d):
    return a + c, b + d


@triton.jit
def add4(a, b, c, d, e, f, g, h):
    return a + e, b + f, c + g, d + h


@triton.jit
def by_lane(first, width: tl.constexpr):
    """first, first + 1, ... as (warps, lanes)."""
    lanes: tl.constexpr = 32 if width > 32 else width  # pyright: ignore[reportAssignmentType]
    return first + (tl.arange(0, width // lanes) * lanes)[:, None] + tl.arange(0, lanes)[None, :]


@triton.jit
def put_down(ds, SPACE, row, size: tl.constexpr, width: tl.constexpr):
    """Rows of a tile, into memory of this program's own, from `row` on."""
    tl.store(SPACE + ((row + tl.arange(0, size)) * width)[:, None] + tl.arange(0, width)[None, :], ds)


@triton.jit
def taken_up(SPACE, size: tl.constexpr, width: tl.constexpr):
    """All of them, as (rows, warps, lanes): the columns spread over threads, the rows inside each. Through memory,
    since Triton would otherwise keep the layout of the matrix product and convert for every unit."""
    tl.debug_barrier()
    ds = tl.load(SPACE + (tl.arange(0, size) * width)[:, None, None] + by_lane(0, width)[None, :, :])
    tl.debug_barrier()
    return ds


@triton.jit
def unit_sums(
    CURVED, PLAIN, stride, ds, q, k, v, i, j, n_q, n_k, WIDTH: tl.constexpr, WITH_V: tl.constexpr,
):  # fmt: skip
    """Add Σ dS (1 - tanh²) / 4 and, if v's gradient is wanted, Σ dS (1 - tanh) / 2 over the first axis of a tile, for
    every unit, to where the pointers (of the other axes) say: only this program, and there this thread, adds."""
    if tl.load(v[2]) + tl.load(v[2] + 1) <= 21.0:
        for d in range(0, WIDTH, 2):
            x = 1.0 + tl.load(q[0] + d * q[1] + i) * tl.load(k[0] + d * k[1] + j)
            y = 1.0 + tl.load(q[0] + (d + 1) * q[1] + i) * tl.load(k[0] + (d + 1) * k[1] + j)
            shared = reciprocal(x * y)
            r, t = y * shared, x * shared
            one, two = CURVED + d * stride, CURVED + (d + 1) * stride
            if WITH_V:
                dr, dt = ds * r, ds * t
                dr, drr, dt, dtt = tl.reduce((dr, dr * r, dt, dt * t), 0, add4)
                tl.store(one, tl.load(one) + (dr - drr))
                tl.store(two, tl.load(two) + (dt - dtt))
                one, two = PLAIN + d * stride, PLAIN + (d + 1) * stride
                tl.store(one, tl.load(one) + dr)
                tl.store(two, tl.load(two) + dt)
            else:
                dr, dt = tl.reduce((ds * (r - r * r), ds * (t - t * t)), 0, add2)
                tl.store(one, tl.load(one) + dr)
                tl.store(two, tl.load(two) + dt)
    else:
        row, col = tl.minimum(i, n_q - 1) * q[3], tl.minimum(j, n_k - 1) * k[3]
        for d in range(WIDTH):
            t = tanh(tl.load(q[2] + row + d) + tl.load(k[2] + col + d))
            tl.store(CURVED + d * stride, tl.load(CURVED + d * stride) + tl.sum(ds * (0.25 - 0.25 * t * t), 0))
            if WITH_V:
                tl.store(PLAIN + d * stride, tl.load(PLAIN + d * stride) + tl.sum(ds * (0.5 - 0.5 * t), 0))


@triton.jit
def tanh_query_step(
    dsum, block, CURVED, PLAIN, unit_stride, SPACE, grad, stat, delta, V, q_units, k_units, tanh_v, first, i, at_i,
    n_q, n_k, pre, factor, dropout, keep, SEED, element, tensors, ints, floats, b, h,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WIDTH: tl.constexpr, WITH_V: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, SLICE: tl.constexpr, DROPOUT: tl.constexpr, CHECK: tl.constexpr, CAPPED: tl.constexpr,
    FAST: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Score gradients slice by slice, since a thread's registers hold few of them; sums over all slices, since each
    sum is one reading and one writing of memory."""
    offs = tl.arange(0, SLICE)
    for row in range(0, BLOCK_N, SLICE):
        start = block * BLOCK_N + row
        j = (start + offs)[:, None]
        at_j = j
        if CHECK:
            at_j = tl.minimum(j, n_k - 1)
        value = tile_of(V[0], V[1], start, offs, tl.arange(0, BLOCK_V), n_k, WIDTH_V, BLOCK_V, CHECK)
        u, s, slope = score_tile(
            0.0, 0.0, 0.0, 0.0, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
            SCORE, MODS, PRE, WIDTH, True, FAST, PRECISION, UNROLL, 0, 0, (0, 0),
        )  # fmt: skip
        dp = tl.dot(value, tl.trans(grad), input_precision=PRECISION)
        ok = True
        p = weights(s, stat, factor, floats, NORM, FAST)
        if CHECK:
            ok = exists(TREE, tensors, ints, b, h, j, at_i, at_j, n_k)
            p = tl.where(ok, p, 0.0)
        ds, noisy = score_gradient(
            s, p, dp, delta, ok, slope, SEED, element, at_i, at_j, dropout, keep, floats, NORM, DROPOUT, CHECK, CAPPED
        )
        put_down(ds, SPACE, row, SLICE, BLOCK_M)
        if WITH_V:
            dsum += tl.sum(ds, 0)
    ds = taken_up(SPACE, BLOCK_N, BLOCK_M)
    j = (block * BLOCK_N + tl.arange(0, BLOCK_N))[:, None, None]
    i = by_lane(first, BLOCK_M)[None, :, :]
    unit_sums(CURVED, PLAIN, unit_stride, ds, q_units, k_units, tanh_v, i, j, n_q, n_k, WIDTH, WITH_V)
    return dsum


@triton.jit(do_not_specialize=["n_q", "n_k", "heads", "ints"])
def tanh_queries(
    Q, K, V, Q_UNITS, K_UNITS, TANH_V, OUT, GRAD, STAT, DELTA, CURVED, PLAIN, DSUM, SPACE, SEED, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, dropout, keep,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, DROPOUT: tl.constexpr,
    CAPPED: tl.constexpr, WIDTH: tl.constexpr, WITH_V: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SLICE: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr,
    UNROLL: tl.constexpr,
):  # fmt: skip
    """Sums for the gradients of queries and of v."""
    tiles = tl.cdiv(n_q, BLOCK_M)
    element = tl.program_id(0) // tiles
    tile = tiles - 1 - tl.program_id(0) % tiles
    b, h = element // heads, element % heads
    first = tile * BLOCK_M
    offs = tl.arange(0, BLOCK_M)
    i = (first + offs)[None, :]
    at_i = tl.minimum(i, n_q - 1)
    live = first + offs < n_q
    here = element.to(tl.int64) * n_q + first + offs
    values = rows_of(V, b, h)
    q_units, k_units, tanh_v = units_of(Q_UNITS, Q, b, h), units_of(K_UNITS, K, b, h), tanh_of(TANH_V, h)
    base, stride = rows_of(GRAD, b, h)
    grad = tile_of(base, stride, first, offs, tl.arange(0, BLOCK_V), n_q, WIDTH_V, BLOCK_V, True)
    stat, delta = 0.0, 0.0
    if NORM == SOFTMAX or NORM >= SPARSEMAX:
        stat = tl.load(STAT + here, mask=live, other=float("inf"))[None, :]
    if NORM == SOFTMAX:
        base, stride = rows_of(OUT, b, h)
        out = tile_of(base, stride, first, offs, tl.arange(0, BLOCK_V), n_q, WIDTH_V, BLOCK_V, True)
        delta = tl.sum(out.to(tl.float32) * grad.to(tl.float32), 1)
        tl.store(DELTA + here, delta, mask=live)
        delta = delta[None, :]
    elif NORM >= SPARSEMAX:
        delta = tl.load(DELTA + here, mask=live, other=0.0)[None, :]
    space = SPACE + tl.program_id(0).to(tl.int64) * BLOCK_M * BLOCK_N
    curved = CURVED[0] + element.to(tl.int64) * CURVED[1] + by_lane(first, BLOCK_M)
    plain = PLAIN + element.to(tl.int64) * CURVED[1] + by_lane(first, BLOCK_M)
    dsum = tl.zeros([BLOCK_M], dtype=tl.float32)

    path = walk(
        MAP, tile, b, h, first, tl.minimum(first + BLOCK_M, n_q) - 1, ints, n_k, BAND, LEFT, RIGHT, WALK, BLOCK_N, False
    )
    for phase in tl.static_range(2):
        begin, end = steps(path, phase)
        for t in range(begin, end):
            block = block_at(path, t, phase, WALK)
            dsum = tanh_query_step(
                dsum, block, curved, plain, CURVED[2], space, grad, stat, delta, values, q_units, k_units, tanh_v, first, i, at_i, n_q, n_k,
                pre, factor, dropout, keep, SEED, element, tensors, ints, floats, b, h,
                SCORE, MODS, PRE, NORM, TREE, WIDTH, WITH_V, WIDTH_V, BLOCK_V, BLOCK_M, BLOCK_N, SLICE, DROPOUT, phase == 0,
                CAPPED, FAST, PRECISION, UNROLL,
            )  # fmt: skip

    if WITH_V:
        tl.store(DSUM + here, dsum, mask=live)


@triton.jit
def tanh_key_step(
    dv, block, CURVED, unit_stride, SPACE, value, GRAD, STAT, DELTA, q_units, k_units, tanh_v, first, j, at_j,
    n_q, n_k, pre, factor, dropout, keep, SEED, element, tensors, ints, floats, b, h,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WIDTH: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    SLICE: tl.constexpr, DROPOUT: tl.constexpr, CHECK: tl.constexpr, CAPPED: tl.constexpr, FAST: tl.constexpr,
    PRECISION: tl.constexpr, UNROLL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    offs = tl.arange(0, SLICE)
    for row in range(0, BLOCK_M, SLICE):
        start = block * BLOCK_M + row
        i = (start + offs)[:, None]
        at_i = i
        if CHECK:
            at_i = tl.minimum(i, n_q - 1)
        grad = tile_of(GRAD[0], GRAD[1], start, offs, tl.arange(0, BLOCK_V), n_q, WIDTH_V, BLOCK_V, CHECK)
        stat, delta = 0.0, 0.0
        if NORM == SOFTMAX or NORM >= SPARSEMAX:
            stat = numbers_of(STAT, start, offs, n_q, float("inf"), CHECK)[:, None]
            delta = numbers_of(DELTA, start, offs, n_q, 0.0, CHECK)[:, None]
        u, s, slope = score_tile(
            0.0, 0.0, 0.0, 0.0, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
            SCORE, MODS, PRE, WIDTH, False, FAST, PRECISION, UNROLL, 0, 0, (0, 0),
        )  # fmt: skip
        p = weights(s, stat, factor, floats, NORM, FAST)
        ok = True
        if CHECK:
            ok = exists(TREE, tensors, ints, b, h, j, at_i, at_j, n_k)
            p = tl.where(ok, p, 0.0)
        dp = tl.dot(grad, tl.trans(value), input_precision=PRECISION)
        ds, noisy = score_gradient(
            s, p, dp, delta, ok, slope, SEED, element, at_i, at_j, dropout, keep, floats, NORM, DROPOUT, CHECK, CAPPED
        )
        if WIDE:
            dv = tl.dot(tl.trans(noisy), grad.to(tl.float32), dv, input_precision=PRECISION)
        else:
            dv = tl.dot(tl.trans(noisy.to(grad.dtype)), grad, dv, input_precision=PRECISION)
        put_down(ds, SPACE, row, SLICE, BLOCK_N)
    ds = taken_up(SPACE, BLOCK_M, BLOCK_N)
    i = (block * BLOCK_M + tl.arange(0, BLOCK_M))[:, None, None]
    j = by_lane(first, BLOCK_N)[None, :, :]
    unit_sums(CURVED, CURVED, unit_stride, ds, q_units, k_units, tanh_v, i, j, n_q, n_k, WIDTH, False)
    return dv


@triton.jit(do_not_specialize=["n_q", "n_k", "heads", "ints"])
def tanh_keys(
    Q, K, V, Q_UNITS, K_UNITS, TANH_V, GRAD, STAT, DELTA, CURVED, DV, SPACE, SEED, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, dropout, keep, after,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, DROPOUT: tl.constexpr,
    CAPPED: tl.constexpr, WIDTH: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SLICE: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr,
    UNROLL: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Sums for the gradients of keys, and the gradients of values."""
    tiles = tl.cdiv(n_k, BLOCK_N)
    element = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    b, h = element // heads, element % heads
    first = tile * BLOCK_N
    offs = tl.arange(0, BLOCK_N)
    j = (first + offs)[None, :]
    at_j = tl.minimum(j, n_k - 1)
    live = first + offs < n_k
    base, stride = rows_of(V, b, h)
    value = tile_of(base, stride, first, offs, tl.arange(0, BLOCK_V), n_k, WIDTH_V, BLOCK_V, True)
    grads = rows_of(GRAD, b, h)
    q_units, k_units, tanh_v = units_of(Q_UNITS, Q, b, h), units_of(K_UNITS, K, b, h), tanh_of(TANH_V, h)
    stats, deltas = STAT + element.to(tl.int64) * n_q, DELTA + element.to(tl.int64) * n_q
    space = SPACE + tl.program_id(0).to(tl.int64) * BLOCK_M * BLOCK_N
    curved = CURVED[0] + element.to(tl.int64) * CURVED[1] + by_lane(first, BLOCK_N)
    dv = tl.zeros([BLOCK_N, BLOCK_V], dtype=tl.float32)

    path = walk(
        MAP, tile, b, h, first, tl.minimum(first + BLOCK_N, n_k) - 1, ints, n_q, BAND, LEFT, RIGHT, WALK, BLOCK_M, True
    )
    for phase in tl.static_range(2):
        begin, end = steps(path, phase)
        for t in range(begin, end):
            block = block_at(path, t, phase, WALK)
            dv = tanh_key_step(
                dv, block, curved, CURVED[2], space, value, grads, stats, deltas, q_units, k_units, tanh_v, first, j, at_j, n_q, n_k,
                pre, factor, dropout, keep, SEED, element, tensors, ints, floats, b, h,
                SCORE, MODS, PRE, NORM, TREE, WIDTH, WIDTH_V, BLOCK_V, BLOCK_M, BLOCK_N, SLICE, DROPOUT, phase == 0,
                CAPPED, FAST, PRECISION, UNROLL, WIDE,
            )  # fmt: skip

    cols = tl.arange(0, BLOCK_V)
    places = lead(DV[0], DV, 1, b, h) + first.to(tl.int64) * DV[3] + offs[:, None] * DV[3] + cols[None, :]
    tl.store(places, (dv * after).to(DV[0].dtype.element_ty), mask=live[:, None] & (cols < WIDTH_V)[None, :])
