# The bodies are Triton's language, not Python's: branches on constants are no ternaries, loops are not Python's.
# ruff: noqa: SIM108
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportReturnType=false, reportIndexIssue=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
"""Which blocks of the other axis a tile meets: first those that need the mask, then those of which every pair exists.
Two loops, however the mask cuts: each loop fills its pipeline anew.

A walk is (lo, full_lo, full_hi, hi, list): blocks [full_lo, full_hi) are full, the others of [lo, hi) partial. Blocks
on a list are counted by their place on it.
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.backends.triton import codes
from regard.backends.triton.kernels.device import number, place

RANGE = tl.constexpr(codes.RANGE)
LISTED = tl.constexpr(codes.LISTED)


@triton.jit
def walk(
    MAP, tile, b, h, first, last, ints, n, BAND: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    WALK: tl.constexpr, BLOCK: tl.constexpr, FLIP: tl.constexpr,
):  # fmt: skip
    """The blocks, out of an axis of n, that positions first..last meet. FLIP: the positions are keys, the blocks hold
    queries."""
    if WALK == LISTED:
        counts = place(MAP[1], MAP, 2, b, h) + tile * number(MAP, 4)
        partial = tl.load(counts)
        end = partial + tl.load(counts + 1)
        return 0, partial, end, end, place(MAP[0], MAP, 5, b, h) + tile * number(MAP, 7)
    else:
        lo, full_lo, full_hi, hi = runs(first, last, ints, n, BAND, LEFT, RIGHT, WALK, BLOCK, FLIP)
        return lo, full_lo, full_hi, hi, MAP[0]


@triton.jit
def steps(path, phase: tl.constexpr):
    """From where to where a loop counts: phase 0 is over partial blocks, phase 1 over full ones."""
    if phase == 0:
        return 0, (path[1] - path[0]) + (path[3] - path[2])
    else:
        return path[1], path[2]


@triton.jit
def block_at(path, t, phase: tl.constexpr, WALK: tl.constexpr):
    """The block of a loop's step."""
    if WALK == LISTED:
        return tl.load(path[4] + t)
    elif phase == 0:
        left = path[0] + t
        return tl.where(left < path[1], left, left - path[1] + path[2])
    else:
        return t


@triton.jit
def runs(
    first,
    last,
    ints,
    n,
    n_first: tl.constexpr,
    LEFT: tl.constexpr,
    RIGHT: tl.constexpr,
    WALK: tl.constexpr,
    BLOCK: tl.constexpr,
    FLIP: tl.constexpr,
):
    """Blocks [lo, hi) of the other axis (of length n) that positions first..last may meet; [full_lo, full_hi) of
    them need no mask. FLIP: the positions are keys and the blocks hold queries."""
    lo, full_lo = 0, 0
    hi, full_hi = tl.cdiv(n, BLOCK), n // BLOCK
    if WALK == RANGE:
        least, most, sure_least, sure_most = 0, n - 1, 0, n - 1
        if FLIP:
            shift = -number(ints, n_first)
        else:
            shift = number(ints, n_first)
        if LEFT:
            if FLIP:
                most = tl.minimum(most, last + shift + number(ints, n_first + 1))
                sure_most = tl.minimum(sure_most, first + shift + number(ints, n_first + 1))
            else:
                least = tl.maximum(least, first + shift - number(ints, n_first + 1))
                sure_least = tl.maximum(sure_least, last + shift - number(ints, n_first + 1))
        if RIGHT:
            if FLIP:
                least = tl.maximum(least, first + shift - number(ints, n_first + 2))
                sure_least = tl.maximum(sure_least, last + shift - number(ints, n_first + 2))
            else:
                most = tl.minimum(most, last + shift + number(ints, n_first + 2))
                sure_most = tl.minimum(sure_most, first + shift + number(ints, n_first + 2))
        lo = tl.minimum(least // BLOCK, hi)
        hi = tl.maximum(tl.cdiv(tl.maximum(most + 1, 0), BLOCK), lo)
        full_lo = tl.minimum(tl.cdiv(sure_least, BLOCK), hi)
        full_hi = tl.minimum(tl.maximum(sure_most + 1, 0) // BLOCK, hi)
    full_lo = tl.maximum(full_lo, lo)
    full_hi = tl.maximum(full_hi, full_lo)
    return lo, full_lo, full_hi, hi
