"""Rows drawn for a compressed table: of all rows, or of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.compression._shares import shares
from streamkernel.reductions import DrawnRows, draw_rows
from streamkernel.table import Table
from streamkernel.table.class_weights import weighted_by_class

_STREAM = 30  # of the counter-based generator


@dataclass(frozen=True)
class Group:
    """Rows that share the rows of a compressed table among them: those of a class, or all.

    Attributes
    ----------
    code : code of the class; -1 for all rows.
    weight : sum of their weights.
    rows : number of those of weight > 0.
    size : number of rows in the compressed table.
    table : the table, in which other rows have weight 0.
    """

    code: int
    weight: float
    rows: int
    size: int
    table: Table

    def draw(self, count: int, seed: int) -> DrawnRows:
        """Up to `count` of the rows, in proportion to their weights."""
        return draw_rows(self.table, count, seed, (_STREAM, 1 + self.code))


def groups(table: Table, size: int) -> list[Group]:
    """The classes that have rows, with their shares of the size; or all rows."""
    if table.classes is None:
        return [Group(-1, table.weight, table.counted, size, table)]
    parts = [weighted_by_class(table, tuple(row)) for row in np.eye(len(table.classes)).tolist()]
    sums = [part.weight_sums for part in parts]
    weights = np.array([0.0 if each is None else each.total for each in sums])
    rows = np.array([0 if each is None else each.counted for each in sums], np.int64)
    sizes = shares(weights, rows, size)
    return [
        Group(code, float(weights[code]), int(rows[code]), int(sizes[code]), parts[code])
        for code in np.flatnonzero(sizes).tolist()
    ]
