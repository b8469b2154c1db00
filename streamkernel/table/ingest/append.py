"""append_rows: add any source to an existing table, completely or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from streamkernel.blobs import display_form, normalised, translated_os_errors
from streamkernel.errors import DataError, ParameterError, ShapeMismatchError, StoreError, StoreNotFoundError
from streamkernel.table._sparse_rows import SparseRows
from streamkernel.table.info import TableInfo, weight_name
from streamkernel.table.ingest._appended import BatchDigest, check_repeated, place_of, with_batch
from streamkernel.table.ingest._checked import checked_batches, missing_labels
from streamkernel.table.ingest.progress import Progress, as_progress
from streamkernel.table.ingest.readers.csv.format import CsvFormat
from streamkernel.table.ingest.readers.open import has_columns, name_of, open_reader
from streamkernel.table.ingest.readers.options import SourceOptions, targets_of
from streamkernel.table.ingest.readers.reader import Reader
from streamkernel.table.ingest.readers.standard_input import received
from streamkernel.table.ingest.settled import columns_settled
from streamkernel.table.ingest.writers.appending import appending_writer
from streamkernel.table.ingest.writers.locked_table import LockedTable, locked_store
from streamkernel.table.schema import Schema
from streamkernel.table.targets import label_form
from streamkernel.table.values import listed
from streamkernel.type_aliases import AnyArray, Int, Unchecked
from streamkernel.wording import option


def append_rows(
    source: Unchecked,
    store: str | os.PathLike[str],
    *,
    target: str | int | None = None,
    weight: str | int | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    X: str | None = None,
    y: str | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] | None = None,
    unknown: str | None = None,
    repeated: str = "refuse",
    progress: Progress | Callable[[int, int | None, str], object] | None = None,
) -> TableInfo:
    """Stream a source into the Zarr table at `store`, after its existing rows.

    The new rows become those numbered m, m + 1, ...; they are cast to the table's dtype and checked as by `ingest`.
    Processes that opened the store before continue to see the m rows, bit for bit. The cost is one pass over the
    source, and one link per stored chunk. Only the last chunk is copied, where it is not full.

    Parameters
    ----------
    source
        As in `ingest`; with the columns of the table in their order, and its targets. To sparse rows, libsvm text and
        other sparse rows are appended.
    store
        A table that `ingest` made.
    target
        Name or index of the column that is y; by default the column with the target's name in the table.
    weight
        Name or index of the column of row weights, where the table has some; by default the column that gave the
        table its weights.
    separator, decimal, encoding
        Of CSV, as in `ingest`.
    X, y
        Names of arrays, as in `ingest`.
    drop, keep
        Names of columns, as in `ingest`.
    unknown
        What becomes of categories that the table has not, as in `ingest`. All else of its columns is as it was for the
        first rows: the table has their schema.
    repeated
        What becomes of a source with the very rows of an earlier append: "refuse", an error; "skip", nothing is
        appended, so that a job which was killed can be run again; "append", they are appended once more.
    progress
        A `Progress`, or a callable (done, total, unit).

    Raises
    ------
    DataError, StoreError, ParameterError
        One error with the place of the fault; the store is unchanged.
    RunLockedError
        Another process is appending to it.
    """
    began = time.perf_counter()
    check_repeated(repeated)
    form = CsvFormat(separator, decimal, encoding)
    options = SourceOptions(targets_of(target), weight, form, X, y, drop, keep, unknown=unknown, appended=True)
    path = normalised(store)
    if isinstance(path, Path) and not os.path.lexists(path):
        raise StoreNotFoundError(f"there is no store at {path} to append to; check the path, or ingest without append")
    watcher = as_progress(progress)
    with translated_os_errors(path, "writing", "nothing was appended"):
        locked = locked_store(path)
        try:
            with received(source, path, watcher) as rows:
                # Rows of libsvm text have the columns of the table, and stay sparse where its rows are.
                options = replace(options, sparse=locked.table.sparse, columns=locked.table.n_features)
                with columns_settled("such options are those of the first rows: ingest all rows anew with them"):
                    reader = _reader(rows, options, locked)
                    reader.prepare(watcher)
                    _check_names(reader, locked)
                    added = _write(reader, name_of(source), locked, repeated, watcher)
        finally:
            with suppress(StoreError):  # a lease expires by itself
                locked.lock.release()
    return replace(TableInfo.of(display_form(store), seconds=time.perf_counter() - began), appended=added)


def _reader(source: Unchecked, options: SourceOptions, locked: LockedTable) -> Reader:
    """The source, opened with the table's target and weights where it has columns of these names.

    Raises
    ------
    ParameterError
        The table has row weights and the source has not, or the other way round.
    """
    path, weighted = locked.path, locked.table.weights is not None
    target, weight = options.target, options.weight
    if weight is not None and not weighted:
        raise ParameterError(
            f"the rows of {path} have no weights: they count once each; leave {option('weight')} out, or ingest all "
            "rows anew with it"
        )
    schema = locked.attributes.get("schema")
    if schema is not None:
        if not has_columns(source):
            raise ParameterError(
                f"the rows of {path} were made of columns by a schema, and {name_of(source)} has numbers only; give "
                "CSV, Parquet or Arrow files, or a frame, with the columns of the first rows"
            )
        # The columns of the rows that are there: categories and fills are those of the first ones.
        options = replace(options, schema=Schema.from_config(schema, f"the schema of {path}"))
    names = locked.attributes["target_names"]
    known = target is not None or options.y is not None or len(names) != 1 or schema is not None
    targets = [target] if known else [names[0], None]
    # A source with its own y or weights (arrays in files, other tables) has no column to name.
    weights = (
        [weight] if weight is not None or not weighted or schema is not None else [weight_name(locked.attributes), None]
    )
    *choices, last = [replace(options, targets=targets_of(y), weight=w) for y, w in product(targets, weights)]
    for choice in choices:
        with suppress(ParameterError):
            reader = open_reader(source, choice)
            break
    else:
        reader = open_reader(source, last)
    if weighted and reader.weight is None:
        raise ParameterError(
            f"the rows of {path} have weights, of column {weight_name(locked.attributes)!r}, and the source has no "
            f"such column; give rows with it, or name another by {option('weight')}"
        )
    if not weighted and reader.weight is not None:
        raise ParameterError(
            f"the source has row weights, and the rows of {path} have none: they count once each; give rows without "
            f"weights, or ingest all rows anew with {option('weight')}"
        )
    return reader


def _check_names(reader: Reader, locked: LockedTable) -> None:
    path, attributes = locked.path, locked.attributes
    for what, wanted, found in (
        ("columns", locked.table.columns, reader.columns),
        ("targets", attributes["target_names"], reader.target_names),
    ):
        if what == "targets" and wanted and not found:
            raise ShapeMismatchError(
                f"the rows of {path} have the target {listed(wanted)}, and the source has none; give rows with it"
            )
        if list(wanted) != list(found):
            raise ShapeMismatchError(
                f"{path} has the {len(wanted)} {what} {listed(wanted)}, the source {len(found)}: {listed(found)}; "
                f"give rows with the same {what} in the same order"
            )
    if attributes.get("id") is not None and reader.id is None:
        raise ShapeMismatchError(
            f"the rows of {path} have ids, of column {attributes['id']!r}, and the source has no such column; give "
            "rows with it"
        )
    classes = attributes["classes"]
    if reader.labelled and classes is None:
        raise DataError(
            f"the targets of the source are labels, those of {path} are numbers; give rows with targets of one kind"
        )


def _write(reader: Reader, name: str, locked: LockedTable, repeated: str, watcher: Progress) -> int:
    """Append the rows, and return their number: 0 where they are there and are not to be repeated."""
    classes = locked.attributes["classes"]
    labels = None if classes is None else _KnownLabels(reader, classes, locked.path)
    before = locked.table.n_rows
    X = locked.table.features
    kind = X.parts.data.dtype if isinstance(X, SparseRows) else X.dtype
    earlier, digest = locked.attributes.get("appended") or {}, BatchDigest(sparse=isinstance(X, SparseRows))
    with appending_writer(locked, reader.most_entries) as writer:
        for rows in checked_batches(reader, kind, labels, watcher):
            digest.add(rows)
            writer.append(*rows)
        added = writer.rows_given - before
        if not added:
            raise DataError("the source has no rows; give at least one")
        place = place_of(digest.value, earlier)
        if place is not None and repeated == "skip":
            return 0
        if place is not None and repeated == "refuse":
            raise DataError(
                f"the rows of {name} were appended before, and are rows {place[0]}:{place[1]} of {locked.path}: "
                f"nothing was appended; give {option('repeated', 'skip')} if they are to be there once, or "
                f"{option('repeated', 'append')} to append them once more"
            )
        appended = with_batch(earlier, before, added, digest.value)
        writer.finish({**locked.attributes, "appended": appended}, overwrite=True)
    return added


class _KnownLabels:
    """Labels of a table; the labels of the source must be among them."""

    def __init__(self, reader: Reader, classes: Sequence[Any], path: str | Path) -> None:
        self._reader, self._path, self._count = reader, path, len(classes)
        # A table of an earlier version has labels as its file wrote them.
        self._codes = {label_form(label): code for code, label in reversed([*enumerate(classes)])}
        self._codes |= {label: code for code, label in enumerate(classes)}

    def encode(self, y: AnyArray | None, labels: Unchecked, start: int) -> Int:
        """Codes (b, 1) of a batch, given as positions in its own labels, or as numeric labels."""
        assert y is not None
        flat = y.reshape(-1)
        if labels is None:
            labels, flat = np.unique(flat, return_inverse=True)
            labels = labels.tolist()
        missing_labels(self._reader, flat, start)
        # 1.0 and 1 are the same key of a dict.
        table = np.array([self._codes.get(label, -1) for label in labels], dtype=np.int64)
        codes: Int = table[flat].reshape(-1, 1)
        if (codes < 0).any():
            row = int(np.flatnonzero(codes[:, 0] < 0)[0])
            raise DataError(
                f"label {labels[int(flat[row])]!r} in row {start + row}, in {self._reader.where(start + row)}, is none "
                f"of the {self._count} classes of {self._path}; ingest all rows anew to add a class"
            )
        return codes
