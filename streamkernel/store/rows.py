"""Outputs with values for every row of a table (predictions, a factor), written chunk by chunk by many processes.

::

    OUT/zarr.json, OUT/prediction/...    a Zarr v3 group of arrays (m,) or (m, d), cut into chunks along the rows
    OUT/COMPLETE                         grid, dtype and the digest of each chunk, as ingested tables have it

Each task writes whole chunks, so that no two ever write one file; a task that runs twice writes the same bytes twice.
`open_table` reads OUT, or one of its arrays, and compares every chunk with its digest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamkernel.atomic import array_digest
from streamkernel.errors import CorruptChunkError, MissingChunkError, ParameterError, StoreNotFoundError
from streamkernel.manifest import ROWS_FORMAT, VERSION
from streamkernel.outputs import Kind, translated_os_errors
from streamkernel.store.building import Building, building_of
from streamkernel.store.partial import check_target
from streamkernel.store.plain import plain
from streamkernel.store.row_grid import RowColumn, RowGrid
from streamkernel.store.row_places import RowPlace

__all__ = ["RowColumn", "RowSink"]


class RowSink:
    """Where the rows of an output go: create it once, send it (pickled) to the tasks, `write` there, `finish` here.

    Only the one that `create` returned finishes or aborts. As a context manager it aborts unless finished.
    """

    def __init__(self, building: Building, grid: RowGrid, overwrite: bool, finished: dict[str, str]) -> None:
        self.target, self.grid, self.overwrite = building.target, grid, overwrite
        self._building: Building | None = building
        self._rows: RowPlace = building.rows
        self._finished = finished

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
        fingerprint: str | None = None,
        resume: bool = False,
    ) -> RowSink:
        """Start an output of `n_rows` rows; it appears at `path` when `finish` is called.

        Parameters
        ----------
        path
            Where the output shall be.
        n_rows, chunk_rows
            Rows of the output and of one chunk; each `write` covers whole chunks.
        columns
            Name, then width (None for one value a row) and dtype.
        attributes
            Plain JSON kept as the group's attributes: which model, which table.
        overwrite
            Whether a former output of rows at `path` may be replaced.
        fingerprint
            Of all that determines the values. With it, chunks that are finished are noted and outlive this process,
            whatever ends it, and `abort` keeps them; without it nothing is kept.
        resume
            Go on with the finished chunks of an earlier run (`finished`), all read and compared with their digests;
            otherwise they are forgotten.

        Raises
        ------
        StoreExistsError
            Something is at `path`; before any work.
        CheckpointMismatchError
            The earlier run had another fingerprint, shape, dtype, chunking or attributes; the message lists them.
        RunLockedError
            The output is being written, with a fingerprint, by another process.
        """
        if resume and fingerprint is None:
            raise ParameterError("an output without a fingerprint cannot be resumed; give the one it was started with")
        grid = RowGrid.of(n_rows, columns, chunk_rows)
        described = {**plain(dict(attributes or {}), "attributes"), "format": ROWS_FORMAT, "version": VERSION}
        kind: Kind = "factor rows" if tuple(columns) == ("G",) else "rows"
        target = check_target(path, overwrite=overwrite, kind=kind)
        config = {"fingerprint": fingerprint, **grid.to_config(), "attributes": described}
        building = building_of(target, kind, None if fingerprint is None else config, resume=resume)
        try:
            with translated_os_errors(target, "creating"):
                if building.resumed:
                    return cls(building, grid, overwrite, building.rows.intact(grid, building.noted))
                building.rows.create(grid, described)
                building.begin()
        except BaseException:
            building.abandon()
            raise
        return cls(building, grid, overwrite, {})

    @property
    def folder(self) -> str | Path:
        """Where it is built."""
        return self._rows.folder

    @property
    def n_rows(self) -> int:
        """Rows of the output."""
        return self.grid.n_rows

    @property
    def chunk_rows(self) -> int:
        """Rows of one chunk."""
        return self.grid.chunk_rows

    @property
    def columns(self) -> dict[str, RowColumn]:
        """The arrays by name."""
        return self.grid.columns

    def finished(self) -> dict[str, str]:
        """Digests of the chunks that an earlier run finished, by their keys; they are not written again."""
        return dict(self._finished)

    def is_finished(self, start: int, stop: int) -> bool:
        """Whether an earlier run finished every chunk of rows [start, stop), which are whole chunks."""
        return all(
            self.grid.key(name, index) in self._finished
            for name in self.columns
            for index, _, _ in self.grid.chunks(start, stop)
        )

    def write(self, name: str, start: int, values: ArrayLike) -> dict[str, str]:
        """Write rows `start`, `start` + 1, ... of the array `name`; may be called anywhere, twice, in any order.

        Returns
        -------
        dict
            Digest of the values of each chunk, by the chunk's key: what `finish` wants to see for every chunk.

        Raises
        ------
        ChunkAlignmentError
            The rows are not whole chunks.
        ShapeMismatchError, DTypeError
            The values do not fit the array.
        """
        rows = self.grid.fitting(name, start, values)
        self._rows.check_open(self.target)
        digests = {}
        with translated_os_errors(self.target, "writing"):
            shape = self.columns[name].shape(self.chunk_rows)
            for index, first, last in self.grid.chunks(start, start + len(rows)):
                key = self.grid.key(name, index)
                if key in self._finished:
                    digests[key] = self._finished[key]
                    continue
                chunk = np.ascontiguousarray(rows[first - start : last - start])
                digests[key] = self._rows.write(f"{name}-{start}", key, chunk, shape)
        return digests

    def read(self, name: str, start: int, stop: int) -> NDArray[Any]:
        """Rows [start, stop) of the array `name`, whole chunks that an earlier run finished, as they are stored.

        Raises
        ------
        MissingChunkError, CorruptChunkError
            One is not among them, or was lost or damaged since `create` looked.
        """
        parts = []
        with translated_os_errors(self.target, "reading"):
            for index, first, last in self.grid.chunks(start, stop):
                key = self.grid.key(name, index)
                if key not in self._finished:
                    raise MissingChunkError(f"chunk {key} of {self.target} is not finished; write it first", key)
                values = self._rows.read(self.grid, name, key, first, last)
                if values is None or array_digest(values) != self._finished[key]:
                    raise CorruptChunkError(f"chunk {key} of {self.folder} was damaged; resume once more", key)
                parts.append(values)
        return np.concatenate(parts)

    def finish(self, digests: Mapping[str, str]) -> None:
        """Check that every chunk was written, write COMPLETE, and give the output its name.

        Parameters
        ----------
        digests
            What the calls of `write` returned, all together; those of `finished` need not be among them.

        Raises
        ------
        MissingChunkError
            A chunk has no digest, or no file; the rest is kept, so that it can be written and `finish` called again.
        """
        if self._building is None:
            raise StoreNotFoundError(
                f"the output {self.target} was finished or aborted, or was created in another process"
            )
        known = {**self._finished, **digests}
        with translated_os_errors(self.target, "finishing"):
            files = self._rows.sizes()
            keys = [self.grid.key(name, index) for name in self.columns for index in range(self.grid.n_chunks)]
            absent = [key for key in keys if key not in known or not files.get(key)]
            if absent:
                raise MissingChunkError(
                    f"{len(absent)} chunks of {self.target} were not written, {absent[0]} first; write them and finish",
                    absent[0],
                )
            complete = self._rows.complete(self.grid, known)
        self._building.publish(complete, overwrite=self.overwrite)
        self._building = None

    def abort(self) -> None:
        """Give up; a former output stays as it is. Finished chunks are kept for a resume if there is a fingerprint."""
        if self._building is not None:
            self._building.abandon()
            self._building = None

    def __enter__(self) -> RowSink:
        return self

    def __exit__(self, *exception: object) -> None:
        self.abort()

    def __getstate__(self) -> dict[str, Any]:
        # The lock and the right to finish stay with the creator.
        return {**self.__dict__, "_building": None}
