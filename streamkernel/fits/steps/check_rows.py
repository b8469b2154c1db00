"""The rows of the report's picture of predicted against true targets: held-out rows if there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from streamkernel.errors import DataError, warn_user
from streamkernel.models.predicting import Predicting
from streamkernel.records import CheckedRows
from streamkernel.table import RowBlock, RowScaler, Table
from streamkernel.table.class_weights import without_class_weights
from streamkernel.type_aliases import Bool, Float, Int

_ROWS, _RUNS = 2000, 8
_MOST_READ = 10_000  # where a part of the rows is wanted
_MOST_BYTES = 128 << 20  # of the rows, of which wide ones are fewer


def _at_most(rows: int, table: Table) -> int:
    """So many rows, or as many as memory has room for in a picture."""
    p = max(table.stored_width, table.width)
    return max(_RUNS, min(rows, _MOST_BYTES // max(1, p * table.dtype.itemsize)))


def check_bytes(table: Table) -> int:
    """Most bytes of the rows that `check_rows` reads: all as they are and as they are kept, a run in float64."""
    rows, item = min(table.n_rows, _at_most(_MOST_READ, table)), table.dtype.itemsize
    p = max(table.stored_width, table.width)
    return rows * table.width * 2 * item + -(-rows // _RUNS) * p * (item + 8)


@dataclass(frozen=True)
class CheckRows:
    """True targets (c, d), their predictions by name, and the weights (c,) of the rows; None where these are equal.

    `kind` says whether the rows are "held-out" or "training" ones.
    """

    kind: str
    true: Float
    predicted: dict[str, Float] = field(default_factory=dict)
    weights: Float | None = None

    @property
    def record(self) -> CheckedRows:
        """The fields as a model stores them."""
        return CheckedRows(kind=self.kind, rows=len(self.true))

    def arrays(self) -> dict[str, Float]:
        """The arrays as a model stores them."""
        weights = {} if self.weights is None else {"check_weight": self.weights}
        return {
            "check_true": self.true,
            **{f"check_{name}": values for name, values in self.predicted.items()},
            **weights,
        }


Mask = Callable[[RowBlock], Bool]
"""Function of a block: a mask (b,), true for rows that stayed out of the fit."""


def check_rows(
    table: Table,
    whole: Table | None,
    scaler: RowScaler | None,
    predictions: Predicting,
    watched: Table | None = None,
    held_out: Mask | None = None,
) -> CheckRows:
    """Predict some rows.

    Parameters
    ----------
    table : rows of the fit, scaled.
    whole : the table that `table` is a slice of, not scaled; the check uses the longer run of rows before or after it.
    scaler, predictions : scaler and predictor of the fit.
    watched : another table, scaled, of rows that are not in the fit; used where `whole` has no other rows.
    held_out : mask of the rows of `table` that stayed out of the fit; used where there is no `watched` either.
    """
    if whole is not None:
        before, after = (whole.start, table.start), (table.stop, whole.stop)
        lo, hi = max((before, after), key=lambda run: run[1] - run[0])
        if hi > lo:
            try:
                return _predicted("held-out", whole.with_scaler(scaler), lo, hi, predictions)
            except DataError as error:
                # Only the picture needs these rows, not the fit: an error in them must not throw away the work of all
                # sweeps. The rows of the fit were read without an error.
                warn_user(f"the check is on rows of the fit, as those held out cannot be used: {error.message}")
    if watched is not None:
        return _predicted("held-out", watched, watched.start, watched.stop, predictions)
    if held_out is not None:
        most = _at_most(_MOST_READ, table)
        blocks = [_read(table, start, stop) for start, stop in _runs(table.start, table.stop, most)]
        masks = [held_out(block) & (block.row_weights > 0.0) for block, _ in blocks]
        every = -(-int(sum(mask.sum() for mask in masks)) // _ROWS)
        if every:
            kept = [np.flatnonzero(mask)[::every] for mask in masks]
            found = [_taken(*read, rows) for read, rows in zip(blocks, kept, strict=True) if len(rows)]
            return _compared("held-out", found, predictions)
    return _predicted("training", table, table.start, table.stop, predictions)


def _predicted(kind: str, source: Table, lo: int, hi: int, predictions: Predicting) -> CheckRows:
    blocks = [_read(source, start, stop) for start, stop in _runs(lo, hi, _at_most(_ROWS, source))]
    if any(block.row_weights.any() for block, _ in blocks):
        blocks = [_heard(*read) for read in blocks if read[0].row_weights.any()]
    return _compared(kind, blocks, predictions)


_Read = tuple[RowBlock, Float]
"""Some rows, and their weights (b,) without those of their classes: scores do not count these either."""


def _read(table: Table, start: int, stop: int) -> _Read:
    given = without_class_weights(table).weights_of(start, stop)
    return table.read(start, stop), np.ones(stop - start) if given is None else given


def _heard(block: RowBlock, given: Float) -> _Read:
    """The rows of weight > 0: the others are no rows of the fit."""
    if block.weights is None or block.weights.all():
        return block, given
    return _taken(block, given, np.flatnonzero(block.weights))


def _taken(block: RowBlock, given: Float, rows: Int) -> _Read:
    X, Y = np.ascontiguousarray(block.X[rows]), None if block.Y is None else block.Y[rows]
    return RowBlock(block.start, X, Y), given[rows]


def _compared(kind: str, rows: list[_Read], predictions: Predicting) -> CheckRows:
    truth = np.concatenate([block.Y for block, _ in rows if block.Y is not None])
    values = [predictions.check_values(block.X) for block, _ in rows]
    predicted = {name: np.concatenate([each[name] for each in values]) for name in values[0]}
    weights = np.concatenate([given for _, given in rows])
    return CheckRows(kind, truth, predicted, None if (weights == weights[0]).all() else weights)


def _runs(lo: int, hi: int, most: int) -> list[tuple[int, int]]:
    """Some runs of neighbouring rows, spread evenly over [lo, hi): a few chunks are read, not all of them."""
    length = min(hi - lo, most)
    runs = min(_RUNS, length)
    left_out = hi - lo - length
    # Each run gets its share of the wanted rows, each gap its share of the others, rounded down.
    first = [lo + length * i // runs + left_out * i // max(runs - 1, 1) for i in range(runs)]
    return [(start, start + length * (i + 1) // runs - length * i // runs) for i, start in enumerate(first)]
