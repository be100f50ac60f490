"""A call as one record of addresses and numbers, which kernels get as one pointer.

numba passes an array as seven arguments and compiles each anew into every function that takes it; a record
is one argument. Whoever fills a record keeps its arrays alive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from regard.backends.cpu.kernels.jit import intrinsic

# Addresses of flat arrays: of floats of the call's type, unless another is said.
PROBLEM = np.dtype(
    [
        (name, np.int64)
        for name in (
            "query",  # [.., n_r, depth]
            "keys",  # [.., tiles, depth, tile]; for tanh a second such table behind each: e^(2k)
            "key_most",  # [.., tiles]: the largest |k| of each tile
            "value",  # [.., n_k, width]
            "gate_q",  # [.., n_r]
            "gate_k",  # [.., tiles · tile]
            "units",  # [.., depth]: v of vᵀ tanh(q + k)
            "line",  # [.., at least n_q + tiles · tile]: a bias for each distance j - i, from -(n_q - 1) on; or 0
            "table",  # [.., n_q, n_k]: a bias for each pair, or [.., 1, n_k], one for each key; or 0
            "sink",  # [..]
            "at",  # int64 [B, ROLES]
            "low",  # int64 [.., n_r]: the keys of each row are low ≤ j < high ...
            "high",
            "tiles",  # int64: ... or those of the listed tiles,
            "tiles_at",  # int64: whose list for group g begins here,
            "bits",  # uint8 [masks, rows, tiles · tile]: where they are not 0,
            "bits_at",  # int64: which begin here; -1: all of them
            "position",  # int64 [n_r]: which query each row is
            "dropped",  # int32 [B, n_r]: each row's share in the noise
            "gumbel",  # int32 [B, n_r]
            "columns",  # int32 [tiles · tile]: each key's
            "n_q",
            "n_r",  # rows: queries that are asked for
            "n_k",
            "table_row",  # from one row of the table to the next: n_k or 0
            "depth",
            "d_v",
            "width",  # d_v in whole registers
            "tile",  # columns of a tile
            "rows",  # rows of a group
            "ld",  # numbers in one row of the strip
            "content",
            "normalizer",
            "listed",
        )
    ]
    + [
        ("factor", np.float64),  # of the dot product; of the Gaussian: -1 / 2σ²
        ("limit", np.float64),  # of the cap; 0: none
        ("number", np.float64),  # of the normalizer
        ("share", np.float64),  # dropped
    ]
)

# What forward writes; an address is 0 where it is not asked for.
OUTPUT = np.dtype(
    [
        (name, np.int64)
        for name in (
            "out",  # [B, n_r, d_v]
            "stat",  # [B, n_r, 2]
            "weights",  # [B, n_r, n_k]
        )
    ]
)

# What backward reads beyond the problem, and where it writes. P parts.
GRADIENTS = np.dtype(
    [
        (name, np.int64)
        for name in (
            "out",  # [B, n_r, width]: the output's gradient
            "value_t",  # [.., tiles, d_v, tile]: values, transposed as keys are
            "query_rows",  # [.., n_r, wide]: queries (scaled) and keys in whole registers, for dot products
            "key_rows",  # [.., n_k, wide]
            "stat",  # [B, n_r, 2]
            "query",  # [B, n_r, depth]
            "key",  # [B, P, n_k, wide] for dot products, else [B, P, tiles, depth, tile]
            "value",  # [B, P, n_k, width]
            "gate_q",  # [B, n_r]
            "gate_k",  # [B, P, tiles · tile]
            "units",  # [B, P, depth]
            "line",  # [B, P, length]
            "table",  # [B, n_q, n_k]
            "sink",  # [B, P]
            "parts",
            "wide",  # depth in whole registers
            "span",  # tiles · tile
            "length",  # numbers in a line
            "to_query",  # whether queries or keys (or what a bias learns) ask for a gradient at all ...
            "to_value",  # ... and values
        )
    ]
)


def _array(builder: Any, context: Any, of: Any, address: Any) -> Any:
    array = context.make_array(of)(context, builder)
    size = ir.Constant(ir.IntType(64), 2**62)  # nobody looks
    context.populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=[size],
        strides=[ir.Constant(ir.IntType(64), of.dtype.bitwidth // 8)],
        itemsize=ir.Constant(ir.IntType(64), of.dtype.bitwidth // 8),
        meminfo=None,
    )
    return array._getvalue()


@intrinsic
def floats(typing: Any, address: Any, like: Any) -> Any:
    """The flat array at an address, of the type of `like`."""
    kind = types.Array(like.dtype, 1, "C")

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _array(builder, context, kind, args[0])

    return kind(types.int64, like), generate


def _of(dtype: types.Type) -> Any:
    kind = types.Array(dtype, 1, "C")

    @intrinsic
    def array(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return _array(builder, context, kind, args[0])

        return kind(types.int64), generate

    return array


longs, words, octets = _of(types.int64), _of(types.int32), _of(types.uint8)
