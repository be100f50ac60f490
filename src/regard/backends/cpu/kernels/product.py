"""Sums of products, C += A·B, a few rows and registers at a time: about as fast as a BLAS, for tiles."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from regard.backends.cpu.kernels.jit import inner, intrinsic
from regard.backends.cpu.kernels.simd import (
    INDEX,
    REGISTERS,
    _function,
    _load,
    _pointer,
    _splat,
    _suffix,
    lanes,
    register,
)


def _micro(rows: int, vectors: int) -> Any:
    """C[r, :] += Σ_l A[r, l] · B[l, :] for `rows` rows and `vectors` registers of columns, held in registers."""

    @intrinsic
    def micro(
        typing: Any,
        a: Any,
        a0: Any,
        a_row: Any,
        a_sum: Any,
        b: Any,
        b0: Any,
        b_sum: Any,
        c: Any,
        c0: Any,
        c_row: Any,
        n: Any,
        fresh: Any,
    ) -> Any:
        vector = register(c.dtype)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            a_, a0_, a_row_, a_sum_, b_, b0_, b_sum_, c_, c0_, c_row_, n_, fresh_ = args
            t, width = context.get_value_type(vector), vector.lanes
            a_at = _pointer(context, builder, sig.args[0], a_, a0_)
            b_at = _pointer(context, builder, sig.args[4], b_, b0_)
            c_at = _pointer(context, builder, sig.args[7], c_, c0_)
            a_at = [builder.gep(a_at, [builder.mul(a_row_, INDEX(r))]) for r in range(rows)]
            c_at = [
                [
                    builder.gep(c_at, [builder.add(builder.mul(c_row_, INDEX(r)), INDEX(k * width))])
                    for k in range(vectors)
                ]
                for r in range(rows)
            ]
            places = [(r, k) for r in range(rows) for k in range(vectors)]
            nothing = ir.Constant(t, None)
            before = [builder.select(fresh_, nothing, _load(builder, c_at[r][k], t)) for r, k in places]
            entry = builder.block
            head, body, end = (builder.append_basic_block(f"product.{name}") for name in ("head", "body", "end"))
            builder.branch(head)

            builder.position_at_end(head)
            step = builder.phi(INDEX)
            step.add_incoming(INDEX(0), entry)
            sums = [builder.phi(t) for _ in places]
            for phi, value in zip(sums, before, strict=True):
                phi.add_incoming(value, entry)
            builder.cbranch(builder.icmp_signed("<", step, n_), body, end)

            builder.position_at_end(body)
            row_of_b = builder.gep(b_at, [builder.mul(step, b_sum_)])
            b_values = [_load(builder, builder.gep(row_of_b, [INDEX(k * width)]), t) for k in range(vectors)]
            along = builder.mul(step, a_sum_)
            a_values = [_splat(builder, builder.load(builder.gep(at, [along])), t) for at in a_at]
            fma = _function(builder, f"llvm.fma.{_suffix(t)}", t, t, t, t)
            for phi, (r, k) in zip(sums, places, strict=True):
                phi.add_incoming(builder.call(fma, [a_values[r], b_values[k], phi]), body)
            step.add_incoming(builder.add(step, INDEX(1)), body)
            builder.branch(head)

            builder.position_at_end(end)
            for phi, (r, k) in zip(sums, places, strict=True):
                builder.store(phi, builder.bitcast(c_at[r][k], t.as_pointer()), align=1)
            return context.get_dummy_value()

        index = types.intp
        return types.void(a, index, index, index, b, index, index, c, index, index, index, types.boolean), generate

    return micro


_4, _4_1, _1, _1_1 = _micro(4, REGISTERS), _micro(4, 1), _micro(1, REGISTERS), _micro(1, 1)


@inner
def add_product(a, a0, a_row, a_sum, b, b0, b_sum, c, c0, c_row, rows, width, n, fresh):
    """C[r, x] += Σ_l A[r, l] · B[l, x] for `rows` rows, `width` columns (whole registers) and `n` terms.
    `x0` is where X begins in its flat array, `x_row` and `x_sum` the steps from row to row and term to term.
    `fresh`: C = A·B, whatever C held."""
    one = lanes(c)
    wide = one * REGISTERS
    for r in range(0, rows - 3, 4):
        x = 0
        while x + wide <= width:
            _4(a, a0 + r * a_row, a_row, a_sum, b, b0 + x, b_sum, c, c0 + r * c_row + x, c_row, n, fresh)
            x += wide
        while x < width:
            _4_1(a, a0 + r * a_row, a_row, a_sum, b, b0 + x, b_sum, c, c0 + r * c_row + x, c_row, n, fresh)
            x += one
    for r in range(rows // 4 * 4, rows):
        x = 0
        while x + wide <= width:
            _1(a, a0 + r * a_row, a_row, a_sum, b, b0 + x, b_sum, c, c0 + r * c_row + x, c_row, n, fresh)
            x += wide
        while x < width:
            _1_1(a, a0 + r * a_row, a_row, a_sum, b, b0 + x, b_sum, c, c0 + r * c_row + x, c_row, n, fresh)
            x += one
