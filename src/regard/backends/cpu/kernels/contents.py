"""Tiles of scores: some rows of queries with one tile of keys, and the way back to both.

Keys lie in tiles of `tile` columns, one row for each of their `depth` numbers, so that a register holds the
same number of neighbouring keys. Scores lie in a strip: one row of `ld` numbers for each query.
"""

from __future__ import annotations

from regard.backends.cpu.kernels.elementary import exp, fill, tanh
from regard.backends.cpu.kernels.jit import inner
from regard.backends.cpu.kernels.simd import (
    absolute,
    fma,
    lanes,
    largest,
    load,
    number,
    spread,
    store,
    total,
    where,
)


@inner
def pack_tile(source, s0, depth, width, n_k, first, tile, to, t0, exps):
    """Keys `first` to `first + tile` (rows of `width` numbers from s0 on, `depth` of them wanted), transposed;
    zeros beyond n_k. With `exps`, e^(2k) follows, and max |k| is returned."""
    count = min(tile, n_k - first)
    for c in range(count):
        at = s0 + (first + c) * width
        for d in range(depth):
            to[t0 + d * tile + c] = source[at + d]
    for d in range(depth):
        for c in range(count, tile):
            to[t0 + d * tile + c] = 0.0
    if not exps:
        return number(to, 0.0)
    for x in range(0, depth * tile, lanes(to)):
        store(to, t0 + depth * tile + x, exp(load(to, t0 + x) + load(to, t0 + x)))
    return largest_size(to, t0, depth * tile)


@inner
def largest_size(a, start, count):
    """max |a[start:start + count]|; NaN may be passed over."""
    whole = count // lanes(a) * lanes(a)
    sizes = fill(load(a, start), 0.0)
    for x in range(start, start + whole, lanes(a)):
        size = absolute(load(a, x))
        sizes = where(size > sizes, size, sizes)
    most = largest(sizes)
    for x in range(start + whole, start + count):
        most = max(most, abs(a[x]))
    return most


# vᵀ tanh(q + k), without the tanh: with E = e^(2q) e^(2k) it is Σ v - 2 Σ v / (1 + E). Four terms share
# one division while the product of four 1 + E stays in range, two while that of two does; else plain tanh.


@inner
def _four_terms(a, b, e, f, v0, v1, v2, v3, sum_):
    """sum + v0/a + v1/b + v2/e + v3/f"""
    ab, ef = a * b, e * f
    return sum_ + fma(fma(v0, b, v1 * a), ef, fma(v2, f, v3 * e) * ab) / (ab * ef)


@inner
def tanh_tile(
    query, q0, exps, depth, keys, k0, tile, units, u0, sum_v, fours, twos, ready, r0, by, s, s0, ld, rows, width
):  # fmt: skip
    """Two rows and two registers of keys at a time where there are so many: then loading costs less than dividing."""
    step = lanes(s)
    whole = width // (2 * step) * (2 * step) if fours else 0
    pairs = rows // 2 * 2
    for r in range(0, pairs, 2):
        if by > 0:
            _tanh_divided(
                ready, r0 + r * depth, depth, keys, k0 + depth * tile, tile, by, sum_v, s, s0 + r * ld, ld, whole
            )
            continue
        _tanh_twice(
            exps, q0 + r * depth, depth, keys, k0 + depth * tile, tile, units, u0, sum_v, s, s0 + r * ld, ld, whole
        )
    for r in range(rows):
        start = whole if r < pairs else 0
        for c in range(start, width, step):
            x = q0 + r * depth
            if fours or twos:
                sum_ = _tanh_once(exps, x, depth, keys, k0 + depth * tile + c, tile, units, u0, fours)
                sum_ = fma(sum_, fill(sum_, -2.0), fill(sum_, sum_v))
            else:
                sum_ = _tanh_plain(query, x, depth, keys, k0 + c, tile, units, u0)
            store(s, s0 + r * ld + c, sum_)


