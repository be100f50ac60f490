# The bodies are Triton's language, not Python's: branches on constants are no ternaries, loops are not Python's.
# ruff: noqa: SIM108, SIM109, RUF059
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportReturnType=false, reportIndexIssue=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
"""The backward template for scores that are matrix products: one kernel for queries, one for keys and values.

Both compute the weights again from the saved statistic. δ, the part of a row's gradient that normalizing takes
back, is found by the first and read by the second; each sum is taken by one program in one order, so gradients
are the same in every run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.backends.triton import codes
from regard.backends.triton.kernels.device import (
    SOFTMAX,
    exists,
    gate,
    kept,
    lead,
    numbers_of,
    place,
    slopes,
    tile_of,
    weights,
)
from regard.backends.triton.kernels.forward import rows_of, score_tile, tanh_of, units_of
from regard.backends.triton.kernels.walk import block_at, steps, walk

GATED = tl.constexpr(codes.GATED)
GAUSSIAN = tl.constexpr(codes.GAUSSIAN)
TANH = tl.constexpr(codes.TANH)
IDENTITY = tl.constexpr(codes.IDENTITY)
DISTANCE = tl.constexpr(codes.DISTANCE)
SPARSEMAX = tl.constexpr(codes.SPARSEMAX)


@triton.jit
def score_gradient(
    s, p, dp, delta, ok, slope, SEED, element, at_i, at_j, dropout, keep, floats,
    NORM: tl.constexpr, DROPOUT: tl.constexpr, CHECK: tl.constexpr, CAPPED: tl.constexpr,
):  # fmt: skip
    """(gradient of the score's content, weights after dropout)."""
    noisy = p
    if DROPOUT:
        keeps = kept(SEED, element, at_i, at_j, dropout)
        dp = tl.where(keeps, dp * keep, 0.0)
        noisy = tl.where(keeps, p, 0.0)
    ds = slopes(s, p, floats, NORM)
    if NORM == SOFTMAX or NORM >= SPARSEMAX:
        ds = ds * (dp - delta)
    else:
        ds = ds * dp
    if CAPPED:
        ds = ds * slope
    if CHECK and NORM == IDENTITY:
        ds = tl.where(ok, ds, 0.0)
    elif CHECK:  # where there is no pair, p is 0 already: asking it is cheaper than to keep `ok`
        ds = tl.where(p > 0, ds, 0.0)
    return ds, noisy


@triton.jit
def gate_of(G, h, cols, WIDTH: tl.constexpr):
    """One side's numbers of a gate."""
    return tl.load(G[0] + h * G[1] + cols * G[2], mask=cols < WIDTH, other=0.0).to(tl.float32)[None, :]


@triton.jit
def query_step(
    dq, da, block, q, a, grad, stat, delta, K, C, V, q_units, k_units, tanh_v, i, at_i, n_q, n_k, pre, factor, dropout,
    keep, SEED, element, tensors, ints, floats, b, h,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_N: tl.constexpr,
    DROPOUT: tl.constexpr, CHECK: tl.constexpr, CAPPED: tl.constexpr, WHAT: tl.constexpr, FAST: tl.constexpr,
    PRECISION: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    start = block * BLOCK_N
    offs = tl.arange(0, BLOCK_N)
    j = (start + offs)[None, :]
    at_j = j
    if CHECK:
        at_j = tl.minimum(j, n_k - 1)
    k, c = 0.0, 0.0
    if SCORE < TANH or SCORE == DISTANCE:
        k = tile_of(K[0], K[1], start, offs, tl.arange(0, BLOCK_D), n_k, WIDTH, BLOCK_D, CHECK)
        if SCORE == GATED or SCORE == GAUSSIAN:
            c = numbers_of(C, start, offs, n_k, 0.0, CHECK)[None, :]
    value = tile_of(V[0], V[1], start, offs, tl.arange(0, BLOCK_V), n_k, WIDTH_V, BLOCK_V, CHECK)
    u, s, slope = score_tile(
        q, a, k, c, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
        SCORE, MODS, PRE, WIDTH, False, FAST, PRECISION, UNROLL, 0, 0, (0, 0),
    )  # fmt: skip
    dp = tl.dot(grad, tl.trans(value), input_precision=PRECISION)
    ok = True
    p = weights(s, stat, factor, floats, NORM, FAST)
    if CHECK:
        ok = exists(TREE, tensors, ints, b, h, j, at_i, at_j, n_k)
        p = tl.where(ok, p, 0.0)
    if WHAT == 1:  # the two sums that make δ: Σ g dp and Σ g
        if DROPOUT:
            dp = tl.where(kept(SEED, element, at_i, at_j, dropout), dp * keep, 0.0)
        g = slopes(s, p, floats, NORM)
        dq += tl.sum(g * dp, 1)
        da += tl.sum(g, 1)
    else:
        ds, noisy = score_gradient(
            s, p, dp, delta, ok, slope, SEED, element, at_i, at_j, dropout, keep, floats, NORM, DROPOUT, CHECK, CAPPED
        )
        if SCORE == GATED:
            open = gate(a + c, FAST)
            ds = ds * open
            da += tl.sum(ds * (u - u * open), 1)  # a gate g has the slope g (1 - g)
        elif SCORE == GAUSSIAN or SCORE == DISTANCE:
            da += tl.sum(ds, 1)
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=PRECISION)
    return dq, da


@triton.jit(do_not_specialize=["n_q", "n_k", "heads", "ints"])
def backward_queries(
    Q, K, V, A, C, G, Q_UNITS, K_UNITS, TANH_V, OUT, GRAD, STAT, DELTA, DQ, DA, SEED, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, scale, dropout, keep,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, DROPOUT: tl.constexpr,
    CAPPED: tl.constexpr, WHAT: tl.constexpr, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, WIDTH_V: tl.constexpr,
    BLOCK_V: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr,
    UNROLL: tl.constexpr,
):  # fmt: skip
    """Gradients of queries (WHAT 0); or, before, δ of the normalizers with a threshold (WHAT 1)."""
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
    q, a = 0.0, 0.0
    if SCORE < TANH or SCORE == DISTANCE:
        base, stride = rows_of(Q, b, h)
        q = tile_of(base, stride, first, offs, tl.arange(0, BLOCK_D), n_q, WIDTH, BLOCK_D, True)
        if SCORE == GATED or SCORE == GAUSSIAN:
            a = tl.load(place(A[0], A, 1, b, h) + first + offs, mask=live, other=0.0)[:, None]
    keys, values, c = rows_of(K, b, h), rows_of(V, b, h), place(C[0], C, 1, b, h)
    q_units, k_units, tanh_v = units_of(Q_UNITS, Q, b, h), units_of(K_UNITS, K, b, h), tanh_of(TANH_V, h)
    base, stride = rows_of(GRAD, b, h)
    grad = tile_of(base, stride, first, offs, tl.arange(0, BLOCK_V), n_q, WIDTH_V, BLOCK_V, True)
    stat, delta = 0.0, 0.0
    if NORM == SOFTMAX or NORM >= SPARSEMAX:
        stat = tl.load(STAT + here, mask=live, other=float("inf"))[:, None]
    if NORM == SOFTMAX:
        base, stride = rows_of(OUT, b, h)
        out = tile_of(base, stride, first, offs, tl.arange(0, BLOCK_V), n_q, WIDTH_V, BLOCK_V, True)
        delta = tl.sum(out.to(tl.float32) * grad.to(tl.float32), 1)
        tl.store(DELTA + here, delta, mask=live)
        delta = delta[:, None]
    elif NORM >= SPARSEMAX and WHAT == 0:
        delta = tl.load(DELTA + here, mask=live, other=0.0)[:, None]
    if WHAT == 1:
        dq = tl.zeros([BLOCK_M], dtype=tl.float32)
    else:
        dq = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    da = tl.zeros([BLOCK_M], dtype=tl.float32)

    path = walk(
        MAP, tile, b, h, first, tl.minimum(first + BLOCK_M, n_q) - 1, ints, n_k, BAND, LEFT, RIGHT, WALK, BLOCK_N, False
    )
    for phase in tl.static_range(2):
        begin, end = steps(path, phase)
        for t in range(begin, end):
            block = block_at(path, t, phase, WALK)
            dq, da = query_step(
                dq, da, block, q, a, grad, stat, delta, keys, c, values, q_units, k_units, tanh_v, i, at_i, n_q, n_k,
                pre, factor, dropout, keep, SEED, element, tensors, ints, floats, b, h,
                SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_D, WIDTH_V, BLOCK_V, BLOCK_N, DROPOUT, phase == 0,
                CAPPED, WHAT, FAST, PRECISION, UNROLL,
            )  # fmt: skip

    if WHAT == 1:
        tl.store(DELTA + here, dq / tl.where(da > 0, da, 1.0), mask=live)
    else:
        if SCORE == GAUSSIAN or SCORE == DISTANCE:
            dq = dq - da[:, None] * q.to(tl.float32)
        cols = tl.arange(0, BLOCK_D)
        if SCORE == GATED:  # queries also open gates
            tl.store(DA + here, da * scale, mask=live)
            dq += da[:, None] * gate_of(G, h, cols, WIDTH)
        places = lead(DQ[0], DQ, 1, b, h) + first.to(tl.int64) * DQ[3] + offs[:, None] * DQ[3] + cols[None, :]
        tl.store(places, (dq * scale).to(DQ[0].dtype.element_ty), mask=live[:, None] & (cols < WIDTH)[None, :])


@triton.jit
def key_step(
    dk, dv, dc, block, k, c, value, Q, A, GRAD, STAT, DELTA, q_units, k_units, tanh_v, j, at_j, n_q, n_k, pre, factor,
    dropout, keep, SEED, element, tensors, ints, floats, b, h,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_M: tl.constexpr,
    DROPOUT: tl.constexpr, CHECK: tl.constexpr, CAPPED: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr,
    UNROLL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Tiles lie (keys, queries) here, so that both products take theirs from registers."""
    start = block * BLOCK_M
    offs = tl.arange(0, BLOCK_M)
    i = (start + offs)[None, :]
    at_i = i
    if CHECK:
        at_i = tl.minimum(i, n_q - 1)
    q, a = 0.0, 0.0
    if SCORE < TANH or SCORE == DISTANCE:
        q = tile_of(Q[0], Q[1], start, offs, tl.arange(0, BLOCK_D), n_q, WIDTH, BLOCK_D, CHECK)
        if SCORE == GATED or SCORE == GAUSSIAN:
            a = numbers_of(A, start, offs, n_q, 0.0, CHECK)[None, :]
    grad = tile_of(GRAD[0], GRAD[1], start, offs, tl.arange(0, BLOCK_V), n_q, WIDTH_V, BLOCK_V, CHECK)
    stat, delta = 0.0, 0.0
    if NORM == SOFTMAX or NORM >= SPARSEMAX:
        stat = numbers_of(STAT, start, offs, n_q, float("inf"), CHECK)[None, :]
        delta = numbers_of(DELTA, start, offs, n_q, 0.0, CHECK)[None, :]
    u, s, slope = score_tile(
        q, a, k, c, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
        SCORE, MODS, PRE, WIDTH, True, FAST, PRECISION, UNROLL, 0, 0, (0, 0),
    )  # fmt: skip
    p = weights(s, stat, factor, floats, NORM, FAST)
    ok = True
    if CHECK:
        ok = exists(TREE, tensors, ints, b, h, j, at_i, at_j, n_k)
        p = tl.where(ok, p, 0.0)
    dp = tl.dot(value, tl.trans(grad), input_precision=PRECISION)
    ds, noisy = score_gradient(
        s, p, dp, delta, ok, slope, SEED, element, at_i, at_j, dropout, keep, floats, NORM, DROPOUT, CHECK, CAPPED
    )
    if WIDE:
        dv = tl.dot(noisy, grad.to(tl.float32), dv, input_precision=PRECISION)
    else:
        dv = tl.dot(noisy.to(grad.dtype), grad, dv, input_precision=PRECISION)
    if SCORE == GATED:
        open = gate(a + c, FAST)
        ds = ds * open
        dc += tl.sum(ds * (u - u * open), 1)
    elif SCORE == GAUSSIAN or SCORE == DISTANCE:
        dc += tl.sum(ds, 1)
    if SCORE < TANH or SCORE == DISTANCE:
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision=PRECISION)
    return dk, dv, dc


@triton.jit(do_not_specialize=["n_q", "n_k", "heads", "ints"])
def backward_keys(
    Q, K, V, A, C, G, Q_UNITS, K_UNITS, TANH_V, GRAD, STAT, DELTA, DK, DV, DC, SEED, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, scale, dropout, keep, after,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, DROPOUT: tl.constexpr,
    CAPPED: tl.constexpr, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, WIDTH_V: tl.constexpr, BLOCK_V: tl.constexpr,
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
    j = (first + offs)[:, None]
    at_j = tl.minimum(j, n_k - 1)
    live = first + offs < n_k
    k, c = 0.0, 0.0
    if SCORE < TANH or SCORE == DISTANCE:
        base, stride = rows_of(K, b, h)
        k = tile_of(base, stride, first, offs, tl.arange(0, BLOCK_D), n_k, WIDTH, BLOCK_D, True)
        if SCORE == GATED or SCORE == GAUSSIAN:
            c = tl.load(place(C[0], C, 1, b, h) + first + offs, mask=live, other=0.0)[:, None]
    base, stride = rows_of(V, b, h)
    value = tile_of(base, stride, first, offs, tl.arange(0, BLOCK_V), n_k, WIDTH_V, BLOCK_V, True)
    queries, grads, a = rows_of(Q, b, h), rows_of(GRAD, b, h), place(A[0], A, 1, b, h)
    q_units, k_units, tanh_v = units_of(Q_UNITS, Q, b, h), units_of(K_UNITS, K, b, h), tanh_of(TANH_V, h)
    stats, deltas = STAT + element.to(tl.int64) * n_q, DELTA + element.to(tl.int64) * n_q
    dk = tl.zeros([BLOCK_N, BLOCK_D], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, BLOCK_V], dtype=tl.float32)
    dc = tl.zeros([BLOCK_N], dtype=tl.float32)

    path = walk(
        MAP, tile, b, h, first, tl.minimum(first + BLOCK_N, n_k) - 1, ints, n_q, BAND, LEFT, RIGHT, WALK, BLOCK_M, True
    )
    for phase in tl.static_range(2):
        begin, end = steps(path, phase)
        for t in range(begin, end):
            block = block_at(path, t, phase, WALK)
            dk, dv, dc = key_step(
                dk, dv, dc, block, k, c, value, queries, a, grads, stats, deltas, q_units, k_units, tanh_v, j, at_j,
                n_q, n_k, pre, factor, dropout, keep, SEED, element, tensors, ints, floats, b, h,
                SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_D, WIDTH_V, BLOCK_V, BLOCK_M, DROPOUT, phase == 0,
                CAPPED, FAST, PRECISION, UNROLL, WIDE,
            )  # fmt: skip

    if SCORE == GAUSSIAN or SCORE == DISTANCE:
        dk = dk - dc[:, None] * k.to(tl.float32)
    cols = tl.arange(0, BLOCK_D)
    if SCORE == GATED:
        tl.store(DC + element.to(tl.int64) * n_k + first + offs, dc * scale, mask=live)
        dk += dc[:, None] * gate_of(G, h, cols, WIDTH)
    if SCORE < TANH or SCORE == DISTANCE:
        places = lead(DK[0], DK, 1, b, h) + first.to(tl.int64) * DK[3] + offs[:, None] * DK[3] + cols[None, :]
        tl.store(places, (dk * scale).to(DK[0].dtype.element_ty), mask=live[:, None] & (cols < WIDTH)[None, :])
    cols = tl.arange(0, BLOCK_V)
    places = lead(DV[0], DV, 1, b, h) + first.to(tl.int64) * DV[3] + offs[:, None] * DV[3] + cols[None, :]
    tl.store(places, (dv * after).to(DV[0].dtype.element_ty), mask=live[:, None] & (cols < WIDTH_V)[None, :])
