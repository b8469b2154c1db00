"""ingest: any source into a checked Zarr table, in bounded memory, completely or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from streamkernel.blobs import display_form, normalised, parent_of
from streamkernel.errors import (
    ParameterError,
    StoreAccessError,
    StoreNotFoundError,
)
from streamkernel.outputs import building_at, check_output, translated_os_errors
from streamkernel.table._chunk_rows import default_chunk_rows, sparse_chunk_rows
from streamkernel.table.info import TableInfo
from streamkernel.table.ingest._checked import FoundLabels, checked_batches
from streamkernel.table.ingest._declared import AUTO, declared_schema
from streamkernel.table.ingest._scratch import scratch_folder
from streamkernel.table.ingest.progress import Progress, as_progress
from streamkernel.table.ingest.readers.csv.format import CsvFormat
from streamkernel.table.ingest.readers.open import column_stream, name_of, open_reader
from streamkernel.table.ingest.readers.options import SourceOptions, targets_of
from streamkernel.table.ingest.readers.reader import Reader, Rows
from streamkernel.table.ingest.readers.standard_input import received
from streamkernel.table.ingest.writers.shuffle import RowSpool
from streamkernel.table.ingest.writers.sparse_writer import SparseWriter
from streamkernel.table.ingest.writers.writer import ChunkWriter
from streamkernel.table.schema import Schema
from streamkernel.table.values import DTypeName
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option

_MAX_CHUNK_ROWS = 1 << 30


def ingest(
    source: Unchecked,
    store: str | os.PathLike[str],
    *,
    target: str | int | Sequence[str | int] | None = None,
    weight: str | int | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    X: str | None = None,
    y: str | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] | None = None,
    sparse: bool | None = None,
    columns: int | None = None,
    schema: Unchecked = None,
    categories: Sequence[str] = (),
    dates: Sequence[str] = (),
    missing: str | None = None,
    unknown: str | None = None,
    id: str | None = None,
    chunk_rows: int | None = None,
    dtype: DTypeName = "float32",
    shuffle: bool = False,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | Callable[[int, int | None, str], object] | None = None,
) -> TableInfo:
    """Stream a source into the Zarr table at `store`.

    Memory stays within a few batches and chunks of about 8 MiB each, for a source of any size. With `shuffle` it holds
    one bucket of 64 MiB more, and the disk a copy of the rows: beside `store`, or for a URL among temporary files. Text
    targets become class labels. Numeric targets, also whole numbers, stay numbers (``open_table(classify=True)`` reads
    them as labels). y is stored as float64.

    Parameters
    ----------
    source
        Path of a CSV (.csv, .tsv; also .gz, .bz2, .zst), Parquet or Arrow file (.feather, .arrow), of a folder of such
        files or a pattern (``part-*.csv``, ``data/**/*.parquet``), or a list of such paths: files of one kind with the
        same columns, in any order; .npz (X, y), .npy, libsvm text (.libsvm, .svm, .txt), Zarr array or group; "-",
        CSV from the standard input; a `synthetic://` table; a frame of pandas, polars or pyarrow, or of Dask, which is
        computed by partitions, once for each pass; or rows of any other kind that `open_table` takes.
    store
        Path of the new table, whose folder must exist, or a URL such as ``s3://bucket/table``.
    target
        Name or index of the column that is y; a list of several, whose values are numbers.
    weight
        Name or index of the column of row weights (at least 0; a row counts as if it stood w_i times), which is no
        feature then. It may name another array of an .npz file or a Zarr group. A table that has weights keeps them.
    separator, decimal, encoding
        Of CSV: the letter between two fields, or "tab" (by default the comma, semicolon or tab in the first line); "."
        or "," in numbers; any text encoding that Python knows.
    X, y
        Names of the arrays that are X and y, of an .npz file, a Zarr group or an xarray Dataset.
    drop, keep
        Of CSV, Parquet and Arrow files: names of columns to leave out, or of the only ones that are features. What is
        left out may hold anything, such as text.
    sparse
        Of libsvm text: True to store the entries of rows alone, False to make rows dense. By default rows stay sparse
        with more than 1,000 columns, of which less than 5 % of the values are entries, and no row is filled by more
        than a quarter. Other sparse rows (``open_table(X, y, sparse=True)``, a store of them) stay so, unless False.
    columns
        Of libsvm text: the number of columns, where other rows have larger indices than these; by default the largest
        index. An index beyond it is refused.
    schema
        Of CSV, Parquet and Arrow files and of frames: what each column is and what becomes of it. A `Schema`, its plain
        JSON, the path of a JSON or TOML file, or "auto": what a look at the first rows suggests. Columns that are not
        in it are left out. Without these six options all columns are numbers.
    categories, dates
        Names of columns that are categories (one-hot; with more than 32, mean targets), or dates (elapsed time, and the
        positions in year, week and day).
    missing
        What becomes of missing values: "refuse", "mean", "median", or "indicator" (the mean, and a column that tells).
    unknown
        What becomes of later rows' categories that these rows have not: "refuse", or "ignore" (zeros, or the mean).
    id
        Name of the column that tells which row it is: no feature. Ids are stored as text of at most 64 bytes, and are a
        column of predictions that are written as a CSV or Parquet file.
    chunk_rows
        Rows of a chunk; by default about 8 MiB of X, a power of two between 1,024 and 65,536.
    dtype
        dtype of X: "float32", "float64", or "keep".
    shuffle, seed
        Store the rows in a uniformly random order, which depends only on the seed and the number of rows.
    overwrite
        Replace a table at `store`, once the new one is complete.
    progress
        A `Progress`, or a callable (done, total, unit).

    Raises
    ------
    DataError, StoreError, ParameterError
        One error with the place of the fault; nothing is left behind, and an existing `store` is unchanged.
    """
    began = time.perf_counter()
    _check_options(chunk_rows, dtype, seed)
    options = SourceOptions(
        targets_of(target),
        weight,
        CsvFormat(separator, decimal, encoding),
        X,
        y,
        drop,
        keep,
        sparse,
        columns,
        schema,
        categories,
        dates,
        missing,
        unknown,
        id,
    )
    path = normalised(store)
    _check_output(path, overwrite)
    watcher = as_progress(progress)
    with (
        translated_os_errors(path, "writing", "nothing was left behind"),
        received(source, path, watcher) as rows,
    ):
        reader = open_reader(rows, options)
        reader.prepare(watcher)
        _write(reader, source, path, chunk_rows, dtype, seed if shuffle else None, overwrite, watcher)
    return TableInfo.of(display_form(store), seconds=time.perf_counter() - began)


def _write(
    reader: Reader,
    source: Unchecked,
    path: str | Path,
    chunk_rows: int | None,
    dtype: DTypeName,
    seed: int | None,
    overwrite: bool,
    watcher: Progress,
) -> None:
    kind = reader.dtype if dtype == "keep" else np.dtype(dtype)
    features, width, most = len(reader.columns), len(reader.target_names), reader.most_entries
    # Sparse rows are in pairs, which have room for the entries of the fullest row.
    held, x_dtype = (features, kind) if most is None else (2 * most, np.dtype(np.float64))
    labels = FoundLabels(reader) if reader.labelled else None
    with ExitStack() as stack:
        spool, with_rows = None, {"weighted": reader.weight is not None, "named_rows": reader.id is not None}
        if seed is not None:
            y_dtype = np.dtype(np.int64 if reader.labelled else np.float64)
            around = stack.enter_context(scratch_folder(path))
            spool = stack.enter_context(RowSpool(around / "rows", seed, x_dtype, held, y_dtype, width, **with_rows))
        rows = checked_batches(reader, kind, labels, watcher)
        n_rows = reader.n_rows or reader.estimated_rows
        if spool is not None:
            for each in rows:
                spool.append(*each)
            n_rows = spool.n_rows
        step = chunk_rows or default_chunk_rows(held * x_dtype.itemsize, n_rows)
        if most is not None and chunk_rows is None:
            step = sparse_chunk_rows(most, step)
        building = building_at(path, "table")
        coded = labels is not None
        if most is None:
            made = ChunkWriter(building, features, width, kind, step, coded=coded, **with_rows)
        else:
            made = SparseWriter(
                building, features, width, kind, step, most=most, coded=coded, weighted=with_rows["weighted"]
            )
        writer = stack.enter_context(made)
        for each in rows if spool is None else _watched(spool, watcher):
            writer.append(*each)
        attributes: Fields = {
            **({"columns": list(reader.columns), "named": reader.named} if most is None else {}),
            "left_out": list(reader.left_out),
            "target_names": list(reader.target_names),
            "classes": None,
            "source": name_of(source),
            "seed": seed,
        }
        if reader.weight is not None:
            attributes["weight"] = reader.weight
        if reader.id is not None:
            attributes["id"] = reader.id
        if reader.schema is not None:
            attributes["schema"] = reader.schema.to_config()
        if labels is not None:
            attributes["classes"], order = labels.finished()
            writer.relabel(order)
        writer.finish(attributes, overwrite=overwrite)


def _watched(spool: RowSpool, watcher: Progress) -> Iterator[Rows]:
    watcher.start(spool.n_rows, "rows")
    try:
        for rows in spool.rows():
            yield rows
            watcher.advance(rows[0].shape[0])
    finally:
        watcher.finish()


def _check_options(chunk_rows: int | None, dtype: str, seed: int) -> None:
    if chunk_rows is not None and (
        isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int) or not 1 <= chunk_rows <= _MAX_CHUNK_ROWS
    ):
        raise ParameterError(
            f"{option('chunk_rows')} must be a whole number from 1 to {_MAX_CHUNK_ROWS}, not {chunk_rows!r}",
            value=chunk_rows,
        )
    if dtype not in ("keep", "float32", "float64"):
        raise ParameterError(f"{option('dtype')} must be 'keep', 'float32' or 'float64', not {dtype!r}", value=dtype)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise ParameterError(f"{option('seed')} must be a whole number from 0 to 2^64 - 1, not {seed!r}", value=seed)


def _check_output(path: str | Path, overwrite: bool) -> None:
    if isinstance(path, str):
        parent_of(path)  # not a whole bucket
        check_output(path, "table", overwrite=overwrite)
        return
    if not path.parent.is_dir():
        raise StoreNotFoundError(f"the folder {path.parent} for the store does not exist; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise StoreAccessError(f"the folder {path.parent} may not be written by this user; choose another path")
    with translated_os_errors(path, "writing", "nothing was changed"):
        check_output(path, "table", overwrite=overwrite)


def names_in(
    source: Unchecked, *, separator: str | None = None, decimal: str = ".", encoding: str = "utf-8"
) -> tuple[list[str], bool]:
    """Names of the columns of CSV, Parquet or Arrow files or of a frame, and whether they are from the source.

    Raises
    ------
    DataError, StoreError, ParameterError
        As of `ingest`.
    """
    options = SourceOptions(csv=CsvFormat(separator, decimal, encoding))
    stream = column_stream(source, options)
    return list(stream.names), stream.named


def suggest_schema(
    source: Unchecked,
    *,
    target: str | int | Sequence[str | int] | None = None,
    weight: str | int | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    drop: Sequence[str] = (),
    keep: Sequence[str] | None = None,
    schema: Unchecked = None,
    categories: Sequence[str] = (),
    dates: Sequence[str] = (),
    missing: str | None = None,
    unknown: str | None = None,
    id: str | None = None,
    progress: Progress | Callable[[int, int | None, str], object] | None = None,
) -> Schema:
    """The schema that a look at the first 100,000 rows suggests, for `ingest`; parameters as there.

    The standard input is copied to the temporary files first; `progress` is told of that.

    Raises
    ------
    DataError, StoreError, ParameterError
        As of `ingest`.
    """
    options = SourceOptions(
        targets_of(target),
        weight,
        CsvFormat(separator, decimal, encoding),
        drop=drop,
        keep=keep,
        schema=AUTO if schema is None else schema,
        categories=categories,
        dates=dates,
        missing=missing,
        unknown=unknown,
        id=id,
    )
    with received(source, None, as_progress(progress)) as rows:
        return declared_schema(column_stream(rows, options), name_of(source), options)
