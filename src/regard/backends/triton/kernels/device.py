# The bodies are Triton's language, not Python's: branches on constants are no ternaries, loops are not Python's.
# ruff: noqa: SIM108
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportReturnType=false, reportIndexIssue=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
"""What every kernel shares: which pairs exist, biases and caps, weights and their slopes, noise, block walks.

`i` and `j` are positions of queries and keys that broadcast against each other, so the same function serves
tiles (rows, columns) and tiles (columns, rows). Masks and biases arrive as flat tuples of whole numbers, which are
constants of a compilation, and tuples of tensors and numbers, which are not.
"""

from __future__ import annotations

import os

import triton
import triton.language as tl

from regard.backends.triton import codes

WHOLE = tl.constexpr(codes.WHOLE)
BRAIN = tl.constexpr(codes.BRAIN)
GATED = tl.constexpr(codes.GATED)
GAUSSIAN = tl.constexpr(codes.GAUSSIAN)
SOFTMAX = tl.constexpr(codes.SOFTMAX)
SIGMOID = tl.constexpr(codes.SIGMOID)
RELU = tl.constexpr(codes.RELU)
IDENTITY = tl.constexpr(codes.IDENTITY)
SPARSEMAX = tl.constexpr(codes.SPARSEMAX)
ENTMAX15 = tl.constexpr(codes.ENTMAX15)
END = tl.constexpr(codes.END)
ALIBI = tl.constexpr(codes.ALIBI)
RELATIVE = tl.constexpr(codes.RELATIVE)
DENSE = tl.constexpr(codes.DENSE)
AND = tl.constexpr(codes.AND)
OR = tl.constexpr(codes.OR)
NOT = tl.constexpr(codes.NOT)
BAND = tl.constexpr(codes.BAND)
STRIDE = tl.constexpr(codes.STRIDE)
DIAGONAL = tl.constexpr(codes.DIAGONAL)
RANDOM = tl.constexpr(codes.RANDOM)
PADDING = tl.constexpr(codes.PADDING)
DOCUMENTS = tl.constexpr(codes.DOCUMENTS)
TABLE = tl.constexpr(codes.TABLE)
CROSS = tl.constexpr(codes.CROSS)
LISTS = tl.constexpr(codes.LISTS)
HEADS = tl.constexpr(codes.HEADS)
SHIFT = tl.constexpr(codes.SHIFT)
LOG2E = tl.constexpr(1.4426950408889634)
INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")  # the interpreter knows no assembler


# Where numbers stand.


@triton.jit
def lead(tensor, ints, at: tl.constexpr, b, h):
    """Where the numbers of batch element (b, h) start: two strides stand at `at`."""
    return tensor + b.to(tl.int64) * ints[at] + h.to(tl.int64) * ints[at + 1]


@triton.jit
def number(ints, at: tl.constexpr):
    """A whole number that changes from call to call, as `codes.varying` hides it."""
    return ints[at] >> 2


@triton.jit
def place(tensor, ints, at: tl.constexpr, b, h):
    """As `lead`, from strides that change from call to call."""
    return tensor + b.to(tl.int64) * number(ints, at) + h.to(tl.int64) * number(ints, at + 1)


# Masks: a tree in prefix order; `at` is the place of a node in it.


