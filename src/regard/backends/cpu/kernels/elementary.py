"""exp, log, tanh and what is made of them, on vectors: right to the last bit or two in both precisions."""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba.core import types

from regard.backends.cpu.kernels.jit import inner, intrinsic
from regard.backends.cpu.kernels.simd import (
    Vector,
    _function,
    _splat,
    _suffix,
    absolute,
    as_bits,
    as_float,
    fma,
    nearest,
    shift_left,
    shift_right,
    to_float,
    to_whole,
    where,
    whole_splat,
)

INFINITY = math.inf
_LOG2E, _LN2 = 1.4426950408889634, 0.6931471805599453


@intrinsic
def fill(typing: Any, like: Any, value: Any) -> Any:
    """The same number in every place of a vector like `like`."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        number = context.cast(builder, args[1], sig.args[1], like.dtype)
        return _splat(builder, number, context.get_value_type(like))

    return like(like, value), generate


def _by_type(of_float32: Any, of_float64: Any) -> Any:
    """A number that depends on the type of a vector's numbers, known when compiling."""

    @intrinsic
    def constant(typing: Any, like: Any) -> Any:
        value = of_float32 if like.dtype in (types.float32, types.int32) else of_float64
        kind = types.int64 if isinstance(value, int) else types.float64

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return ir.Constant(context.get_value_type(kind), value)

        return kind(like), generate

    return constant


def _polynomial(of_float32: list[float], of_float64: list[float]) -> Any:
    """Σ_n c_n x^n, the constant term first."""

    @intrinsic
    def polynomial(typing: Any, x: Vector) -> Any:
        terms = of_float32 if x.dtype == types.float32 else of_float64

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            t = args[0].type
            function = _function(builder, f"llvm.fma.{_suffix(t)}", t, t, t, t)
            result = ir.Constant(t, [terms[-1]] * t.count)
            for term in reversed(terms[:-1]):
                result = builder.call(function, [result, args[0], ir.Constant(t, [term] * t.count)])
            return result

        return x(x), generate

    return polynomial


_DIGITS = _by_type(23, 52)  # of a float's fraction
_BIAS = _by_type(127, 1023)  # of its exponent
_LEAST, _MOST = _by_type(-87.33, -708.39), _by_type(88.72, 709.78)  # where exp leaves the range
_LN2_HIGH = _by_type(0.693359375, 6.93147180369123816490e-01)  # ends in zeros, so that n · ln 2 is exact
_LN2_LOW = _by_type(-2.12194440054690583e-4, 1.90821492927058770002e-10)
_EXP = _polynomial([1 / math.factorial(n) for n in range(8)], [1 / math.factorial(n) for n in range(14)])
_ARTANH = _polynomial([1 / (2 * n + 1) for n in range(6)], [1 / (2 * n + 1) for n in range(12)])  # of x², over x


@inner
def exp(x):
    """2^n · exp(r) with |r| ≤ ln 2 / 2; exactly 0 below the range."""
    bounded = where(x > fill(x, _MOST(x)), fill(x, _MOST(x)), x)
    bounded = where(x < fill(x, _LEAST(x)), fill(x, _LEAST(x)), bounded)
    n = nearest(bounded * fill(x, _LOG2E))
    r = fma(n, fill(x, -_LN2_HIGH(x)), bounded)
    r = fma(n, fill(x, -_LN2_LOW(x)), r)
    result = times_power_of_2(_EXP(r), n)
    result = where(x > fill(x, _MOST(x)), fill(x, INFINITY), result)
    return where(x < fill(x, _LEAST(x)), fill(x, 0.0), result)


@inner
def times_power_of_2(x, n):
    """x · 2^n for whole n, in two factors: 2^128 is not a float32."""
    whole = to_whole(n)
    half = shift_right_signed(whole)
    scale = as_float(shift_left(half + whole_splat(_BIAS(x), whole), _DIGITS(x)))
    rest = as_float(shift_left(whole - half + whole_splat(_BIAS(x), whole), _DIGITS(x)))
    return x * scale * rest


@intrinsic
def shift_right_signed(typing: Any, a: Any) -> Any:
    """Half of whole numbers, rounded down."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ashr(args[0], ir.Constant(args[0].type, [1] * args[0].type.count))

    return a(a), generate


@inner
def split_log(x):
    """(e, l) of positive numbers: log x = e · ln 2 + l, l = 2 artanh((m - 1) / (m + 1)) with the fraction m near 1."""
    bits = as_bits(x)
    exponent = shift_right(bits, _DIGITS(x)) - whole_splat(_BIAS(x), bits)
    m = as_float(bits - shift_left(exponent, _DIGITS(x)))  # 1 ≤ m < 2
    e = to_float(exponent)
    large = m > fill(x, 1.4142135623730951)
    m = where(large, m * fill(x, 0.5), m)
    e = where(large, e + fill(x, 1.0), e)
    t = (m - fill(x, 1.0)) / (m + fill(x, 1.0))
    series = t * _ARTANH(t * t)
    return e, series + series


@inner
def log(x):
    """Of positive numbers."""
    e, rest = split_log(x)
    return fma(e, fill(x, _LN2_HIGH(x)), fma(e, fill(x, _LN2_LOW(x)), rest))


@inner
def tanh(x):
    """By a continued fraction near 0, where 1 - exp(-2x) would lose digits."""
    size, square, one = absolute(x), x * x, fill(x, 1.0)
    e = exp(size * fill(x, -2.0))
    far = (one - e) / (one + e)
    far = where(x < fill(x, 0.0), fill(x, 0.0) - far, far)
    above = fma(fma(fma(square, one, fill(x, 378.0)), square, fill(x, 17325.0)), square, fill(x, 135135.0))
    below = fma(fma(fma(square, fill(x, 28.0), fill(x, 3150.0)), square, fill(x, 62370.0)), square, fill(x, 135135.0))
    return where(size < fill(x, 0.4), x * above / below, far)


@inner
def sigmoid(x):
    one = fill(x, 1.0)
    return one / (one + exp(fill(x, 0.0) - x))


@inner
def power(x, exponent):
    """x^exponent for x > 0, else 0. As exp of a product of log it would lose the digits in which log is large: here the
    whole powers of 2 are taken out first."""
    zero, p = fill(x, 0.0), fill(x, exponent)
    some = x > zero
    e, rest = split_log(where(some, x, fill(x, 1.0)))
    rest = rest * p  # of log x^p = p e ln 2 + p l
    size = fma(e * p, fill(x, _LN2_HIGH(x)), rest)
    n = nearest(fma(e, p, rest * fill(x, _LOG2E)))
    inside = (size > fill(x, _LEAST(x))) & (size < fill(x, _MOST(x)))
    n = where(inside, n, zero)
    result = times_power_of_2(_EXP(fma(fma(e, p, zero - n), fill(x, _LN2), rest)), n)
    result = where(inside, result, where(size > zero, fill(x, INFINITY), zero))
    return where(some, result, zero)
