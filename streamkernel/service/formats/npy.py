"""Rows in NumPy's file format, read in blocks while they arrive."""

from __future__ import annotations

import io
import struct
from collections.abc import AsyncIterator, Sequence

import numpy as np
from numpy.lib import format as npy_format

from streamkernel.errors import StreamKernelError
from streamkernel.service.http_errors import Refused
from streamkernel.service.settings import Limits
from streamkernel.table.values import float_dtype
from streamkernel.type_aliases import AnyArray, AnyDType

_LONGEST_HEADER = 8192
# A larger size is refused before any arithmetic, and not printed: it may have thousands of digits.
_LARGEST = 1 << 62


def header(dtype: AnyDType, shape: tuple[int, ...]) -> bytes:
    """The header of an NPY file, which precedes the values."""
    out = io.BytesIO()
    npy_format.write_array_header_1_0(
        out, {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    )
    return out.getvalue()


class NpyRows:
    """The rows of a body in NPY.

    Parameters
    ----------
    chunks : the body, in chunks.
    columns : the model's columns.
    """

    def __init__(self, chunks: AsyncIterator[bytes], columns: Sequence[str], limits: Limits) -> None:
        self._chunks = chunks
        self._columns = columns
        self._limits = limits
        self._rest = memoryview(b"")
        self._dtype = np.dtype(np.float64)
        self.single = False

    async def begin(self, declared: int | None) -> tuple[int, AnyDType]:
        """Read the header; returns the number of rows and the dtype in which they are predicted.

        Raises
        ------
        Refused
            The body is no NPY file, or its array has no rows for the model.
        """
        prefix = await self._take(8)
        if bytes(prefix[:6]) != npy_format.MAGIC_PREFIX or prefix[6] not in (1, 2, 3):
            raise Refused(400, "the body is not an NPY file: numpy.save writes one")
        size_bytes = await self._take(2 if prefix[6] == 1 else 4)
        size = struct.unpack("<H" if prefix[6] == 1 else "<I", size_bytes)[0]
        if size > _LONGEST_HEADER:
            raise Refused(400, "the header of the NPY file is longer than that of any array of numbers")
        text = bytes(prefix) + bytes(size_bytes) + bytes(await self._take(size))
        shape, fortran, dtype = _read_header(text)
        rows, width = _rows_of(shape, len(self._columns))
        self.single = len(shape) == 1
        if width != len(self._columns):
            raise Refused(422, f"the rows have {width} values; the model takes {len(self._columns)}", "ShapeError")
        if rows == 0:
            raise Refused(422, f"the array has shape {shape}: no rows", "EmptyDataError")
        if fortran and rows > 1 and width > 1:
            raise Refused(422, "the array is in Fortran order; convert it with numpy.ascontiguousarray", "DataError")
        if rows > self._limits.rows or rows * width > self._limits.elements:
            raise Refused(413, f"{rows:,} rows of {width} exceed the limits; send fewer at a time")
        row_dtype = float_dtype(dtype, "the NPY array")
        if declared is not None and declared != len(text) + rows * width * dtype.itemsize:
            raise Refused(400, f"the size of the body does not match its header: shape {shape}, {dtype}")
        self._dtype = dtype
        return rows, row_dtype

    async def read(self, rows: int) -> AnyArray:
        """The next rows, in the dtype of the file."""
        block = np.empty((rows, len(self._columns)), self._dtype)
        target = memoryview(block.reshape(-1).view(np.uint8).data)
        filled = 0
        while filled < len(target):
            if not self._rest:
                self._rest = memoryview(await self._next())
            part = self._rest[: len(target) - filled]
            target[filled : filled + len(part)] = part
            self._rest = self._rest[len(part) :]
            filled += len(part)
        return block

    async def end(self) -> None:
        """Check that nothing follows the last row."""
        if self._rest or [chunk async for chunk in self._chunks if chunk]:
            raise Refused(400, "the body continues after the last row")

    async def _next(self) -> bytes:
        chunk = await anext(self._chunks, None)
        if chunk is None:
            raise Refused(400, "the body ends before the last row")
        return chunk

    async def _take(self, count: int) -> memoryview:
        while len(self._rest) < count:
            self._rest = memoryview(bytes(self._rest) + await self._next())
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken


def _read_header(text: bytes) -> tuple[tuple[int, ...], bool, AnyDType]:
    stream = io.BytesIO(text)
    try:
        version = npy_format.read_magic(stream)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, fortran, dtype = read(stream, max_header_size=_LONGEST_HEADER)
        if any(type(size) is not int or size < 0 for size in shape):
            raise ValueError
    except StreamKernelError:
        raise
    except Exception:
        raise Refused(400, "the header of the NPY file cannot be read: numpy.save writes one") from None
    if any(size > _LARGEST for size in shape):
        raise Refused(413, "the shape in the header of the NPY file is larger than any array")
    if dtype.hasobject or dtype.names is not None or dtype.subdtype is not None:
        raise Refused(422, f"the array holds {dtype}; give real numbers", "DTypeError")
    return shape, bool(fortran), dtype


def _rows_of(shape: tuple[int, ...], width: int) -> tuple[int, int]:
    if len(shape) == 1:
        return 1, shape[0]
    if len(shape) == 2:
        return shape[0], shape[1]
    message = f"the array has {len(shape)} dimensions"
    raise Refused(422, f"{message}; give rows of {width}, or one row", "ShapeError")