@triton.jit
def allowed(tree: tl.constexpr, at: tl.constexpr, tensors, ints, b, h, i, j):
    op: tl.constexpr = tree[at]
    if op == AND:
        first = allowed(tree, tree[at + 1], tensors, ints, b, h, i, j)
        return first & allowed(tree, tree[at + 2], tensors, ints, b, h, i, j)
    elif op == OR:
        first = allowed(tree, tree[at + 1], tensors, ints, b, h, i, j)
        return first | allowed(tree, tree[at + 2], tensors, ints, b, h, i, j)
    elif op == NOT:
        return allowed(tree, tree[at + 1], tensors, ints, b, h, i, j) == 0
    elif op == BAND:
        return band(tree, at, ints, i, j)
    elif op == STRIDE:
        n: tl.constexpr = tree[at + 1]
        return (j - i - number(ints, n + 1)) % number(ints, n) == 0
    elif op == DIAGONAL:
        size = number(ints, tree[at + 1])
        return i // size == j // size
    elif op == RANDOM:
        return drawn(tree, at, ints, i, j)
    elif op == PADDING:
        return padded(tree, at, tensors, ints, b, h, i, j)
    elif op == DOCUMENTS:
        n: tl.constexpr = tree[at + 3]
        row = tl.load(place(tensors[tree[at + 1]], ints, n, b, h) + i)
        col = tl.load(place(tensors[tree[at + 2]], ints, n + 2, b, h) + j)
        return (row == col) & (row >= 0)
    elif op == TABLE:
        n: tl.constexpr = tree[at + 2]
        table = place(tensors[tree[at + 1]], ints, n, b, h)
        size = number(ints, n + 4)
        return (
            tl.load(
                table + (i // size).to(tl.int64) * number(ints, n + 2) + (j // size).to(tl.int64) * number(ints, n + 3)
            )
            != 0
        )
    elif op == CROSS:
        n: tl.constexpr = tree[at + 3]
        row = tl.load(place(tensors[tree[at + 1]], ints, n, b, h) + i)
        col = tl.load(place(tensors[tree[at + 2]], ints, n + 2, b, h) + j)
        return (row | col) != 0
    elif op == LISTS:
        n: tl.constexpr = tree[at + 2]
        row_of = place(tensors[tree[at + 1]], ints, n, b, h) + i.to(tl.int64) * number(ints, n + 2)
        found = (i + j) < 0
        for m in range(number(ints, n + 3)):
            found = found | (tl.load(row_of + m) == j)
        return found
    elif op == HEADS:
        found = (i + j) < 0
        heads: tl.constexpr = tree[at + 1]
        for head in tl.static_range(heads):
            found = found | (allowed(tree, tree[at + 2 + head], tensors, ints, b, h, i, j) & (h == head))
        return found
    elif op == SHIFT:
        return allowed(tree, tree[at + 2], tensors, ints, b, h, i + number(ints, tree[at + 1]), j)
    else:  # FIRST_HEAD
        return allowed(tree, tree[at + 2], tensors, ints, b, h + number(ints, tree[at + 1]), i, j)


@triton.jit
def exists(tree: tl.constexpr, tensors, ints, b, h, j, at_i, at_j, n_k):
    """Which pairs of a tile exist, for keys j and where both stand. Rows behind the last query may come out either way:
    nobody reads them, and their gradient is 0."""
    if tree[0] == BAND:
        return within(tree, ints, at_i, j, n_k)
    elif len(tree) > 1:
        return (j < n_k) & allowed(tree, 0, tensors, ints, b, h, at_i, at_j)
    else:
        return j < n_k


@triton.jit
def within(tree: tl.constexpr, ints, i, j, n_k):
    """`band` and the end of the keys, in two comparisons for each pair: the rest is done once for each query."""
    n: tl.constexpr = tree[1]
    last = n_k - 1
    if tree[3]:
        last = tl.minimum(i + (number(ints, n) + number(ints, n + 2)), last)
    found = j <= last
    if tree[2]:
        found = found & (j >= i + (number(ints, n) - number(ints, n + 1)))
    return found


@triton.jit
def band(tree: tl.constexpr, at: tl.constexpr, ints, i, j):
    """i + offset - left <= j <= i + offset + right."""
    n: tl.constexpr = tree[at + 1]
    found = (i + j) >= 0
    if tree[at + 2]:
        found = found & (j >= i + number(ints, n) - number(ints, n + 1))
    if tree[at + 3]:
        found = found & (j <= i + number(ints, n) + number(ints, n + 2))
    return found


@triton.jit
def padded(tree: tl.constexpr, at: tl.constexpr, tensors, ints, b, h, i, j):
    n: tl.constexpr = tree[at + 3]
    length = tl.load(place(tensors[tree[at + 1]], ints, n, b, h))
    if tree[at + 4]:  # real keys on the right
        found = (j + length >= number(ints, n + 2)) & (i >= 0)
    else:
        found = (j < length) & (i >= 0)
    if tree[at + 2] >= 0:
        rows = tl.load(place(tensors[tree[at + 2]], ints, n + 3, b, h))
        if tree[at + 4]:
            found = found & (i + rows >= number(ints, n + 5))
        else:
            found = found & (i < rows)
    return found


@triton.jit
def drawn(tree: tl.constexpr, at: tl.constexpr, ints, i, j):
    """Random blocks: one in each of `count` strata, by the same hash as core/rules.py."""
    n: tl.constexpr = tree[at + 1]
    row, col = i // number(ints, n), j // number(ints, n)
    found = (i + j) < 0
    for count in range(number(ints, n + 1)):
        stratum = tl.full([], count, tl.int64)
        low = (stratum * number(ints, n + 3)) // number(ints, n + 1)
        high = ((stratum + 1) * number(ints, n + 3)) // number(ints, n + 1)
        bits = mix((mix((row + number(ints, n + 2)).to(tl.uint32)) + stratum.to(tl.uint32)).to(tl.uint32))
        block = low + bits.to(tl.int64) % tl.maximum(high - low, 1)
        found = found | ((block == col) & (high > low))
    return found


# Noise: the counter-based hash of core/noise.py, bit for bit.


@triton.jit
def mix(x):
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def kept(SEED, element, i, j, dropout):
    """Which weights dropout keeps."""
    seed = tl.load(SEED)
    low, high = (seed & 0xFFFFFFFF).to(tl.uint32), ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    key = mix(mix(low) ^ high)
    row = mix(mix(key ^ mix(element.to(tl.uint32))) ^ mix(i.to(tl.uint32)))
    bits = mix(row ^ mix((j - 0x7A143595).to(tl.uint32)))
    return ((bits >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07 >= dropout


# Scores after their content: biases and caps, in order.


@triton.jit
def modify(mods: tl.constexpr, at: tl.constexpr, since: tl.constexpr, s, slope, tensors, ints, floats, b, h, i, j):
    """The final score, and its derivative with respect to what was added at `since`: nothing but caps change it."""
    op: tl.constexpr = mods[at]
    if op == END:
        return s, slope
    else:
        t: tl.constexpr = mods[at + 1]
        n: tl.constexpr = mods[at + 2]
        if op == ALIBI:
            rate = tl.load(place(tensors[t], ints, n, b, h))
            s = s - rate * tl.abs(i + number(ints, n + 2) - j).to(tl.float32)
        elif op == RELATIVE:
            reach = number(ints, n + 3)
            step = tl.minimum(tl.maximum(j - i - number(ints, n + 2), -reach), reach) + reach
            s = s + tl.load(place(tensors[t], ints, n, b, h) + step).to(tl.float32)
        elif op == DENSE:
            step = i.to(tl.int64) * number(ints, n + 2) + j.to(tl.int64) * number(ints, n + 3)
            s = s + tl.load(place(tensors[t], ints, n, b, h) + step).to(tl.float32)
        else:  # CAP
            bent = tanh(s / floats[n])
            s = bent * floats[n]
            slope = slope * (1.0 - bent * bent)
        if at == since:
            slope = 1.0
        return modify(mods, at + 3, since, s, slope, tensors, ints, floats, b, h, i, j)


@triton.jit
def reciprocal(x):
    """1 / x to one unit in the last place, for numbers in the normal range: a quotient, as Triton writes it, costs six
    instructions more to be right outside of it."""
    if INTERPRETED:
        return 1.0 / x
    else:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def tanh(x):
    e = tl.exp2(tl.abs(x) * (-2.0 * LOG2E))
    t = (1.0 - e) * reciprocal(1.0 + e)
    return tl.where(x < 0, -t, t)


@triton.jit
def sigmoid(t, FAST: tl.constexpr):
    """1 / (1 + 2^t), for t = -x log2 e. For half precision it spares the special-function unit the reciprocal: a guess r from the bits
    of the number y, then r (1 + δ + δ²) with δ = 1 - y r. Right to 1.3e-4 of itself however small it is: half of what
    rounding to float16 costs."""
    if FAST != WHOLE:
        y = 1.0 + tl.exp2(tl.minimum(t, 125.0))
        r = (0x7EF311C7 - y.to(tl.int32, bitcast=True)).to(tl.float32, bitcast=True)
        d = 1.0 - y * r
        return r + r * (d + d * d)
    else:
        return 1.0 / (1.0 + tl.exp2(t))


@triton.jit
def gate(x, FAST: tl.constexpr):
    """The sigmoid of what a query and a key bring to their gate, times -log2 e (for bfloat16: halved)."""
    if FAST == BRAIN:
        return 0.5 + 0.5 * rough_tanh(x)
    else:
        return sigmoid(x, FAST)


@triton.jit
def rough_tanh(x):
    """By the special-function unit: half of it is off by up to 2.4e-4, a tenth of what rounding the score to bfloat16
    would do. Not for weights: they may be far smaller than that."""
    if INTERPRETED:
        return tanh(x)
    else:
        return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


# Normalizers, once a row's statistic is known: log2 of the sum for softmax, the threshold for the sparse ones.


@triton.jit
def weights(s, stat, factor, floats, NORM: tl.constexpr, FAST: tl.constexpr):
    """The weights of scores s · factor; for softmax log2 e is part of the factor. Those of ReLU and Identity still
    lack the factor: it is applied once to the sum."""
    if NORM == SOFTMAX:
        return tl.exp2(s * factor - stat)
    elif NORM == RELU:
        return tl.maximum(s, 0.0)
    elif NORM == IDENTITY:
        return tl.where(s == float("-inf"), 0.0, s)
    elif NORM == SIGMOID:
        return sigmoid(s * (-LOG2E * factor) - LOG2E * floats[0], FAST)
    elif NORM == SPARSEMAX:
        return tl.maximum(s * factor - stat, 0.0)
    elif NORM == ENTMAX15:
        z = tl.maximum(s * (0.5 * factor) - stat, 0.0)
        return z * z
    else:
        return power(s * ((floats[0] - 1.0) * factor) - stat, 1.0 / (floats[0] - 1.0))


@triton.jit
def power(z, exponent):
    """z₊ to an exponent: 0 where z is not positive."""
    inside = z > 0
    return tl.where(inside, tl.exp2(exponent * tl.log2(tl.where(inside, z, 1.0))), 0.0)


@triton.jit
def slopes(s, p, floats, NORM: tl.constexpr):
    """g with ds = g · (dp - δ): how a weight follows its own score."""
    if NORM == SOFTMAX:
        return p
    elif NORM == SIGMOID:
        return p * (1.0 - p)
    elif NORM == RELU:
        return tl.where(p > 0, 1.0, 0.0)
    elif NORM == IDENTITY:
        return tl.where(s == float("-inf"), 0.0, 1.0)
    elif NORM == SPARSEMAX:
        return tl.where(p > 0, 1.0, 0.0)
    elif NORM == ENTMAX15:
        return tl.sqrt(p)
    else:
        return power(p, 2.0 - floats[0])


@triton.jit
def tile_of(base, stride, start, offs, cols, limit, WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHECK: tl.constexpr):
    """Rows start + offs of a matrix, `WIDTH` wide: zeros outside."""
    places = base + start.to(tl.int64) * stride + offs[:, None] * stride + cols[None, :]
    if CHECK:
        if WIDTH == BLOCK:
            return tl.load(places, mask=(start + offs < limit)[:, None], other=0.0)
        else:
            return tl.load(places, mask=(start + offs < limit)[:, None] & (cols < WIDTH)[None, :], other=0.0)
    else:
        if WIDTH == BLOCK:
            return tl.load(places)
        else:
            return tl.load(places, mask=(cols < WIDTH)[None, :], other=0.0)


@triton.jit
def numbers_of(base, start, offs, limit, other, CHECK: tl.constexpr):
    """Numbers start + offs of a vector: `other` outside."""
    if CHECK:
        return tl.load(base + start + offs, mask=start + offs < limit, other=other)
    else:
        return tl.load(base + start + offs)
