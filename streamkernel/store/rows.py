"""Outputs with one value per row of a table (predictions, factor columns), written chunk by chunk by many processes.

::

    OUT/zarr.json, OUT/prediction/...    a Zarr v3 group of arrays (m,) or (m, d), cut into chunks along the rows
    OUT/COMPLETE                         grid, dtype and the digest of each chunk, as ingested tables have it

Each task writes whole chunks, so that no two ever write one file; a task that runs twice writes the same bytes twice.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.atomic import array_digest, text_digest, write_json
from streamkernel.errors import (
    ChunkAlignmentError,
    DTypeError,
    EmptyDataError,
    MissingChunkError,
    ParameterError,
    ShapeMismatchError,
    StoreNotFoundError,
)
from streamkernel.store.arrays import (
    ZARR_JSON,
    check_name,
    chunk_key,
    create_array,
    list_files,
    open_for_writing,
    storable,
    write_group,
)
from streamkernel.store.partial import ROWS_FORMAT, PartialFolder, check_target, translated_os_errors
from streamkernel.store.plain import plain

__all__ = ["RowColumn", "RowSink"]

# The manifest is that of ingested tables, so that an output's arrays can be opened as a table, digests and all.
MANIFEST_FORMAT = "streamkernel.table"
MANIFEST_VERSION = 1
COMPLETE = "COMPLETE"


@dataclass(frozen=True, slots=True)
class RowColumn:
    """One array of the output: (m,) if `width` is None, else (m, width)."""

    width: int | None
    dtype: str

    def shape(self, rows: int) -> tuple[int, ...]:
        """The shape of `rows` rows."""
        return (rows,) if self.width is None else (rows, self.width)


class RowSink:
    """Where the rows of an output go: create it once, send it to the tasks, `write` there, `finish` here.

    Picklable; the copy in another process writes to the same folder. Only the one that `create` returned finishes or
    aborts. As a context manager it aborts unless finished.
    """

    def __init__(
        self,
        target: Path,
        folder: Path,
        n_rows: int,
        chunk_rows: int,
        columns: Mapping[str, RowColumn],
        overwrite: bool,
    ) -> None:
        self.target, self.folder = target, folder
        self.n_rows, self.chunk_rows = n_rows, chunk_rows
        self.columns = dict(columns)
        self.overwrite = overwrite
        self._partial: PartialFolder | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        n_rows: int,
        columns: Mapping[str, tuple[int | None, Any]],
        chunk_rows: int,
        *,
        attributes: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> RowSink:
        """Start an output of `n_rows` rows; it appears at `path` when `finish` is called.

        Parameters
        ----------
        path
            Where the output shall be.
        n_rows
            Rows of the output.
        columns
            Name, then width (None for one value a row) and dtype.
        chunk_rows
            Rows of one chunk; each `write` covers whole chunks.
        attributes
            Plain JSON kept as the group's attributes: which model, which table.
        overwrite
            Whether a former output of rows at `path` may be replaced.

        Raises
        ------
        StoreExistsError
            Something is at `path`; before any work.
        """
        if n_rows <= 0:
            raise EmptyDataError(f"an output of {n_rows} rows at {path}; there is nothing to write")
        if chunk_rows <= 0:
            raise ParameterError(f"chunk_rows is {chunk_rows}; it must be at least 1")
        checked = {name: _column(name, width, dtype) for name, (width, dtype) in columns.items()}
        described = {**plain(dict(attributes or {}), "attributes"), "format": ROWS_FORMAT, "version": 1}
        target = check_target(path, overwrite=overwrite, kind="rows")
        partial = PartialFolder(target)
        try:
            with translated_os_errors(target, "creating"):
                for name, column in checked.items():
                    chunks = column.shape(min(chunk_rows, n_rows))
                    dimensions = ("row", "target")[: len(chunks)]
                    create_array(partial.path, name, column.shape(n_rows), np.dtype(column.dtype), chunks, dimensions)
                write_group(partial.path, described, checked)
        except BaseException:
            partial.remove()
            raise
        sink = cls(target, partial.path, n_rows, min(chunk_rows, n_rows), checked, overwrite)
        sink._partial = partial
        return sink

    def write(self, name: str, start: int, values: ArrayLike) -> dict[str, str]:
        """Write rows `start`, `start` + 1, ... of the array `name`; may be called anywhere, twice, in any order.

        Returns
        -------
        dict
            SHA-256 of the values of each chunk written, by the chunk's key: what `finish` wants to see for every chunk.

        Raises
        ------
        ChunkAlignmentError
            The rows are not whole chunks.
        ShapeMismatchError, DTypeError
            The values do not fit the array.
        """
        if name not in self.columns:
            raise ParameterError(f"the output {self.target} has no array {name!r}; it has {', '.join(self.columns)}")
        column = self.columns[name]
        rows = self._fitting(name, column, values)
        stop = start + len(rows)
        if start < 0 or stop > self.n_rows or not len(rows):
            raise ShapeMismatchError(f"rows {start} to {stop} of {name} are not in an output of {self.n_rows} rows")
        if start % self.chunk_rows or (stop % self.chunk_rows and stop != self.n_rows):
            raise ChunkAlignmentError(
                f"rows {start} to {stop} of {name} are not whole chunks of {self.chunk_rows} rows; align the blocks"
            )
        if not self.folder.is_dir():
            # A straggler must not bring back what was finished or aborted.
            raise StoreNotFoundError(f"the output {self.target} is no longer being written; nothing was written")
        digests = {}
        with translated_os_errors(self.target, "writing"):
            array = open_for_writing(self.folder, name)
            for first in range(start, stop, self.chunk_rows):
                last = min(first + self.chunk_rows, stop)
                chunk = np.ascontiguousarray(rows[first - start : last - start])
                array[first:last] = chunk
                digests[self._key(name, first // self.chunk_rows)] = array_digest(chunk)
        return digests

    def finish(self, digests: Mapping[str, str]) -> None:
        """Check that every chunk was written, write COMPLETE, and give the output its name.

        Parameters
        ----------
        digests
            What the calls of `write` returned, all together.

        Raises
        ------
        MissingChunkError
            A chunk has no digest, or no file; the rest is kept, so that it can be written and `finish` called again.
        """
        partial = self._owned()
        with translated_os_errors(self.target, "finishing"):
            files = list_files(self.folder)
            chunks = -(-self.n_rows // self.chunk_rows)
            keys = {name: [self._key(name, i) for i in range(chunks)] for name in self.columns}
            absent = [key for column in keys.values() for key in column if key not in digests or not files.get(key)]
            if absent:
                raise MissingChunkError(
                    f"{len(absent)} chunks of {self.target} were not written, {absent[0]} first; write them and finish",
                    absent[0],
                )
            arrays = {
                name: {
                    "shape": list(column.shape(self.n_rows)),
                    "chunk_rows": self.chunk_rows,
                    "dtype": np.dtype(column.dtype).name,
                    "digests": [digests[key] for key in keys[name]],
                }
                for name, column in self.columns.items()
            }
            metadata = [ZARR_JSON, *(f"{name}/{ZARR_JSON}" for name in self.columns)]
            manifest = {
                "format": MANIFEST_FORMAT,
                "version": MANIFEST_VERSION,
                "metadata": {key: text_digest((self.folder / key).read_text(encoding="utf-8")) for key in metadata},
                "arrays": arrays,
            }
            write_json(self.folder / COMPLETE, manifest)
        partial.publish(overwrite=self.overwrite)
        self._partial = None

    def abort(self) -> None:
        """Remove what was written; a former output stays as it is. Nothing happens after `finish`."""
        if self._partial is not None:
            self._partial.remove()
            self._partial = None

    def __enter__(self) -> RowSink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def __getstate__(self) -> dict[str, Any]:
        # The lock and the right to finish stay with the creator.
        return {**self.__dict__, "_partial": None}

    def _owned(self) -> PartialFolder:
        if self._partial is None:
            raise StoreNotFoundError(
                f"the output {self.target} was finished or aborted, or was created in another process"
            )
        return self._partial

    def _key(self, name: str, index: int) -> str:
        return chunk_key(name, (index,) if self.columns[name].width is None else (index, 0))

    def _fitting(self, name: str, column: RowColumn, values: ArrayLike) -> np.ndarray[Any, np.dtype[Any]]:
        rows = np.asarray(values)
        if rows.ndim == 0 or rows.shape != column.shape(len(rows)):
            raise ShapeMismatchError(
                f"values of shape {rows.shape} do not fit the array {name} of shape {column.shape(self.n_rows)}"
            )
        dtype = np.dtype(column.dtype)
        if not np.can_cast(rows.dtype, dtype, casting="same_kind"):
            raise DTypeError(f"values of dtype {rows.dtype} do not fit the array {name} of dtype {dtype}; cast them")
        return rows.astype(dtype, copy=False)


def _column(name: str, width: int | None, dtype: Any) -> RowColumn:
    check_name(name)
    if width is not None and width < 1:
        raise ParameterError(f"the array {name} has width {width}; it must be at least 1, or None for one value a row")
    try:
        return RowColumn(width, storable(name, np.empty(0, dtype=dtype)).dtype.name)
    except TypeError as error:
        raise DTypeError(f"the array {name} has dtype {dtype!r}; use a number type") from error
