"""One interface for every kind of source: names and types first, then batches of rows in bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from streamkernel.errors import EmptyDataError, ParameterError
from streamkernel.type_aliases import AnyArray, AnyDType

# Approximate limit on the bytes of a batch as float64, for any source.
BATCH_BYTES = 1 << 23


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows of a source.

    Attributes
    ----------
    X
        (b, p) floats.
    y
        (b, d) numbers; or, where `labels` is given, (b,) positions in it (-1: no label).
    labels
        Text labels that `y` points into.
    done
        Bytes or rows (the reader's unit) that were read for this batch.
    """

    X: AnyArray
    y: AnyArray | None
    labels: Sequence[Any] | None
    done: int


class Reader(ABC):
    """An open source, with the facts that are known before any row is read.

    Attributes
    ----------
    columns, target_names
        Names.
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
    """

    columns: tuple[str, ...]
    target_names: tuple[str, ...] = ()
    named: bool = True
    dtype: AnyDType = np.dtype(np.float64)
    left_out: tuple[str, ...] = ()
    labelled: bool = False
    n_rows: int | None = None
    estimated_rows: int | None = None
    total: int | None = None
    unit: str = "rows"

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """The rows, in order."""

    @abstractmethod
    def where(self, row: int) -> str:
        """Place of a row in the source, for messages: file:line where there are lines."""


def choose_target(columns: Sequence[str], target: str | int | None, path: Path | str) -> int | None:
    """Position of the target column.

    A name is tried first. Text that is a whole number but not a name is an index, because a command line passes text.
    """
    if target is None:
        return None
    if isinstance(target, str) and target in columns:
        return list(columns).index(target)
    try:
        index = int(target)
    except ValueError:
        index = len(columns)
    if not -len(columns) <= index < len(columns):
        shown = ", ".join(columns[:20]) + (", ..." if len(columns) > 20 else "")
        raise ParameterError(
            f"{path}: there is no target column {target!r}; its columns are {shown} (or give an index)"
        )
    return index % len(columns)


def split_columns(
    columns: Sequence[str], target: int | None, path: Path | str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(feature names, target names)."""
    features = tuple(name for index, name in enumerate(columns) if index != target)
    if not features:
        raise EmptyDataError(f"{path} has no column besides the target; give at least one feature")
    return features, () if target is None else (columns[target],)


def first_line(error: BaseException) -> str:
    """First line of an exception's text, without unprintable characters, for a message of one line."""
    lines = str(error).strip().splitlines()
    return "".join(letter for letter in lines[0][:200] if letter.isprintable()) if lines else type(error).__name__
