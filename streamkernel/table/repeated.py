"""The rows of a table in memory several times over: for sums whose parts each need all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamkernel.atomic import text_digest
from streamkernel.table.rows import RowArray
from streamkernel.table.table import Table
from streamkernel.type_aliases import AnyArray, Int


class RepeatedRows(RowArray):
    """The m rows of an array several times over: row i is row ``i % m``. Nothing is copied.

    Parameters
    ----------
    rows : the array.
    times : how often its rows come.
    """

    def __init__(self, rows: RowArray, times: int) -> None:
        self._rows, self._times, self._own = rows, times, rows.n_rows
        self.name, self.dtype, self.shape = rows.name, rows.dtype, (times * rows.n_rows, *rows.shape[1:])
        self.chunk_rows, self.in_memory, self.in_pairs = rows.chunk_rows, rows.in_memory, rows.in_pairs

    @property
    def width(self) -> int:
        return self._rows.width

    @property
    def fingerprint(self) -> str:
        return text_digest(f"{self._times} times {self._rows.fingerprint}")

    def chunk_span(self, row: int) -> tuple[int, int]:
        first, last = self._rows.chunk_span(row % self._own)
        before = row // self._own * self._own
        return before + first, before + last

    def load(self, first: int, last: int) -> AnyArray:
        before = first // self._own * self._own
        return self._rows.load(first - before, last - before)

    def cuts(self, start: int, stop: int) -> Int:
        own = self._rows.cuts(0, self._own)[:-1]
        borders = np.concatenate([own + time * self._own for time in range(self._times)])
        return np.concatenate([[start], borders[(borders > start) & (borders < stop)], [stop]]).astype(np.int64)

    def where(self, row: int) -> str:
        return self._rows.where(row % self._own)

    def check_unchanged(self) -> None:
        self._rows.check_unchanged()


def repeated(table: Table, times: int) -> Table:
    """The rows of a whole table in memory, `times` times over; rows are numbered on."""
    assert table.start == 0, "rows of a sample are numbered from 0"
    assert table.stop == table.features.n_rows, "all rows come again"
    targets = None if table.targets is None else replace(table.targets, rows=RepeatedRows(table.targets.rows, times))
    weights = None if table.weights is None else RepeatedRows(table.weights, times)
    features = RepeatedRows(table.features, times)
    return replace(
        table, features=features, targets=targets, weights=weights, stop=times * table.stop, statistics=None, ids=None
    )
