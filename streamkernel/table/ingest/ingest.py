"""ingest: any source into a checked Zarr table, in bounded memory, whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.atomic import partial_sibling
from streamkernel.errors import (
    DataError,
    NonFiniteDataError,
    NumericRangeError,
    ParameterError,
    SourceFormatError,
    StoreAccessError,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
    StreamKernelError,
)
from streamkernel.table.info import TableInfo
from streamkernel.table.ingest.csv import CsvReader
from streamkernel.table.ingest.libsvm import LibsvmReader
from streamkernel.table.ingest.numpy_files import NpyReader, NpzReader
from streamkernel.table.ingest.parquet import ParquetReader
from streamkernel.table.ingest.progress import Progress, as_progress
from streamkernel.table.ingest.reader import Reader
from streamkernel.table.ingest.shuffle import RowSpool
from streamkernel.table.ingest.tables import TableReader
from streamkernel.table.ingest.writer import ChunkWriter, default_chunk_rows
from streamkernel.table.open import open_table
from streamkernel.table.targets import MAX_CLASSES
from streamkernel.table.values import DTypeName, check_finite

__all__ = ["ingest", "open_reader"]

_BY_SUFFIX: dict[str, Callable[[Path, str | int | None], Reader]] = {
    ".csv": CsvReader,
    ".parquet": ParquetReader,
    ".pq": ParquetReader,
    ".npz": NpzReader,
    ".npy": NpyReader,
    ".libsvm": LibsvmReader,
    ".svm": LibsvmReader,
    ".txt": LibsvmReader,
}
_MAX_CHUNK_ROWS = 1 << 30


def ingest(
    source: Any,
    store: str | os.PathLike[str],
    *,
    target: str | int | None = None,
    chunk_rows: int | None = None,
    dtype: DTypeName = "float32",
    shuffle: bool = False,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | Callable[[int, int | None, str], object] | None = None,
) -> TableInfo:
    """Stream a source into the Zarr table at `store`.

    Memory stays within a few batches and chunks of about 8 MiB each (and, with `shuffle`, one bucket of 64 MiB and a
    disk copy beside `store`), however large the source is. Text targets become class labels; numeric ones,
    whole numbers too, stay numbers (``open_table(classify=True)`` takes them as labels). y is kept as float64.

    Parameters
    ----------
    source
        Path of a .csv[.gz], Parquet file or folder, .npz (X, y), .npy, libsvm text (.libsvm, .svm, .txt), Zarr array or
        group; or rows in memory, whatever `open_table` takes.
    store
        Where the table is made; its folder must exist.
    target
        Name or index of the column that is y.
    chunk_rows
        Rows of a chunk; by default about 8 MiB of X, a power of two between 1,024 and 65,536.
    dtype
        Of X: "float32", "float64", or "keep".
    shuffle, seed
        Store the rows in a uniformly random order that depends on the seed and the number of rows alone.
    overwrite
        Replace a table at `store`: only once the new one is whole.
    progress
        A `Progress`, or a callable (done, total, unit).

    Raises
    ------
    DataError, StoreError, ParameterError
        One error for whatever is wrong, with its place; nothing is left behind and an existing `store` is untouched.
    """
    began = time.perf_counter()
    _check_options(chunk_rows, dtype, seed, target)
    path = Path(store)
    _check_output(path, overwrite)
    watcher = as_progress(progress)
    try:
        reader = open_reader(source, target)
        _write(reader, source, path, chunk_rows, dtype, seed if shuffle else None, overwrite, watcher)
    except StreamKernelError:
        raise
    except PermissionError as error:
        raise StoreAccessError(
            f"{error.filename or path}: permission denied; ask for access or choose another path"
        ) from error
    except OSError as error:
        what = error.strerror or str(error)
        raise StoreError(
            f"writing {path} failed: {what}; free space or choose another disk (nothing was left behind)"
        ) from error
    return TableInfo.of(path, seconds=time.perf_counter() - began)


def open_reader(source: Any, target: str | int | None) -> Reader:
    """The reader for a source, chosen by what it is and then by its suffix."""
    if not isinstance(source, (str, os.PathLike)):
        table = open_table(source) if not hasattr(source, "data_vars") else open_table(source, target=target)
        return TableReader(table, None if hasattr(source, "data_vars") else target, type(source).__name__)
    text = os.fspath(source)
    path = Path(text)
    if "://" in text or any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")):
        return TableReader(open_table(text), target, text)
    if not os.path.lexists(path):
        raise StoreNotFoundError(f"there is no source at {path}; check the path (nothing was created)")
    if not os.access(path, os.R_OK):
        raise StoreAccessError(f"{path} may not be read by this user; ask for access")
    if path.is_dir():
        return ParquetReader(path, target)
    suffix = path.suffixes[-2] if path.suffix == ".gz" and len(path.suffixes) > 1 else path.suffix
    kind = _BY_SUFFIX.get(suffix.lower())
    if kind is None or (path.suffix == ".gz" and suffix != ".csv"):
        raise ParameterError(
            f"{path}: a source is .csv, .csv.gz, .parquet (or a folder of them), .npz, .npy, .libsvm, .svm, .txt, "
            "or a Zarr array or group"
        )
    if path.stat().st_size == 0:
        raise SourceFormatError(f"{path}:1:1: the file is empty; give a header and rows")
    return kind(path, target)


def _write(
    reader: Reader,
    source: Any,
    path: Path,
    chunk_rows: int | None,
    dtype: DTypeName,
    seed: int | None,
    overwrite: bool,
    watcher: Progress,
) -> None:
    kind = reader.dtype if dtype == "keep" else np.dtype(dtype)
    features, width = len(reader.columns), len(reader.target_names)
    labels = _Labels(reader) if reader.labelled else None
    with ExitStack() as stack:
        spool = None
        if seed is not None:
            y_dtype = np.dtype(np.int64 if reader.labelled else np.float64)
            spool = stack.enter_context(RowSpool(partial_sibling(path), seed, kind, features, y_dtype, width))
        rows = _checked(reader, kind, labels, watcher)
        n_rows = reader.n_rows or reader.estimated_rows
        if spool is not None:
            for X, y in rows:
                spool.append(X, y)
            n_rows = spool.n_rows
        step = chunk_rows or default_chunk_rows(features * kind.itemsize, n_rows)
        writer = stack.enter_context(ChunkWriter(path, features, width, kind, step, coded=labels is not None))
        for X, y in rows if spool is None else _watched(spool, watcher):
            writer.append(X, y)
        attributes: dict[str, Any] = {
            "columns": list(reader.columns),
            "target_names": list(reader.target_names),
            "classes": None,
            "source": os.path.basename(os.fspath(source))
            if isinstance(source, (str, os.PathLike))
            else type(source).__name__,
            "seed": seed,
        }
        if labels is not None:
            attributes["classes"], order = labels.finished()
            writer.relabel(order)
        writer.finish(attributes, overwrite=overwrite)


def _watched(spool: RowSpool, watcher: Progress) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None]]:
    watcher.start(spool.n_rows, "rows")
    try:
        for X, y in spool.rows():
            yield X, y
            watcher.advance(X.shape[0])
    finally:
        watcher.finish()


def _checked(
    reader: Reader, kind: np.dtype[Any], labels: _Labels | None, watcher: Progress
) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None]]:
    """Batches, refused where a value is missing, infinite or too large for `kind`, labels as provisional codes."""
    watcher.start(reader.total, reader.unit)
    row = 0
    try:
        for batch in reader.batches():
            check_finite(batch.X, row, reader.columns, reader.where, "X")
            with np.errstate(over="ignore"):
                X = batch.X.astype(kind, copy=False)
            if X is not batch.X and not np.isfinite(X).all():
                bad, column = np.argwhere(~np.isfinite(X))[0]
                raise NumericRangeError(
                    f"{batch.X[bad, column]:.3g} in row {row + int(bad)}, column {reader.columns[column]!r}, in "
                    f"{reader.where(row + int(bad))} "
                    f"is beyond {kind}; ingest with --dtype float64"
                )
            y = batch.y
            if labels is not None:
                y = labels.encode(batch.y, batch.labels or (), row)
            elif y is not None:
                check_finite(y, row, reader.target_names, reader.where, "y")
            yield X, y
            row += X.shape[0]
            watcher.advance(batch.done)
    finally:
        watcher.finish()


class _Labels:
    """Text labels met so far, with codes in the order of meeting; sorted at the end."""

    def __init__(self, reader: Reader) -> None:
        self._codes: dict[Any, int] = {}
        self._reader = reader

    def encode(self, y: NDArray[Any] | None, labels: Any, start: int) -> NDArray[np.int64]:
        """Codes (b, 1) of a batch's own codes."""
        assert y is not None
        missing = np.flatnonzero(y < 0)
        if missing.size:
            row = start + int(missing[0])
            name = self._reader.target_names[0]
            raise NonFiniteDataError(
                f"y has {missing.size} missing labels, first in row {row}, column {name!r}, in "
                f"{self._reader.where(row)}; remove those rows"
            )
        used = np.unique(y)
        table = np.full(len(labels), -1, dtype=np.int64)
        for code in used:
            table[code] = self._codes.setdefault(labels[code], len(self._codes))
        if len(self._codes) > MAX_CLASSES:
            raise DataError(
                f"column {self._reader.target_names[0]!r} has more than {MAX_CLASSES} distinct labels: it does "
                "not look like a class; choose another --target"
            )
        codes: NDArray[np.int64] = table[y].reshape(-1, 1)
        return codes

    def finished(self) -> tuple[list[Any], NDArray[np.int64]]:
        """Sorted labels, and the final code of each provisional one."""
        labels = sorted(self._codes)
        order = np.empty(len(labels), dtype=np.int64)
        for code, label in enumerate(labels):
            order[self._codes[label]] = code
        return labels, order


