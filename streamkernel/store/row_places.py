"""Places of the chunks of an output of rows while it is written: files of a folder, or objects of a generation."""

from __future__ import annotations

import math
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from streamkernel.atomic import array_digest
from streamkernel.blobs import at_once, blobs_at, download, upload
from streamkernel.errors import StoreNotFoundError
from streamkernel.manifest import COMPLETE, write_manifest
from streamkernel.store.arrays import ZARR_JSON, list_files, open_for_writing, write_group
from streamkernel.store.chunk_file import fill_rows, write_chunk
from streamkernel.store.intact import read_chunk
from streamkernel.store.journal import Journal
from streamkernel.store.row_grid import RowGrid

__all__ = ["FolderRows", "ObjectRows", "RowPlace"]


class RowPlace(ABC):
    """The place that is sent to tasks; they write where they run.

    Attributes
    ----------
    folder : path of the folder, or prefix of the objects' keys.
    """

    folder: str | Path

    @abstractmethod
    def create(self, grid: RowGrid, attributes: Mapping[str, Any]) -> None:
        """Write the metadata of the group and its arrays."""

    @abstractmethod
    def check_open(self, target: object) -> None:
        """Raise `StoreNotFoundError` if the output was finished or aborted meanwhile."""

    @abstractmethod
    def write(self, log: str, key: str, chunk: NDArray[Any], shape: tuple[int, ...]) -> str:
        """Write a whole chunk, note it in a log as finished, and return the digest of its values."""

    @abstractmethod
    def read(self, grid: RowGrid, name: str, key: str, first: int, last: int) -> NDArray[Any] | None:
        """Rows [first, last), which are one chunk; None if it is absent or damaged."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Size in bytes of all files or objects, by key."""

    @abstractmethod
    def complete(self, grid: RowGrid, digests: Mapping[str, str]) -> bytes:
        """Write COMPLETE, the manifest of the finished output, and return its content."""

    def intact(self, grid: RowGrid, noted: Mapping[str, Collection[str]]) -> dict[str, str]:
        """Digest, by key, of every chunk whose values have a digest that was noted for it."""
        chunks = [
            (name, key, first, last)
            for name in grid.columns
            for index, first, last in grid.chunks(0, grid.n_rows)
            if (key := grid.key(name, index)) in noted
        ]

        def digest(chunk: tuple[str, str, int, int]) -> str | None:
            values = self.read(grid, *chunk)
            found = None if values is None else array_digest(values)
            return found if found in noted[chunk[1]] else None

        found = self.each(digest, chunks)
        return {chunk[1]: text for chunk, text in zip(chunks, found, strict=True) if text is not None}

    @staticmethod
    def each(action: Any, items: list[Any]) -> list[Any]:
        """The results of the action for every item, in order."""
        return [action(item) for item in items]


class FolderRows(RowPlace):
    """Files of a folder.

    Parameters
    ----------
    folder : folder that becomes the output.
    journal : journal of finished chunks; with it, each chunk is on the disk before it is noted.
    """

    folder: Path

    def __init__(self, folder: Path, journal: Journal | None) -> None:
        self.folder, self.journal = folder, journal

    def create(self, grid: RowGrid, attributes: Mapping[str, Any]) -> None:
        grid.create(self.folder)
        write_group(self.folder, attributes, grid.columns)

    def check_open(self, target: object) -> None:
        if not self.folder.is_dir():
            # A late task must not recreate an output that was finished or aborted.
            raise StoreNotFoundError(f"the output {target} is no longer being written; nothing was written")

    def write(self, log: str, key: str, chunk: NDArray[Any], shape: tuple[int, ...]) -> str:
        # On the disk before it is noted as finished, so that a resume after a power failure finds it.
        digest = write_chunk(self.folder / key, chunk, shape, durable=self.journal is not None)
        if self.journal is not None:
            self.journal.note(log, key, digest)
        return digest

    def read(self, grid: RowGrid, name: str, key: str, first: int, last: int) -> NDArray[Any] | None:
        return read_chunk(open_for_writing(self.folder, name), self.folder / key, first, last)

    def sizes(self) -> dict[str, int]:
        return list_files(self.folder)

    def complete(self, grid: RowGrid, digests: Mapping[str, str]) -> bytes:
        # Remove files that a process left when it was killed in the middle of a chunk.
        for key in filter(lambda key: key.endswith(".partial"), self.sizes()):
            (self.folder / key).unlink(missing_ok=True)
        write_manifest(self.folder, grid.manifests(digests))
        return (self.folder / COMPLETE).read_bytes()


