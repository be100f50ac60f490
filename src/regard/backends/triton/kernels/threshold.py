# The bodies are Triton's language, not Python's: branches on constants are no ternaries, loops are not Python's.
# ruff: noqa: RUF059
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportReturnType=false, reportIndexIssue=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
"""The threshold of the sparse normalizers: one program finds it for a tile of queries by passing over their keys a
few times, computing the scores anew each time. With z = (α - 1) s, τ solves Σ (z - τ)₊^(1/(α-1)) = 1.
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.backends.triton import codes
from regard.backends.triton.kernels.device import ENTMAX15, INTERPRETED, exists, numbers_of, place, power, tile_of
from regard.backends.triton.kernels.forward import own_side, rows_of, score_tile, tanh_of, units_of
from regard.backends.triton.kernels.walk import block_at, steps, walk

GATED = tl.constexpr(codes.GATED)
TANH = tl.constexpr(codes.TANH)
SPARSEMAX = tl.constexpr(codes.SPARSEMAX)


@triton.jit
def one_if_positive(y):
    """1 for y > 0, 0 for 0: in one instruction, where a comparison and a choice take five."""
    if INTERPRETED:
        return tl.where(y > 0, 1.0, 0.0)
    else:
        return tl.inline_asm_elementwise(
            "mul.sat.f32 $0, $1, 0f7E967699;", "=f,f", [y], dtype=tl.float32, is_pure=True, pack=1  # 1e38
        )  # fmt: skip


@triton.jit
def sums_above(y, floats, NORM: tl.constexpr):
    """Of y = (z - τ)₊: how many are not 0, and the sums by which τ is corrected."""
    count = tl.sum(one_if_positive(y), 1)
    if NORM == SPARSEMAX:
        return count, tl.sum(y, 1), tl.zeros_like(count)
    elif NORM == ENTMAX15:
        return count, tl.sum(y, 1), tl.sum(y * y, 1)
    else:
        exponent = 1.0 / (floats[0] - 1.0)
        return tl.zeros_like(count), tl.sum(power(y, exponent - 1.0), 1) * exponent, tl.sum(power(y, exponent), 1)


@triton.jit
def corrected(tau, low, high, one, two, three, floats, NORM: tl.constexpr):
    """(the next τ, between what bounds it)."""
    if NORM == SPARSEMAX:
        # Given the support, τ is linear in it; from the left this never passes the solution.
        excess = two - 1.0
        step = excess / tl.maximum(one, 1.0)
    elif NORM == ENTMAX15:
        # Given the support, a quadratic; where it has no root, one step of Newton.
        excess = three - 1.0
        root = two * two - one * excess
        exact = (two - tl.sqrt(tl.maximum(root, 0.0))) / tl.maximum(one, 1.0)
        step = tl.where(root >= 0, exact, excess / tl.maximum(2.0 * two, 1e-30))
    else:
        excess = three - 1.0
        step = excess / tl.maximum(two, 1e-30)
    low = tl.where(excess > 0, tau, low)
    high = tl.where(excess <= 0, tau, high)
    new = tau + step
    inside = (new >= low) & (new <= high)
    if NORM > ENTMAX15:
        # For α > 2 the sum falls infinitely steeply where a key leaves the support: Newton would stop there.
        inside = inside & (floats[0] <= 2.0)
    return tl.where(inside, new, 0.5 * (low + high)), low, high


@triton.jit
def threshold_step(
    one, two, three, tau, block, q, a, K, C, q_units, k_units, tanh_v, i, at_i, n_q, n_k, pre, factor,
    tensors, ints, floats, b, h,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr, CHECK: tl.constexpr, FIRST: tl.constexpr,
    FAST: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """One block's part of the row maximum (FIRST), or of the sums over what stands above τ."""
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
    u, z, slope = score_tile(
        q, a, k, c, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
        SCORE, MODS, PRE, WIDTH, False, FAST, PRECISION, UNROLL, 0, 0, (0, 0),
    )  # fmt: skip
    if CHECK:
        z = tl.where(exists(TREE, tensors, ints, b, h, j, at_i, at_j, n_k), z, float("-inf"))
    if FIRST:
        one = tl.maximum(one, tl.max(z, 1))
    else:
        more, second, third = sums_above(tl.maximum(z * factor - tau[:, None], 0.0), floats, NORM)
        one, two, three = one + more, two + second, three + third
    return one, two, three


