"""One interface for every kind of source: names and types first, then batches of rows in bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from streamkernel.errors import EmptyDataError, ParameterError
from streamkernel.table.ingest.progress import Progress
from streamkernel.table.ingest.readers.options import SourceOptions, absent_column
from streamkernel.table.schema import Schema
from streamkernel.type_aliases import AnyArray, AnyDType, Float
from streamkernel.wording import option

# Approximate limit on the bytes of a batch as float64, for any source.
BATCH_BYTES = 1 << 23

# What a user can do about a missing number of a file.
FILLING = f"fill missing values by {option('missing', 'mean')} (or median, or indicator), or remove those rows"


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows of a source.

    Attributes
    ----------
    X
        (b, p) floats; of a sparse source rows in pairs of columns and values (`streamkernel.pairs`).
    y
        (b, d) numbers; or, where `labels` is given, (b,) positions in it (-1: no label).
    labels
        Text labels that `y` points into.
    done
        Bytes or rows (the reader's unit) that were read for this batch.
    w
        (b,) float64 row weights, where the source has some.
    ids
        (b, 64) ids of the rows, where the source has some (`_row_ids`).
    """

    X: AnyArray
    y: AnyArray | None
    labels: Sequence[Any] | None
    done: int
    w: Float | None = None
    ids: AnyArray | None = None


# X, y, w and ids of consecutive rows.
Rows = tuple[AnyArray, AnyArray | None, Float | None, AnyArray | None]


class Reader(ABC):
    """An open source, with the facts that are known before any row is read.

    Attributes
    ----------
    columns, target_names
        Names.
    weight
        Name of the column of row weights; None without weights.
    id
        Name of the column of ids of the rows; None without ids.
    named
        Whether the names are from the source; an array's columns are x0, x1, ...
    left_out
        Parts of the source that the table will not have, as text.
    dtype
        float32 or float64: dtype of the table for `--dtype keep`.
    labelled
        True where y is text, which becomes labels.
    n_rows
        Exact number of rows where the source states it, else None.
    estimated_rows
        Estimated number of rows, for the chunk size, else None.
    total, unit
        For the progress bar: bytes or rows.
    most_entries
        Of a source whose rows stay sparse, the most entries of a row; else None.
    schema
        What the columns of the source are, where they are not all numbers.
    filling
        What a user can do about a missing number, for messages.
    """

    columns: tuple[str, ...]
    target_names: tuple[str, ...] = ()
    weight: str | None = None
    id: str | None = None
    named: bool = True
    dtype: AnyDType = np.dtype(np.float64)
    left_out: tuple[str, ...] = ()
    labelled: bool = False
    n_rows: int | None = None
    estimated_rows: int | None = None
    total: int | None = None
    unit: str = "rows"
    most_entries: int | None = None
    schema: Schema | None = None
    filling: str = "remove those rows or fill them in"

    _place: str  # name of the source, for messages
    _target: int | None = None  # position of y among the columns of the source
    _weight: int | None = None  # position of the row weights among them

    def prepare(self, watcher: Progress) -> None:
        """Read what must be known before the first batch; all columns have their names then."""
        return

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """The rows, in order, in batches of about 8 MiB."""

    def where(self, row: int) -> str:
        """Place of a row in the source, for messages: file:line where there are lines, else the source."""
        return self._place

    def _choose(
        self, columns: Sequence[str], target: str | int | None, weight: str | int | None, where: Path | str
    ) -> None:
        """Set the names of the features, of the target and of the row weights."""
        if target is not None:
            self._target = position_of(columns, target, "target", where)
            self.target_names = (columns[self._target],)
        if weight is not None:
            self._weight = position_of(columns, weight, "weight", where)
            self.weight = columns[self._weight]
            if self._weight == self._target:
                raise ParameterError(
                    f"{where}: column {self.weight!r} cannot be target and row weight; choose two columns"
                )
        self.columns = tuple(columns[index] for index in self._features(len(columns)))
        if not self.columns:
            given = {"the target": target, "the row weights": weight}
            taken = " and ".join(name for name, value in given.items() if value is not None)
            raise EmptyDataError(f"{where} has no column besides {taken}; give at least one feature")

    def _choose_of(self, names: Sequence[str], options: SourceOptions, where: str) -> list[str]:
        """Set the names of features, target and row weights among the columns of the source; return those to read."""
        target, weight = (
            None if wanted is None else names[position_of(names, wanted, name, where)]
            for wanted, name in ((options.target, "target"), (options.weight, "weight"))
        )
        read = options.columns_of(names, [name for name in (target, weight) if name is not None], where)
        self._choose(read, target, weight, where)
        return read

    def _features(self, width: int) -> list[int]:
        """Positions of the features among the columns of the source."""
        return [index for index in range(width) if index not in (self._target, self._weight)]

    def _split(self, values: AnyArray) -> tuple[AnyArray, AnyArray | None, Float | None]:
        """X, y and w from rows of all columns of the source."""
        y = None if self._target is None else values[:, [self._target]].astype(np.float64)
        w = None if self._weight is None else values[:, self._weight].astype(np.float64)
        taken = [index for index in (self._target, self._weight) if index is not None]
        return np.delete(values, taken, axis=1) if taken else values, y, w


def position_of(columns: Sequence[str], wanted: str | int, name: str, where: Path | str) -> int:
    """Position of the column that an option gives, by name or index.

    A name is tried first. Text that is a whole number but not a name is an index, because a command line passes text.
    """
    try:
        index = columns.index(str(wanted)) if wanted in columns else int(wanted)
    except ValueError:
        index = len(columns)
    if not -len(columns) <= index < len(columns):
        lines = f"; if this is a line of several fields, give {option('separator')}" if len(columns) == 1 else ""
        raise ParameterError(
            absent_column(where, columns, wanted, name, f" (give one of them, or an index, by {option(name)}){lines}")
        )
    return index % len(columns)