@inner
def _tanh_twice(exps, x, depth, keys, e0, tile, units, u0, sum_v, s, s0, ld, width):
    step = lanes(s)
    y = x + depth
    for c in range(0, width, 2 * step):
        zero = fill(load(keys, e0 + c), 0.0)
        one = fill(zero, 1.0)
        s_0, s_1, t_0, t_1 = zero, zero, zero, zero
        at = e0 + c
        for d in range(0, depth - 3, 4):
            v0, v1 = spread(units, u0 + d), spread(units, u0 + d + 1)
            v2, v3 = spread(units, u0 + d + 2), spread(units, u0 + d + 3)
            p0, p1 = spread(exps, x + d), spread(exps, x + d + 1)
            p2, p3 = spread(exps, x + d + 2), spread(exps, x + d + 3)
            q0, q1 = spread(exps, y + d), spread(exps, y + d + 1)
            q2, q3 = spread(exps, y + d + 2), spread(exps, y + d + 3)
            k0, k1, k2, k3 = load(keys, at), load(keys, at + tile), load(keys, at + 2 * tile), load(keys, at + 3 * tile)
            s_0 = _four_terms(
                fma(p0, k0, one), fma(p1, k1, one), fma(p2, k2, one), fma(p3, k3, one), v0, v1, v2, v3, s_0
            )
            t_0 = _four_terms(
                fma(q0, k0, one), fma(q1, k1, one), fma(q2, k2, one), fma(q3, k3, one), v0, v1, v2, v3, t_0
            )
            more = at + step
            k0, k1 = load(keys, more), load(keys, more + tile)
            k2, k3 = load(keys, more + 2 * tile), load(keys, more + 3 * tile)
            s_1 = _four_terms(
                fma(p0, k0, one), fma(p1, k1, one), fma(p2, k2, one), fma(p3, k3, one), v0, v1, v2, v3, s_1
            )
            t_1 = _four_terms(
                fma(q0, k0, one), fma(q1, k1, one), fma(q2, k2, one), fma(q3, k3, one), v0, v1, v2, v3, t_1
            )
            at += 4 * tile
        for d in range(depth // 4 * 4, depth):
            v0, p0, q0 = spread(units, u0 + d), spread(exps, x + d), spread(exps, y + d)
            k0, k1 = load(keys, e0 + d * tile + c), load(keys, e0 + d * tile + c + step)
            s_0, s_1 = s_0 + v0 / fma(p0, k0, one), s_1 + v0 / fma(p0, k1, one)
            t_0, t_1 = t_0 + v0 / fma(q0, k0, one), t_1 + v0 / fma(q0, k1, one)
        two, base = fill(zero, -2.0), fill(zero, sum_v)
        store(s, s0 + c, fma(s_0, two, base))
        store(s, s0 + c + step, fma(s_1, two, base))
        store(s, s0 + ld + c, fma(t_0, two, base))
        store(s, s0 + ld + c + step, fma(t_1, two, base))


@inner
def _four_inverses_of(a, b, e, f, sum_):
    """sum + 1/a + 1/b + 1/e + 1/f"""
    ab, ef = a * b, e * f
    return sum_ + fma(a + b, ef, (e + f) * ab) / (ab * ef)


@inner
def _tanh_divided(ready, x, depth, keys, e0, tile, by, sum_v, s, s0, ld, width):
    """The same where every term is v / (1 + E) = by / (c + c E): `ready` holds the depth numbers c = by / v, and from
    x on c e^(2q). Then a fraction of two terms needs no v."""
    step = lanes(s)
    y = x + depth
    for c in range(0, width, 2 * step):
        zero = fill(load(keys, e0 + c), 0.0)
        s_0, s_1, t_0, t_1 = zero, zero, zero, zero
        at = e0 + c
        for d in range(0, depth - 3, 4):
            c0, c1, c2, c3 = spread(ready, d), spread(ready, d + 1), spread(ready, d + 2), spread(ready, d + 3)
            p0, p1 = spread(ready, x + d), spread(ready, x + d + 1)
            p2, p3 = spread(ready, x + d + 2), spread(ready, x + d + 3)
            q0, q1 = spread(ready, y + d), spread(ready, y + d + 1)
            q2, q3 = spread(ready, y + d + 2), spread(ready, y + d + 3)
            k0, k1, k2, k3 = load(keys, at), load(keys, at + tile), load(keys, at + 2 * tile), load(keys, at + 3 * tile)
            s_0 = _four_inverses_of(fma(p0, k0, c0), fma(p1, k1, c1), fma(p2, k2, c2), fma(p3, k3, c3), s_0)
            t_0 = _four_inverses_of(fma(q0, k0, c0), fma(q1, k1, c1), fma(q2, k2, c2), fma(q3, k3, c3), t_0)
            more = at + step
            k0, k1 = load(keys, more), load(keys, more + tile)
            k2, k3 = load(keys, more + 2 * tile), load(keys, more + 3 * tile)
            s_1 = _four_inverses_of(fma(p0, k0, c0), fma(p1, k1, c1), fma(p2, k2, c2), fma(p3, k3, c3), s_1)
            t_1 = _four_inverses_of(fma(q0, k0, c0), fma(q1, k1, c1), fma(q2, k2, c2), fma(q3, k3, c3), t_1)
            at += 4 * tile
        one = fill(zero, 1.0)
        for d in range(depth // 4 * 4, depth):
            c0, p0, q0 = spread(ready, d), spread(ready, x + d), spread(ready, y + d)
            k0, k1 = load(keys, e0 + d * tile + c), load(keys, e0 + d * tile + c + step)
            s_0, s_1 = s_0 + one / fma(p0, k0, c0), s_1 + one / fma(p0, k1, c0)
            t_0, t_1 = t_0 + one / fma(q0, k0, c0), t_1 + one / fma(q0, k1, c0)
        two, base = fill(zero, -2.0 * by), fill(zero, sum_v)
        store(s, s0 + c, fma(s_0, two, base))
        store(s, s0 + c + step, fma(s_1, two, base))
        store(s, s0 + ld + c, fma(t_0, two, base))
        store(s, s0 + ld + c + step, fma(t_1, two, base))


@inner
def _tanh_once(exps, x, depth, keys, at, tile, units, u0, fours):
    """Σ v / (1 + E) of one row and one register of keys."""
    sum_ = fill(load(keys, at), 0.0)
    one = fill(sum_, 1.0)
    d = 0
    while fours and d + 4 <= depth:
        a = fma(spread(exps, x + d), load(keys, at + d * tile), one)
        b = fma(spread(exps, x + d + 1), load(keys, at + (d + 1) * tile), one)
        e = fma(spread(exps, x + d + 2), load(keys, at + (d + 2) * tile), one)
        f = fma(spread(exps, x + d + 3), load(keys, at + (d + 3) * tile), one)
        v0, v1 = spread(units, u0 + d), spread(units, u0 + d + 1)
        v2, v3 = spread(units, u0 + d + 2), spread(units, u0 + d + 3)
        sum_ = _four_terms(a, b, e, f, v0, v1, v2, v3, sum_)
        d += 4
    while d + 2 <= depth:
        a = fma(spread(exps, x + d), load(keys, at + d * tile), one)
        b = fma(spread(exps, x + d + 1), load(keys, at + (d + 1) * tile), one)
        sum_ = sum_ + fma(spread(units, u0 + d), b, spread(units, u0 + d + 1) * a) / (a * b)
        d += 2
    while d < depth:
        sum_ = sum_ + spread(units, u0 + d) / fma(spread(exps, x + d), load(keys, at + d * tile), one)
        d += 1
    return sum_


@inner
def _tanh_plain(query, q, depth, keys, at, tile, units, u0):
    sum_ = fill(load(keys, at), 0.0)
    for d in range(depth):
        sum_ = fma(spread(units, u0 + d), tanh(spread(query, q + d) + load(keys, at + d * tile)), sum_)
    return sum_


@inner
def _four_inverses(a, b, e, f):
    ab, ef = a * b, e * f
    inverse = fill(a, 1.0) / (ab * ef)
    ab, ef = inverse * ef, inverse * ab  # 1 / ab, 1 / ef
    return ab * b, ab * a, ef * f, ef * e


@inner
def tanh_back(
    query, q0, exps, x0, depth, keys, k0, tile, units, u0, fours, twos, g, g0, ld, rows, width, dq, dq0, dk, dk0, du
):  # fmt: skip
    """From the scores' gradient g: dq[r, d] += Σ_c g v_d (1 - tanh²), dk[d, c] the same over r, and
    du[d, :] += Σ_r g (1 - tanh) / 2, a register for each unit, still to be summed.

    One loop over four units and two rows, or one and one, with their sums in registers.
    1 - tanh² = 4 (x - x²) with x = 1/(1 + E)."""
    e0 = k0 + depth * tile
    d = 0
    while fours and d + 4 <= depth:
        for r in range(0, rows - 1, 2):
            _back_fours(
                exps,
                x0 + r * depth + d,
                depth,
                keys,
                e0 + d * tile,
                tile,
                units,
                u0 + d,
                g,
                g0 + r * ld,
                ld,
                width,
                dq,
                dq0 + r * depth + d,
                dk,
                dk0 + d * tile,
                du,
                d,
            )
        if rows % 2:
            r = rows - 1
            for x in range(d, d + 4):
                _back_once(
                    query,
                    q0 + r * depth,
                    exps,
                    x0 + r * depth,
                    x,
                    keys,
                    k0,
                    e0,
                    tile,
                    units,
                    u0,
                    twos,
                    g,
                    g0 + r * ld,
                    width,
                    dq,
                    dq0 + r * depth,
                    dk,
                    dk0,
                    du,
                )
        d += 4
    while d < depth:
        for r in range(rows):
            _back_once(
                query,
                q0 + r * depth,
                exps,
                x0 + r * depth,
                d,
                keys,
                k0,
                e0,
                tile,
                units,
                u0,
                twos,
                g,
                g0 + r * ld,
                width,
                dq,
                dq0 + r * depth,
                dk,
                dk0,
                du,
            )
        d += 1


@inner
def _back_fours(exps, x, depth, keys, at, tile, units, u, g, g0, ld, width, dq, dq0, dk, dk0, du, d):
    step = lanes(g)
    zero = fill(load(g, g0), 0.0)
    one = fill(zero, 1.0)
    y = x + depth
    v0, v1, v2, v3 = units[u] * 4, units[u + 1] * 4, units[u + 2] * 4, units[u + 3] * 4
    u_0, u_1, u_2, u_3 = (
        load(du, d * step),
        load(du, (d + 1) * step),
        load(du, (d + 2) * step),
        load(du, (d + 3) * step),
    )
    p_0, p_1, p_2, p_3 = zero, zero, zero, zero
    q_0, q_1, q_2, q_3 = zero, zero, zero, zero
    for c in range(0, width, step):
        k0, k1 = load(keys, at + c), load(keys, at + tile + c)
        k2, k3 = load(keys, at + 2 * tile + c), load(keys, at + 3 * tile + c)
        a, b, e, f = _four_inverses(
            fma(spread(exps, x), k0, one), fma(spread(exps, x + 1), k1, one),
            fma(spread(exps, x + 2), k2, one), fma(spread(exps, x + 3), k3, one),
        )  # fmt: skip
        here = load(g, g0 + c)
        a_, b_, e_, f_ = here * a, here * b, here * e, here * f
        u_0, u_1, u_2, u_3 = u_0 + a_, u_1 + b_, u_2 + e_, u_3 + f_
        x_0, x_1, x_2, x_3 = a_ - a_ * a, b_ - b_ * b, e_ - e_ * e, f_ - f_ * f
        p_0, p_1, p_2, p_3 = p_0 + x_0, p_1 + x_1, p_2 + x_2, p_3 + x_3
        a, b, e, f = _four_inverses(
            fma(spread(exps, y), k0, one), fma(spread(exps, y + 1), k1, one),
            fma(spread(exps, y + 2), k2, one), fma(spread(exps, y + 3), k3, one),
        )  # fmt: skip
        here = load(g, g0 + ld + c)
        a_, b_, e_, f_ = here * a, here * b, here * e, here * f
        u_0, u_1, u_2, u_3 = u_0 + a_, u_1 + b_, u_2 + e_, u_3 + f_
        a, b, e, f = a_ - a_ * a, b_ - b_ * b, e_ - e_ * e, f_ - f_ * f
        q_0, q_1, q_2, q_3 = q_0 + a, q_1 + b, q_2 + e, q_3 + f
        to = dk0 + c
        store(dk, to, fma(x_0 + a, fill(zero, v0), load(dk, to)))
        store(dk, to + tile, fma(x_1 + b, fill(zero, v1), load(dk, to + tile)))
        store(dk, to + 2 * tile, fma(x_2 + e, fill(zero, v2), load(dk, to + 2 * tile)))
        store(dk, to + 3 * tile, fma(x_3 + f, fill(zero, v3), load(dk, to + 3 * tile)))
    dq[dq0] += total(p_0) * v0
    dq[dq0 + 1] += total(p_1) * v1
    dq[dq0 + 2] += total(p_2) * v2
    dq[dq0 + 3] += total(p_3) * v3
    dq[dq0 + depth] += total(q_0) * v0
    dq[dq0 + depth + 1] += total(q_1) * v1
    dq[dq0 + depth + 2] += total(q_2) * v2
    dq[dq0 + depth + 3] += total(q_3) * v3
    store(du, d * step, u_0)
    store(du, (d + 1) * step, u_1)
    store(du, (d + 2) * step, u_2)
    store(du, (d + 3) * step, u_3)


@inner
def _back_once(
    query, q, exps, x, d, keys, k0, e0, tile, units, u0, twos, g, g0, width, dq, dq0, dk, dk0, du
):  # fmt: skip
    step = lanes(g)
    zero = fill(load(g, g0), 0.0)
    one, half = fill(zero, 1.0), fill(zero, 0.5)
    v = units[u0 + d] * 4
    u_0, q_0 = load(du, d * step), zero
    e, y = spread(exps, x + d), spread(query, q + d)
    for c in range(0, width, step):
        to = dk0 + d * tile + c
        if twos:
            a = one / fma(e, load(keys, e0 + d * tile + c), one)
        else:
            a = half - half * tanh(y + load(keys, k0 + d * tile + c))
        a_ = load(g, g0 + c) * a
        u_0 = u_0 + a_
        a = a_ - a_ * a
        q_0 = q_0 + a
        store(dk, to, fma(a, fill(zero, v), load(dk, to)))
    dq[dq0 + d] += total(q_0) * v
    store(du, d * step, u_0)


@inner
def gaussian_tile(query, q0, depth, keys, k0, tile, factor, s, s0, ld, rows, width):
    """factor · ‖q - k‖², by differences: the expanded square would lose the digits of near neighbours."""
    for r in range(rows):
        q = q0 + r * depth
        for c in range(0, width, lanes(s)):
            zero = fill(load(keys, k0 + c), 0.0)
            s_0, s_1, s_2, s_3 = zero, zero, zero, zero  # short sums lose fewer digits, and wait less for each other
            at = k0 + c
            for d in range(0, depth - 3, 4):
                a = load(keys, at) - spread(query, q + d)
                b = load(keys, at + tile) - spread(query, q + d + 1)
                e = load(keys, at + 2 * tile) - spread(query, q + d + 2)
                f = load(keys, at + 3 * tile) - spread(query, q + d + 3)
                s_0, s_1, s_2, s_3 = fma(a, a, s_0), fma(b, b, s_1), fma(e, e, s_2), fma(f, f, s_3)
                at += 4 * tile
            for d in range(depth // 4 * 4, depth):
                a = load(keys, k0 + d * tile + c) - spread(query, q + d)
                s_0 = fma(a, a, s_0)
            store(s, s0 + r * ld + c, ((s_0 + s_1) + (s_2 + s_3)) * fill(zero, factor))


@inner
def gaussian_back(query, q0, depth, keys, k0, tile, factor, g, g0, ld, rows, width, dq, dq0, dk, dk0):
    zero = fill(load(g, g0), 0.0)
    by = fill(zero, 2.0 * factor)
    for d in range(depth):
        for r in range(rows):
            y, sum_ = spread(query, q0 + r * depth + d), zero
            for c in range(0, width, lanes(g)):
                to = dk0 + d * tile + c
                pull = (load(keys, k0 + d * tile + c) - y) * load(g, g0 + r * ld + c) * by
                sum_ = sum_ + pull
                store(dk, to, load(dk, to) + pull)
            dq[dq0 + r * depth + d] -= total(sum_)


@inner
def exact_tile(query, q0, depth, keys, k0, tile, s, s0, ld, rows, width):
    """1 where all numbers are equal, else 0."""
    for r in range(rows):
        for c in range(0, width, lanes(s)):
            zero = fill(load(keys, k0 + c), 0.0)
            same = fill(zero, 1.0)
            for d in range(depth):
                same = where(load(keys, k0 + d * tile + c) == spread(query, q0 + r * depth + d), same, zero)
            store(s, s0 + r * ld + c, same)
