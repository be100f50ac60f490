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
from regard.backends.triton.kernels.backward import phases, score_gradient
from regard.backends.triton.kernels.device import LISTED, SOFTMAX, lead, runs, tanh, tile_of, weights
from regard.backends.triton.kernels.forward import exists, rows_of, score_tile, tanh_of, units_of

SPARSEMAX = tl.constexpr(codes.SPARSEMAX)


@triton.jit
def add4(a, b, c, d, e, f, g, h):
    return a + e, b + f, c + g, d + h


@triton.jit
def unit_sums(curved, plain, ds, q, k, v, i, j, n_q, n_k, WIDTH: tl.constexpr, BLOCK_U: tl.constexpr):
    """Add Σ dS (1 - tanh²) / 4 and Σ dS (1 - tanh) / 2 over the first axis of a tile, for every unit."""
    unit = tl.arange(0, BLOCK_U)[:, None]
    if tl.load(v[2]) + tl.load(v[2] + 1) <= 21.0:
        for d in range(0, WIDTH, 2):
            x = 1.0 + tl.load(q[0] + d * q[1] + i) * tl.load(k[0] + d * k[1] + j)
            y = 1.0 + tl.load(q[0] + (d + 1) * q[1] + i) * tl.load(k[0] + (d + 1) * k[1] + j)
            shared = 1.0 / (x * y)
            r, t = y * shared, x * shared
            dr, dt = ds * r, ds * t
            drr, dtt = dr * r, dt * t
            dr, drr, dt, dtt = tl.reduce((dr, drr, dt, dtt), 0, add4)
            curved += tl.where(unit == d, (dr - drr)[None, :], 0.0) + tl.where(unit == d + 1, (dt - dtt)[None, :], 0.0)
            plain += tl.where(unit == d, dr[None, :], 0.0) + tl.where(unit == d + 1, dt[None, :], 0.0)
    else:
        row, col = tl.minimum(i, n_q - 1) * q[3], tl.minimum(j, n_k - 1) * k[3]
        for d in range(WIDTH):
            t = tanh(tl.load(q[2] + row + d) + tl.load(k[2] + col + d))
            curved += tl.where(unit == d, tl.sum(ds * (0.25 - 0.25 * t * t), 0)[None, :], 0.0)
            plain += tl.where(unit == d, tl.sum(ds * (0.5 - 0.5 * t), 0)[None, :], 0.0)
    return curved, plain


@triton.jit
def tanh_query_step(
    curved, plain, dsum, block, grad, stat, delta, V, q_units, k_units, tanh_v, i, at_i, n_q, n_k, pre, factor,
    dropout, keep, SEED, element, tensors, ints, floats, b, h,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_U: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_N: tl.constexpr,
    DROPOUT: tl.constexpr, CHECK: tl.constexpr, CAPPED: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr,
    UNROLL: tl.constexpr,
):  # fmt: skip
    start = block * BLOCK_N
    offs = tl.arange(0, BLOCK_N)
    j = (start + offs)[:, None]
    at_j = j
    if CHECK:
        at_j = tl.minimum(j, n_k - 1)
    value = tile_of(V[0], V[1], start, offs, tl.arange(0, BLOCK_V), n_k, WIDTH_V, BLOCK_V, CHECK)
    u, s, slope = score_tile(
        0.0, 0.0, 0.0, 0.0, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
        SCORE, MODS, PRE, WIDTH, True, FAST, PRECISION, UNROLL,
    )  # fmt: skip
    dp = tl.dot(value, tl.trans(grad), input_precision=PRECISION)
    ok = True
    p = weights(s, stat, factor, floats, NORM, FAST)
    if CHECK:
        ok = exists(TREE, tensors, ints, b, h, i, j, at_i, at_j, n_q, n_k)
        p = tl.where(ok, p, 0.0)
    ds, noisy = score_gradient(
        s, p, dp, delta, ok, slope, SEED, element, at_i, at_j, dropout, keep, floats, NORM, DROPOUT, CHECK, CAPPED
    )
    curved, plain = unit_sums(curved, plain, ds, q_units, k_units, tanh_v, i, j, n_q, n_k, WIDTH, BLOCK_U)
    dsum += tl.sum(ds, 0)
    return curved, plain, dsum


