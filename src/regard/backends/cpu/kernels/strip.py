"""The scores of a few rows of queries with every key they may see: what forward and backward share."""

from __future__ import annotations

import math

from regard.backends.cpu.codes import (
    BITS,
    DOT,
    EXACT,
    GATE_K,
    GATE_Q,
    GATED,
    GAUSSIAN,
    GUMBEL,
    KEY,
    LINE,
    QUERY,
    RANGE,
    ROLES,
    TABLE,
    TANH,
    UNITS,
)
from regard.backends.cpu.kernels.contents import exact_tile, gaussian_tile, largest_size, tanh_tile
from regard.backends.cpu.kernels.elementary import exp
from regard.backends.cpu.kernels.jit import inner
from regard.backends.cpu.kernels.product import add_product
from regard.backends.cpu.kernels.records import floats, longs, octets, words
from regard.backends.cpu.kernels.rows import add, add_exactly, add_gumbel, cap, gate, keep_bits, keep_range
from regard.backends.cpu.kernels.simd import lanes, load, number, store

NOTHING = -math.inf


@inner
def place(p, b, role):
    """Where batch element b begins in an array."""
    return longs(p.at)[b * ROLES + role]


@inner
def find_tiles(p, b, g, spans):
    """The tiles that group g may see: (the first, how many). `spans` gets those of each four rows among them."""
    start, stop = g * p.rows, min((g + 1) * p.rows, p.n_r)
    fours = (stop - start + 3) // 4
    if p.listed:
        count = longs(p.tiles_at)[g + 1] - longs(p.tiles_at)[g]
        for f in range(fours):
            spans[2 * f], spans[2 * f + 1] = 0, count
        return 0, count
    low_, high_ = longs(p.low), longs(p.high)
    lead = place(p, b, RANGE)
    first, last = p.n_k, 0
    for f in range(fours):
        low, high = p.n_k, 0
        for r in range(start + 4 * f, min(start + 4 * f + 4, stop)):
            if low_[lead + r] < high_[lead + r]:
                low, high = min(low, low_[lead + r]), max(high, high_[lead + r])
        if low < high:
            spans[2 * f], spans[2 * f + 1] = low // p.tile, (high + p.tile - 1) // p.tile
            first, last = min(first, spans[2 * f]), max(last, spans[2 * f + 1])
        else:
            spans[2 * f], spans[2 * f + 1] = 0, 0
    if first >= last:
        return 0, 0
    for f in range(fours):
        if spans[2 * f] < spans[2 * f + 1]:
            spans[2 * f] -= first
            spans[2 * f + 1] -= first
    return first, last - first


@inner
def tile_of(p, g, first, k):
    """Which tile stands at place k of the strip."""
    return longs(p.tiles)[longs(p.tiles_at)[g] + k] if p.listed else first + k


@inner
def copy_queries(p, b, start, rows, queries, exps):
    """The queries of a group; for tanh e^(2q) too, and max |q| is returned."""
    source = floats(p.query, queries)
    size = rows * p.depth
    at = place(p, b, QUERY) + start * p.depth
    by = number(queries, p.factor if p.content == DOT else 1.0)
    for x in range(size):
        queries[x] = source[at + x] * by
    if p.content != TANH:
        return number(queries, 0.0)
    for x in range(0, size, lanes(queries)):
        store(exps, x, exp(load(queries, x) + load(queries, x)))
    return largest_size(queries, 0, size)


@inner
def in_range(most, of_tile, terms, itemsize):
    """Whether the product of so many 1 + e^(2|q| + 2|k|) is a number."""
    return (most + of_tile) * terms <= (44.0 if itemsize == 4 else 352.0)


@inner
def divide_units(depth, of_units, units, exps, rows, ready):
    """c = by / v, with `by` the largest |v|, and c e^(2q) for every row after them, in `ready`. Returns `by` and by how
    much more 2|q| + 2|k| the range of e^x seems to be left, halved; no `by` where a v is 0 or not finite."""
    by = largest_size(of_units, units, depth)
    most = number(of_units, 1.0)
    for d in range(depth):
        c = by / of_units[units + d]
        if not abs(c) < 1e18:
            return number(of_units, 0.0), number(of_units, 0.0)
        ready[d] = c
        most = max(most, abs(c))
    for r in range(rows):
        for d in range(depth):
            ready[(r + 1) * depth + d] = exps[r * depth + d] * ready[d]
    return by, number(of_units, 0.5 * math.log(most))


