"""Vectors of numbers as numba values: each operation is one instruction of the machine, whatever LLVM's
vectorizer thinks of the loop around it.

`load(array, at)` reads as many numbers as a register holds, starting anywhere in a flat array;
`+ - * /` and the functions below work on all of them at once.
"""

from __future__ import annotations

import operator
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, overload, register_model

from regard.backends.cpu.kernels.jit import intrinsic


def _register_bytes() -> int:
    """How wide a register is: 64 bytes with AVX-512, 32 with AVX2, else 16 (SSE, NEON)."""
    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # unknown outside x86
        return 16
    return 64 if features.get("avx512f") else 32 if features.get("avx2") else 16


BYTES = _register_bytes()
REGISTERS = 4 if BYTES == 64 else 2  # side by side in one micro-kernel: AVX-512 has twice as many to hold
INDEX = ir.IntType(64)
FLAGS = ("contract", "nsz", "arcp")  # NaN and infinity keep their meaning


class Vector(types.Type):
    """`lanes` numbers of one type in one register."""

    def __init__(self, dtype: types.Type, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"Vector({dtype}, {lanes})")


@register_model(Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Vector) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(_element(fe_type.dtype), fe_type.lanes))


def _element(dtype: types.Type) -> ir.Type:
    if dtype == types.boolean:
        return ir.IntType(1)
    if dtype == types.float32:
        return ir.FloatType()
    return ir.DoubleType() if dtype == types.float64 else ir.IntType(dtype.bitwidth)  # type: ignore[attr-defined]


def register(dtype: types.Type) -> Vector:
    """A full register of floats, or whole numbers that go with floats of the same size."""
    return Vector(dtype, BYTES * 8 // dtype.bitwidth)  # type: ignore[attr-defined]


def _truth(v: Vector) -> Vector:
    return Vector(types.boolean, v.lanes)


def _whole(v: Vector) -> Vector:
    return Vector(types.int32 if v.dtype == types.float32 else types.int64, v.lanes)


def _is_float(v: Vector) -> bool:
    return isinstance(v.dtype, types.Float)


def _pointer(context: Any, builder: Any, of: types.Type, array: Any, at: Any) -> Any:
    """Flat arrays only, and no check of the bounds."""
    return builder.gep(context.make_array(of)(context, builder, array).data, [at])


def _load(builder: Any, pointer: Any, vector: ir.VectorType) -> Any:
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=1)


