"""The one loop that turns a tile of sums into kernel values. It is compiled once for each transform and dtype.

`_loops.fill` gets the address of a compiled writer and calls it for each tile: a call of a few nanoseconds for some
hundred values. The loops then need not know the transforms, and a new one is compiled alone, in its own file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from streamkernel.kernels.loops.functions import INNER
from streamkernel.kernels.loops.instructions import apart, full_width, fused, lanes, stay_separate
from streamkernel.type_aliases import Unchecked, Untyped

CONSTANTS = 7  # (factor, offset, high, low, cut, shape, largest) of a formula


def writer(version: int, value: Callable[..., Any], power: bool) -> Callable[..., None]:
    """The loop of one transform, as a function that is still to be compiled.

    `version` makes no difference to it, but to its key in Numba's cache (`compiled_loops`).
    """

    def write(sums, scratch, wanted, size, width, kept, out, stride, constants, degree, rows, points):  # type: ignore[no-untyped-def]  # Numba infers them
        full_width()
        # The C function around this one would inline it, and has vectors of the processor's preferred width only.
        stay_separate()
        # Otherwise each row would begin with a test whether `out` overlaps what is read.
        apart()
        if version < 0:
            return
        parameters = (
            constants[0], constants[1], constants[2], constants[3], constants[4], constants[5], constants[6]
        )  # fmt: skip
        if power:
            raise_to_degree(sums, scratch, size * width, parameters, degree)
        # A loop over whole vectors needs no test of its length, and no code for the rest. A row has only two vectors of
        # 32 bytes: without both tests (`apart`) values of the Gaussian take .9 of the time, for 20 features.
        whole = kept & -lanes(parameters[0])
        for i in range(size):
            # A row whose sums come from differences after its tile was written from products is written twice.
            if wanted[i] != 0:
                source, target, x = i * width, i * stride, rows[i]
                for c in range(whole):
                    out[target + c] = value(sums[source + c], x, points[c], parameters)
                for c in range(whole, kept):
                    out[target + c] = value(sums[source + c], x, points[c], parameters)

    # The name of its files in Numba's cache: one index for each, since two processes that write one lose an entry.
    write.__qualname__ = f"write_{value.__name__}{'_of_power' if power else ''}"
    return write


@njit(**INNER)
def raise_to_degree(tile, base, count, parameters, degree):  # type: ignore[no-untyped-def]  # Numba infers them
    """``tile <- t^degree``, ``t = factor tile + offset``, by repeated squaring over the degree's bits, highest first.

    It passes over the whole tile for each bit: a loop over the bits inside would keep the outer one from vector code,
    and passes over single rows are too short for the time that a loop takes to begin.
    """
    full_width()
    factor, offset = parameters[0], parameters[1]
    for c in range(count):
        tile[c] = fused(factor, tile[c], offset)
    bit = 1
    while 2 * bit <= degree:
        bit *= 2
    if bit > 1:
        for c in range(count):
            base[c] = tile[c]
    while bit > 1:
        bit //= 2
        for c in range(count):
            tile[c] *= tile[c]
        if degree & bit:
            for c in range(count):
                tile[c] *= base[c]


def writer_signature(kind: Unchecked) -> Any:
    """The signature of every writer for `kind`, numba's float32 or float64; in C, with pointers."""
    data, marks, whole = types.CPointer(kind), types.CPointer(types.uint8), types.int64
    return types.void(data, data, marks, whole, whole, whole, data, whole, data, whole, data, data)


@intrinsic
def call_writer(
    typing: Untyped, address: Any, tiles: Any, scratch: Any, wanted: Any, size: Any, width: Any, kept: Any,
    out: Any, row: Any, column: Any, constants: Any, degree: Any, norms: Any, point_norms: Any, panel: Any,
) -> Any:  # fmt: skip
    """Call the writer at `address` for the values ``out[row : row + size, column : column + kept]``."""
    signature = types.void(
        address, tiles, scratch, wanted, size, width, kept, out, row, column, constants, degree, norms, point_norms,
        panel,
    )  # fmt: skip

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Unchecked) -> Any:
        def array(k: int) -> Any:
            return context.make_array(signature.args[k])(context, builder, values[k])

        def scalar(k: int) -> Any:
            return context.cast(builder, values[k], signature.args[k], types.int64)

        size, width, kept, row, column, degree, panel = (scalar(k) for k in (4, 5, 6, 8, 9, 11, 14))
        block = array(7)
        stride = builder.extract_value(block.shape, 1)
        first = builder.gep(block.data, [builder.add(builder.mul(row, stride), column)])
        points = builder.gep(array(13).data, [builder.mul(panel, width)])
        arguments = [
            array(1).data, array(2).data, array(3).data, size, width, kept, first, stride, array(10).data, degree,
            array(12).data, points,
        ]  # fmt: skip
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), arguments)
        return context.get_dummy_value()

    return signature, generate
