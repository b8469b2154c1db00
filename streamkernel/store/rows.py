"""Outputs with values for every row of a table (predictions, a factor), written chunk by chunk by many processes.

::

    OUT/zarr.json, OUT/prediction/...    a Zarr v3 group of arrays (m,) or (m, d), cut into chunks along the rows
    OUT/COMPLETE                         grid, dtype and the digest of each chunk, as in ingested tables

Each task writes whole chunks, so two tasks never write one file; a task that runs twice writes the same bytes twice.
`open_table` reads OUT, or one of its arrays, and compares every chunk with its digest.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.atomic import array_digest
from streamkernel.blobs import LocalBlobs, at_once, blobs_at
from streamkernel.errors import CorruptChunkError, MissingChunkError, ParameterError, StoreNotFoundError
from streamkernel.manifest import ROWS_FORMAT, VERSION, manifest_content
from streamkernel.outputs import Building, Kind, building_at, check_target, remove_former, translated_os_errors
from streamkernel.store._arrays import ZARR_JSON
from streamkernel.store._chunk import read_chunk, write_chunk
from streamkernel.store._row_grid import RowGrid
from streamkernel.store._unfinished import Unfinished, unfinished_at
from streamkernel.store.plain import plain
from streamkernel.type_aliases import AnyArray, Fields, FieldsView


class RowSink:
    """An output of rows that tasks write: `create` it once, send it (pickled) to tasks, `write` there, `finish` here.

    Only the object that `create` returned can finish or abort. As a context manager it aborts unless finished.
    """

    def __init__(self, building: Building, grid: RowGrid, overwrite: bool) -> None:
        self.target, self.grid, self.overwrite = building.target, grid, overwrite
        self.chunk_rows, self.columns = grid.chunk_rows, grid.columns
        self._blobs, self._prefix = building.blobs, building.prefix
        self._building: Building | None = building
        self._journal = building.journal if isinstance(building, Unfinished) else None
        self._finished: dict[str, str] = {}

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        n_rows: int,
        columns: Mapping[str, tuple[int | None, Any]],
        chunk_rows: int,
        *,
        attributes: FieldsView | None = None,
        overwrite: bool = False,
        fingerprint: str | None = None,
        resume: bool = False,
    ) -> RowSink:
        """Start an output of `n_rows` rows; it appears at `path` when `finish` is called.

        Parameters
        ----------
        path
            Path or URL of the output.
        n_rows, chunk_rows
            Rows of the output and of one chunk; each `write` covers whole chunks.
        columns
            Name, then width (None for one value a row) and dtype.
        attributes
            Plain JSON, stored as the group's attributes: names of the model and the table, for example.
        overwrite
            Whether an existing output of rows at `path` may be replaced.
        fingerprint
            Digest of all that determines the values. With it, finished chunks are noted and survive this process,
            however it ends, and `abort` leaves them; without it, nothing survives.
        resume
            Whether to go on with the finished chunks of an earlier run (`finished`); all are read and compared with
            their digests. Otherwise they are removed.

        Raises
        ------
        StoreExistsError
            `path` exists; raised before any work.
        CheckpointMismatchError
            The earlier run had another fingerprint, shape, dtype, chunking or attributes; the message lists them.
        RunLockedError
            Another process is writing this output, with a fingerprint.
        """
        if resume and fingerprint is None:
            raise ParameterError("an output without a fingerprint cannot be resumed; give the one it was started with")
        grid = RowGrid.of(n_rows, columns, chunk_rows)
        stored_attributes = {**plain(dict(attributes or {}), "attributes"), "format": ROWS_FORMAT, "version": VERSION}
        kind: Kind = "factor rows" if tuple(columns) == ("G",) else "rows"
        target = check_target(path, overwrite=overwrite, kind=kind)
        config = {"fingerprint": fingerprint, **grid.to_config(), "attributes": stored_attributes}
        building: Building
        if fingerprint is None:
            building = building_at(target, kind)
        else:
            building = unfinished_at(target, kind, config, resume=resume)
        sink = cls(building, grid, overwrite)
        try:
            with translated_os_errors(target, "creating"):
                if isinstance(building, Unfinished) and building.resumed:
                    sink._finished = sink._intact(building.journal.entries())
                    return sink
                for name, content in grid.metadata(stored_attributes).items():
                    sink._blobs.write(sink._prefix + name, content)
                if isinstance(building, Unfinished):
                    building.begin()
        except BaseException:
            building.abandon()
            raise
        return sink

    @property
    def folder(self) -> str | Path:
        """The folder, or the prefix of keys, in which it is built."""
        return self._blobs.folder if isinstance(self._blobs, LocalBlobs) else self._prefix

    def finished(self) -> dict[str, str]:
        """Digests of the chunks that an earlier run finished, by key; `write` skips these chunks."""
        return dict(self._finished)

    def is_finished(self, start: int, stop: int) -> bool:
        """Whether an earlier run finished every chunk of rows [start, stop), which must be whole chunks."""
        return all(
            self.grid.key(name, index) in self._finished
            for name in self.columns
            for index, _, _ in self.grid.chunks(start, stop)
        )

    def write(self, name: str, start: int, values: ArrayLike) -> dict[str, str]:
        """Write rows `start`, `start` + 1, ... of the array `name`; any process may call it, in any order, also twice.

        Returns
        -------
        dict
            Digest of the values of each chunk, by key; `finish` needs it for every chunk.

        Raises
        ------
        ChunkAlignmentError
            The rows are not whole chunks.
        ShapeMismatchError, DTypeError
            The values do not fit the array.
        """
        rows = self.grid.fitting(name, start, values)
        # A late task must not make a folder anew. At a URL it does no harm: it writes the same bytes again, or writes
        # below a name that no reader will use.
        if not self._blobs.exists():
            raise StoreNotFoundError(f"the output {self.target} is no longer being written; nothing was written")
        digests = {}
        with translated_os_errors(self.target, "writing"):
            shape = self.columns[name].shape(self.chunk_rows)
            for index, first, last in self.grid.chunks(start, start + len(rows)):
                key = self.grid.key(name, index)
                if key in self._finished:
                    digests[key] = self._finished[key]
                    continue
                chunk = np.ascontiguousarray(rows[first - start : last - start])
                # On the disk before it is noted as finished, so that a resume after a power failure finds it.
                durable = self._journal is not None
                digests[key] = write_chunk(self._blobs, self._prefix + key, chunk, shape, durable=durable)
                if self._journal is not None:
                    self._journal.note(f"{name}-{start}", key, digests[key])
        return digests

    def read(self, name: str, start: int, stop: int) -> AnyArray:
        """Rows [start, stop) of the array `name`, as stored; they must be whole chunks that an earlier run finished.

        Raises
        ------
        MissingChunkError, CorruptChunkError
            A chunk is not finished, or was lost or damaged after `create` checked it.
        """
        parts = []
        with translated_os_errors(self.target, "reading"):
            for index, first, last in self.grid.chunks(start, stop):
                key = self.grid.key(name, index)
                if key not in self._finished:
                    raise MissingChunkError(f"chunk {key} of {self.target} is not finished; write it first", key)
                values = self._read_chunk(name, key, first, last)
                if values is None or array_digest(values) != self._finished[key]:
                    raise CorruptChunkError(f"chunk {key} of {self.folder} was damaged; resume once more", key)
                parts.append(values)
        return np.concatenate(parts)

    def finish(self, digests: Mapping[str, str]) -> None:
        """Check that every chunk was written, write COMPLETE, and publish the output under its name.

        Parameters
        ----------
        digests
            Results of all calls of `write`, merged; the chunks of `finished` may be left out.

        Raises
        ------
        MissingChunkError
            A chunk has no digest or no file. The rest stays, so that it can be written and `finish` called again.
        """
        if self._building is None:
            raise StoreNotFoundError(
                f"the output {self.target} was finished or aborted, or was created in another process"
            )
        with translated_os_errors(self.target, "finishing"):
            complete = self._manifest({**self._finished, **digests})
        self._building.publish(complete, overwrite=self.overwrite)
        self._building = None

    def abort(self) -> None:
        """Give up; an existing output stays unchanged. With a fingerprint, finished chunks stay for a resume."""
        if self._building is not None:
            self._building.abandon()
            self._building = None

    def _read_chunk(self, name: str, key: str, first: int, last: int) -> AnyArray | None:
        """Rows [first, last), which are one chunk; None if it is absent or damaged."""
        column = self.columns[name]
        shape = column.shape(self.chunk_rows)
        values = read_chunk(self._blobs, self._prefix + key, shape, np.dtype(column.dtype))
        return None if values is None else values[: last - first]

    def _intact(self, noted: Mapping[str, Collection[str]]) -> dict[str, str]:
        """Digest, by key, of every chunk whose values have a digest that was noted for it."""
        chunks = [
            (name, key, first, last)
            for name in self.columns
            for index, first, last in self.grid.chunks(0, self.grid.n_rows)
            if (key := self.grid.key(name, index)) in noted
        ]

        def digest(chunk: tuple[str, str, int, int]) -> str | None:
            values = self._read_chunk(*chunk)
            found = None if values is None else array_digest(values)
            return found if found in noted[chunk[1]] else None

        # Of a disk, one chunk at a time: several would only need more memory.
        found = list(map(digest, chunks)) if isinstance(self._blobs, LocalBlobs) else at_once(digest, chunks)
        return {chunk[1]: text for chunk, text in zip(chunks, found, strict=True) if text is not None}

    def _manifest(self, digests: Mapping[str, str]) -> bytes:
        """The content of COMPLETE."""
        prefix = self._prefix
        sizes = {key.removeprefix(prefix): stamp.size for key, stamp in self._blobs.stamps(prefix).items()}
        keys = [self.grid.key(name, index) for name in self.columns for index in range(self.grid.n_chunks)]
        absent = [key for key in keys if key not in digests or not sizes.get(key)]
        if absent:
            raise MissingChunkError(
                f"{len(absent)} chunks of {self.target} were not written, {absent[0]} first; write them and finish",
                absent[0],
            )
        # Files that a process left when it was killed in the middle of a chunk.
        for key in filter(lambda key: key.endswith(".partial"), sizes):
            self._blobs.remove(prefix + key)
        names = {name: f"{name}/{ZARR_JSON}".lstrip("/") for name in ("", *self.columns)}
        metadata = {name: self._blobs.read(prefix + file) or b"" for name, file in names.items()}
        return manifest_content(self.grid.manifests(digests), metadata)

    def __enter__(self) -> RowSink:
        return self

    def __exit__(self, *exception: object) -> None:
        self.abort()

    def __getstate__(self) -> Fields:
        # Only the creator has the lock and may finish.
        return {**self.__dict__, "_building": None}


def remove_factor_rows(path: str | os.PathLike[str]) -> None:
    """Remove the rows of a factor, whole or unfinished; nothing happens where there are none.

    Raises
    ------
    StoreExistsError
        Something at `path` is not ours.
    RunLockedError
        Another process is writing it.
    """
    target = check_target(path, overwrite=True, kind="factor rows")
    unfinished_at(target, "factor rows", {"arrays": []}, resume=False).withdraw()
    if isinstance(target, str):
        blobs_at(target).remove_below()
    elif target.exists():
        remove_former(target)
