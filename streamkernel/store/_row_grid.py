"""The arrays of an output of rows: their shapes, which file holds which rows, and which values fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.errors import (
    ChunkAlignmentError,
    DTypeError,
    EmptyDataError,
    ParameterError,
    ShapeMismatchError,
)
from streamkernel.manifest import ArrayManifest
from streamkernel.store._arrays import ZARR_JSON, array_metadata, check_name, chunk_key, group_metadata, storable
from streamkernel.type_aliases import AnyArray, Fields, FieldsView, Unchecked


@dataclass(frozen=True, slots=True)
class RowColumn:
    """One array of the output: (m,) if `width` is None, else (m, width)."""

    width: int | None
    dtype: str

    def shape(self, rows: int) -> tuple[int, ...]:
        """The shape of `rows` rows."""
        return (rows,) if self.width is None else (rows, self.width)


@dataclass(frozen=True, slots=True)
class RowGrid:
    """Arrays of m rows each, all cut at the same rows; a chunk holds all columns of its rows."""

    n_rows: int
    chunk_rows: int
    columns: dict[str, RowColumn]

    @classmethod
    def of(cls, n_rows: int, columns: Mapping[str, tuple[int | None, Any]], chunk_rows: int) -> RowGrid:
        """The grid of these arrays, given by name as width (None for one value a row) and dtype.

        Raises
        ------
        EmptyDataError, ParameterError, DTypeError
            There is nothing to write, or Zarr or we cannot store it.
        """
        if n_rows <= 0:
            raise EmptyDataError(f"an output of {n_rows} rows; there is nothing to write")
        if chunk_rows <= 0:
            raise ParameterError(f"chunk_rows is {chunk_rows}; it must be at least 1")
        checked = {name: _column(name, width, dtype) for name, (width, dtype) in columns.items()}
        return cls(int(n_rows), int(min(chunk_rows, n_rows)), checked)

    @property
    def n_chunks(self) -> int:
        """Chunks of each array."""
        return -(-self.n_rows // self.chunk_rows)

    def key(self, name: str, index: int) -> str:
        """The file of a chunk, relative to the output."""
        return chunk_key(name, (index,) if self.columns[name].width is None else (index, 0))

    def chunks(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Index, first row and end of every chunk of rows [start, stop), which are whole chunks."""
        step = self.chunk_rows
        return [(first // step, first, min(first + step, stop)) for first in range(start, stop, step)]

    def metadata(self, attributes: FieldsView) -> dict[str, bytes]:
        """The metadata files of the group and its arrays, by key; the group's is the last."""
        members = {}
        for name, column in self.columns.items():
            chunks = column.shape(self.chunk_rows)
            dimensions = ("row", "column")[: len(chunks)]
            members[name] = array_metadata(column.shape(self.n_rows), np.dtype(column.dtype), chunks, dimensions)
        files = {f"{name}/{ZARR_JSON}": content for name, content in members.items()}
        return {**files, ZARR_JSON: group_metadata(attributes, members)}

    def fitting(self, name: str, start: int, values: ArrayLike) -> AnyArray:
        """`values` in the dtype of the array `name`, to be its rows from `start` on.

        Raises
        ------
        ChunkAlignmentError
            The rows are not whole chunks.
        ParameterError, ShapeMismatchError, DTypeError
            There is no such array, or the values do not fit it.
        """
        if name not in self.columns:
            raise ParameterError(f"the output has no array {name!r}; it has {', '.join(self.columns)}")
        column = self.columns[name]
        rows = np.asarray(values)
        if rows.ndim == 0 or rows.shape != column.shape(len(rows)):
            raise ShapeMismatchError(
                f"values of shape {rows.shape} do not fit the array {name} of shape {column.shape(self.n_rows)}"
            )
        dtype = np.dtype(column.dtype)
        if not np.can_cast(rows.dtype, dtype, casting="same_kind"):
            raise DTypeError(f"values of dtype {rows.dtype} do not fit the array {name} of dtype {dtype}; cast them")
        stop = start + len(rows)
        if start < 0 or stop > self.n_rows or not len(rows):
            raise ShapeMismatchError(f"rows {start} to {stop} of {name} are not in an output of {self.n_rows} rows")
        if start % self.chunk_rows or (stop % self.chunk_rows and stop != self.n_rows):
            raise ChunkAlignmentError(
                f"rows {start} to {stop} of {name} are not whole chunks of {self.chunk_rows} rows; align the blocks"
            )
        return rows.astype(dtype, copy=False)

    def manifests(self, digests: Mapping[str, str]) -> dict[str, ArrayManifest]:
        """The entry in COMPLETE of each array; `digests` are those of its chunks."""
        return {
            name: ArrayManifest(
                column.shape(self.n_rows),
                self.chunk_rows,
                np.dtype(column.dtype).str,
                tuple(digests[self.key(name, index)] for index in range(self.n_chunks)),
            )
            for name, column in self.columns.items()
        }

    def to_config(self) -> Fields:
        """Plain JSON."""
        return {
            "rows": self.n_rows,
            "chunk_rows": self.chunk_rows,
            "arrays": {name: {"width": column.width, "dtype": column.dtype} for name, column in self.columns.items()},
        }


def _column(name: str, width: int | None, dtype: Unchecked) -> RowColumn:
    check_name(name)
    if width is not None and width < 1:
        raise ParameterError(f"the array {name} has width {width}; it must be at least 1, or None for one value a row")
    try:
        return RowColumn(width, storable(name, np.empty(0, dtype=dtype)).dtype.name)
    except TypeError as error:
        raise DTypeError(f"the array {name} has dtype {dtype!r}; use a number type") from error