class ObjectRows(RowPlace):
    """Objects of a generation that nobody reads yet; each chunk is one put.

    A late task does no harm: it writes the same bytes again, or writes below a name that no reader will use.

    Parameters
    ----------
    url : URL of the output.
    prefix : prefix of the generation's keys.
    journal : prefix of the keys of notes; a note is an empty object, and its key holds chunk and digest.
    """

    folder: str

    def __init__(self, url: str, prefix: str, journal: str | None) -> None:
        self.blobs = blobs_at(url)
        self.folder, self.journal = prefix, journal

    def create(self, grid: RowGrid, attributes: Mapping[str, Any]) -> None:
        with tempfile.TemporaryDirectory(prefix="streamkernel-") as around:
            made = Path(around)
            grid.create(made)
            write_group(made, attributes, grid.columns)
            upload(made, self.blobs, self.folder)

    def check_open(self, target: object) -> None:
        return

    def write(self, log: str, key: str, chunk: NDArray[Any], shape: tuple[int, ...]) -> str:
        parts = [part.reshape(-1).view(np.uint8) for part in (chunk, fill_rows(chunk, shape))]
        checksum = 0
        for part in parts:
            checksum = google_crc32c.extend(checksum, part)
        self.blobs.write(self.folder + key, b"".join([*(part.data for part in parts), checksum.to_bytes(4, "little")]))
        digest = array_digest(chunk)
        if self.journal is not None:
            self.blobs.write(f"{self.journal}{key}/{digest}", b"")
        return digest

    def read(self, grid: RowGrid, name: str, key: str, first: int, last: int) -> NDArray[Any] | None:
        column = grid.columns[name]
        shape, dtype = column.shape(grid.chunk_rows), np.dtype(column.dtype)
        content = self.blobs.read(self.folder + key)
        if content is None or len(content) != math.prod(shape) * dtype.itemsize + 4:
            return None
        numbers = np.frombuffer(content, np.uint8)[:-4]
        if google_crc32c.extend(0, numbers) != int.from_bytes(content[-4:], "little"):
            return None
        return numbers.view(dtype).reshape(shape)[: last - first]

    def sizes(self) -> dict[str, int]:
        return {key.removeprefix(self.folder): stamp.size for key, stamp in self.blobs.stamps(self.folder).items()}

    def complete(self, grid: RowGrid, digests: Mapping[str, str]) -> bytes:
        with tempfile.TemporaryDirectory(prefix="streamkernel-") as around:
            made = Path(around)
            names = [ZARR_JSON, *(f"{name}/{ZARR_JSON}" for name in grid.columns)]
            download(self.blobs, [self.folder + name for name in names], self.folder, made)
            write_manifest(made, grid.manifests(digests))
            content = (made / COMPLETE).read_bytes()
        self.blobs.write(self.folder + COMPLETE, content)
        return content

    def noted(self) -> dict[str, set[str]]:
        """Every digest noted for each chunk."""
        found: dict[str, set[str]] = {}
        if self.journal is not None:
            for note in self.blobs.keys(self.journal):
                key, _, digest = note.removeprefix(self.journal).rpartition("/")
                found.setdefault(key, set()).add(digest)
        return found

    @staticmethod
    def each(action: Any, items: list[Any]) -> list[Any]:
        return at_once(action, items)
