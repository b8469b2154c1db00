"""Rows as an Arrow IPC stream: held until it is complete, in memory or in an unnamed file, then read in blocks.

The schema and the headers of the batches are checked before any value is read: only columns of numbers, without
compression, are accepted; and of text and dates for a model that was fitted to a table as it came. Nested types,
dictionaries and compressed buffers are refused.
"""

from __future__ import annotations

import mmap
import struct
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamkernel.errors import StreamKernelError
from streamkernel.service.http_errors import Refused
from streamkernel.service.raw_rows import RawRows
from streamkernel.service.request import Request
from streamkernel.service.settings import Limits
from streamkernel.table import KnownColumns
from streamkernel.table.columns import are_real
from streamkernel.table.schema.arrow_types import is_text, words_of_type
from streamkernel.type_aliases import AnyArray, AnyDType

_IN_MEMORY = 1 << 20
_RECORD_BATCH = 3  # of the union MessageHeader in Arrow's Message.fbs


@asynccontextmanager
async def received_arrow(request: Request, most: int) -> AsyncIterator[pa.Buffer]:
    """Receive the whole body, as one buffer."""
    received = 0
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        async for chunk in request.chunks(most):
            in_file, received = received > _IN_MEMORY, received + len(chunk)
            if received > _IN_MEMORY:
                # The chunk that is too much takes the former ones with it to the file.
                moved = len(chunk) if in_file else received
                request.hold_file(moved)
                request.release(moved)
            file.write(chunk)
        if received > _IN_MEMORY:
            file.flush()
            # The mapping is closed when the last array that uses it is gone.
            yield pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        else:
            file.seek(0)
            yield pa.py_buffer(file.read())


@dataclass
class ArrowRows:
    """Rows of a stream whose schema and sizes were checked.

    Attributes
    ----------
    columns : number of features of a row.
    rows : number of rows.
    dtype : dtype in which they are predicted.
    fill : writes the features (b, p) of a batch, whose first row has this number, into an array.
    """

    batches: list[pa.RecordBatch]
    columns: int
    rows: int
    dtype: AnyDType
    fill: Callable[[pa.RecordBatch, int, AnyArray], None]

    def read(self, first: int, last: int) -> AnyArray:
        """Rows [first, last) (b, p).

        Raises
        ------
        Refused, DataError
            A value is missing, or is none of its column's kind.
        """
        block = np.empty((last - first, self.columns), self.dtype)
        start = 0
        for batch in self.batches:
            low, high = max(first, start), min(last, start + batch.num_rows)
            if low < high:
                self.fill(batch.slice(low - start, high - low), low, block[low - first : high - first])
            start += batch.num_rows
        return block


def arrow_rows(buffer: pa.Buffer, model_columns: KnownColumns, limits: Limits, raw: RawRows | None = None) -> ArrowRows:
    """The rows of a body.

    Parameters
    ----------
    raw : the reader of rows as the table of the fit had them; None for a model of numbers.

    Raises
    ------
    Refused
        The body is no Arrow stream, or its columns or sizes are not accepted.
    """
    try:
        return _read_stream(buffer, model_columns, limits, raw)
    except (Refused, StreamKernelError):
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, EOFError, StopIteration, struct.error, IndexError):
        raise Refused(400, "the body is not an Arrow IPC stream: pyarrow.ipc.new_stream writes one") from None


