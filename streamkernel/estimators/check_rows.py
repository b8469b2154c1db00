"""The report's picture of predicted against true targets: some rows, held out from the fit where there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import DataError, warn_user
from streamkernel.table import RowBlock, Scaler, Table

__all__ = ["CheckRows", "Predicting", "check_rows"]

_ROWS, _RUNS = 2000, 8
_MOST_READ = 10_000  # where a part of the rows is wanted


class Predicting(Protocol):
    """What predicts rows that are scaled already; `check_values` (b, ...) by name, "predicted" (b, d) among them."""

    def check_values(self, X: NDArray[Any]) -> dict[str, NDArray[np.float64]]: ...


@dataclass(frozen=True)
class CheckRows:
    """True targets (c, d), and by name what was predicted of them.

    `kind` says whether the rows are "held-out" or "training" ones.
    """

    kind: str
    true: NDArray[np.float64]
    predicted: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """As a model keeps them."""
        return {"check_true": self.true, **{f"check_{name}": values for name, values in self.predicted.items()}}


Mask = Callable[[RowBlock], NDArray[np.bool_]]
"""Which rows of a block stayed out of the fit."""


def check_rows(
    table: Table,
    whole: Table | None,
    scaler: Scaler | None,
    predictions: Predicting,
    watched: Table | None = None,
    held_out: Mask | None = None,
) -> CheckRows:
    """Predict some rows.

    Parameters
    ----------
    table : rows of the fit, scaled.
    whole : the table that `table` is a slice of, not scaled; the longer run of rows before or after it serves.
    scaler, predictions : of the fit.
    watched : another table, scaled, of rows that are none of the fit's; serves where `whole` has no others.
    held_out : the rows of `table` that stayed out of the fit; serve likewise.
    """
    if whole is not None:
        before, after = (whole.start, table.start), (table.stop, whole.stop)
        lo, hi = max((before, after), key=lambda run: run[1] - run[0])
        if hi > lo:
            try:
                return _predicted("held-out", whole.with_scaler(scaler), lo, hi, predictions)
            except DataError as error:
                # The fit did not ask for these rows, only its picture did: what is wrong with them is no reason to
                # throw the work of all sweeps away. Rows of the fit have been read without complaint.
                warn_user(f"the check is on rows of the fit, as those held out cannot be used: {error}")
    if watched is not None:
        return _predicted("held-out", watched, watched.start, watched.stop, predictions)
    if held_out is not None:
        blocks = [table.read(start, stop) for start, stop in _runs(table.start, table.stop, _MOST_READ)]
        masks = [held_out(block) for block in blocks]
        every = -(-int(sum(mask.sum() for mask in masks)) // _ROWS)
        if every:
            kept = [np.flatnonzero(mask)[::every] for mask in masks]
            pairs = [
                (np.ascontiguousarray(block.X[rows]), None if block.Y is None else block.Y[rows])
                for block, rows in zip(blocks, kept, strict=True)
                if len(rows)
            ]
            return _compared("held-out", pairs, predictions)
    return _predicted("training", table, table.start, table.stop, predictions)


def _predicted(kind: str, source: Table, lo: int, hi: int, predictions: Predicting) -> CheckRows:
    blocks = [source.read(start, stop) for start, stop in _runs(lo, hi)]
    return _compared(kind, [(block.X, block.Y) for block in blocks], predictions)


def _compared(
    kind: str, rows: list[tuple[NDArray[Any], NDArray[np.float64] | None]], predictions: Predicting
) -> CheckRows:
    truth = np.concatenate([Y for _, Y in rows if Y is not None])
    values = [predictions.check_values(X) for X, _ in rows]
    return CheckRows(kind, truth, {name: np.concatenate([each[name] for each in values]) for name in values[0]})


def _runs(lo: int, hi: int, most: int = _ROWS) -> list[tuple[int, int]]:
    """Some runs of neighbouring rows, spread evenly over [lo, hi): a few chunks are read, not all of them."""
    length = min(hi - lo, most)
    runs = min(_RUNS, length)
    left_out = hi - lo - length
    # Shares of the rows wanted, and of those left out between the runs, to the nearest row below.
    first = [lo + length * i // runs + left_out * i // max(runs - 1, 1) for i in range(runs)]
    return [(start, start + length * (i + 1) // runs - length * i // runs) for i, start in enumerate(first)]
