"""The gradients, strip by strip: scores and weights are computed again, nothing of n_q x n_k is kept.

A task is one part of one batch element: every `parts`-th group of rows. What keys and values collect from
many rows is summed within a task and apart from the others', so that no two tasks write to one place and
the sums do not depend on who was first.
"""

from __future__ import annotations

import math

from regard.backends.cpu.codes import (
    DOT,
    GATE_K,
    GATE_Q,
    GATED,
    GAUSSIAN,
    GUMBEL,
    KEY,
    KEY_ROWS,
    QUERY_ROWS,
    SINK,
    SOFTMAX,
    TANH,
    UNITS,
    VALUE_T,
)
from regard.backends.cpu.kernels.contents import gaussian_back, tanh_back
from regard.backends.cpu.kernels.elementary import fill
from regard.backends.cpu.kernels.jit import entry, inner
from regard.backends.cpu.kernels.product import add_product
from regard.backends.cpu.kernels.records import floats, longs, words
from regard.backends.cpu.kernels.rows import add_into, cap_back, drop, gate_back, sum_of
from regard.backends.cpu.kernels.simd import lanes, load, number, store
from regard.backends.cpu.kernels.strip import (
    copy_queries,
    find_tiles,
    in_range,
    perturb,
    place,
    rows_seeing,
    score,
    tile_of,
)
from regard.backends.cpu.kernels.weights import scores_gradient, weigh_again

NOTHING = -math.inf


@inner
def _clear(a, start, stop):
    for c in range(start, stop, lanes(a)):
        store(a, c, fill(load(a, c), 0.0))


@entry
def backward(p, to, first_group, last_group, begin, end, scratch, spans):
    step = lanes(scratch)
    strip, depth = p.rows * p.ld + step, p.rows * to.wide + step
    s, w = scratch[:strip], scratch[strip : 2 * strip]
    g_, x = scratch[2 * strip : 3 * strip], scratch[3 * strip : 4 * strip]
    queries, exps = scratch[4 * strip : 4 * strip + depth], scratch[4 * strip + depth : 4 * strip + 2 * depth]
    dq = scratch[4 * strip + 2 * depth : 4 * strip + 3 * depth]
    du = scratch[4 * strip + 3 * depth : 4 * strip + 3 * depth + p.depth * step]
    for task in range(begin, end):
        b, part = task // to.parts, task % to.parts
        if p.content == TANH:
            _clear(du, 0, p.depth * step)
        sum_ = 0.0
        offset = (part - first_group) % to.parts
        for g in range(first_group + offset, last_group, to.parts):
            start = g * p.rows
            rows = min(p.rows, p.n_r - start)
            first, count = find_tiles(p, b, g, spans)
            if count == 0:
                continue
            most = copy_queries(p, b, start, rows, queries, exps)
            score(p, b, g, first, count, spans, queries, exps, most, x, s)
            _weights(p, to, b, g, first, count, spans, s, w, False)
            if p.share > 0:
                _weights(p, to, b, g, first, count, spans, s, w, True)
            if to.to_value:
                _to_values(p, to, task, b, g, first, count, spans, w)
            if not to.to_query:
                continue
            if p.share > 0:
                _weights(p, to, b, g, first, count, spans, s, w, False)
            _of_weights(p, to, b, g, first, count, spans, g_)
            for r in range(rows):
                sum_ += _of_scores(p, to, task, b, g, r, first, count, spans, x, s, w, g_)
            _to_content(p, to, task, b, g, first, count, spans, most, queries, exps, g_, dq, du)
        if p.content == TANH:
            for d in range(p.depth):
                collected = number(du, 0.0)
                for c in range(step):
                    collected += du[d * step + c]
                floats(to.units, scratch)[task * p.depth + d] += sum_ - 2 * collected