@inner
def score(p, b, g, first, count, spans, queries, exps, most, x, s):
    """The scores of group g in the strip s; x takes the dot products that a gate still multiplies."""
    start = g * p.rows
    rows = min(p.rows, p.n_r - start)
    step = lanes(s)
    sum_v = number(queries, 0.0)
    units = place(p, b, UNITS)
    of_units, of_keys, of_most = floats(p.units, s), floats(p.keys, s), floats(p.key_most, s)
    size = p.depth * p.tile * (2 if p.content == TANH else 1)
    tile_0 = place(p, b, KEY) // size  # which tile of all
    if p.content == TANH:
        for d in range(p.depth):
            sum_v += of_units[units + d]
    by, spread_ = number(queries, 0.0), number(queries, 0.0)
    if p.content == TANH and (rows + 1) * p.depth <= rows * p.ld:  # x is free, and has room
        by, spread_ = divide_units(p.depth, of_units, units, exps, rows, x)
    for k in range(count):
        t = tile_of(p, g, first, k)
        k0 = place(p, b, KEY) + t * size
        width = (min(p.tile, p.n_k - t * p.tile) + step - 1) // step * step
        if p.content == GATED:  # its gradient looks at the whole tile
            width = p.tile
        for f in range((rows + 3) // 4):
            if k < spans[2 * f] or k >= spans[2 * f + 1]:
                continue
            r = 4 * f
            some, to, q = min(4, rows - r), r * p.ld + k * p.tile, r * p.depth
            if p.content == TANH:
                of_tile = of_most[tile_0 + t]
                fours, twos = in_range(most, of_tile, 4, s.itemsize), in_range(most, of_tile, 2, s.itemsize)
                by_ = by if in_range(most + spread_, of_tile, 4, s.itemsize) else by * 0
                tanh_tile(
                    queries, q, exps, p.depth, of_keys, k0, p.tile, of_units, units, sum_v, fours, twos, x, p.depth + q, by_, s, to, p.ld, some, width
                )  # fmt: skip
            elif p.content == GAUSSIAN:
                gaussian_tile(queries, q, p.depth, of_keys, k0, p.tile, p.factor, s, to, p.ld, some, width)
            elif p.content == EXACT:
                exact_tile(queries, q, p.depth, of_keys, k0, p.tile, s, to, p.ld, some, width)
            else:
                into = x if p.content == GATED else s
                add_product(queries, q, p.depth, 1, of_keys, k0, p.tile, into, to, p.ld, some, width, p.depth, True)
    for r in range(rows):
        _finish(p, b, g, r, first, spans[2 * (r // 4)], spans[2 * (r // 4) + 1], x, s)


@inner
def _finish(p, b, g, r, first, begin, end, x, s):
    """From the content's score of row r to the score: gate, bias, cap, mask, noise."""
    row = g * p.rows + r
    i = longs(p.position)[row]
    base = r * p.ld
    wide = (end - begin) * p.tile
    for k in range(begin, end):
        j = tile_of(p, g, first, k) * p.tile
        c = base + k * p.tile
        if p.content == GATED:
            gate(
                x,
                c,
                s,
                c,
                p.tile,
                floats(p.gate_q, s)[place(p, b, GATE_Q) + row],
                floats(p.gate_k, s),
                place(p, b, GATE_K) + j,
            )
        if p.line:
            add(s, c, p.tile, floats(p.line, s), place(p, b, LINE) + j - i + p.n_q - 1)
        if p.table:
            add_exactly(s, c, min(p.tile, p.n_k - j), floats(p.table, s), place(p, b, TABLE) + i * p.table_row + j)
    start = base + begin * p.tile
    if p.limit > 0:
        cap(s, start, wide, p.limit)
    if not p.listed:
        lead = place(p, b, RANGE) + row
        before = (first + begin) * p.tile
        keep_range(s, start, wide, longs(p.low)[lead] - before, longs(p.high)[lead] - before)
    elif longs(p.bits_at)[g] >= 0:
        keep_bits(s, start, wide, octets(p.bits), longs(p.bits_at)[g] + (place(p, b, BITS) * p.rows + r) * wide)
    elif end > begin:
        last = tile_of(p, g, first, end - 1) * p.tile
        keep_range(s, base + (end - 1) * p.tile, p.tile, 0, min(p.tile, p.n_k - last))
    if p.normalizer == GUMBEL:
        perturb(p, b, g, r, first, begin, end, s, 1.0)


@inner
def perturb(p, b, g, r, first, begin, end, s, times):
    for k in range(begin, end):
        j = tile_of(p, g, first, k) * p.tile
        noise = words(p.gumbel)[b * p.n_r + g * p.rows + r]
        add_gumbel(s, r * p.ld + k * p.tile, p.tile, noise, words(p.columns), j, times)


@inner
def rows_seeing(spans, k, rows):
    """The rows of a group from the first to the last that sees the tile at place k."""
    begin, end = rows, 0
    for f in range((rows + 3) // 4):
        if spans[2 * f] <= k < spans[2 * f + 1]:
            begin, end = min(begin, 4 * f), min(4 * f + 4, rows)
    return begin, end
