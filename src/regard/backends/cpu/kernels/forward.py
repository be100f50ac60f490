"""The outputs of groups of rows: scores, weights, weighted sum, one strip at a time."""

from __future__ import annotations

import math

from regard.backends.cpu.codes import SINK, VALUE
from regard.backends.cpu.kernels.jit import entry
from regard.backends.cpu.kernels.product import add_product
from regard.backends.cpu.kernels.records import floats, words
from regard.backends.cpu.kernels.rows import drop
from regard.backends.cpu.kernels.simd import lanes
from regard.backends.cpu.kernels.strip import copy_queries, find_tiles, place, score, tile_of
from regard.backends.cpu.kernels.weights import weigh

NOTHING = -math.inf


@entry
def forward(p, groups, first_group, begin, end, to, scratch, spans):
    """Tasks begin..end, of `groups` groups for each batch element."""
    out, stat, weights = floats(to.out, scratch), floats(to.stat, scratch), floats(to.weights, scratch)
    value, columns = floats(p.value, scratch), words(p.columns)
    step = lanes(scratch)
    strip, depth = p.rows * p.ld + step, p.rows * p.depth + step
    s, x = scratch[:strip], scratch[strip : 2 * strip]
    queries, exps = scratch[2 * strip : 2 * strip + depth], scratch[2 * strip + depth : 2 * strip + 2 * depth]
    near = scratch[2 * strip + 2 * depth : 2 * strip + 2 * depth + p.ld + step]
    scale = scratch[2 * strip + 2 * depth + p.ld + step :]
    sums = scratch[2 * strip + 2 * depth + p.ld + step + p.rows :]
    for task in range(begin, end):
        b, g = task // groups, first_group + task % groups
        start = g * p.rows
        rows = min(p.rows, p.n_r - start)
        first, count = find_tiles(p, b, g, spans)
        most = copy_queries(p, b, start, rows, queries, exps)
        score(p, b, g, first, count, spans, queries, exps, most, x, s)
        sink = floats(p.sink, scratch)[place(p, b, SINK)]
        for r in range(rows):
            lo, hi = r * p.ld + spans[r // 4 * 2] * p.tile, r * p.ld + spans[r // 4 * 2 + 1] * p.tile
            row = b * p.n_r + start + r
            scale[r] = 0.0
            if lo < hi:
                scale[r] = weigh(s, lo, hi, p.normalizer, p.number, sink, near, stat, row)
            else:
                stat[2 * row], stat[2 * row + 1] = NOTHING, 0.0
            if p.share > 0:
                for k in range(spans[r // 4 * 2], spans[r // 4 * 2 + 1]):
                    j = tile_of(p, g, first, k) * p.tile
                    drop(s, r * p.ld + k * p.tile, p.tile, words(p.dropped)[row], columns, j, p.share)
        if to.weights:
            for r in range(rows):
                at = (b * p.n_r + start + r) * p.n_k
                for k in range(spans[r // 4 * 2], spans[r // 4 * 2 + 1]):
                    j = tile_of(p, g, first, k) * p.tile
                    for c in range(min(p.tile, p.n_k - j)):
                        weights[at + j + c] = s[r * p.ld + k * p.tile + c] * scale[r]
            continue
        sums[: rows * p.width] = 0.0
        for k in range(count):
            j = tile_of(p, g, first, k) * p.tile
            n = min(p.tile, p.n_k - j)
            for r in range(0, rows, 4):
                if spans[r // 4 * 2] <= k < spans[r // 4 * 2 + 1]:
                    at = r * p.ld + k * p.tile
                    v = place(p, b, VALUE) + j * p.width
                    some = min(4, rows - r)
                    add_product(s, at, p.ld, 1, value, v, p.width, sums, r * p.width, p.width, some, p.width, n, False)
        for r in range(rows):
            at = (b * p.n_r + start + r) * p.d_v
            for d in range(p.d_v):
                out[at + d] = sums[r * p.width + d] * scale[r]
