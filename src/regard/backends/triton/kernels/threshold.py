# The bodies are Triton's language, not Python's: branches on constants are no ternaries, loops are not Python's.
# ruff: noqa: RUF059
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportReturnType=false, reportIndexIssue=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
"""The threshold of the sparse normalizers: one program finds it for a tile of queries by passing over their keys a
few times, computing the scores anew each time. With z = (α - 1) s, τ solves Σ (z - τ)₊^(1/(α-1)) = 1.

Every τ before the last is too small, so what lies below it has weight 0 for good. As soon as few keys of each query
lie above, their z are written to a list, and what is left to do asks only the list.
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.backends.triton import codes
from regard.backends.triton.kernels.device import ENTMAX15, exists, lead, power, tile_of
from regard.backends.triton.kernels.forward import rows_of, score_tile, tanh_of, units_of
from regard.backends.triton.kernels.walk import block_at, steps, walk

GATED = tl.constexpr(codes.GATED)
TANH = tl.constexpr(codes.TANH)
SPARSEMAX = tl.constexpr(codes.SPARSEMAX)
MAXIMUM, SUMS, LIST = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)  # what a pass is for


@triton.jit
def sums_above(y, floats, NORM: tl.constexpr):
    """Of y = (z - τ)₊: how many are not 0, and the sums by which τ is corrected."""
    count = tl.sum(tl.where(y > 0, 1.0, 0.0), 1)
    if NORM == SPARSEMAX:
        return count, tl.sum(y, 1), tl.zeros_like(count)
    elif NORM == ENTMAX15:
        return count, tl.sum(y, 1), tl.sum(y * y, 1)
    else:
        exponent = 1.0 / (floats[0] - 1.0)
        return count, tl.sum(power(y, exponent - 1.0), 1) * exponent, tl.sum(power(y, exponent), 1)


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
def moves(new, tau, alive):
    """Whether any of these τ has not yet arrived."""
    change = tl.where(alive, tl.abs(new - tau), 0.0)
    return tl.max(tl.where(change > 2e-7 * tl.maximum(tl.abs(tau), 1.0), 1, 0), 0)


@triton.jit
def whole_number(x):
    """A small whole float as an integer, without the special-function unit: its last bits above 2^23."""
    return (x + 8388608.0).to(tl.int32, bitcast=True) - 0x4B000000


@triton.jit
def threshold_step(
    one, two, three, tau, LISTS, alive, block, q, a, K, C, q_units, k_units, tanh_v, i, at_i, n_q, n_k, pre, factor,
    tensors, ints, floats, b, h,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr, CHECK: tl.constexpr, FOR: tl.constexpr,
    LONGEST: tl.constexpr, FAST: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """One block's part of the row maximum, of the sums over what stands above τ, or of its list."""
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
            c = tl.load(C + start + offs, mask=start + offs < n_k, other=0.0)[None, :]
    u, z, slope = score_tile(
        q, a, k, c, q_units, k_units, tanh_v, i, j, at_i, at_j, n_q, n_k, pre, tensors, ints, floats, b, h,
        SCORE, MODS, PRE, WIDTH, False, FAST, PRECISION, UNROLL, 0, 0, (0, 0),
    )  # fmt: skip
    if CHECK:
        z = tl.where(exists(TREE, tensors, ints, b, h, j, at_i, at_j, n_k), z, float("-inf"))
    if FOR == MAXIMUM:
        one = tl.maximum(one, tl.max(z, 1))
    elif FOR == SUMS:
        more, second, third = sums_above(tl.maximum(z * factor - tau[:, None], 0.0), floats, NORM)
        one, two, three = one + more, two + second, three + third
    else:
        y = z * factor
        above = (y > tau[:, None]) & alive[:, None]
        # How many of its row stand before each: a matrix product with ones above the diagonal.
        marks = tl.where(above, 1.0, 0.0)
        earlier = tl.where(offs[:, None] < offs[None, :], 1.0, 0.0).to(tl.float16)
        place = whole_number(tl.dot(marks.to(tl.float16), earlier) + one[:, None])
        tl.store(LISTS + place, y, mask=above & (place < LONGEST))
        one += tl.sum(marks, 1)
    return one, two, three


@triton.jit
def threshold_pass(
    one, two, three, tau, LISTS, alive, path, q, a, K, C, q_units, k_units, tanh_v, i, at_i, n_q, n_k,
    pre, factor, tensors, ints, floats, b, h,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr, FOR: tl.constexpr, LONGEST: tl.constexpr,
    FAST: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr, WALK: tl.constexpr,
):  # fmt: skip
    for phase in tl.static_range(2):
        begin, end = steps(path, phase)
        for t in range(begin, end):
            block = block_at(path, t, phase, WALK)
            one, two, three = threshold_step(
                one, two, three, tau, LISTS, alive, block, q, a, K, C, q_units, k_units, tanh_v, i, at_i, n_q, n_k, pre, factor,
                tensors, ints, floats, b, h,
                SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_D, BLOCK_N, phase == 0, FOR, LONGEST, FAST, PRECISION, UNROLL,
            )  # fmt: skip
    return one, two, three


