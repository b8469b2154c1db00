"""One contract for every kind of source: names and types first, then batches of rows in bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import EmptyDataError, ParameterError

__all__ = ["BATCH_BYTES", "Batch", "Reader", "choose_target", "first_line", "split_columns"]

# A batch of rows, as float64, is at most about this large, whatever the source.
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

    X: NDArray[Any]
    y: NDArray[Any] | None
    labels: Sequence[Any] | None
    done: int


class Reader(ABC):
    """A source, opened: what is known before any row is read.

    Attributes
    ----------
    columns, target_names
        Names.
    named
        Whether the source has them; an array's columns are x0, x1, ...
    left_out
        What the source has and the table will not, in words.
    dtype
        float32 or float64: what `--dtype keep` keeps.
    labelled
        True where y is text, to be kept as labels.
    n_rows
        Exact where the source says so, else None.
    estimated_rows
        A guess that chooses the chunk size, else None.
    total, unit
        For the progress bar: bytes or rows.
    """

    columns: tuple[str, ...]
    target_names: tuple[str, ...] = ()
    named: bool = True
    dtype: np.dtype[Any] = np.dtype(np.float64)
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

    A name is looked for first; text that is a whole number and no name is an index, as it comes from a command line.
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
    """What a parser of others says, fit for a message of one line."""
    lines = str(error).strip().splitlines()
    return "".join(letter for letter in lines[0][:200] if letter.isprintable()) if lines else type(error).__name__
