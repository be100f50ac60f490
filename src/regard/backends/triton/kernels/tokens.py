# The bodies are Triton's language, not Python's: branches on constants are no ternaries, loops are not Python's.
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportReturnType=false, reportIndexIssue=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
"""What is done once for each token, before any pair: its share of a gate or of a distance, its hidden-major copy."""

from __future__ import annotations

import triton
import triton.language as tl

from regard.backends.triton.kernels.device import LOG2E, lead, tile_of


@triton.jit(do_not_specialize=["n", "heads"])
def shares(
    X, G, OUT, n, heads, factor, SQUARED: tl.constexpr, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """factor · x·g for every token x, with the numbers g of its head; SQUARED: factor · x·x."""
    tiles = tl.cdiv(n, BLOCK)
    element, first = tl.program_id(0) // tiles, tl.program_id(0) % tiles * BLOCK
    h = element % heads
    offs, cols = tl.arange(0, BLOCK), tl.arange(0, BLOCK_D)
    base = lead(X[0], X, 1, element // heads, h)
    x = tile_of(base, X[3], first, offs, cols, n, WIDTH, BLOCK_D, True).to(tl.float32)
    if SQUARED:
        y = x * x
    else:
        y = x * tl.load(G[0] + h * G[1] + cols * G[2], mask=cols < WIDTH, other=0.0).to(tl.float32)[None, :]
    tl.store(OUT + element.to(tl.int64) * n + first + offs, tl.sum(y, 1) * factor, mask=first + offs < n)


@triton.jit(do_not_specialize=["n", "rows", "length", "heads"])
def hidden_major(
    X, OUT, LIMIT, n, rows, length, heads, EXPONENTIAL: tl.constexpr, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """OUT[element, unit, token]: x, or e^2x, and how large |x| becomes. `rows` units of `length` tokens, more of both
    than there are: what is not there counts as 0."""
    tiles = length // BLOCK
    element, first = tl.program_id(0) // tiles, tl.program_id(0) % tiles * BLOCK
    offs, cols = tl.arange(0, BLOCK), tl.arange(0, BLOCK_D)
    base = lead(X[0], X, 1, element // heads, element % heads)
    x = tile_of(base, X[3], first, offs, cols, n, WIDTH, BLOCK_D, True).to(tl.float32)
    places = OUT + (element.to(tl.int64) * rows + cols[None, :]) * length + first + offs[:, None]
    if EXPONENTIAL:
        # 2^whole e^rest: the rest is small, so that ex2's argument has no digits to lose.
        whole = tl.floor(x * (2.0 * LOG2E) + 0.5)
        rest = (2.0 * x - whole * 0.693145751953125) - whole * 1.42860677e-06  # ln 2 in two parts, the first exact
        tl.store(places, tl.exp2(whole) * tl.exp2(rest * LOG2E), mask=(cols < rows)[None, :])
        largest = tl.max(tl.max(tl.abs(x), 1), 0)
        tl.atomic_max(LIMIT, largest.to(tl.int32, bitcast=True), sem="relaxed")  # a maximum has no order
    else:
        tl.store(places, x, mask=(cols < rows)[None, :])
