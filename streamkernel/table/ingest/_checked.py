"""The checks of a source's batches: values that a table must not hold are refused before they are written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from streamkernel.errors import DataError, NonFiniteDataError, NumericRangeError, warn_user
from streamkernel.pairs import values_in
from streamkernel.table.ingest.progress import Progress
from streamkernel.table.ingest.readers.reader import Reader, Rows
from streamkernel.table.schema.suggest import date_formats, have_signs
from streamkernel.table.targets import MAX_CLASSES, warn_of_variants
from streamkernel.table.values import check_finite, check_weights
from streamkernel.type_aliases import AnyArray, AnyDType, Bool, Float, Int, Unchecked
from streamkernel.wording import option

# With at least this many distinct labels, and at most this share of them not numbers, the column is numeric with a few
# faulty entries.
_FEWEST_NUMBERS, _MOST_ODD = 20, 0.05
_FEWEST_STEPS = 1000  # of the table's dtype, between the least and the largest value of a column


class Labels(Protocol):
    """Class labels as codes."""

    def encode(self, y: AnyArray | None, labels: Unchecked, start: int) -> Int:
        """Codes (b, 1) of a batch that begins with row `start`."""


def checked_batches(reader: Reader, kind: AnyDType, labels: Labels | None, watcher: Progress) -> Iterator[Rows]:
    """X, y, w and ids of batches, with labels as provisional codes.

    A missing or infinite value raises, one that is too large for `kind`, and a negative weight. Columns whose values
    `kind` cannot tell apart are warned of.
    """
    watcher.start(reader.total, reader.unit)
    row, steps = 0, _Steps(kind)
    try:
        for batch in reader.batches():
            X = _checked_features(batch.X, reader, kind, row)
            steps.add(batch.X, X)
            y = batch.y
            if labels is not None:
                y = labels.encode(batch.y, batch.labels or (), row)
            elif y is not None:
                check_finite(y, row, reader.target_names, reader.where, "y")
            if batch.w is not None:
                check_weights(batch.w, row, reader.where, reader.weight)
            yield X, y, batch.w, batch.ids
            row += X.shape[0]
            watcher.advance(batch.done)
    finally:
        watcher.finish()
    steps.warn(reader.columns)


class _Steps:
    """The columns whose values lie so close together that the table's dtype has few steps between them.

    Seconds since 1970 are an example: float32 has steps of 128 s there.

    Parameters
    ----------
    kind : dtype of the table.
    """

    def __init__(self, kind: AnyDType) -> None:
        self._kind = kind
        self._least: Float = np.zeros(0)
        self._most: Float = np.zeros(0)
        self._rounded: Bool = np.zeros(0, dtype=bool)

    def add(self, given: AnyArray, stored: AnyArray) -> None:
        """Add a batch, as it was given and as it is stored."""
        if given is stored or not len(given):
            return
        if not self._rounded.size:
            p = given.shape[1]
            self._least, self._most = np.full(p, np.inf), np.full(p, -np.inf)
            self._rounded = np.zeros(p, dtype=bool)
        np.minimum(self._least, given.min(axis=0), out=self._least)
        np.maximum(self._most, given.max(axis=0), out=self._most)
        self._rounded |= (given != stored).any(axis=0)

    def warn(self, columns: Sequence[str]) -> None:
        """Warn of columns with rounded values and less than `_FEWEST_STEPS` steps from the least to the largest."""
        width = self._most - self._least
        step = np.spacing(np.maximum(np.abs(self._least), np.abs(self._most)).astype(self._kind)).astype(np.float64)
        few = np.flatnonzero(self._rounded & (width > 0.0) & (step * _FEWEST_STEPS > width))
        if few.size:
            first = few[0]
            more = f", and those of {few.size - 1} more" if few.size > 1 else ""
            warn_user(
                f"{self._kind} is too coarse for column {columns[first]!r}: its values lie within {width[first]:.3g}, "
                f"near {self._most[first]:.3g}, where {self._kind} has steps of {step[first]:.3g}{more}; ingest with "
                f"{option('dtype', 'float64')}"
            )


def _checked_features(X: AnyArray, reader: Reader, kind: AnyDType, row: int) -> AnyArray:
    """Features of a batch, of which `row` is the first row, in the dtype of the table; rows in pairs stay float64."""
    sparse = reader.most_entries is not None
    values = values_in(X) if sparse else X

    def column_of(i: int, place: int) -> str:
        return reader.columns[int(X[i, place]) if sparse else place]

    if sparse and not np.isfinite(values).all():
        i, place = (int(each) for each in np.argwhere(~np.isfinite(values))[0])
        names = {place: column_of(i, place)}
        check_finite(values, row, [names.get(each, "") for each in range(place + 1)], reader.where, "X", reader.filling)
    if not sparse:
        check_finite(values, row, reader.columns, reader.where, "X", reader.filling)
    with np.errstate(over="ignore"):
        cast = values.astype(kind, copy=False)
    if cast is not values and not np.isfinite(cast).all():
        i, place = (int(each) for each in np.argwhere(~np.isfinite(cast))[0])
        raise NumericRangeError(
            f"{values[i, place]:.3g} in row {row + i}, column {column_of(i, place)!r}, in {reader.where(row + i)} "
            f"is beyond {kind}; ingest with {option('dtype', 'float64')}"
        )
    return X if sparse else cast


def missing_labels(reader: Reader, codes: AnyArray, start: int) -> None:
    """Refuse rows without a label, whose codes are negative."""
    missing = np.flatnonzero(codes < 0)
    if missing.size:
        row = start + int(missing[0])
        raise NonFiniteDataError(
            f"y has {missing.size:,} missing label{'' if missing.size == 1 else 's'}, first in row {row}, column "
            f"{reader.target_names[0]!r}, in {reader.where(row)}; remove those rows (an empty field, NA, null and the "
            "like are no label)"
        )


class FoundLabels:
    """Text labels found so far, with codes in the order of their first rows; sorted at the end."""

    def __init__(self, reader: Reader) -> None:
        self._codes: dict[Any, int] = {}
        self._first_rows: dict[Any, int] = {}
        self._reader = reader

    def encode(self, y: AnyArray | None, labels: Unchecked, start: int) -> Int:
        """Provisional codes (b, 1) for a batch's own codes."""
        assert y is not None
        missing_labels(self._reader, y, start)
        used, first = np.unique(y, return_index=True)
        table = np.full(len(labels), -1, dtype=np.int64)
        for code, row in zip(used, first.tolist(), strict=True):
            table[code] = self._codes.setdefault(labels[code], len(self._codes))
            self._first_rows.setdefault(labels[code], start + row)
        if len(self._codes) > MAX_CLASSES:
            self._refuse_numbers()
            raise DataError(
                f"column {self._reader.target_names[0]!r} has more than {MAX_CLASSES} distinct labels up to "
                f"{self._reader.where(max(self._first_rows.values()))}: it does not look like a class; choose another "
                f"{option('target')}"
            )
        codes: Int = table[y].reshape(-1, 1)
        return codes

    def finished(self) -> tuple[list[Any], Int]:
        """Sorted labels, and the final code of each provisional one."""
        self._refuse_numbers()
        self._refuse_values()
        warn_of_variants(self._codes, f"column {self._reader.target_names[0]!r}", self._first_place)
        labels = sorted(self._codes)
        order = np.empty(len(labels), dtype=np.int64)
        for code, label in enumerate(labels):
            order[self._codes[label]] = code
        return labels, order

    def _refuse_values(self) -> None:
        """Refuse many dates, or numbers with other signs, each of which would be a class."""
        if len(self._codes) < _FEWEST_NUMBERS:
            return
        labels = list(self._codes)
        signed = have_signs(labels)
        if signed or date_formats(pa.array(labels, pa.string())):
            raise DataError(
                f"column {self._reader.target_names[0]!r} holds "
                f"{'numbers with other signs' if signed else 'dates'}, such as {labels[0]!r} in "
                f"{self._first_place(labels[0])}, each of which would be a class; write numbers alone, such as 1234.5, "
                f"or choose another {option('target')}"
            )

    def _first_place(self, label: Any) -> str:
        return self._reader.where(self._first_rows[label])

    def _refuse_numbers(self) -> None:
        """Refuse a numeric column in which a few text values would turn every number into a class."""
        odd = [label for label in self._codes if not _is_finite_number(label)]
        if not odd or len(self._codes) < _FEWEST_NUMBERS or len(odd) > _MOST_ODD * len(self._codes):
            return
        row = self._first_rows[odd[0]]
        raise DataError(
            f"column {self._reader.target_names[0]!r} holds numbers, but for {len(odd)} values, first {odd[0]!r} in "
            f"row {row}, in {self._reader.where(row)}; remove those rows or fill them in (labels of classes are text)"
        )


def _is_finite_number(label: Any) -> bool:
    try:
        return math.isfinite(float(label))
    except (TypeError, ValueError):
        return False
