"""External shuffle: a uniformly random order of any number of rows, in two passes and bounded memory.

Row i gets the key ``k_i = i-th 64-bit word of Philox(seed)``, a counter-based generator, so a key depends only on the
seed and the row number. The shuffled order is the order of the keys (ties, of chance 2^-64 a pair, by row number).

Why it is uniform: keys that are independent and identically distributed are equally likely to be in any of the
m! orders, by symmetry. The method of sorting does not change the order: pass 1 scatters rows into bucket files by the
leading 8 bits of their keys, pass 2 sorts each bucket in memory, and buckets follow one another in the order of those
bits. A bucket that is too large for memory is scattered again by the next 8 bits. So the result does not depend on read
batches, memory limit or number of buckets (the scheme of Rao 1961 and Sandelius 1962, with fixed keys).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import StoreError
from streamkernel.table._row_ids import ID_BYTES
from streamkernel.table.ingest.readers.reader import Rows
from streamkernel.type_aliases import AnyArray, AnyDType, Float

_BITS = 8
_BUCKETS = 1 << _BITS
_BUCKET_BYTES = 1 << 26
_READ_BYTES = 1 << 24


def row_keys(seed: int, start: int, stop: int) -> NDArray[np.uint64]:
    """Keys of rows [start, stop): a part of one endless stream, from any start."""
    # Philox4x64 gives four words per counter value.
    first = start // 4
    generator = np.random.Philox(key=seed, counter=first)
    words = np.asarray(generator.random_raw(stop - 4 * first), dtype=np.uint64)
    return words[start - 4 * first :]


class RowSpool:
    """Rows (key, X, y, w, id) in bucket files beside the store; removed when the block is left.

    Parameters
    ----------
    folder
        A path that does not exist yet, on the file system of the store.
    seed
        Seed of the keys.
    x_dtype, n_features, y_dtype, n_targets
        Types and widths of X and y in a record.
    weighted, named_rows
        Whether a record has a row weight, and an id.
    bucket_bytes
        Buckets up to this size are sorted in memory (pass 2 holds one bucket and a sorted copy of a piece).
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        x_dtype: AnyDType,
        n_features: int,
        y_dtype: AnyDType,
        n_targets: int,
        *,
        weighted: bool = False,
        named_rows: bool = False,
        bucket_bytes: int = _BUCKET_BYTES,
    ) -> None:
        self._folder = folder
        self._seed = seed
        self._bucket_bytes = bucket_bytes
        self._has_y = n_targets > 0
        self._has_w, self._has_id = weighted, named_rows
        self._record = np.dtype(
            [
                ("key", np.uint64),
                ("X", x_dtype, (n_features,)),
                ("y", y_dtype, (n_targets,)),
                ("w", np.float64, (int(weighted),)),
                ("id", np.uint8, (ID_BYTES * int(named_rows),)),
            ]
        )
        self._files: dict[int, BinaryIO] = {}
        self.n_rows = 0
        folder.mkdir()

    def append(self, X: AnyArray, y: AnyArray | None, w: Float | None = None, ids: AnyArray | None = None) -> None:
        """Pass 1: add rows, in the source's order."""
        records = np.empty(X.shape[0], dtype=self._record)
        records["key"] = row_keys(self._seed, self.n_rows, self.n_rows + X.shape[0])
        records["X"] = X
        if y is not None:
            records["y"] = y.reshape(X.shape[0], -1)
        if w is not None:
            records["w"] = w[:, None]
        if ids is not None:
            records["id"] = ids
        self.n_rows += X.shape[0]
        _scatter(records, self._files, self._folder, level=0)

    def rows(self) -> Iterator[Rows]:
        """Pass 2: all rows in shuffled order, piece by piece; each file is removed when it is read.

        Raises
        ------
        StoreError
            There are fewer rows than were added, as where something else removed or cut a file.
        """
        _close(self._files)
        found = 0
        for rows in self._sorted(self._folder, level=0):
            found += len(rows[0])
            yield rows
        if found != self.n_rows:
            raise StoreError(
                f"{self._folder} had {found} of the {self.n_rows} rows that were written there to be shuffled; see "
                "what removes or cuts files in it, then run again"
            )

    def _sorted(self, folder: Path, level: int) -> Iterator[Rows]:
        for path in sorted(folder.iterdir()):
            # After 8 levels the key has no bits left; rows with equal keys stay together.
            if path.stat().st_size <= self._bucket_bytes or level + 1 == 64 // _BITS:
                yield from self._sorted_bucket(path)
            else:
                below = path.with_name(f"{path.name}.d")
                below.mkdir()
                files: dict[int, BinaryIO] = {}
                try:
                    for records in _records(path, self._record):
                        _scatter(records, files, below, level + 1)
                finally:
                    _close(files)
                path.unlink()
                yield from self._sorted(below, level + 1)
                below.rmdir()

    def _sorted_bucket(self, path: Path) -> Iterator[Rows]:
        records = np.fromfile(path, dtype=self._record)
        path.unlink()
        order = np.argsort(records["key"], kind="stable")
        step = max(1, _READ_BYTES // self._record.itemsize)
        for first in range(0, order.size, step):
            piece = records[order[first : first + step]]
            yield (
                piece["X"],
                piece["y"] if self._has_y else None,
                piece["w"][:, 0] if self._has_w else None,
                piece["id"] if self._has_id else None,
            )

    def close(self) -> None:
        """Remove every file."""
        try:
            _close(self._files)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> RowSpool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _scatter(records: AnyArray, files: dict[int, BinaryIO], folder: Path, level: int) -> None:
    """Append each record to the file of bits 8 level .. 8 level + 8 of its key; order within a file is kept."""
    digit = ((records["key"] >> np.uint64(64 - _BITS * (level + 1))) & np.uint64(_BUCKETS - 1)).astype(np.uint8)
    order = np.argsort(digit, kind="stable")
    ends = np.cumsum(np.bincount(digit, minlength=_BUCKETS))
    gathered = records[order]
    start = 0
    for bucket, end in enumerate(ends):
        if end > start:
            if bucket not in files:
                files[bucket] = open(folder / f"{bucket:03d}", "wb", buffering=0)  # noqa: SIM115 (closed by the caller)
            _write(files[bucket], gathered[start:end])
        start = int(end)


def _write(file: BinaryIO, records: AnyArray) -> None:
    # Not by NumPy's tofile. On a full disk its error lacks the number of the system's error, and there is no error for
    # rows that are still in a buffer.
    left = records.view(np.uint8).data
    while left:
        left = left[file.write(left) :]


def _records(path: Path, dtype: AnyDType) -> Iterator[AnyArray]:
    step = max(1, _READ_BYTES // dtype.itemsize)
    with open(path, "rb") as handle:
        while (records := np.fromfile(handle, dtype=dtype, count=step)).size:
            yield records


def _close(files: dict[int, BinaryIO]) -> None:
    for handle in files.values():
        handle.close()
    files.clear()
