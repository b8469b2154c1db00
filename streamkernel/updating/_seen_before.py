"""Models that are older than the record of seen rows: their basis identifies their table.

Such a model stores the range of rows that it was fitted to, and n of them as its basis, with their row numbers. A table
that has some of these n rows at the same row numbers is that table. Targets cannot be compared.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.models.seen_rows import Comparison, Mark, Seen, SeenInput, spread
from streamkernel.models.updatable import AnyUpdatable
from streamkernel.table import Table
from streamkernel.wording import option


def seen_by(model: AnyUpdatable) -> Seen:
    """The record of a model; for a model without one, the rows of its fit, without marks."""
    record = model.record
    if record.seen is not None:
        return Seen.of(record.seen)
    return Seen((SeenInput(((record.rows.start, record.rows.stop),), ()),))


def rows_of_basis(model: AnyUpdatable, table: Table, *, as_new: bool) -> Comparison:
    """Compare the rows of the basis with the rows of the same numbers in a table.

    Parameters
    ----------
    table : rows, scaled as the basis.
    as_new : whether a table that cannot be compared counts as another one.

    Raises
    ------
    ParameterError
        The table cannot be compared: the basis points are not rows, or the table ends before them.
    """
    rows = model.record.rows
    m = table.features.n_rows
    if rows.stop <= m:
        then = replace(table, start=rows.start, stop=rows.stop)
        if then.fingerprint == model.record.table_fingerprint:
            return Comparison(1, None, m)
    by_chunk: dict[int, list[tuple[int, int]]] = defaultdict(list)
    cuts = table.features.cuts(0, m)
    for position, row in enumerate(model.arrays["component_indices"].tolist()):
        if 0 <= row < m:
            by_chunk[int(np.searchsorted(cuts, row, side="right"))].append((row, position))
    if not by_chunk:
        if as_new:
            return Comparison(0, None, m)
        raise ParameterError(
            "the model was written by an earlier release and cannot tell whether it has seen rows of this table; if it "
            f"has not, say so by {option('as_new', True)}, else fit again"
        )
    chosen = sorted(pair for chunk in spread(sorted(by_chunk)) for pair in by_chunk[chunk])
    whole = replace(table, start=0, stop=m, targets=None)
    holding, broken = 0, None
    Z = model.arrays["components"]
    for (row, position), block in zip(
        chosen, whole.blocks_between([(row, row + 1) for row, _ in chosen], 1), strict=True
    ):
        if np.array_equal(block.X[0].astype(Z.dtype), Z[position]):
            holding += 1
        else:
            broken = broken or Mark(row, 1, "")
    return Comparison(holding, broken, m)
