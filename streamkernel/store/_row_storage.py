"""Where the chunks of an output of rows are while it is written: in a folder, or in a generation at a URL."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from streamkernel.atomic import array_digest
from streamkernel.blobs import Blobs, LocalBlobs, at_once
from streamkernel.errors import MissingChunkError, StoreNotFoundError
from streamkernel.manifest import manifest_content
from streamkernel.store._arrays import ZARR_JSON
from streamkernel.store._chunk import read_chunk, write_chunk
from streamkernel.store._journal import Journal
from streamkernel.store._row_grid import RowGrid
from streamkernel.type_aliases import AnyArray, FieldsView


class RowStorage:
    """The part of an output of rows that is sent to tasks; they write where they run.

    Parameters
    ----------
    grid : the arrays.
    blobs, prefix : place of the output, and prefix of its keys.
    journal : journal of finished chunks; with it, each chunk is on the disk before it is noted.
    """

    def __init__(self, grid: RowGrid, blobs: Blobs, prefix: str, journal: Journal | None) -> None:
        self.grid, self.blobs, self.prefix, self.journal = grid, blobs, prefix, journal

    @property
    def folder(self) -> str | Path:
        """The folder, or the prefix of the objects' keys."""
        return self.blobs.folder if isinstance(self.blobs, LocalBlobs) else self.prefix

    def create(self, attributes: FieldsView) -> None:
        """Write the metadata of the group and its arrays."""
        for name, content in self.grid.metadata(attributes).items():
            self.blobs.write(self.prefix + name, content)

    def write(self, log: str, key: str, values: AnyArray, shape: tuple[int, ...]) -> str:
        """Write a whole chunk, note it in a log as finished, and return the digest of its values."""
        # On the disk before it is noted as finished, so that a resume after a power failure finds it.
        digest = write_chunk(self.blobs, self.prefix + key, values, shape, durable=self.journal is not None)
        if self.journal is not None:
            self.journal.note(log, key, digest)
        return digest

    def check_open(self, target: object) -> None:
        """Raise `StoreNotFoundError` if the output was finished or aborted meanwhile.

        A late task must not recreate a folder. At a URL it does no harm: it writes the same bytes again, or writes
        below a name that no reader will use.
        """
        if not self.blobs.exists():
            raise StoreNotFoundError(f"the output {target} is no longer being written; nothing was written")

    def read(self, name: str, key: str, first: int, last: int) -> AnyArray | None:
        """Rows [first, last), which are one chunk; None if it is absent or damaged."""
        column = self.grid.columns[name]
        shape = column.shape(self.grid.chunk_rows)
        values = read_chunk(self.blobs, self.prefix + key, shape, np.dtype(column.dtype))
        return None if values is None else values[: last - first]

    def intact(self) -> dict[str, str]:
        """Digest, by key, of every chunk whose values have a digest that was noted for it."""
        noted: Mapping[str, Collection[str]] = {} if self.journal is None else self.journal.entries()
        chunks = [
            (name, key, first, last)
            for name in self.grid.columns
            for index, first, last in self.grid.chunks(0, self.grid.n_rows)
            if (key := self.grid.key(name, index)) in noted
        ]

        def digest(chunk: tuple[str, str, int, int]) -> str | None:
            values = self.read(*chunk)
            found = None if values is None else array_digest(values)
            return found if found in noted[chunk[1]] else None

        # Of a disk, one chunk at a time: several would only need more memory.
        found = list(map(digest, chunks)) if isinstance(self.blobs, LocalBlobs) else at_once(digest, chunks)
        return {chunk[1]: text for chunk, text in zip(chunks, found, strict=True) if text is not None}

    def complete(self, digests: Mapping[str, str], target: object) -> bytes:
        """The content of COMPLETE, the manifest of the finished output.

        Raises
        ------
        MissingChunkError
            A chunk has no digest or no file.
        """
        sizes = {key.removeprefix(self.prefix): stamp.size for key, stamp in self.blobs.stamps(self.prefix).items()}
        keys = [self.grid.key(name, index) for name in self.grid.columns for index in range(self.grid.n_chunks)]
        absent = [key for key in keys if key not in digests or not sizes.get(key)]
        if absent:
            raise MissingChunkError(
                f"{len(absent)} chunks of {target} were not written, {absent[0]} first; write them and finish",
                absent[0],
            )
        # Files that a process left when it was killed in the middle of a chunk.
        for key in filter(lambda key: key.endswith(".partial"), sizes):
            self.blobs.remove(self.prefix + key)
        names = {name: f"{name}/{ZARR_JSON}".lstrip("/") for name in ("", *self.grid.columns)}
        metadata = {name: self.blobs.read(self.prefix + file) or b"" for name, file in names.items()}
        return manifest_content(self.grid.manifests(digests), metadata)
