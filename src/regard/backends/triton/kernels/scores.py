# The bodies are Triton's language, not Python's: branches on constants are no ternaries, loops are not Python's.
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportReturnType=false, reportIndexIssue=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
"""The content of a score for one tile: a matrix product, or a loop over units, pair by pair."""

from __future__ import annotations

import triton
import triton.language as tl

from regard.backends.triton import codes
from regard.backends.triton.kernels.device import BRAIN, GATED, GAUSSIAN, reciprocal, rough_tanh, sigmoid, tanh

TANH = tl.constexpr(codes.TANH)
DISTANCE = tl.constexpr(codes.DISTANCE)


@triton.jit
def product(u, a, c, SCORE: tl.constexpr, FAST: tl.constexpr):
    """The content from the dot products u and what a token brings alone."""
    if SCORE == GATED and FAST == BRAIN:
        return u + u * rough_tanh(a + c)  # twice the score: the half is part of what comes after
    elif SCORE == GATED:
        return u * sigmoid(a + c, FAST)
    elif SCORE == GAUSSIAN:
        return u + (a + c)
    else:
        return u


@triton.jit
def units(q, k, v, i, j, n_q, n_k, SCORE: tl.constexpr, WIDTH: tl.constexpr, UNROLL: tl.constexpr):
    """The content by a loop over units. q and k are (numbers hidden-major, distance of units, the numbers token by
    token, distance of tokens): hidden-major, a unit's numbers lie side by side, and there are more than n.

    Tanh sum: with E = e^2q · e^2k, tanh(q + k) = 1 - 2 / (1 + E). The hidden-major numbers are the exponentials,
    v = (-2v, Σ v, limits), and two units share one reciprocal. Where the product of two (1 + E) could leave
    float32, plain tanh of the original numbers.
    """
    s = tl.zeros_like((i + j).to(tl.float32))
    if SCORE == TANH:
        if tl.load(v[2]) + tl.load(v[2] + 1) <= 21.0:
            for d in tl.range(0, WIDTH, 2, loop_unroll_factor=UNROLL):
                x = 1.0 + tl.load(q[0] + d * q[1] + i) * tl.load(k[0] + d * k[1] + j)
                y = 1.0 + tl.load(q[0] + (d + 1) * q[1] + i) * tl.load(k[0] + (d + 1) * k[1] + j)
                s += (tl.load(v[0] + d) * y + tl.load(v[0] + d + 1) * x) * reciprocal(x * y)
            s += tl.load(v[1])
        else:
            row, col = tl.minimum(i, n_q - 1) * q[3], tl.minimum(j, n_k - 1) * k[3]
            for d in range(WIDTH):
                s -= tl.load(v[0] + d) * 0.5 * tanh(tl.load(q[2] + row + d) + tl.load(k[2] + col + d))
    elif SCORE == DISTANCE:
        for d in range(WIDTH):
            x = tl.load(q[0] + d * q[1] + i) - tl.load(k[0] + d * k[1] + j)
            s -= 0.5 * x * x
    else:
        for d in range(WIDTH):
            s += tl.where(tl.load(q[0] + d * q[1] + i) == tl.load(k[0] + d * k[1] + j), 1.0, 0.0)
        s = tl.where(s == WIDTH, 1.0, 0.0)
    return s


@triton.jit
def split_units(
    q, k, v, first_i, first_j, n_q, n_k, SCORE: tl.constexpr, WIDTH: tl.constexpr, UNROLL: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, FLIP: tl.constexpr,
):  # fmt: skip
    """`units` of a tile (queries, keys; FLIP: keys, queries) that is cut into small tiles, one per thread: a thread
    then reads few numbers of either side for many pairs. The last axes of a tensor are spread over threads, the first
    stay inside one."""
    row = (tl.arange(0, ROWS // 8) * 8)[:, None, None, None] + tl.arange(0, 8)[None, None, :, None]
    col = (tl.arange(0, COLS // 16) * 16)[None, :, None, None] + tl.arange(0, 16)[None, None, None, :]
    if FLIP:
        s = units(q, k, v, first_i + col, first_j + row, n_q, n_k, SCORE, WIDTH, UNROLL)
    else:
        s = units(q, k, v, first_i + row, first_j + col, n_q, n_k, SCORE, WIDTH, UNROLL)
    s = tl.reshape(tl.permute(s, (0, 2, 1, 3)), (ROWS, COLS))
    # A matrix product of nothing: Triton then holds the sum as it holds a product's, each row by four threads, where it
    # would else spread a row over 128 and reduce it by 160 shuffles.
    return tl.dot(tl.zeros([ROWS, 16], dtype=tl.float16), tl.zeros([16, COLS], dtype=tl.float16), s)