def _splat(builder: Any, value: Any, vector: ir.VectorType) -> Any:
    nothing, word = ir.Constant(vector, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(nothing, value, ir.Constant(word, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(word, vector.count), None))


def _function(builder: Any, name: str, result: ir.Type, *arguments: ir.Type) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def _suffix(vector: ir.VectorType) -> str:
    kind = {"float": "f32", "double": "f64"}.get(str(vector.element), str(vector.element))
    return f"v{vector.count}{kind}"


# Arithmetic and comparison.


def _operator(op: Any, of_floats: str, of_whole: str | None = None, sign: str | None = None) -> None:
    """`op` on two vectors of one type: an arithmetic instruction, or with `sign` a comparison."""

    @infer_global(op)  # type: ignore[misc]
    class _Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and isinstance(args[0], Vector) and args[0] == args[1]:
                return signature(_truth(args[0]) if sign else args[0], *args)
            return None

    @lower_builtin(op, Vector, Vector)
    def _lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if sign:
            compare = builder.fcmp_ordered if _is_float(sig.args[0]) else builder.icmp_signed
            return compare(sign, *args)
        if _is_float(sig.args[0]):
            return getattr(builder, of_floats)(*args, flags=FLAGS)
        return getattr(builder, str(of_whole))(*args)


_operator(operator.add, "fadd", "add")
_operator(operator.sub, "fsub", "sub")
_operator(operator.mul, "fmul", "mul")
_operator(operator.truediv, "fdiv")
_operator(operator.and_, "", "and_")
_operator(operator.xor, "", "xor")
_operator(operator.lt, "", sign="<")
_operator(operator.le, "", sign="<=")
_operator(operator.gt, "", sign=">")
_operator(operator.ge, "", sign=">=")
_operator(operator.eq, "", sign="==")


@intrinsic
def fma(typing: Any, a: Vector, b: Vector, c: Vector) -> Any:
    """a·b + c, rounded once."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        t = args[0].type
        return builder.call(_function(builder, f"llvm.fma.{_suffix(t)}", t, t, t, t), args)

    return a(a, a, a), generate


def _unary(name: str) -> Any:
    @intrinsic
    def call(typing: Any, a: Vector) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            t = args[0].type
            return builder.call(_function(builder, f"llvm.{name}.{_suffix(t)}", t, t), args)

        return a(a), generate

    return call


absolute, nearest, root = _unary("fabs"), _unary("rint"), _unary("sqrt")


@intrinsic
def where(typing: Any, truth: Vector, a: Vector, b: Vector) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(*args)

    return a(truth, a, a), generate


# Between memory and registers.


@intrinsic
def load(typing: Any, array: Any, at: Any) -> Any:
    vector = register(array.dtype)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _load(builder, _pointer(context, builder, sig.args[0], *args), context.get_value_type(vector))

    return vector(array, types.intp), generate


@intrinsic
def store(typing: Any, array: Any, at: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args[:2])
        builder.store(args[2], builder.bitcast(pointer, args[2].type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


@intrinsic
def load_bytes(typing: Any, array: Any, at: Any, like: Any) -> Any:
    """True where the bytes from `at` on are not 0, one for each number of `like`."""
    truth = _truth(like)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        octets = ir.VectorType(ir.IntType(8), like.lanes)
        loaded = _load(builder, _pointer(context, builder, sig.args[0], *args[:2]), octets)
        return builder.icmp_unsigned("!=", loaded, ir.Constant(octets, None))

    return truth(array, types.intp, like), generate


@intrinsic
def load_words(typing: Any, array: Any, at: Any, like: Any) -> Any:
    """As many 32-bit words from `at` on as `like` has numbers."""
    vector = Vector(types.int32, like.lanes)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args[:2])
        return _load(builder, pointer, context.get_value_type(vector))

    return vector(array, types.intp, like), generate


@intrinsic
def splat(typing: Any, value: Any) -> Any:
    """The same number in every place."""
    vector = register(value)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _splat(builder, args[0], context.get_value_type(vector))

    return vector(value), generate


@intrinsic
def spread(typing: Any, array: Any, at: Any) -> Any:
    """One number of an array in every place. `array[at]` would first ask whether `at` counts from the end."""
    vector = register(array.dtype)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        loaded = builder.load(_pointer(context, builder, sig.args[0], *args))
        return _splat(builder, loaded, context.get_value_type(vector))

    return vector(array, types.intp), generate


@intrinsic
def whole_splat(typing: Any, value: Any, like: Any) -> Any:
    """The same whole number in every place: of the size of `like`'s floats, or as wide as its words."""
    vector = _whole(like) if _is_float(like) else like

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        t = context.get_value_type(vector)
        here, there = args[0].type.width, t.element.width
        x = args[0] if here == there else (builder.trunc if here > there else builder.sext)(args[0], t.element)
        return _splat(builder, x, t)

    return vector(value, like), generate


@intrinsic
def count_up(typing: Any, like: Any) -> Any:
    """0, 1, 2, ... as whole numbers of the size of `like`'s."""
    vector = _whole(like)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return ir.Constant(context.get_value_type(vector), list(range(vector.lanes)))

    return vector(like), generate


# Bits.


def _shift(name: str) -> Any:
    @intrinsic
    def shifted(typing: Any, a: Any, by: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            t = args[0].type
            here, there = args[1].type.width, t.element.width
            amount = args[1] if here == there else (builder.trunc if here > there else builder.sext)(args[1], t.element)
            return getattr(builder, name)(args[0], _splat(builder, amount, t))

        return a(a, by), generate

    return shifted


shift_left, shift_right = _shift("shl"), _shift("lshr")


def _conversion(name: str, to: Any) -> Any:
    @intrinsic
    def convert(typing: Any, a: Any) -> Any:
        vector = to(a)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return getattr(builder, name)(args[0], context.get_value_type(vector))

        return vector(a), generate

    return convert


def _float(v: Vector) -> Vector:
    return Vector(types.float32 if v.dtype == types.int32 else types.float64, v.lanes)


to_whole, to_float = _conversion("fptosi", _whole), _conversion("sitofp", _float)
as_bits, as_float = _conversion("bitcast", _whole), _conversion("bitcast", _float)


@intrinsic
def widened(typing: Any, a: Any, like: Any) -> Any:
    """Floats of 32 bits as floats of `like`'s size."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return args[0] if a.dtype == like.dtype else builder.fpext(args[0], context.get_value_type(like))

    return like(a, like), generate


# From a register to one number.


@intrinsic
def total(typing: Any, a: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        t = args[0].type
        function = _function(builder, f"llvm.vector.reduce.fadd.{_suffix(t)}", t.element, t.element, t)
        return builder.call(function, [ir.Constant(t.element, 0.0), args[0]], fastmath=("reassoc",))

    return a.dtype(a), generate


@intrinsic
def largest(typing: Any, a: Any) -> Any:
    """The largest of the numbers; a NaN may be passed over."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        t = args[0].type
        return builder.call(_function(builder, f"llvm.vector.reduce.fmax.{_suffix(t)}", t.element, t), args)

    return a.dtype(a), generate


@intrinsic
def some(typing: Any, truth: Any) -> Any:
    """Whether it is true anywhere."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], ir.IntType(truth.lanes))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(truth), generate


@intrinsic
def lanes(typing: Any, array: Any) -> Any:
    """How many numbers of an array fill a register: a constant."""
    count = register(array.dtype).lanes
    return types.intp(array), lambda context, builder, sig, args: ir.Constant(INDEX, count)


@intrinsic
def number(typing: Any, array: Any, value: Any) -> Any:
    """A number, as one of the array's type: `array[0] * 0` would be NaN where the array holds one."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.cast(builder, args[1], sig.args[1], array.dtype)

    return array.dtype(array, value), generate


def is_double(array: Any) -> bool:
    """Whether these are floats of 64 bits: decided when compiling."""
    raise NotImplementedError


@overload(is_double, inline="always")
def _is_double(array: Any) -> Any:
    if array.dtype == types.float64:
        return lambda array: True
    return lambda array: False
