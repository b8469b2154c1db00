"""Row weights that follow from the classes: computed block by block from the codes of y, held nowhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamkernel.atomic import text_digest
from streamkernel.table.rows import GuidedRows, RowArray, RowReader
from streamkernel.table.table import Table
from streamkernel.table.targets import Targets
from streamkernel.table.values import check_largest_weight, check_weights
from streamkernel.type_aliases import AnyArray, Float

_ROWS = 1 << 16  # of one block that is counted


class ClassWeights(GuidedRows):
    """Row weights ``w_i = v_i c[y_i]``: the weight of the row's class, times that of the row.

    Parameters
    ----------
    targets : labels y (m,), coded by C classes.
    of_classes : (C,) weights c of the classes.
    given : (m,) row weights v; None for ones.
    """

    def __init__(self, targets: Targets, of_classes: tuple[float, ...], given: RowArray | None) -> None:
        sources = [targets.rows, *([] if given is None else [given])]
        # The chunks of the coarser one, so that each chunk is decoded once.
        guide = max(sources, key=lambda rows: 0 if rows.in_memory else rows.chunk_rows)
        super().__init__(guide, "weights", 1, np.dtype(np.float64))
        self.shape = (guide.n_rows,)
        self.given = given
        self._targets, self._of_classes, self._sources = targets, of_classes, sources

    @property
    def fingerprint(self) -> str:
        labels = [] if self._targets.classes is None else self._targets.classes.tolist()
        parts = [rows.fingerprint for rows in self._sources]
        return text_digest(f"{parts} {list(zip(labels, self._of_classes, strict=True))}")

    def chunk_span(self, row: int) -> tuple[int, int]:
        """Rows of the coarser chunk; 1,024 rows in memory, so that m weights are never held."""
        return RowArray.chunk_span(self, row) if self.in_memory else super().chunk_span(row)

    def load(self, first: int, last: int) -> AnyArray:
        codes = self._targets.codes(RowReader(self._targets.rows).read(first, last), first)
        weights = np.array(self._of_classes)[codes]
        return weights if self.given is None else weights * RowReader(self.given).read(first, last)

    def check_unchanged(self) -> None:
        for rows in self._sources:
            rows.check_unchanged()


def weighted_by_class(table: Table, of_classes: tuple[float, ...] | None) -> Table:
    """The table with these weights (C,) of its classes times its own row weights; None changes nothing."""
    if of_classes is None:
        return table
    assert table.targets is not None
    return replace(table, weights=ClassWeights(table.targets, of_classes, table.weights))


def without_class_weights(table: Table) -> Table:
    """The table with the row weights that it had before `weighted_by_class`: what a user gave, and gives again."""
    weights = table.weights
    return replace(table, weights=weights.given) if isinstance(weights, ClassWeights) else table


def class_counts(table: Table) -> Float:
    """Rows of each class (C,), each row as often as its weight says, in one pass over y.

    Raises
    ------
    DataError
        All weights are 0, or next to it.
    """
    targets, weights = table.targets, table.weights
    assert targets is not None
    assert targets.classes is not None
    labels, given = RowReader(targets.rows), None if weights is None else RowReader(weights)
    counts, largest = np.zeros(len(targets.classes)), 0.0
    for first in range(table.start, table.stop, _ROWS):
        last = min(first + _ROWS, table.stop)
        codes, shares = targets.codes(labels.read(first, last), first), None
        if weights is not None and given is not None:
            shares = np.asarray(given.read(first, last), dtype=np.float64)
            check_weights(shares, first, weights.where)
            largest = max(largest, float(shares.max(initial=0.0)))
        counts += np.bincount(codes, shares, minlength=len(counts))
    if weights is not None:
        check_largest_weight(largest, table.n_rows)
    return counts
