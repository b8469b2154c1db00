"""Instructions that Numba has no words for: vectors, fused products, the bits of an exponent, hints to the compiler."""

from __future__ import annotations

from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from streamkernel.dependencies import missing_part
from streamkernel.type_aliases import Untyped


def vector_layout() -> tuple[int, int]:
    """(bytes per vector, vectors per row of a tile) for the processor that Numba compiles for."""
    features = config.CPU_FEATURES
    if features is None:
        features = "" if config.CPU_NAME else binding.get_host_cpu_features().flatten()
    if "+avx512f" in features:
        return 64, 4
    # 16 registers of 32 bytes hold 6 x 2 accumulators; 32 of 16 bytes (ARM) hold 6 x 4.
    return (32, 2) if "+avx" in features else (16, 4 if "+neon" in features else 2)


VECTOR_BYTES, VECTORS = vector_layout()
INT32, INT64 = ir.IntType(32), ir.IntType(64)


def int64(value: int) -> Untyped:
    return ir.Constant(INT64, value)


class Emitter:
    """The instructions of the tiles, for one dtype."""

    def __init__(self, context: Untyped, builder: Untyped, dtype: Untyped, lanes: int | None = None) -> None:
        self.builder = builder
        self.scalar = context.get_value_type(dtype)
        self.size = context.get_abi_sizeof(self.scalar)
        self.lanes = VECTOR_BYTES // self.size if lanes is None else lanes
        self.type = ir.VectorType(self.scalar, self.lanes) if self.lanes > 1 else self.scalar
        suffix = f"f{8 * self.size}"
        self.suffix = f"v{self.lanes}{suffix}" if self.lanes > 1 else suffix

    def call(self, name: str, *arguments: Untyped) -> Untyped:
        signature = ir.FunctionType(self.type, [self.type] * len(arguments))
        function = cgutils.get_or_insert_function(self.builder.module, signature, f"llvm.{name}.{self.suffix}")
        return self.builder.call(function, arguments)

    def at(self, pointer: Untyped, index: Untyped) -> Untyped:
        return self.builder.gep(pointer, [index])

    def load(self, pointer: Untyped, index: Untyped) -> Untyped:
        # Aligned to one number only: rows of a caller's array begin anywhere. It costs nothing where they are aligned.
        address = self.builder.bitcast(self.at(pointer, index), self.type.as_pointer())
        return self.builder.load(address, align=self.size)

    def store(self, value: Untyped, pointer: Untyped, index: Untyped) -> None:
        address = self.builder.bitcast(self.at(pointer, index), self.type.as_pointer())
        self.builder.store(value, address, align=self.size)

    def broadcast(self, pointer: Untyped, index: Untyped) -> Untyped:
        value = self.builder.load(self.at(pointer, index))
        undefined = ir.Constant(self.type, ir.Undefined)
        lane = self.builder.insert_element(undefined, value, ir.Constant(INT32, 0))
        return self.builder.shuffle_vector(lane, undefined, ir.Constant(ir.VectorType(INT32, self.lanes), None))


@intrinsic
def full_width(typing: Untyped) -> Untyped:
    """Allow LLVM's vectoriser vectors of VECTOR_BYTES in the calling function.

    On Intel processors with vectors of 64 bytes LLVM prefers 32 bytes, because wide vectors lower the clock. The tiles
    use wide vectors anyway, so that the clock is already lower: loops with 64 bytes are then up to a fifth faster. On
    other processors nothing changes. An inlined function takes the preference of its caller, so that every function of
    the call chain calls this.
    """

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
        # llvmlite supports only attributes without a value, but prints each member of the set as it is.
        attributes = builder.function.attributes
        if not isinstance(attributes, set):
            raise missing_part("numba", "attributes of a function in LLVM as a set")
        set.add(attributes, f'"prefer-vector-width"="{8 * VECTOR_BYTES}"')
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def stay_separate(typing: Untyped) -> Untyped:
    """Keep the calling function a function of its own, which its callers do not inline."""

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def apart(typing: Untyped) -> Untyped:
    """Promise that what the calling function writes by one of its pointers, it reads by no other of them."""

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
        for argument in builder.function.args:
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def lanes(typing: Untyped, like: Untyped) -> Untyped:
    """Numbers of one vector, in the dtype of `like`."""

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
        return int64(Emitter(context, builder, signature.args[0]).lanes)

    return types.int64(like), generate


@intrinsic
def fused(typing: Untyped, a: Untyped, b: Untyped, c: Untyped) -> Untyped:
    """``a b + c`` with one rounding; the reduction of an exponent depends on it."""

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
        return Emitter(context, builder, signature.args[0], lanes=1).call("fma", *values)

    return a(a, a, a), generate


@intrinsic
def scaled_by_power(typing: Untyped, value: Untyped, magic: Untyped) -> Untyped:
    """``value 2^k``, k the lowest bits of `magic`, which are added to the exponent. The result must be normal."""

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
        scalar = context.get_value_type(signature.args[0])
        single = context.get_abi_sizeof(scalar) == 4
        integer, mantissa = (INT32, 23) if single else (INT64, 52)
        power = builder.shl(builder.bitcast(values[1], integer), ir.Constant(integer, mantissa))
        return builder.bitcast(builder.add(builder.bitcast(values[0], integer), power), scalar)

    return value(value, value), generate


@intrinsic
def split_power(typing: Untyped, value: Untyped) -> Untyped:
    """``(k, m, 2^-k)`` with ``value = 2^k m``, m in [sqrt 1/2, sqrt 2); for normal values of at least 1."""

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
        scalar = context.get_value_type(signature.args[0])
        single = context.get_abi_sizeof(scalar) == 4
        integer, mantissa, bias, root_half = (
            (INT32, 23, 127, 0x3F3504F3) if single else (INT64, 52, 1023, 0x3FE6A09E667F3BCD)
        )
        # With the bits of sqrt 1/2 subtracted, the exponent's bits are those of the nearest power: m near 1 has k = 0,
        # and log2 of a number near 1 loses no digits.
        shift = ir.Constant(integer, mantissa)
        bits = builder.bitcast(values[0], integer)
        k = builder.ashr(builder.sub(bits, ir.Constant(integer, root_half)), shift)
        m = builder.bitcast(builder.sub(bits, builder.shl(k, shift)), scalar)
        inverse = builder.bitcast(builder.shl(builder.sub(ir.Constant(integer, bias), k), shift), scalar)
        return context.make_tuple(builder, signature.return_type, [builder.sitofp(k, scalar), m, inverse])

    return types.UniTuple(value, 3)(value), generate