@triton.jit(do_not_specialize=["n_q", "n_k", "heads", "ints"])
def threshold(
    Q, K, A, C, Q_UNITS, K_UNITS, TANH_V, STAT, SPACE, POSITIONS, MAP, tensors, ints, floats,
    n_q, n_k, heads, pre, factor, most,
    SCORE: tl.constexpr, MODS: tl.constexpr, PRE: tl.constexpr, NORM: tl.constexpr, TREE: tl.constexpr,
    WALK: tl.constexpr, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, GATHERED: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, FAST: tl.constexpr,
    PRECISION: tl.constexpr, UNROLL: tl.constexpr, LONGEST: tl.constexpr,
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
    if GATHERED:
        at_i = tl.load(POSITIONS + at_i)
    live = first + offs < n_q
    q, a = 0.0, 0.0
    if SCORE < TANH:
        base, stride = rows_of(Q, b, h)
        q = tile_of(base, stride, first, offs, tl.arange(0, BLOCK_D), n_q, WIDTH, BLOCK_D, True)
        if SCORE >= GATED:
            a = tl.load(lead(A[0], A, 1, b, h) + first + offs, mask=live, other=0.0)[:, None]
    keys, c = rows_of(K, b, h), lead(C[0], C, 1, b, h)
    q_units, k_units, tanh_v = units_of(Q_UNITS, Q, b, h), units_of(K_UNITS, K, b, h), tanh_of(TANH_V, h)
    path = walk(
        MAP, tile, b, h, first, tl.minimum(first + BLOCK_M, n_q) - 1, ints, n_k, BAND, LEFT, RIGHT, WALK, BLOCK_N, False
    )
    if GATHERED:
        path = (path[0], 0, 0, path[3], path[4])

    none = tl.zeros([BLOCK_M], dtype=tl.float32)
    lists = SPACE + (tl.program_id(0).to(tl.int64) * BLOCK_M + offs[:, None]) * LONGEST
    best, _, _ = threshold_pass(
        none + float("-inf"), none, none, none, lists, live, path, q, a, keys, c, q_units, k_units, tanh_v, i, at_i,
        n_q, n_k, pre, factor, tensors, ints, floats, b, h,
        SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_D, BLOCK_N, MAXIMUM, LONGEST, FAST, PRECISION, UNROLL, WALK,
    )  # fmt: skip
    best = best * factor
    empty = best == float("-inf")
    best = tl.where(empty, 0.0, best)
    alive = live & (empty == 0)
    low, high = best - 1.0, best  # τ lies between
    tau, above = low, none  # so many keys stand above `low`
    moving, many, passes = 1, 1, 0
    while (moving > 0) & (many > 0) & (passes < most):
        one, two, three = threshold_pass(
            none, none, none, tau, lists, live, path, q, a, keys, c, q_units, k_units, tanh_v, i, at_i,
            n_q, n_k, pre, factor, tensors, ints, floats, b, h,
            SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_D, BLOCK_N, SUMS, LONGEST, FAST, PRECISION, UNROLL, WALK,
        )  # fmt: skip
        new, low, high = corrected(tau, low, high, one, two, three, floats, NORM)
        above = tl.where(low == tau, one, above)
        many = tl.max(tl.where(alive & (above > LONGEST), 1, 0), 0)
        moving = moves(new, tau, alive)
        tau = new
        passes += 1
    if (moving > 0) & (many == 0):
        count, _, _ = threshold_pass(
            none, none, none, low, lists, alive, path, q, a, keys, c, q_units, k_units, tanh_v, i, at_i,
            n_q, n_k, pre, factor, tensors, ints, floats, b, h,
            SCORE, MODS, PRE, NORM, TREE, WIDTH, BLOCK_D, BLOCK_N, LIST, LONGEST, FAST, PRECISION, UNROLL, WALK,
        )  # fmt: skip
        tl.debug_barrier()
        place = tl.arange(0, LONGEST)[None, :]
        z = tl.load(lists + place, mask=place < count[:, None], other=float("-inf"))
        while (moving > 0) & (passes < most):
            one, two, three = sums_above(tl.maximum(z - tau[:, None], 0.0), floats, NORM)
            new, low, high = corrected(tau, low, high, one, two, three, floats, NORM)
            moving = moves(new, tau, alive)
            tau = new
            passes += 1
    stats = STAT + element.to(tl.int64) * n_q + first + offs
    tl.store(stats, tl.where(empty, float("inf"), tau), mask=live)
