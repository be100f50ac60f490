"""Tiles of scores: some rows of queries with one tile of keys, and the way back to both.

Keys lie in tiles of `tile` columns, one row for each of their `depth` numbers, so that a register holds the
same number of neighbouring keys. Scores lie in a strip: one row of `ld` numbers for each query.
"""

from __future__ import annotations

from regard.backends.cpu.kernels.jit import inner

from regard.backends.cpu.kernels.elementary import exp, fill, tanh
from regard.backends.cpu.kernels.simd import fma, lanes, load, store, total, where


@inner
def pack_tile(source, s0, depth, width, n_k, first, tile, to, t0, exps):  # noqa: ANN
    """Keys `first` to `first + tile` (rows of `width` numbers from s0 on, `depth` of them wanted), transposed;
    zeros beyond n_k. With `exps`, e^(2k) follows. Returns max |k|."""
    count = min(tile, n_k - first)
    most = source[0] * 0
    for c in range(count):
        at = s0 + (first + c) * width
        for d in range(depth):
            x = source[at + d]
            to[t0 + d * tile + c] = x
            most = max(most, abs(x))
    for d in range(depth):
        for c in range(count, tile):
            to[t0 + d * tile + c] = 0.0
    if exps:
        for x in range(0, depth * tile, lanes(to)):
            store(to, t0 + depth * tile + x, exp(load(to, t0 + x) + load(to, t0 + x)))
    return most


# vᵀ tanh(q + k), without the tanh: with E = e^(2q) e^(2k) it is Σ v - 2 Σ v / (1 + E). Four terms share
# one division while the product of four 1 + E stays in range, two while that of two does; else plain tanh.


@inner
def tanh_tile(query, q0, exps, x0, depth, keys, k0, tile, units, u0, sum_v, fours, twos, s, s0, ld, rows, width):  # noqa: ANN
    step = lanes(s)
    even = depth // 4 * 4 if fours else (depth // 2 * 2 if twos else 0)
    e0 = k0 + depth * tile
    for r in range(rows):
        q, x = q0 + r * depth, x0 + r * depth
        for c in range(0, width, step):
            zero = fill(load(keys, k0 + c), 0.0)
            one = fill(zero, 1.0)
            sum_, exact = zero, zero
            at = e0 + c
            if fours:
                for d in range(0, even, 4):
                    a = fma(fill(zero, exps[x + d]), load(keys, at + d * tile), one)
                    b = fma(fill(zero, exps[x + d + 1]), load(keys, at + (d + 1) * tile), one)
                    e = fma(fill(zero, exps[x + d + 2]), load(keys, at + (d + 2) * tile), one)
                    f = fma(fill(zero, exps[x + d + 3]), load(keys, at + (d + 3) * tile), one)
                    ab, ef = a * b, e * f
                    first = fma(fill(zero, units[u0 + d]), b, fill(zero, units[u0 + d + 1]) * a)
                    second = fma(fill(zero, units[u0 + d + 2]), f, fill(zero, units[u0 + d + 3]) * e)
                    sum_ = sum_ + fma(first, ef, second * ab) / (ab * ef)
                for d in range(even, depth):
                    a = fma(fill(zero, exps[x + d]), load(keys, at + d * tile), one)
                    sum_ = sum_ + fill(zero, units[u0 + d]) / a
            elif twos:
                for d in range(0, even, 2):
                    a = fma(fill(zero, exps[x + d]), load(keys, at + d * tile), one)
                    b = fma(fill(zero, exps[x + d + 1]), load(keys, at + (d + 1) * tile), one)
                    sum_ = sum_ + fma(fill(zero, units[u0 + d]), b, fill(zero, units[u0 + d + 1]) * a) / (a * b)
                for d in range(even, depth):
                    a = fma(fill(zero, exps[x + d]), load(keys, at + d * tile), one)
                    sum_ = sum_ + fill(zero, units[u0 + d]) / a
            else:
                for d in range(depth):
                    y = tanh(fill(zero, query[q + d]) + load(keys, k0 + d * tile + c))
                    exact = fma(fill(zero, units[u0 + d]), y, exact)
            if fours or twos:
                exact = fma(sum_, fill(zero, -2.0), fill(zero, sum_v))
            store(s, s0 + r * ld + c, exact)


