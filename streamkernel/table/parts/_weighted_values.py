"""Values of rows beside the row weights of a table, piece by piece: what the parts of the rows are found from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamkernel.table.rows import RowArray, RowReader
from streamkernel.table.table import Table
from streamkernel.type_aliases import AnyArray, Float, Int

ROWS = 1 << 14  # whose values are looked at together


def weighted_values(source: RowArray, table: Table, cuts: Int | None = None) -> Iterator[tuple[int, AnyArray, Float]]:
    """Pieces of the table's range: number of the first row, values (b, ...) of the source, and row weights (b,).

    Parameters
    ----------
    source : rows that are numbered as those of the table.
    cuts : borders that no piece spans; None for the chunks of the source.
    """
    borders = source.cuts(table.start, table.stop) if cuts is None else cuts
    values, weights = RowReader(source), None if table.weights is None else RowReader(table.weights)
    for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        for start in range(first, last, ROWS):
            stop = min(start + ROWS, last)
            w = np.ones(stop - start)
            if weights is not None:
                w = table.checked_weights(weights.read(start, stop), start)
            yield start, values.read(start, stop), w
