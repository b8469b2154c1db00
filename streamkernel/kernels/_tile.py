"""Register tiles: sums over features for a few rows against many columns, in vector instructions.

LLVM's vectoriser does not keep a tile of accumulators in registers over an outer loop. Therefore this module emits that
loop as vector code: ``ROWS x VECTORS`` accumulators, and for each feature one load per column vector and one broadcast
per row. Inner products run at the rate of a GEMM, differences at 0.8 of it.

A panel holds ``columns(dtype)`` basis points, feature by feature; a tile is ``(ROWS, columns)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from streamkernel.dependencies import missing_part

__all__ = [
    "BLOCK",
    "ROWS",
    "columns",
    "fetch_for_writing",
    "full_width",
    "fused",
    "row_norms",
    "scaled_by_power",
    "split_power",
    "tile_absolute",
    "tile_inner",
    "tile_squared",
    "tile_squares_of_products",
    "tile_weighted",
]


def vector_layout() -> tuple[int, int]:
    """(bytes per vector, vectors per row of a tile) for the processor that Numba compiles for."""
    features = config.CPU_FEATURES
    if features is None:
        features = "" if config.CPU_NAME else binding.get_host_cpu_features().flatten()
    if "+avx512f" in features:
        return 64, 4
    # 16 registers of 32 bytes hold 6 x 2 accumulators; 32 of 16 bytes (ARM) hold 6 x 4.
    return (32, 2) if "+avx" in features else (16, 4 if "+neon" in features else 2)


# Tiles of 4 x 4, 6 x 2, 6 x 4, 8 x 3, 9 x 3, 12 x 2 and 14 x 2 vectors of 64 bytes were measured on an Intel processor
# with AVX-512. 6 x 4 and 9 x 3 were the fastest; 9 x 3 took 0.89 to 1.16 of the time of 6 x 4 at 2 to 200 features.
ROWS = 6
# Features are summed in blocks, and then the sums of the blocks: rounding grows with the root of BLOCK + p / BLOCK, not
# with that of p.
BLOCK = 32
VECTOR_BYTES, VECTORS = vector_layout()
INT32, INT64 = ir.IntType(32), ir.IntType(64)

Term = Callable[..., Any]


def columns(dtype: np.dtype[Any]) -> int:
    """Number of basis points per panel."""
    return VECTORS * VECTOR_BYTES // dtype.itemsize


def int64(value: int) -> Any:
    return ir.Constant(INT64, value)


class Emitter:
    """The instructions of the tiles, for one dtype."""

    def __init__(self, context: Any, builder: Any, dtype: Any, lanes: int | None = None) -> None:
        self.builder = builder
        self.scalar = context.get_value_type(dtype)
        self.size = context.get_abi_sizeof(self.scalar)
        self.lanes = VECTOR_BYTES // self.size if lanes is None else lanes
        self.type = ir.VectorType(self.scalar, self.lanes) if self.lanes > 1 else self.scalar
        suffix = f"f{8 * self.size}"
        self.suffix = f"v{self.lanes}{suffix}" if self.lanes > 1 else suffix

    def call(self, name: str, *arguments: Any) -> Any:
        signature = ir.FunctionType(self.type, [self.type] * len(arguments))
        function = cgutils.get_or_insert_function(self.builder.module, signature, f"llvm.{name}.{self.suffix}")
        return self.builder.call(function, arguments)

    def at(self, pointer: Any, index: Any) -> Any:
        return self.builder.gep(pointer, [index])

    def load(self, pointer: Any, index: Any) -> Any:
        address = self.builder.bitcast(self.at(pointer, index), self.type.as_pointer())
        return self.builder.load(address, align=self.size)

    def store(self, value: Any, pointer: Any, index: Any) -> None:
        address = self.builder.bitcast(self.at(pointer, index), self.type.as_pointer())
        self.builder.store(value, address, align=self.size)

    def broadcast(self, pointer: Any, index: Any) -> Any:
        value = self.builder.load(self.at(pointer, index))
        undefined = ir.Constant(self.type, ir.Undefined)
        lane = self.builder.insert_element(undefined, value, ir.Constant(INT32, 0))
        return self.builder.shuffle_vector(lane, undefined, ir.Constant(ir.VectorType(INT32, self.lanes), None))


def squared_term(emit: Emitter, total: Any, x: Any, z: Any, weight: Any) -> Any:
    """``total + (x - z)^2``"""
    difference = emit.builder.fsub(x, z)
    return emit.call("fma", difference, difference, total)


def weighted_term(emit: Emitter, total: Any, x: Any, z: Any, weight: Any) -> Any:
    """``total + w (x - z)^2``"""
    difference = emit.builder.fsub(x, z)
    return emit.call("fma", emit.builder.fmul(difference, weight), difference, total)


def absolute_term(emit: Emitter, total: Any, x: Any, z: Any, weight: Any) -> Any:
    """``total + w |x - z|``"""
    return emit.call("fma", emit.call("fabs", emit.builder.fsub(x, z)), weight, total)


def inner_term(emit: Emitter, total: Any, x: Any, z: Any, weight: Any) -> Any:
    """``total + x z``"""
    return emit.call("fma", x, z, total)


Slot = tuple[Any, Any, Any]
"""An accumulator (LLVM's mem2reg makes it a register), and pointer and index of its memory between blocks."""


def add_features(emit: Emitter, p: Any, slots: list[Slot], body: Callable[[Any], None]) -> None:
    """Emit ``body(j)`` for all features j, summed in blocks of BLOCK; the accumulators hold the sums at the end."""
    builder, size = emit.builder, int64(BLOCK)
    zero = ir.Constant(emit.type, None if emit.lanes > 1 else 0.0)

    def one_block(start: Any, count: Any) -> None:
        for register, _, _ in slots:
            builder.store(zero, register)
        with cgutils.for_range(builder, count) as loop:
            body(builder.add(start, loop.index))

    def add_memory() -> None:
        for register, memory, index in slots:
            builder.store(builder.fadd(emit.load(memory, index), builder.load(register)), register)

    # The sums of all blocks but the last one are stored in memory. With at most BLOCK features nothing is stored.
    earlier = builder.sdiv(builder.sub(p, int64(1)), size)
    with cgutils.for_range(builder, earlier) as blocks:
        one_block(builder.mul(blocks.index, size), size)
        with builder.if_then(builder.icmp_signed(">", blocks.index, int64(0))):
            add_memory()
        for register, memory, index in slots:
            emit.store(builder.load(register), memory, index)
    done = builder.mul(earlier, size)
    one_block(done, builder.sub(p, done))
    with builder.if_then(builder.icmp_signed(">", earlier, int64(0))):
        add_memory()


def emit_sums(emit: Emitter, term: Term, rows: Any, panels: Any, weights: Any, p: Any, tiles: Any) -> list[list[Slot]]:
    """Emit the sums of ROWS x VECTORS vectors; returns their registers, with their places in the tile of rows i."""
    builder = emit.builder
    width = VECTORS * emit.lanes
    (row_data, i), (panel_data, panel) = rows, panels
    target = emit.at(tiles, builder.mul(i, int64(width)))
    x = [emit.at(row_data, builder.mul(builder.add(i, int64(r)), p)) for r in range(ROWS)]
    first = emit.at(panel_data, builder.mul(builder.mul(panel, p), int64(width)))

    def slot(k: int) -> Slot:
        return cgutils.alloca_once(builder, emit.type), target, int64(k * emit.lanes)

    slots = [[slot(r * VECTORS + v) for v in range(VECTORS)] for r in range(ROWS)]

    def feature(j: Any) -> None:
        points = emit.at(first, builder.mul(j, int64(width)))
        z = [emit.load(points, int64(v * emit.lanes)) for v in range(VECTORS)]
        weight = None if weights is None else emit.broadcast(weights, j)
        for r in range(ROWS):
            value = emit.broadcast(x[r], j)
            for v in range(VECTORS):
                register = slots[r][v][0]
                builder.store(term(emit, builder.load(register), value, z[v], weight), register)

    add_features(emit, p, [slot for row in slots for slot in row], feature)
    return slots


def tile(term: Term, weighted: bool = False) -> Any:
    """An intrinsic that fills one tile: ``tiles[i + r, c] = sum_j term(x[i + r, j], panel[j, c], w[j])``, r < ROWS."""

    @intrinsic
    def fill_tile(typing: Any, rows: Any, i: Any, panels: Any, panel: Any, weights: Any, p: Any, out: Any) -> Any:
        signature = types.void(rows, i, panels, panel, weights, p, out)

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            emit = Emitter(context, builder, signature.args[0].dtype)
            data = {k: context.make_array(signature.args[k])(context, builder, values[k]).data for k in (0, 2, 4, 6)}
            i, panel, p = values[1], values[3], values[5]
            weights_or_none = data[4] if weighted else None
            for row in emit_sums(emit, term, (data[0], i), (data[2], panel), weights_or_none, p, data[6]):
                for register, memory, index in row:
                    emit.store(builder.load(register), memory, index)
            return context.get_dummy_value()

        return signature, generate

    return fill_tile


tile_squared = tile(squared_term)
tile_weighted = tile(weighted_term, weighted=True)
tile_absolute = tile(absolute_term, weighted=True)
tile_inner = tile(inner_term)


@intrinsic
def tile_squares_of_products(
    typing: Any, rows: Any, i: Any, row_squares: Any, panels: Any, panel: Any, point_squares: Any, p: Any, out: Any
) -> Any:
    """``tiles[i + r, c] = max(|x|^2 + |z|^2 - 2 x.z, 0)``; exactly 0 for x = z, with the norms of `row_norms`."""
    signature = types.void(rows, i, row_squares, panels, panel, point_squares, p, out)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit = Emitter(context, builder, signature.args[0].dtype)
        arrays = (0, 2, 3, 5, 7)
        data = {k: context.make_array(signature.args[k])(context, builder, values[k]).data for k in arrays}
        i, panel, p = values[1], values[4], values[6]
        slots = emit_sums(emit, inner_term, (data[0], i), (data[3], panel), None, p, data[7])
        first = emit.at(data[5], builder.mul(panel, int64(VECTORS * emit.lanes)))
        minus_two, zero = ir.Constant(emit.type, [-2.0] * emit.lanes), ir.Constant(emit.type, None)
        for r in range(ROWS):
            row_square = emit.broadcast(data[2], builder.add(i, int64(r)))
            for v, (register, memory, index) in enumerate(slots[r]):
                both = builder.fadd(row_square, emit.load(first, int64(v * emit.lanes)))
                square = emit.call("fma", minus_two, builder.load(register), both)
                emit.store(builder.select(builder.fcmp_ordered(">", square, zero), square, zero), memory, index)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def full_width(typing: Any) -> Any:
    """Allow LLVM's vectoriser vectors of VECTOR_BYTES in the calling function.

    On Intel processors with vectors of 64 bytes LLVM prefers 32 bytes, because wide vectors lower the clock. The tiles
    use wide vectors anyway, so that the clock is already lower: loops with 64 bytes are then up to a fifth faster. On
    other processors nothing changes. An inlined function takes the preference of its caller, so that every function of
    the call chain calls this.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        # llvmlite supports only attributes without a value, but prints each member of the set as it is.
        attributes = builder.function.attributes
        if not isinstance(attributes, set):
            raise missing_part("numba", "attributes of a function in LLVM as a set")
        set.add(attributes, f'"prefer-vector-width"="{8 * VECTOR_BYTES}"')
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def fetch_for_writing(typing: Any, out: Any, row: Any, column: Any, n: Any) -> Any:
    """Prefetch the cache lines of ``out[row : row + ROWS, column : column + columns]``, during other work."""
    signature = types.void(out, row, column, n)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit = Emitter(context, builder, signature.args[0].dtype)
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, INT32, INT32, INT32])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        write, keep, data_cache = (ir.Constant(INT32, k) for k in (1, 3, 1))
        for r in range(ROWS):
            start = emit.at(data, builder.add(builder.mul(builder.add(values[1], int64(r)), values[3]), values[2]))
            for byte in range(0, VECTORS * VECTOR_BYTES, 64):
                address = builder.bitcast(emit.at(start, int64(byte // emit.size)), pointer)
                builder.call(prefetch, [address, write, keep, data_cache])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def row_norms(typing: Any, rows: Any, i: Any, p: Any, out: Any) -> Any:
    """``out[i + r] = |x_{i + r}|^2`` for ROWS rows, summed in the order of `tile_inner`: equal rows, equal bits."""
    signature = types.void(rows, i, p, out)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit = Emitter(context, builder, signature.args[0].dtype, lanes=1)
        source, target = (context.make_array(signature.args[k])(context, builder, values[k]).data for k in (0, 3))
        i, p = values[1], values[2]
        x = [emit.at(source, builder.mul(builder.add(i, int64(r)), p)) for r in range(ROWS)]
        slots = [(cgutils.alloca_once(builder, emit.type), target, builder.add(i, int64(r))) for r in range(ROWS)]

        def feature(j: Any) -> None:
            for r, (register, _, _) in enumerate(slots):
                value = emit.load(x[r], j)
                builder.store(emit.call("fma", value, value, builder.load(register)), register)

        add_features(emit, p, slots, feature)
        for register, memory, index in slots:
            emit.store(builder.load(register), memory, index)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """``a b + c`` with one rounding; the reduction of an exponent depends on it."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return Emitter(context, builder, signature.args[0], lanes=1).call("fma", *values)

    return a(a, a, a), generate


@intrinsic
def scaled_by_power(typing: Any, value: Any, magic: Any) -> Any:
    """``value 2^k``, k the lowest bits of `magic`, which are added to the exponent. The result must be normal."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        scalar = context.get_value_type(signature.args[0])
        single = context.get_abi_sizeof(scalar) == 4
        integer, mantissa = (INT32, 23) if single else (INT64, 52)
        power = builder.shl(builder.bitcast(values[1], integer), ir.Constant(integer, mantissa))
        return builder.bitcast(builder.add(builder.bitcast(values[0], integer), power), scalar)

    return value(value, value), generate


@intrinsic
def split_power(typing: Any, value: Any) -> Any:
    """``(k, m, 2^-k)`` with ``value = 2^k m``, m in [sqrt 1/2, sqrt 2); for normal values of at least 1."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        scalar = context.get_value_type(signature.args[0])
        single = context.get_abi_sizeof(scalar) == 4
        integer, mantissa, bias, root_half = (
            (INT32, 23, 127, 0x3F3504F3) if single else (INT64, 52, 1023, 0x3FE6A09E667F3BCD)
        )
        shift = ir.Constant(integer, mantissa)
        bits = builder.bitcast(values[0], integer)
        k = builder.ashr(builder.sub(bits, ir.Constant(integer, root_half)), shift)
        m = builder.bitcast(builder.sub(bits, builder.shl(k, shift)), scalar)
        inverse = builder.bitcast(builder.shl(builder.sub(ir.Constant(integer, bias), k), shift), scalar)
        return context.make_tuple(builder, signature.return_type, [builder.sitofp(k, scalar), m, inverse])

    return types.UniTuple(value, 3)(value), generate
