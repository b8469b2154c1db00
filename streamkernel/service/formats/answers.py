"""Predictions as JSON, NPY or Arrow, piece by piece."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streamkernel.service.formats import ARROW, JSON, MEDIA_TYPES, NPY
from streamkernel.service.formats.npy import header
from streamkernel.service.formats.spool import Spool
from streamkernel.service.loaded_model import Field, Outputs
from streamkernel.type_aliases import AnyArray, Float, Untyped

_SMALL = 1 << 20


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
        return self._spool.nbytes <= _SMALL

    def pieces(self) -> Iterator[bytes]:
        """The pieces of the body."""
        return {JSON: self._json, NPY: self._npy, ARROW: self._arrow}[self._format]()

    def _parts(self, block: Float) -> Iterator[tuple[Field, AnyArray]]:
        """The fields, each with its columns of a block; codes of classes as integers."""
        first = 0
        for field in self._fields:
            part = block[:, first : first + field.columns]
            first += field.columns
            values = part[:, 0] if field.width is None else part
            yield field, values if field.labels is None else values.astype(np.int64)

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
