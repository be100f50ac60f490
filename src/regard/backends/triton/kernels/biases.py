# The bodies are Triton's language, not Python's: branches on constants are no ternaries, loops are not Python's.
# ruff: noqa: RUF059
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportReturnType=false, reportIndexIssue=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
"""The gradient of a relative bias: for each distance j - i, Σ dS over the pairs that are so far apart. One program takes
a tile of queries and has sums of its own, which are added up afterwards: the order is the same in every run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.backends.triton import codes
from regard.backends.triton.kernels.backward import score_gradient
from regard.backends.triton.kernels.device import SOFTMAX, exists, place, tile_of, weights
from regard.backends.triton.kernels.forward import own_side, rows_of, score_tile, tanh_of, units_of
from regard.backends.triton.kernels.walk import block_at, steps, walk

GATED = tl.constexpr(codes.GATED)
TANH = tl.constexpr(codes.TANH)
SPARSEMAX = tl.constexpr(codes.SPARSEMAX)


@triton.jit
def add_diagonals(
    low, high, ds, SPACE, SUMS, nearest, reach, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, DIAGONALS: tl.constexpr
):  # fmt: skip
    """Add a tile's diagonals to the sums; those beyond the reach to low and high. `nearest` is the distance of the
    tile's first pair. Read back from memory with each row one place further left, diagonals are columns."""
    tl.debug_barrier()
    tl.store(SPACE + (tl.arange(0, BLOCK_M) * BLOCK_N)[:, None] + tl.arange(0, BLOCK_N)[None, :], ds)
    tl.debug_barrier()
    row, diagonal = tl.arange(0, BLOCK_M)[:, None], tl.arange(0, DIAGONALS) - (BLOCK_M - 1)
    col = row + diagonal[None, :]
    found = tl.sum(tl.load(SPACE + row * BLOCK_N + col, mask=(col >= 0) & (col < BLOCK_N), other=0.0), 0)
    distance = nearest + diagonal
    low += tl.sum(tl.where(distance <= -reach, found, 0.0), 0)
    high += tl.sum(tl.where((distance >= reach) & (distance > -reach), found, 0.0), 0)
    inside = (distance > -reach) & (distance < reach) & (diagonal < BLOCK_N)
    places = SUMS + distance + reach
    tl.store(places, tl.load(places, mask=inside, other=0.0) + found, mask=inside)
    return low, high


@triton.jit(do_not_specialize=["n_q", "n_k", "heads", "ints", "offset", "reach"])
def relative_sums(
    Q, K, V, A, C, Q_UNITS, K_UNITS, TANH_V, GRAD, STAT, DELTA, SUMS, SPACE, SEED, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, dropout, keep, offset, reach,
    SCORE: tl.constexpr, MODS: tl.constexpr, SINCE: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr,
    TREE: tl.constexpr, WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    DROPOUT: tl.constexpr, CAPPED: tl.constexpr, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, WIDTH_V: tl.constexpr,
    BLOCK_V: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, DIAGONALS: tl.constexpr, FAST: tl.constexpr,
    PRECISION: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """SUMS[program, distance + reach]; the first and the last hold all that is further away."""
    tiles = tl.cdiv(n_q, BLOCK_M)
    element, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    b, h = element // heads, element % heads
    first = tile * BLOCK_M
    offs, cols = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    i = (first + offs)[:, None]
    at_i = tl.minimum(i, n_q - 1)
    live = first + offs < n_q
    here = element.to(tl.int64) * n_q + first + offs
    q, a = own_side(Q, A, b, h, first, offs, n_q, SCORE, WIDTH, BLOCK_D)
    keys, values, c_of = rows_of(K, b, h), rows_of(V, b, h), place(C[0], C, 1, b, h)
    q_units, k_units, tanh_v = units_of(Q_UNITS, Q, b, h), units_of(K_UNITS, K, b, h), tanh_of(TANH_V, h)
    base, stride = rows_of(GRAD, b, h)
    grad = tile_of(base, stride, first, offs, tl.arange(0, BLOCK_V), n_q, WIDTH_V, BLOCK_V, True)
    stat, delta = 0.0, 0.0
    if NORM == SOFTMAX or NORM >= SPARSEMAX:
        stat = tl.load(STAT + here, mask=live, other=float("inf"))[:, None]
        delta = tl.load(DELTA + here, mask=live, other=0.0)[:, None]
    program = tl.program_id(0).to(tl.int64)
    space, sums = SPACE + program * (BLOCK_M * BLOCK_N), SUMS + program * (2 * reach + 1)
    low, high = 0.0, 0.0
    path = walk(
        MAP, tile, b, h, first, tl.minimum(first + BLOCK_M, n_q) - 1, ints, n_k, BAND, LEFT, RIGHT, WALK, BLOCK_N, False
    )
    for phase in tl.static_range(2):
        begin, end = steps(path, phase)
        for t in range(begin, end):
            start = block_at(path, t, phase, WALK) * BLOCK_N
            j = (start + cols)[None, :]
            at_j = tl.minimum(j, n_k - 1)
            k, c = 0.0, 0.0
            if SCORE < TANH:
                k = tile_of(keys[0], keys[1], start, cols, tl.arange(0, BLOCK_D), n_k, WIDTH, BLOCK_D, True)
                if SCORE >= GATED:
                    c = tl.load(c_of + start + cols, mask=start + cols < n_k, other=0.0)[None, :]
            value = tile_of(values[0], values[1], start, cols, tl.arange(0, BLOCK_V), n_k, WIDTH_V, BLOCK_V, True)
            u, s, slope = score_tile(
                q, a, k, c, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
                SCORE, MODS, PRE, WIDTH, False, FAST, PRECISION, UNROLL, 0, 0, (0, 0), SINCE,
            )  # fmt: skip
            dp = tl.dot(grad, tl.trans(value), input_precision=PRECISION)
            ok = exists(TREE, tensors, ints, b, h, j, at_i, at_j, n_k)
            p = tl.where(ok, weights(s, stat, factor, floats, NORM, FAST), 0.0)
            ds, noisy = score_gradient(
                s,
                p,
                dp,
                delta,
                ok,
                slope,
                SEED,
                element,
                at_i,
                at_j,
                dropout,
                keep,
                floats,
                NORM,
                DROPOUT,
                True,
                CAPPED,
            )
            nearest = start - first - offset
            if nearest - (BLOCK_M - 1) >= reach:
                high += tl.sum(tl.sum(ds, 1), 0)
            elif nearest + (BLOCK_N - 1) <= -reach:
                low += tl.sum(tl.sum(ds, 1), 0)
            else:
                low, high = add_diagonals(low, high, ds, space, sums, nearest, reach, BLOCK_M, BLOCK_N, DIAGONALS)
    tl.debug_barrier()
    tl.store(sums, tl.load(sums) + low)
    tl.store(sums + 2 * reach, tl.load(sums + 2 * reach) + high)