@inner
def _weights(p, to, b, g, first, count, spans, s, w, dropped):
    start = g * p.rows
    sink = floats(p.sink, s)[place(p, b, SINK)]
    for r in range(min(p.rows, p.n_r - start)):
        begin, end = spans[r // 4 * 2], spans[r // 4 * 2 + 1]
        lo, hi, base = r * p.ld + begin * p.tile, r * p.ld + end * p.tile, r * p.ld
        row = b * p.n_r + start + r
        _clear(w, base, lo)
        _clear(w, hi, base + count * p.tile)
        if lo < hi:
            weigh_again(s, lo, hi, w, p.normalizer, p.number, sink, floats(to.stat, s), row)
        if dropped:
            for k in range(begin, end):
                drop(
                    w,
                    base + k * p.tile,
                    p.tile,
                    words(p.dropped)[row],
                    words(p.columns),
                    tile_of(p, g, first, k) * p.tile,
                    p.share,
                )


@inner
def _to_values(p, to, task, b, g, first, count, spans, w):
    """dv += wᵀ dout"""
    start = g * p.rows
    rows = min(p.rows, p.n_r - start)
    for k in range(count):
        j = tile_of(p, g, first, k) * p.tile
        begin, end = rows_seeing(spans, k, rows)
        if begin < end:
            out = (b * p.n_r + start + begin) * p.width
            value = (task * p.n_k + j) * p.width
            n = min(p.tile, p.n_k - j)
            add_product(
                w, begin * p.ld + k * p.tile, 1, p.ld, floats(to.out, w), out, p.width, floats(to.value, w), value, p.width, n, p.width, end - begin, False
            )  # fmt: skip


@inner
def _of_weights(p, to, b, g, first, count, spans, g_):
    """The weights' gradient, dout · v, in the strip; 0 where a row does not look."""
    step = lanes(g_)
    start = g * p.rows
    rows = min(p.rows, p.n_r - start)
    for r in range(rows):
        base = r * p.ld
        _clear(g_, base, base + spans[r // 4 * 2] * p.tile)
        _clear(g_, base + spans[r // 4 * 2 + 1] * p.tile, base + count * p.tile)
    from_ = place(p, b, VALUE_T)
    for k in range(count):
        t = tile_of(p, g, first, k)
        width = (min(p.tile, p.n_k - t * p.tile) + step - 1) // step * step
        for r in range(0, rows, 4):
            if spans[r // 4 * 2] <= k < spans[r // 4 * 2 + 1]:
                at = r * p.ld + k * p.tile
                out = (b * p.n_r + start + r) * p.width
                some = min(4, rows - r)
                v = from_ + t * p.d_v * p.tile
                add_product(
                    floats(to.out, g_),
                    out,
                    p.width,
                    1,
                    floats(to.value_t, g_),
                    v,
                    p.tile,
                    g_,
                    at,
                    p.ld,
                    some,
                    width,
                    p.d_v,
                    True,
                )
                for x in range(r, r + some):
                    _clear(g_, x * p.ld + k * p.tile + width, x * p.ld + (k + 1) * p.tile)


@inner
def _of_scores(p, to, task, b, g, r, first, count, spans, x, s, w, g_):
    """The gradient of the content's scores in row r, passing what gate, bias, cap and sink get on the way.
    Returns its sum."""
    begin, end = spans[r // 4 * 2], spans[r // 4 * 2 + 1]
    if begin >= end:
        return 0.0
    row = b * p.n_r + g * p.rows + r
    base = r * p.ld
    lo, hi = base + begin * p.tile, base + end * p.tile
    if p.share > 0:
        for k in range(begin, end):
            drop(
                g_,
                base + k * p.tile,
                p.tile,
                words(p.dropped)[row],
                words(p.columns),
                tile_of(p, g, first, k) * p.tile,
                p.share,
            )
    stat = floats(to.stat, s)
    mean = scores_gradient(s, w, g_, lo, hi, p.normalizer, p.number)
    sink = floats(p.sink, s)[place(p, b, SINK)]
    if p.normalizer == SOFTMAX and sink != NOTHING and stat[2 * row] != NOTHING:
        floats(to.sink, s)[task] -= math.exp(sink - stat[2 * row]) * stat[2 * row + 1] * mean
    if p.limit > 0:
        if p.normalizer == GUMBEL:  # the noise came after the cap
            perturb(p, b, g, r, first, begin, end, s, -1.0)
        cap_back(s, lo, g_, lo, hi - lo, p.limit)
    i = longs(p.position)[g * p.rows + r]
    collected = 0.0
    for k in range(begin, end):
        j, c = tile_of(p, g, first, k) * p.tile, base + k * p.tile
        if to.line:
            add_into(floats(to.line, s), task * to.length + j - i + p.n_q - 1, p.tile, g_, c)
        if to.table:
            at = (b * p.n_q + i) * p.n_k + j
            for y in range(min(p.tile, p.n_k - j)):
                floats(to.table, s)[at + y] = g_[c + y]
        if p.content == GATED:
            own = floats(p.gate_q, s)[place(p, b, GATE_Q) + g * p.rows + r]
            floats(to.gate_q, s)[row] += gate_back(
                x,
                c,
                g_,
                c,
                p.tile,
                own,
                floats(p.gate_k, s),
                place(p, b, GATE_K) + j,
                floats(to.gate_k, s),
                task * to.span + j,
            )
        if p.content == TANH:
            collected += sum_of(g_, c, p.tile)
    return collected


@inner
def _to_content(p, to, task, b, g, first, count, spans, most, queries, exps, g_, dq, du):
    """From the scores' gradient to the queries' and keys'."""
    step = lanes(g_)
    start = g * p.rows
    rows = min(p.rows, p.n_r - start)
    row_width = to.wide if p.content in (DOT, GATED) else p.depth
    dq[: rows * row_width] = 0.0
    size = p.depth * p.tile * (2 if p.content == TANH else 1)
    from_keys, to_keys = floats(p.keys, g_), floats(to.key, g_)
    for k in range(count):
        t = tile_of(p, g, first, k)
        j = t * p.tile
        n = min(p.tile, p.n_k - j)
        width = (n + step - 1) // step * step
        begin, end = rows_seeing(spans, k, rows)
        if begin >= end:
            continue
        at = begin * p.ld + k * p.tile
        keys, packed = place(p, b, KEY) + t * size, (task * (to.span // p.tile) + t) * p.depth * p.tile
        q, of_keys = begin * p.depth, place(p, b, KEY) // size + t
        if p.content == TANH:
            fours = in_range(most, floats(p.key_most, g_)[of_keys], 4, g_.itemsize)
            twos = in_range(most, floats(p.key_most, g_)[of_keys], 2, g_.itemsize)
            tanh_back(
                queries, q, exps, q, p.depth, from_keys, keys, p.tile, floats(p.units, g_), place(p, b, UNITS), fours, twos,
                g_, at, p.ld, end - begin, width, dq, q, to_keys, packed, du,
            )  # fmt: skip
        elif p.content == GAUSSIAN:
            gaussian_back(
                queries, q, p.depth, from_keys, keys, p.tile, p.factor, g_, at, p.ld, end - begin, width, dq, q, to_keys, packed
            )  # fmt: skip
        elif p.content == DOT or p.content == GATED:
            wide = to.wide
            from_ = place(p, b, KEY_ROWS) + j * wide
            for r in range(begin, end, 4):
                if spans[r // 4 * 2] <= k < spans[r // 4 * 2 + 1]:
                    some = min(4, rows - r)
                    here = r * p.ld + k * p.tile
                    add_product(
                        g_,
                        here,
                        p.ld,
                        1,
                        floats(to.key_rows, g_),
                        from_,
                        wide,
                        dq,
                        r * wide,
                        wide,
                        some,
                        wide,
                        n,
                        False,
                    )
            from_ = place(p, b, QUERY_ROWS) + (start + begin) * wide
            into = (task * p.n_k + j) * wide
            add_product(
                g_,
                at,
                1,
                p.ld,
                floats(to.query_rows, g_),
                from_,
                wide,
                to_keys,
                into,
                wide,
                n,
                wide,
                end - begin,
                False,
            )
    by = number(dq, p.factor if p.content == DOT else 1.0)
    for r in range(rows):
        into = (b * p.n_r + start + r) * p.depth
        for d in range(p.depth):
            floats(to.query, g_)[into + d] = dq[r * row_width + d] * by