@inner
def tanh_back(
    query, q0, exps, x0, depth, keys, k0, tile, units, u0, fours, twos, g, g0, ld, rows, width, dq, dq0, dk, dk0, du
):  # noqa: ANN
    """From the scores' gradient g: dq[r, d] += Σ_c g v_d (1 - tanh²), dk[d, c] the same over r, and
    du[d, :] += Σ_r g (1 - tanh) / 2, a register for each unit, still to be summed.

    One loop over four units (or one) with their sums in registers. 1 - tanh² = 4 (x - x²) with x = 1/(1 + E)."""
    step = lanes(g)
    e0 = k0 + depth * tile
    zero = fill(load(g, g0), 0.0)
    one = fill(zero, 1.0)
    d = 0
    while d + 4 <= depth and fours:
        v0, v1, v2, v3 = units[u0 + d] * 4, units[u0 + d + 1] * 4, units[u0 + d + 2] * 4, units[u0 + d + 3] * 4
        u_0, u_1 = load(du, d * step), load(du, (d + 1) * step)
        u_2, u_3 = load(du, (d + 2) * step), load(du, (d + 3) * step)
        for r in range(rows):
            x = x0 + r * depth + d
            e_0, e_1, e_2, e_3 = (
                fill(zero, exps[x]),
                fill(zero, exps[x + 1]),
                fill(zero, exps[x + 2]),
                fill(zero, exps[x + 3]),
            )
            q_0, q_1, q_2, q_3 = zero, zero, zero, zero
            for c in range(0, width, step):
                at, to = e0 + d * tile + c, dk0 + d * tile + c
                a = fma(e_0, load(keys, at), one)
                b = fma(e_1, load(keys, at + tile), one)
                e = fma(e_2, load(keys, at + 2 * tile), one)
                f = fma(e_3, load(keys, at + 3 * tile), one)
                ab, ef = a * b, e * f
                inverse = one / (ab * ef)
                ab, ef = inverse * ef, inverse * ab  # 1 / ab, 1 / ef
                a, b, e, f = ab * b, ab * a, ef * f, ef * e  # their inverses
                here = load(g, g0 + r * ld + c)
                a_, b_, e_, f_ = here * a, here * b, here * e, here * f
                u_0, u_1, u_2, u_3 = u_0 + a_, u_1 + b_, u_2 + e_, u_3 + f_
                a, b, e, f = a_ - a_ * a, b_ - b_ * b, e_ - e_ * e, f_ - f_ * f
                q_0, q_1, q_2, q_3 = q_0 + a, q_1 + b, q_2 + e, q_3 + f
                store(dk, to, fma(a, fill(zero, v0), load(dk, to)))
                store(dk, to + tile, fma(b, fill(zero, v1), load(dk, to + tile)))
                store(dk, to + 2 * tile, fma(e, fill(zero, v2), load(dk, to + 2 * tile)))
                store(dk, to + 3 * tile, fma(f, fill(zero, v3), load(dk, to + 3 * tile)))
            at = dq0 + r * depth + d
            dq[at] += total(q_0) * v0
            dq[at + 1] += total(q_1) * v1
            dq[at + 2] += total(q_2) * v2
            dq[at + 3] += total(q_3) * v3
        store(du, d * step, u_0)
        store(du, (d + 1) * step, u_1)
        store(du, (d + 2) * step, u_2)
        store(du, (d + 3) * step, u_3)
        d += 4
    while d < depth:
        v0 = units[u0 + d] * 4
        u_0 = load(du, d * step)
        for r in range(rows):
            e_0, q_0, y = fill(zero, exps[x0 + r * depth + d]), zero, fill(zero, query[q0 + r * depth + d])
            for c in range(0, width, step):
                to = dk0 + d * tile + c
                if twos:
                    a = one / fma(e_0, load(keys, e0 + d * tile + c), one)
                else:
                    a = fill(zero, 0.5) - fill(zero, 0.5) * tanh(y + load(keys, k0 + d * tile + c))
                a_ = load(g, g0 + r * ld + c) * a
                u_0 = u_0 + a_
                a = a_ - a_ * a
                q_0 = q_0 + a
                store(dk, to, fma(a, fill(zero, v0), load(dk, to)))
            dq[dq0 + r * depth + d] += total(q_0) * v0
        store(du, d * step, u_0)
        d += 1


@inner
def gaussian_tile(query, q0, depth, keys, k0, tile, factor, s, s0, ld, rows, width):  # noqa: ANN
    """factor · ‖q - k‖², by differences: the expanded square would lose the digits of near neighbours."""
    for r in range(rows):
        for c in range(0, width, lanes(s)):
            sum_ = fill(load(keys, k0 + c), 0.0)
            for d in range(depth):
                apart = load(keys, k0 + d * tile + c) - fill(sum_, query[q0 + r * depth + d])
                sum_ = fma(apart, apart, sum_)
            store(s, s0 + r * ld + c, sum_ * fill(sum_, factor))


@inner
def gaussian_back(query, q0, depth, keys, k0, tile, factor, g, g0, ld, rows, width, dq, dq0, dk, dk0):  # noqa: ANN
    zero = fill(load(g, g0), 0.0)
    by = fill(zero, 2.0 * factor)
    for d in range(depth):
        for r in range(rows):
            y, sum_ = fill(zero, query[q0 + r * depth + d]), zero
            for c in range(0, width, lanes(g)):
                to = dk0 + d * tile + c
                pull = (load(keys, k0 + d * tile + c) - y) * load(g, g0 + r * ld + c) * by
                sum_ = sum_ + pull
                store(dk, to, load(dk, to) + pull)
            dq[dq0 + r * depth + d] -= total(sum_)


@inner
def exact_tile(query, q0, depth, keys, k0, tile, s, s0, ld, rows, width):  # noqa: ANN
    """1 where all numbers are equal, else 0."""
    for r in range(rows):
        for c in range(0, width, lanes(s)):
            zero = fill(load(keys, k0 + c), 0.0)
            same = fill(zero, 1.0)
            for d in range(depth):
                same = where(load(keys, k0 + d * tile + c) == fill(zero, query[q0 + r * depth + d]), same, zero)
            store(s, s0 + r * ld + c, same)
