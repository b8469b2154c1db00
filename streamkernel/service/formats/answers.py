"""Predictions wait until all rows have been predicted, and are then sent as JSON, NPY or Arrow, piece by piece.

The answer begins so late for two reasons. A row that cannot be used gives an error, not a broken answer. And there is
no deadlock with a client that sends its whole body before it reads.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streamkernel.service.formats import ARROW, JSON, MEDIA_TYPES, NPY
from streamkernel.service.formats.npy import header
from streamkernel.service.loaded_model import Field, Outputs
from streamkernel.type_aliases import AnyArray, Float, Untyped

_IN_MEMORY = 1 << 20
_PIECE_ROWS = 1 << 16


class Spool:
    """Rows of float64 values: in memory while they are few, then in an unnamed file.

    Parameters
    ----------
    rows : number of rows in all.
    outputs : name and number of columns of each output.
    """

    def __init__(self, rows: int, outputs: Sequence[tuple[str, int]]) -> None:
        self.rows = rows
        self.outputs = list(outputs)
        self.columns = sum(columns for _, columns in outputs)
        self._file: Untyped = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return 8 * self.rows * self.columns

    @property
    def in_memory(self) -> bool:
        """Whether the rows fit in memory, without a file."""
        return self.nbytes <= _IN_MEMORY

    def append(self, values: dict[str, AnyArray]) -> None:
        """Append the outputs of the next rows."""
        parts = [np.asarray(values[name], np.float64).reshape(-1, columns) for name, columns in self.outputs]
        block = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        self._file.write(np.ascontiguousarray(block).data)

    def pieces(self) -> Iterator[Float]:
        """All rows from the first, in pieces (b, columns). Can be called again."""
        row = 8 * self.columns
        for first in range(0, self.rows, _PIECE_ROWS):
            count = min(_PIECE_ROWS, self.rows - first)
            self._file.seek(first * row)
            yield np.frombuffer(self._file.read(count * row), np.float64).reshape(count, self.columns)

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


class Answer:
    """The body of an answer.

    Parameters
    ----------
    spool : values of all rows.
    format : one of `MEDIA_TYPES`.
    single : whether the request had one row, not a list of rows.
    """

    def __init__(self, outputs: Outputs, spool: Spool, format: str, *, single: bool = False) -> None:
        self.outputs = outputs
        self._fields = outputs.fields
        self._spool = spool
        self._format = format
        self._single = single

    @property
    def content_type(self) -> bytes:
        return MEDIA_TYPES[self._format].encode()

    @property
    def small(self) -> bool:
        """Whether the body is sent in one piece."""
        return self._spool.in_memory

    def pieces(self) -> Iterator[bytes]:
        """The pieces of the body."""
        return {JSON: self._json, NPY: self._npy, ARROW: self._arrow}[self._format]()

    def _parts(self, block: Float) -> Iterator[tuple[Field, AnyArray]]:
        """The fields, each with its columns of a block; codes of classes and sides as integers."""
        first = 0
        for field in self._fields:
            part = block[:, first : first + field.columns]
            first += field.columns
            values = part[:, 0] if field.width is None else part
            yield field, values.astype(np.int64) if field.whole else values

    def _json(self) -> Iterator[bytes]:
        opening = "{"
        for number, field in enumerate(self._fields):
            yield f"{opening}{json.dumps(field.name)}: {'' if self._single else '['}".encode()
            comma = ""
            for block in self._spool.pieces():
                values = next(values for found, values in self._parts(block) if found is field).tolist()
                if field.labels is not None:
                    values = [field.labels[code] for code in values]
                yield (comma + json.dumps(values)[1:-1]).encode()
                comma = ", "
            yield b"" if self._single else b"]"
            opening = ", "
            if field.name == "probabilities" and number:
                yield f", {json.dumps('classes')}: {json.dumps(list(self.outputs.classes or ()))}".encode()
        yield b"}"

    def _npy(self) -> Iterator[bytes]:
        """One array: probabilities alone if they are wanted, else means and standard deviations side by side.

        Labels of classes are given as their positions.
        """
        fields = self._fields
        if fields[-1].name == "probabilities":
            fields = fields[-1:]
        codes = fields[0].labels is not None
        dtype = np.dtype(np.int64 if codes else np.float64)
        columns = sum(field.columns for field in fields)
        flat = len(fields) == 1 and fields[0].width is None
        yield header(dtype, (self._spool.rows,) if flat else (self._spool.rows, columns))
        for block in self._spool.pieces():
            yield np.ascontiguousarray(block[:, -columns:], dtype=dtype).tobytes()

    def _arrow(self) -> Iterator[bytes]:
        names: list[str] = []
        for field in self._fields:
            names += self._names(field)
        sink = io.BytesIO()
        writer: Untyped = None
        for block in self._spool.pieces():
            arrays = []
            for field, values in self._parts(block):
                if field.labels is not None:
                    arrays.append(pa.array([field.labels[code] for code in values.tolist()]))
                else:
                    arrays += [pa.array(column) for column in values.reshape(len(block), -1).T]
            batch = pa.record_batch(arrays, names=names)
            if writer is None:
                writer = pa.ipc.new_stream(sink, batch.schema)
            writer.write_batch(batch)
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
        writer.close()
        yield sink.getvalue()

    def _names(self, field: Field) -> list[str]:
        if field.name == "probabilities":
            return [f"probability_{label}" for label in self.outputs.classes or ()]
        if field.width is None:
            return [field.name]
        targets = self.outputs.target_names
        known = targets if len(targets) == field.columns else range(field.columns)
        return [f"{field.name}_{name}" for name in known]
