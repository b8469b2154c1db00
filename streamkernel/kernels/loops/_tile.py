"""Register tiles: sums over features for a few rows against many columns, in vector instructions.

LLVM's vectoriser does not keep a tile of accumulators in registers over an outer loop. Therefore this module emits that
loop as vector code: ``ROWS x VECTORS`` accumulators, and for each feature one load per column vector and one broadcast
per row. Inner products run at the rate of a GEMM, differences at 0.8 of it.

A panel holds ``columns(dtype)`` basis points, feature by feature; a tile is ``(ROWS, columns)``.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from streamkernel.kernels.loops.instructions import INT32, VECTOR_BYTES, VECTORS, Emitter, int64
from streamkernel.type_aliases import AnyDType, Untyped

# Tiles of 4 x 4, 6 x 2, 6 x 4, 8 x 3, 9 x 3, 12 x 2 and 14 x 2 vectors of 64 bytes were measured on an Intel processor
# with AVX-512. 6 x 4 and 9 x 3 were the fastest; 9 x 3 took 0.89 to 1.16 of the time of 6 x 4 at 2 to 200 features.
# 24 accumulators, 4 vectors of points and a broadcast value are 29 of the 32 registers.
ROWS = 6
# Features are summed in blocks, and then the sums of the blocks: rounding grows with the root of BLOCK + p / BLOCK, not
# with that of p.
BLOCK = 32

Term = Callable[..., Untyped]


def columns(dtype: AnyDType) -> int:
    """Number of basis points per panel."""
    return VECTORS * VECTOR_BYTES // dtype.itemsize


def squared_term(emit: Emitter, total: Untyped, x: Untyped, z: Untyped, weight: Untyped) -> Untyped:
    """``total + (x - z)^2``"""
    # One rounding for product and sum: "fma" as an intrinsic, since `fastmath` would also change the order of sums.
    difference = emit.builder.fsub(x, z)
    return emit.call("fma", difference, difference, total)


def weighted_term(emit: Emitter, total: Untyped, x: Untyped, z: Untyped, weight: Untyped) -> Untyped:
    """``total + w (x - z)^2``"""
    difference = emit.builder.fsub(x, z)
    return emit.call("fma", emit.builder.fmul(difference, weight), difference, total)


def absolute_term(emit: Emitter, total: Untyped, x: Untyped, z: Untyped, weight: Untyped) -> Untyped:
    """``total + w |x - z|``"""
    return emit.call("fma", emit.call("fabs", emit.builder.fsub(x, z)), weight, total)


def different_term(emit: Emitter, total: Untyped, x: Untyped, z: Untyped, weight: Untyped) -> Untyped:
    """``total + w [x != z]``"""
    differs = emit.builder.fcmp_unordered("!=", x, z)
    return emit.builder.fadd(total, emit.builder.select(differs, weight, ir.Constant(emit.type, None)))


def inner_term(emit: Emitter, total: Untyped, x: Untyped, z: Untyped, weight: Untyped) -> Untyped:
    """``total + x z``"""
    return emit.call("fma", x, z, total)


Slot = tuple[Untyped, Untyped, Untyped]
"""An accumulator (LLVM's mem2reg makes it a register), and pointer and index of its memory between blocks."""


def add_features(emit: Emitter, p: Untyped, slots: list[Slot], body: Callable[[Untyped], None]) -> None:
    """Emit ``body(j)`` for all features j, summed in blocks of BLOCK; the accumulators hold the sums at the end."""
    builder, size = emit.builder, int64(BLOCK)
    zero = ir.Constant(emit.type, None if emit.lanes > 1 else 0.0)

    def one_block(start: Untyped, count: Untyped) -> None:
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


def emit_sums(
    emit: Emitter, term: Term, rows: Untyped, panels: Untyped, weights: Untyped, p: Untyped, tiles: Untyped
) -> list[list[Slot]]:
    """Emit the sums of ROWS x VECTORS vectors; returns their registers, with their places in the tile of rows i."""
    builder = emit.builder
    width = VECTORS * emit.lanes
    (row_data, i), (panel_data, panel) = rows, panels
    target = emit.at(tiles, builder.mul(i, int64(width)))
    x = [emit.at(row_data, builder.mul(builder.add(i, int64(r)), p)) for r in range(ROWS)]
    first = emit.at(panel_data, builder.mul(builder.mul(panel, p), int64(width)))

    # Accumulators are variables on the stack, in the function's first block: there LLVM turns them into registers.
    def slot(k: int) -> Slot:
        return cgutils.alloca_once(builder, emit.type), target, int64(k * emit.lanes)

    slots = [[slot(r * VECTORS + v) for v in range(VECTORS)] for r in range(ROWS)]

    def feature(j: Untyped) -> None:
        points = emit.at(first, builder.mul(j, int64(width)))
        # The points' vectors stay in registers for all rows: ROWS + VECTORS loads for ROWS x VECTORS products.
        z = [emit.load(points, int64(v * emit.lanes)) for v in range(VECTORS)]
        weight = None if weights is None else emit.broadcast(weights, j)
        for r in range(ROWS):
            value = emit.broadcast(x[r], j)
            for v in range(VECTORS):
                register = slots[r][v][0]
                builder.store(term(emit, builder.load(register), value, z[v], weight), register)

    add_features(emit, p, [slot for row in slots for slot in row], feature)
    return slots


def tile(term: Term, weighted: bool = False) -> Untyped:
    """An intrinsic that fills one tile: ``tiles[i + r, c] = sum_j term(x[i + r, j], panel[j, c], w[j])``, r < ROWS."""

    @intrinsic
    def fill_tile(
        typing: Untyped,
        rows: Untyped,
        i: Untyped,
        panels: Untyped,
        panel: Untyped,
        weights: Untyped,
        p: Untyped,
        out: Untyped,
    ) -> Untyped:
        signature = types.void(rows, i, panels, panel, weights, p, out)

        def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
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
tile_different = tile(different_term, weighted=True)
tile_inner = tile(inner_term)


@intrinsic
def tile_squares_of_products(
    typing: Untyped,
    rows: Untyped,
    i: Untyped,
    row_squares: Untyped,
    panels: Untyped,
    panel: Untyped,
    point_squares: Untyped,
    p: Untyped,
    out: Untyped,
) -> Untyped:
    """``tiles[i + r, c] = max(|x|^2 + |z|^2 - 2 x.z, 0)``; exactly 0 for x = z, with the norms of `row_norms`.

    The last step is done while the inner products are in registers: a pass over the tile would load and store it again.
    """
    signature = types.void(rows, i, row_squares, panels, panel, point_squares, p, out)

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
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
def fetch_for_writing(typing: Untyped, out: Untyped, row: Untyped, column: Untyped, n: Untyped) -> Untyped:
    """Prefetch the cache lines of ``out[row : row + ROWS, column : column + columns]``, during other work."""
    signature = types.void(out, row, column, n)

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
        emit = Emitter(context, builder, signature.args[0].dtype)
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        # Rows and columns beyond the block's end are fetched too: a prefetch of any address is no error.
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
def row_norms(typing: Untyped, rows: Untyped, i: Untyped, p: Untyped, out: Untyped) -> Untyped:
    """``out[i + r] = |x_{i + r}|^2`` for ROWS rows, summed in the order of `tile_inner`: equal rows, equal bits."""
    signature = types.void(rows, i, p, out)

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
        # One lane, because a row's features lie side by side: a vector of them would be summed in another order than
        # that of the tiles, and then |x|^2 + |z|^2 - 2 x.z would not be 0 for equal rows.
        emit = Emitter(context, builder, signature.args[0].dtype, lanes=1)
        source, target = (context.make_array(signature.args[k])(context, builder, values[k]).data for k in (0, 3))
        i, p = values[1], values[2]
        x = [emit.at(source, builder.mul(builder.add(i, int64(r)), p)) for r in range(ROWS)]
        slots = [(cgutils.alloca_once(builder, emit.type), target, builder.add(i, int64(r))) for r in range(ROWS)]

        def feature(j: Untyped) -> None:
            for r, (register, _, _) in enumerate(slots):
                value = emit.load(x[r], j)
                builder.store(emit.call("fma", value, value, builder.load(register)), register)

        add_features(emit, p, slots, feature)
        for register, memory, index in slots:
            emit.store(builder.load(register), memory, index)
        return context.get_dummy_value()

    return signature, generate