@triton.jit
def tanh_queries(
    Q, K, V, Q_UNITS, K_UNITS, TANH_V, OUT, GRAD, STAT, DELTA, DQ, DV_UNITS, SEED, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, scale, dropout, keep,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, DROPOUT: tl.constexpr,
    CAPPED: tl.constexpr, WIDTH: tl.constexpr, BLOCK_U: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Gradients of queries, and each tile's share of v's."""
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
    curved = tl.zeros([BLOCK_U, BLOCK_M], dtype=tl.float32)
    plain = tl.zeros([BLOCK_U, BLOCK_M], dtype=tl.float32)
    dsum = tl.zeros([BLOCK_M], dtype=tl.float32)

    listed = MAP[0]
    if WALK == LISTED:
        place = lead(MAP[1], MAP, 2, b, h) + tile * MAP[4]
        listed = lead(MAP[0], MAP, 5, b, h) + tile * MAP[7]
        lo, full_lo = 0, tl.load(place)
        full_hi = full_lo + tl.load(place + 1)
        hi = full_hi
    else:
        lo, full_lo, full_hi, hi = runs(
            first, tl.minimum(first + BLOCK_M, n_q) - 1, ints, n_k, BAND, LEFT, RIGHT, WALK, BLOCK_N, False
        )
    for phase in tl.static_range(3):
        begin, end = phases(phase, lo, full_lo, full_hi, hi)
        if phase == 1 or (phase == 0 and (WALK == LISTED or LEFT)) or (phase == 2 and WALK != LISTED):
            for t in range(begin, end):
                block = t
                if WALK == LISTED:
                    block = tl.load(listed + t)
                curved, plain, dsum = tanh_query_step(
                    curved, plain, dsum, block, grad, stat, delta, values, q_units, k_units, tanh_v, i, at_i, n_q, n_k,
                    pre, factor, dropout, keep, SEED, element, tensors, ints, floats, b, h,
                    SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_U, WIDTH_V, BLOCK_V, BLOCK_N, DROPOUT, phase != 1,
                    CAPPED, FAST, PRECISION, UNROLL,
                )  # fmt: skip

    unit = tl.arange(0, BLOCK_U)
    real = unit < WIDTH
    minus_two_v = tl.load(tanh_v[0] + unit, mask=real, other=0.0)
    places = lead(DQ[0], DQ, 1, b, h) + (first + offs)[None, :].to(tl.int64) * DQ[3] + unit[:, None]
    tl.store(places, curved * (-2.0 * scale * minus_two_v)[:, None], mask=real[:, None] & live[None, :])
    # Σ dS tanh = Σ dS - 2 Σ dS r; what does not exist has dS = 0, rows beyond the last one a gradient of 0.
    share = (tl.sum(dsum, 0) - 2.0 * tl.sum(plain, 1)) * scale
    tl.store(DV_UNITS + tl.program_id(0).to(tl.int64) * WIDTH + unit, share, mask=real)


@triton.jit
def tanh_key_step(
    curved, plain, dv, block, value, GRAD, STAT, DELTA, q_units, k_units, tanh_v, j, at_j, n_q, n_k, pre, factor,
    dropout, keep, SEED, element, tensors, ints, floats, b, h,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_U: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_M: tl.constexpr,
    DROPOUT: tl.constexpr, CHECK: tl.constexpr, CAPPED: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr,
    UNROLL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    start = block * BLOCK_M
    offs = tl.arange(0, BLOCK_M)
    i = (start + offs)[:, None]
    at_i = i
    if CHECK:
        at_i = tl.minimum(i, n_q - 1)
    live = start + offs < n_q
    grad = tile_of(GRAD[0], GRAD[1], start, offs, tl.arange(0, BLOCK_V), n_q, WIDTH_V, BLOCK_V, CHECK)
    stat, delta = 0.0, 0.0
    if NORM == SOFTMAX or NORM >= SPARSEMAX:
        stat = tl.load(STAT + start + offs, mask=live, other=float("inf"))[:, None]
        delta = tl.load(DELTA + start + offs, mask=live, other=0.0)[:, None]
    u, s, slope = score_tile(
        0.0, 0.0, 0.0, 0.0, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
        SCORE, MODS, PRE, WIDTH, False, FAST, PRECISION, UNROLL,
    )  # fmt: skip
    p = weights(s, stat, factor, floats, NORM, FAST)
    ok = True
    if CHECK:
        ok = exists(TREE, tensors, ints, b, h, i, j, at_i, at_j, n_q, n_k)
        p = tl.where(ok, p, 0.0)
    dp = tl.dot(grad, tl.trans(value), input_precision=PRECISION)
    ds, noisy = score_gradient(
        s, p, dp, delta, ok, slope, SEED, element, at_i, at_j, dropout, keep, floats, NORM, DROPOUT, CHECK, CAPPED
    )
    if WIDE:
        dv = tl.dot(tl.trans(noisy), grad.to(tl.float32), dv, input_precision=PRECISION)
    else:
        dv = tl.dot(tl.trans(noisy.to(grad.dtype)), grad, dv, input_precision=PRECISION)
    curved, plain = unit_sums(curved, plain, ds, q_units, k_units, tanh_v, i, j, n_q, n_k, WIDTH, BLOCK_U)
    return curved, plain, dv


@triton.jit
def tanh_keys(
    Q, K, V, Q_UNITS, K_UNITS, TANH_V, GRAD, STAT, DELTA, DK, DV, SEED, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, scale, dropout, keep, after,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, DROPOUT: tl.constexpr,
    CAPPED: tl.constexpr, WIDTH: tl.constexpr, BLOCK_U: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Gradients of keys and values."""
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
    curved = tl.zeros([BLOCK_U, BLOCK_N], dtype=tl.float32)
    plain = tl.zeros([BLOCK_U, BLOCK_N], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, BLOCK_V], dtype=tl.float32)

    listed = MAP[0]
    if WALK == LISTED:
        place = lead(MAP[1], MAP, 2, b, h) + tile * MAP[4]
        listed = lead(MAP[0], MAP, 5, b, h) + tile * MAP[7]
        lo, full_lo = 0, tl.load(place)
        full_hi = full_lo + tl.load(place + 1)
        hi = full_hi
    else:
        lo, full_lo, full_hi, hi = runs(
            first, tl.minimum(first + BLOCK_N, n_k) - 1, ints, n_q, BAND, LEFT, RIGHT, WALK, BLOCK_M, True
        )
    for phase in tl.static_range(3):
        begin, end = phases(phase, lo, full_lo, full_hi, hi)
        if phase == 1 or (phase == 0 and (WALK == LISTED or RIGHT)) or (phase == 2 and WALK != LISTED):
            for t in range(begin, end):
                block = t
                if WALK == LISTED:
                    block = tl.load(listed + t)
                curved, plain, dv = tanh_key_step(
                    curved, plain, dv, block, value, grads, stats, deltas, q_units, k_units, tanh_v, j, at_j, n_q, n_k,
                    pre, factor, dropout, keep, SEED, element, tensors, ints, floats, b, h,
                    SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_U, WIDTH_V, BLOCK_V, BLOCK_M, DROPOUT, phase != 1,
                    CAPPED, FAST, PRECISION, UNROLL, WIDE,
                )  # fmt: skip

    unit = tl.arange(0, BLOCK_U)
    real = unit < WIDTH
    minus_two_v = tl.load(tanh_v[0] + unit, mask=real, other=0.0)
    places = lead(DK[0], DK, 1, b, h) + (first + offs)[None, :].to(tl.int64) * DK[3] + unit[:, None]
    tl.store(places, curved * (-2.0 * scale * minus_two_v)[:, None], mask=real[:, None] & live[None, :])
    cols = tl.arange(0, BLOCK_V)
    places = lead(DV[0], DV, 1, b, h) + first.to(tl.int64) * DV[3] + offs[:, None] * DV[3] + cols[None, :]
    tl.store(places, (dv * after).to(DV[0].dtype.element_ty), mask=live[:, None] & (cols < WIDTH_V)[None, :])