def _check_options(chunk_rows: int | None, dtype: str, seed: int, target: object) -> None:
    if chunk_rows is not None and (
        isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int) or not 1 <= chunk_rows <= _MAX_CHUNK_ROWS
    ):
        raise ParameterError(f"chunk_rows must be a whole number from 1 to {_MAX_CHUNK_ROWS}, got {chunk_rows!r}")
    if dtype not in ("keep", "float32", "float64"):
        raise ParameterError(f"dtype must be 'keep', 'float32' or 'float64', got {dtype!r}")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise ParameterError(f"seed must be a whole number from 0 to 2^64 - 1, got {seed!r}")
    if target is not None and (isinstance(target, bool) or not isinstance(target, (str, int))):
        raise ParameterError(f"target must be a column's name or index, got {target!r}")


def _check_output(path: Path, overwrite: bool) -> None:
    if not path.parent.is_dir():
        raise StoreNotFoundError(f"the folder {path.parent} for the store does not exist; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise StoreAccessError(f"the folder {path.parent} may not be written by this user; choose another path")
    if not os.path.lexists(path):
        return
    if not overwrite:
        raise StoreExistsError(f"{path} exists; choose another path or ask for overwrite")
    ours = path.is_dir() and any((path / name).exists() for name in ("zarr.json", ".zgroup", ".zarray"))
    if not ours and not (path.is_dir() and not any(path.iterdir())):
        # Overwriting removes the whole folder: a mistyped path must not cost someone else's files.
        raise StoreExistsError(
            f"{path} is not a Zarr store and is not overwritten; remove it yourself or choose another path"
        )
