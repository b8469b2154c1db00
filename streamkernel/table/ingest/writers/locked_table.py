"""An ingested table that is locked for appending by one process, on a disk or at a URL."""

from __future__ import annotations

import errno
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from streamkernel.atomic import HeldLock, fsync_path
from streamkernel.blobs import Lock, PathLock, blobs_at, lease_of, normalised
from streamkernel.errors import CorruptMetadataError, InputChangedError, ParameterError, RunLockedError
from streamkernel.manifest import COMPLETE, Manifest, parse_manifest
from streamkernel.outputs import Building, GenerationBuilding, PartialFolder, remove_stray_partials
from streamkernel.table._sparse_rows import SPARSE_ARRAYS, SparseRows
from streamkernel.table.open import open_table
from streamkernel.table.stored.blob_store import BlobStore
from streamkernel.table.stored.metadata import node_kind, open_store, read_bytes
from streamkernel.table.table import Table

# Errors of file systems without hard links, or without one between these two files.
_NO_LINKS = {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.EACCES}
_REPLACED = "{} was replaced while rows were being appended to it; nothing was appended: run again"


class LockedTable(ABC):
    """The current state of a locked table.

    Attributes
    ----------
    path : path of its folder, or its URL.
    lock : lock that allows one process to append.
    table, manifest, attributes : parts of the table, opened under the lock.
    chunk_rows, full_rows : rows of a chunk; rows in full chunks.
    kept : number of the first chunks of each array that stay as they are, by name.
    """

    def __init__(self, path: str | Path, lock: Lock) -> None:
        self.path, self.lock = path, lock
        try:
            self._open()
        except BaseException:
            lock.release()
            raise

    def _open(self) -> None:
        path = self.path
        self.table: Table = open_table(path, sparse=True)
        if self.table.statistics is None:
            raise ParameterError(f"{path} is not a table that was ingested; ingest it, and append to the new store")
        self.store = open_store(path)
        _, self.attributes, _ = node_kind(self.store, "")
        complete = (read_bytes(self.store, COMPLETE) or b"").decode()
        self.manifest: Manifest = parse_manifest(complete, f"{path}/{COMPLETE}")
        arrays, X = self.manifest.arrays, self.table.features
        of_rows = {"y": self.table.targets, "w": self.table.weights, "id": self.table.ids}
        names = {name for name, part in of_rows.items() if part is not None}
        if arrays.keys() != names | ({*SPARSE_ARRAYS} if isinstance(X, SparseRows) else {"X"}):
            raise CorruptMetadataError(
                f"{path}/{COMPLETE} lists other arrays than the table has; write the store again"
            )
        # Sparse rows may be read in smaller chunks than those that the arrays beside them have.
        self.chunk_rows = next((arrays[name].chunk_rows for name in sorted(names)), self.table.chunk_rows)
        self.full_rows = self.table.n_rows // self.chunk_rows * self.chunk_rows
        ends = dict.fromkeys(arrays, self.full_rows)
        if isinstance(X, SparseRows):
            ends |= X.sizes_at(self.full_rows) | {"statistics": 0}
        self.kept = {name: ends[name] // array.chunk_rows for name, array in arrays.items()}

    @abstractmethod
    def building(self) -> Building:
        """The building of the next generation; it holds a copy of the present metadata."""

    def check_current(self) -> None:
        """Raise `InputChangedError` if an ingest with overwrite replaced the store in spite of the lock.

        At a URL, raise `RunLockedError` if the lease was lost.
        """
        self.lock.check()


class LockedFolder(LockedTable):
    """A table on a disk; chunks that do not change become links.

    Raises
    ------
    RunLockedError
        Another process is appending.
    """

    def __init__(self, path: Path) -> None:
        # Lock the folder that a symbolic link leads to: the link itself must stay.
        folder = Path(os.path.realpath(path))
        open_store(folder)
        held = HeldLock.acquire_current(folder)
        if held is None:
            raise RunLockedError(f"another process is appending rows to {folder}; wait for it and run again")
        super().__init__(folder, PathLock(held, folder, _REPLACED.format(folder), InputChangedError))

    def _open(self) -> None:
        folder = Path(self.path)
        remove_stray_partials(folder.parent, folder.name)
        # Names of an earlier release.
        remove_stray_partials(folder.parent, f"{folder.name}.append")
        super()._open()

    def building(self) -> Building:
        folder = Path(self.path)
        rewritten = [
            f"{name}/c/{chunk}"
            for name, array in self.manifest.arrays.items()
            for chunk in range(self.kept[name], len(array.digests))
        ]
        made = PartialFolder(folder, "table", grown=True)
        try:
            link_tree(folder, made.folder, rewritten)
        except BaseException:
            made.abandon()
            raise
        return made


class LockedObjects(LockedTable):
    """A table at a URL; unchanged chunks stay in their generations.

    Raises
    ------
    RunLockedError
        Another process is appending.
    """

    def __init__(self, url: str) -> None:
        node_kind(open_store(url), "")  # raises where there is no table, before the lease creates an object
        busy = f"another process is appending rows to {url}; wait for it and run again"
        super().__init__(url, lease_of(blobs_at(url), "APPEND", busy))

    def building(self) -> Building:
        store = self.store
        assert isinstance(store, BlobStore)
        first = self.full_rows // self.chunk_rows
        firsts = {name: chunk for name, chunk in self.kept.items() if chunk != first}
        made = GenerationBuilding(str(self.path), grown=store.generation, first=first, firsts=firsts)
        try:
            for name in ("", *self.manifest.arrays):
                key = f"{name}/zarr.json".lstrip("/")
                content = store.read(key)
                if content is None or store.follow():
                    raise InputChangedError(_REPLACED.format(self.path))
                (made.folder / name).mkdir(parents=True, exist_ok=True)
                (made.folder / key).write_bytes(content)
        except BaseException:
            made.abandon()
            raise
        return made


def locked_store(path: str | os.PathLike[str]) -> LockedTable:
    """Lock the table at a path or URL, so that only this process appends; remove the files that killed processes left.

    Raises
    ------
    StoreError, ParameterError
        There is no complete table that `ingest` made.
    RunLockedError
        Another process is appending.
    """
    place = normalised(path)
    return LockedObjects(place) if isinstance(place, str) else LockedFolder(place)


def link_tree(source: Path, target: Path, without: Iterable[str] = ()) -> None:
    """Fill the folder `target` with links to the files of `source`; metadata is copied, because it will change.

    Parameters
    ----------
    without
        Files and folders to leave out, by their paths in `source`.
    """
    left_out = set(without)
    target.mkdir(exist_ok=True)
    for folder, folders, files in os.walk(source):
        here = Path(folder).relative_to(source)
        for name in list(folders):
            inner = here / name
            if (source / inner).is_symlink():
                os.symlink(os.readlink(source / inner), target / inner)
                folders.remove(name)
            elif inner.as_posix() in left_out:
                folders.remove(name)
            else:
                (target / inner).mkdir()
        for name in files:
            inner = here / name
            if inner.as_posix() in left_out or inner.as_posix() == COMPLETE or name.endswith(".partial"):
                continue
            if name == "zarr.json":
                shutil.copyfile(source / inner, target / inner)
            else:
                _link(source / inner, target / inner)
    with suppress(OSError):
        shutil.copystat(source, target)
    fsync_path(target)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(source, target, follow_symlinks=False)
