"""More rows for an ingested table: a new generation of its folder, in which the chunks that do not change are links.

::

    STORE/X/c/0/0, .../1/0     full chunks: the same files, under both names while both generations are there
    STORE/X/c/2/0              the last chunk, if it is not full: written anew, with its old rows in front
    STORE/X/c/3/0, ...         new chunks
    STORE/COMPLETE             digests of all, and what the readers of the earlier generations pinned (`manifest.py`)

The new folder takes the store's name in one step, so that whoever opens the store finds the old rows or all of them.
Whoever had opened it goes on with the old rows: their chunks are where they were, and begin with what they held.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from streamkernel.atomic import HeldLock, fsync_path
from streamkernel.errors import InputChangedError, ParameterError, RunLockedError
from streamkernel.manifest import COMPLETE, Ancestor, Manifest, parse_manifest
from streamkernel.table.ingest.writer import ChunkWriter
from streamkernel.table.open import open_table
from streamkernel.table.rows import RowReader
from streamkernel.table.table import Table
from streamkernel.table.zarr_metadata import open_store

__all__ = ["AppendingWriter", "Grown", "locked_store"]

# Of file systems that have no links, or not between these two files.
_NO_LINKS = {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.EACCES}
_OPEN_AGAIN = 10


class Grown:
    """An ingested table to which rows are to be appended, as it is now.

    Attributes
    ----------
    path : of its folder.
    lock : on the folder; whoever holds it is the only one to append.
    table, manifest : as opened under the lock.
    """

    def __init__(self, path: Path, lock: HeldLock) -> None:
        self.path, self.lock = path, lock
        self.table: Table = open_table(path)
        if self.table.statistics is None:
            raise ParameterError(f"{path} is not a table that was ingested; ingest it, and append to the new store")
        complete = path / COMPLETE
        self.manifest: Manifest = parse_manifest(complete.read_text("utf-8"), str(complete))
        self.attributes: dict[str, Any] = zarr.open_group(str(path), mode="r").attrs.asdict()

    @property
    def chunk_rows(self) -> int:
        """Rows of a chunk."""
        return self.table.chunk_rows

    @property
    def full_rows(self) -> int:
        """Rows in full chunks."""
        return self.table.n_rows // self.chunk_rows * self.chunk_rows

    def check_current(self) -> None:
        """Raise `InputChangedError` where the store was replaced in spite of the lock, by an ingest that overwrites."""
        if not self.lock.still_at(self.path):
            raise InputChangedError(
                f"{self.path} was replaced while rows were being appended to it; nothing was appended: run again"
            )


def locked_store(path: Path) -> Grown:
    """The table at a path, for the only process that may append to it; what killed ones left behind is removed.

    Raises
    ------
    StoreError, ParameterError
        There is no whole table that `ingest` made.
    RunLockedError
        Another process is appending.
    """
    # A link to a folder stays a link.
    path = Path(os.path.realpath(path))
    open_store(path)
    for _ in range(_OPEN_AGAIN):
        lock = HeldLock.acquire(path)
        if lock is None:
            break
        # Another process may have put a new generation there between the two lines.
        if lock.still_at(path):
            _remove_strays(path)
            return Grown(path, lock)
        lock.release()
    raise RunLockedError(f"another process is appending rows to {path}; wait for it and run again")


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.append.{uuid.uuid4().hex[:8]}.partial")


def _remove_strays(path: Path) -> None:
    stray = re.compile(rf"\.{re.escape(path.name)}\.append\.[0-9a-f]{{8}}\.partial")
    for folder in path.parent.iterdir():
        if stray.fullmatch(folder.name):
            shutil.rmtree(folder, ignore_errors=True)


class AppendingWriter(ChunkWriter):
    """The next generation of a table, begun with the rows that it has; `finish` puts it in the old one's place."""

    def __init__(self, grown: Grown) -> None:
        self._grown = grown
        table = grown.table
        targets = table.targets
        super().__init__(
            grown.path,
            table.n_features,
            0 if targets is None else targets.rows.width,
            table.features.dtype,
            grown.chunk_rows,
            coded=targets is not None and targets.coded,
        )

    def _begin(self) -> tuple[zarr.Group, dict[str, zarr.Array[Any]]]:
        grown, table = self._grown, self._grown.table
        assert table.statistics is not None
        self._partial = _partial(grown.path)
        full, rows = grown.full_rows, table.n_rows
        rewritten = () if full == rows else tuple(f"{name}/c/{full // self._chunk_rows}" for name in ("X", "y"))
        link_tree(grown.path, self._partial, rewritten)
        group = zarr.open_group(str(self._partial), mode="r+")
        for name, manifest in grown.manifest.arrays.items():
            self._digests[name] = list(manifest.digests[: full // self._chunk_rows])
        self._statistics = {"X": table.statistics.X, "y": table.statistics.y}
        self._history = (*grown.manifest.history, Ancestor.of(grown.manifest))
        self.n_rows, self._counted = full, rows
        if rows > full:
            self._append_stored(full, rows)
        arrays: dict[str, Any] = {name: group[name] for name in grown.manifest.arrays}
        return group, arrays

    def _append_stored(self, first: int, last: int) -> None:
        """The rows of the last chunk, which is not full, into the buffer: to be written with the new ones."""
        table = self._grown.table
        self._X[: last - first] = RowReader(table.features).read(first, last)
        if self._y is not None:
            assert table.targets is not None
            self._y[: last - first] = RowReader(table.targets.rows).read(first, last).reshape(last - first, -1)
        self._filled = last - first

    def finish(self, attributes: dict[str, Any], *, overwrite: bool) -> None:
        """Write the last chunk, attributes and COMPLETE, and put the folder in the place of the old one."""
        self._grown.check_current()
        super().finish(attributes, overwrite=overwrite)

    def append(self, X: NDArray[Any], y: NDArray[Any] | None) -> None:
        """More rows, already checked."""
        super().append(X, None if y is None else np.asarray(y).reshape(X.shape[0], -1))


def link_tree(source: Path, target: Path, without: Iterable[str] = ()) -> None:
    """Make `target` a folder of links to the files of `source`; metadata, which will change, is copied.

    Parameters
    ----------
    without
        Files and folders, by their paths in `source`, that are left out.
    """
    left_out = set(without)
    target.mkdir()
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