@triton.jit
def threshold_pass(
    one, two, three, tau, path, q, a, K, C, q_units, k_units, tanh_v, i, at_i, n_q, n_k,
    pre, factor, tensors, ints, floats, b, h,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr, FIRST: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr, WALK: tl.constexpr,
):  # fmt: skip
    for phase in tl.static_range(2):
        begin, end = steps(path, phase)
        for t in range(begin, end):
            block = block_at(path, t, phase, WALK)
            one, two, three = threshold_step(
                one, two, three, tau, block, q, a, K, C, q_units, k_units, tanh_v, i, at_i, n_q, n_k, pre, factor,
                tensors, ints, floats, b, h,
                SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_D, BLOCK_N, phase == 0, FIRST, FAST, PRECISION, UNROLL,
            )  # fmt: skip
    return one, two, three


@triton.jit(do_not_specialize=["n_q", "n_k", "heads", "ints"])
def threshold(
    Q, K, A, C, Q_UNITS, K_UNITS, TANH_V, STAT, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, most,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, FAST: tl.constexpr,
    PRECISION: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """τ of a tile of queries, after at most `most` passes; +inf where there is nothing to attend to. α - 1 is part of
    the factor."""
    tiles = tl.cdiv(n_q, BLOCK_M)
    element = tl.program_id(0) // tiles
    tile = tiles - 1 - tl.program_id(0) % tiles
    b, h = element // heads, element % heads
    first = tile * BLOCK_M
    offs = tl.arange(0, BLOCK_M)
    i = (first + offs)[:, None]
    at_i = tl.minimum(i, n_q - 1)
    live = first + offs < n_q
    q, a = own_side(Q, A, b, h, first, offs, n_q, SCORE, WIDTH, BLOCK_D)
    keys, c = rows_of(K, b, h), place(C[0], C, 1, b, h)
    q_units, k_units, tanh_v = units_of(Q_UNITS, Q, b, h), units_of(K_UNITS, K, b, h), tanh_of(TANH_V, h)
    path = walk(
        MAP, tile, b, h, first, tl.minimum(first + BLOCK_M, n_q) - 1, ints, n_k, BAND, LEFT, RIGHT, WALK, BLOCK_N, False
    )

    none = tl.zeros([BLOCK_M], dtype=tl.float32)
    best, _, _ = threshold_pass(
        none + float("-inf"), none, none, none, path, q, a, keys, c, q_units, k_units, tanh_v, i, at_i,
        n_q, n_k, pre, factor, tensors, ints, floats, b, h,
        SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_D, BLOCK_N, True, FAST, PRECISION, UNROLL, WALK,
    )  # fmt: skip
    best = best * factor
    alive = live & (best > float("-inf"))
    best = tl.where(alive, best, 0.0)
    low, high = best - 1.0, best  # τ lies between
    tau = low
    moving, passes = 1, 0
    while (moving > 0) & (passes < most):
        one, two, three = threshold_pass(
            none, none, none, tau, path, q, a, keys, c, q_units, k_units, tanh_v, i, at_i,
            n_q, n_k, pre, factor, tensors, ints, floats, b, h,
            SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_D, BLOCK_N, False, FAST, PRECISION, UNROLL, WALK,
        )  # fmt: skip
        new, low, high = corrected(tau, low, high, one, two, three, floats, NORM)
        change = tl.where(alive, tl.abs(new - tau), 0.0)
        moving = tl.max(tl.where(change > 2e-7 * tl.maximum(tl.abs(tau), 1.0), 1, 0), 0)
        tau = new
        passes += 1
    stats = STAT + element.to(tl.int64) * n_q + first + offs
    tl.store(stats, tl.where(alive, tau, float("inf")), mask=live)
