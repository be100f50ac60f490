"""What stands between a row's content scores and its normalizer: gate, bias, cap, mask; and dropout after.
Each has its way back beside it. `c` is a place in the strip, `j` the key that stands there."""

from __future__ import annotations

import math

from regard.backends.cpu.kernels.elementary import fill, log, sigmoid, tanh
from regard.backends.cpu.kernels.jit import inner
from regard.backends.cpu.kernels.simd import (
    count_up,
    lanes,
    load,
    load_bytes,
    load_words,
    shift_right,
    store,
    to_float,
    total,
    where,
    whole_splat,
    widened,
)

NOTHING = -math.inf


@inner
def gate(x, x0, s, s0, width, own, gates, j0):
    """s = σ(own + gates) · x"""
    for c in range(0, width, lanes(s)):
        dot = load(x, x0 + c)
        store(s, s0 + c, sigmoid(load(gates, j0 + c) + fill(dot, own)) * dot)


@inner
def gate_back(x, x0, g, g0, width, own, gates, j0, to, t0):
    """g becomes the dot product's gradient; the gate's argument gets its own: for keys in `to`, summed for
    the query."""
    sum_ = fill(load(g, g0), 0.0)
    one = fill(sum_, 1.0)
    for c in range(0, width, lanes(g)):
        y, dot = load(g, g0 + c), load(x, x0 + c)
        open_ = sigmoid(load(gates, j0 + c) + fill(one, own))
        pull = y * dot * open_ * (one - open_)
        store(to, t0 + c, load(to, t0 + c) + pull)
        sum_ = sum_ + pull
        store(g, g0 + c, y * open_)
    return total(sum_)


@inner
def add(s, s0, width, terms, t0):
    for c in range(0, width, lanes(s)):
        store(s, s0 + c, load(s, s0 + c) + load(terms, t0 + c))


@inner
def sum_of(s, s0, width):
    sum_ = fill(load(s, s0), 0.0)
    for c in range(0, width, lanes(s)):
        sum_ = sum_ + load(s, s0 + c)
    return total(sum_)


add_into = add  # and its way back: what all pairs of one distance share


@inner
def add_exactly(s, s0, width, terms, t0):
    """The same where `terms` may end before a register does."""
    whole = width // lanes(s) * lanes(s)
    add(s, s0, whole, terms, t0)
    for c in range(whole, width):
        s[s0 + c] += terms[t0 + c]


@inner
def cap(s, s0, width, limit):
    for c in range(0, width, lanes(s)):
        x = load(s, s0 + c)
        store(s, s0 + c, tanh(x / fill(x, limit)) * fill(x, limit))


@inner
def cap_back(s, s0, g, g0, width, limit):
    for c in range(0, width, lanes(s)):
        y = load(s, s0 + c)
        zero = fill(y, 0.0)
        there = y > fill(y, NOTHING)
        share = where(there, y / fill(y, limit), zero)
        store(g, g0 + c, where(there, load(g, g0 + c) * (fill(y, 1.0) - share * share), zero))


@inner
def keep_range(s, s0, width, low, high):
    """-inf outside low ≤ c < high. What lies outside may never have been computed."""
    step = lanes(s)
    nothing = fill(load(s, s0), NOTHING)
    places = count_up(nothing)
    c = 0
    while c < width:
        if c >= low and c + step <= high:
            c = max(c + step, high // step * step)
            continue
        here = places + whole_splat(c, places)
        x = where(here >= whole_splat(low, places), load(s, s0 + c), nothing)
        store(s, s0 + c, where(here < whole_splat(high, places), x, nothing))
        c += step


@inner
def keep_bits(s, s0, width, bits, b0):
    """-inf where the byte is 0."""
    for c in range(0, width, lanes(s)):
        x = load(s, s0 + c)
        store(s, s0 + c, where(load_bytes(bits, b0 + c, x), x, fill(x, NOTHING)))


@inner
def _uniform(row, columns, j, like):
    """The noise of core/noise.py, bit by bit: numbers between 0 and 1 in float32."""
    x = load_words(columns, j, like) ^ whole_splat(row, load_words(columns, j, like))
    x = x ^ shift_right(x, 16)
    x = x * whole_splat(0x7FEB352D, x)
    x = x ^ shift_right(x, 15)
    x = x * whole_splat(0x846CA68B, x)
    x = x ^ shift_right(x, 16)
    u = to_float(shift_right(x, 9))
    return (u + fill(u, 0.5)) * fill(u, 2.0**-23)


@inner
def drop(w, w0, width, row, columns, j0, share):
    """Weights (or their gradients) whose number is below `share` become 0, the others grow by 1/(1-share)."""
    by = 1.0 / max(1.0 - share, 1e-38)
    for c in range(0, width, lanes(w)):
        x = load(w, w0 + c)
        u = _uniform(row, columns, j0 + c, x)
        store(w, w0 + c, where(u >= fill(u, share), x * fill(x, by), fill(x, 0.0)))


@inner
def add_gumbel(s, s0, width, row, columns, j0, times):
    """Gumbel noise, `times` 1; or, to take it off again, -1."""
    for c in range(0, width, lanes(s)):
        x = load(s, s0 + c)
        u = widened(_uniform(row, columns, j0 + c, x), x)
        store(s, s0 + c, x - log(fill(x, 0.0) - log(u)) * fill(x, times))