def _read_stream(buffer: pa.Buffer, model_columns: KnownColumns, limits: Limits, raw: RawRows | None) -> ArrowRows:
    source = pa.BufferReader(buffer)
    reader = pa.ipc.MessageReader.open_stream(source)
    first = reader.read_next_message()
    if first.type != "schema":
        # Arrow would read any other message as a schema, follow its offsets, and crash the process.
        raise pa.ArrowInvalid("the first message is no schema")
    schema = pa.ipc.read_schema(first)
    as_it_came = raw is not None and are_real(schema.names) and raw.takes({*schema.names})
    # Columns without a value take no bytes: of these alone a short body could claim millions of rows.
    gaps = as_it_came and not all(pa.types.is_null(kind) for kind in schema.types)
    for field in schema:
        if not (_is_plain(field.type) or (gaps and pa.types.is_null(field.type))):
            wanted = "plain numbers, truth values, dates or text" if as_it_came else "real numbers"
            raise Refused(422, f"column {field.name!r} holds {words_of_type(field.type)}; give {wanted}", "DTypeError")
    _refuse_repeated(schema.names)
    dtype: AnyDType = np.dtype(np.float64)
    if raw is not None and as_it_came:
        raw.check_names(schema.names)
        fill = raw.fill
    else:
        order = _order(schema.names, model_columns)
        if {_dtype(schema.field(column)) for column in order} == {np.dtype(np.float32)}:
            dtype = np.dtype(np.float32)
        fill = _Numbers(order, model_columns.names)
    batches, rows, width = [], 0, len(model_columns.names)
    while True:
        try:
            message = reader.read_next_message()
        except (StopIteration, EOFError):
            break
        if message.type != "record batch":
            raise Refused(422, f"the stream holds a {message.type}; give batches of plain columns", "DTypeError")
        if _is_compressed(message.metadata):
            raise Refused(422, "the batches are compressed; write the stream without compression", "DataError")
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
        rows += batch.num_rows
        if rows > limits.rows or rows * width > limits.elements:
            raise Refused(413, f"more than {limits.rows:,} rows, or {limits.elements:,} values; send fewer at a time")
        batches.append(batch)
    if source.tell() < buffer.size:
        raise Refused(400, "the body goes on after the end of its Arrow stream; send one stream at a time")
    if not rows:
        raise Refused(422, "the stream has no rows", "EmptyDataError")
    return ArrowRows(batches, width, rows, dtype, fill)


@dataclass
class _Numbers:
    """Columns of numbers as features.

    Attributes
    ----------
    order : positions of the model's columns in the stream.
    names : names of the model's columns.
    """

    order: list[int]
    names: Sequence[str]

    def __call__(self, batch: pa.RecordBatch, start: int, into: AnyArray) -> None:
        for j, column in enumerate(self.order):
            into[:, j] = _values(batch.column(column), start, self.names[j])


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return False
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or is_text(kind))


def _refuse_repeated(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Refused(422, f"column {twice!r} is there twice", "ShapeError")


def _order(names: Sequence[str], model_columns: KnownColumns) -> list[int]:
    """The positions of the model's columns in the stream.

    Columns are matched by name. They are matched by position if the model or the stream has default names only (x0, x1,
    ...) and no name of the stream is one of the model's.
    """
    if not (model_columns.named and are_real(names)) and set(names).isdisjoint(model_columns.names):
        if len(names) != len(model_columns.names):
            message = f"the stream has {len(names)} columns; the model takes {len(model_columns.names)}"
            raise Refused(422, message, "ShapeError")
        return list(range(len(names)))
    missing = [name for name in model_columns.names if name not in names]
    if missing:
        extra = [name for name in names if name not in model_columns.names]
        others = f", and {extra[0]!r} is none of the model's ({len(extra)} in all)" if extra else ""
        raise Refused(422, f"column {missing[0]!r} is missing ({len(missing)} in all){others}", "ShapeError")
    # Columns that the model does not have are ignored.
    return [names.index(name) for name in model_columns.names]


def _dtype(field: pa.Field) -> AnyDType:
    """The dtype of a column's values: float32 stays float32, as in `table/values.py`."""
    kind = field.type
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        return np.dtype(np.float32)
    types = pa.types
    if any(each(kind) for each in (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)):
        return np.dtype(np.float64)
    raise Refused(422, f"column {field.name!r} holds {words_of_type(kind)}; give real numbers", "DTypeError")


def _values(column: pa.Array, start: int, name: str) -> AnyArray:
    if column.null_count:
        row = start + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise Refused(
            422, f"row {row}, column {name!r} is null; leave that row out, or fill it in", "NonFiniteDataError"
        )
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values: AnyArray = column.to_numpy(zero_copy_only=False)
    return values


def _is_compressed(metadata: pa.Buffer) -> bool:
    """Whether the buffers of a record batch are compressed: a few bytes could expand to gigabytes.

    The metadata is a flatbuffer: an offset leads to a table, and a vector of offsets before the table to its fields.
    """
    data = metadata.to_pybytes()

    def field(table: int, number: int) -> int:
        vtable = table - struct.unpack_from("<i", data, table)[0]
        size = struct.unpack_from("<H", data, vtable)[0]
        at = 4 + 2 * number
        offset = struct.unpack_from("<H", data, vtable + at)[0] if at + 2 <= size else 0
        return table + int(offset) if offset else 0

    message = struct.unpack_from("<I", data, 0)[0]
    kind, header = field(message, 1), field(message, 2)
    if not kind or data[kind] != _RECORD_BATCH or not header:
        raise ValueError("not a record batch")
    batch = header + struct.unpack_from("<I", data, header)[0]
    return field(batch, 3) != 0
