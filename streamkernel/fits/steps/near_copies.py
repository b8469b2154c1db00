"""Copies that differ in their last digits: the number of distinct rows, and keys of features that group copies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.engine import Session
from streamkernel.reductions import DrawnRows, Moments, draw_rows
from streamkernel.reductions.pools import CellSample, Lots, Origins, Repeats, cells_of_copies
from streamkernel.selection import RowCache
from streamkernel.table import Table
from streamkernel.table.cell_keys import Cells
from streamkernel.table.row_keys import NO_ROUNDING, Rounding, RowRounding

_STREAM = (26,)
_SEED = 0  # of a comparison: its folds depend on nothing but the rows
_LOOKED_AT, _FEWEST, _BYTES = 4000, 400, 16 << 20  # of rows among which copies are looked for: fewer of wide rows


def look_at_copies(
    cache: RowCache, table: Table, draws: Sequence[DrawnRows], origins: Origins, seed: int
) -> tuple[Repeats, Rounding | None]:
    """Count the distinct rows of a table whose near copies are counted as if they were apart (`Repeats.uneven`).

    Parameters
    ----------
    cache : rows of the table; its counts of repeated rows become better.
    table : rows with the scaler of their columns alone, as the cache has them.
    draws : draws of rows that the fit makes. The largest one is looked at; one of its own where all are small.
    origins : of features as stored.

    Returns
    -------
    The counts; and how features are to be rounded for keys by which copies are grouped, or None where copies have equal
    keys in all digits, and for a table without keys.
    """
    assert cache.repeats is not None
    drawn = max(draws, key=len)
    if len(drawn) < min(_rows(table), table.counted):
        drawn = draw_rows(table, _rows(table), seed, _STREAM)
    sample = cache.held(drawn.rows)
    lots = Lots.among(sample, cache.repeats)
    repeats = cache.count_lots(drawn, lots)
    if not repeats.nearly or table.keys is None:
        return repeats, None
    return repeats, lots.grouping(sample.X if table.scaler is None else table.scaler.unscaled(sample.X), origins)


def rounding_of_copies(table: Table, session: Session) -> RowRounding:
    """How features are rounded for keys by which near copies are grouped, where no fit asks: found in a sweep or two.

    Without targets there are no copies: to have equal features says nothing of the errors.
    """
    if not table.n_targets:
        return NO_ROUNDING
    if table.of_matrix:
        return _rounding_of_matrix(table, session)
    statistics = table.own_statistics
    if statistics is None:
        plain = table.without_targets() if table.classes is not None else table
        statistics = session.sweep(Moments.of(plain, plain.n_targets), plain, "column statistics")
    features = Cells.of(statistics.X, sparse=table.sparse)
    y = statistics.y if table.classes is None else None
    targets = Cells(np.ones(table.n_targets)) if y is None else Cells.of(y)
    work = CellSample(features, targets, _LOOKED_AT, table.width, table.sparse)
    return cells_of_copies(features, session.sweep(work, table, "near copies")) or NO_ROUNDING


def _rounding_of_matrix(table: Table, session: Session) -> Rounding:
    """`rounding_of_copies` of a kernel matrix, whose columns have no deviations: by its values, digit by digit."""
    keyed, origins = table.with_keys(), Origins.of_table(table, None, scaled=False)
    cache, drawn = RowCache(keyed, session), draw_rows(table, _rows(table), _SEED, _STREAM)
    if not cache.count_repeats(drawn.rows, origins).uneven:
        return NO_ROUNDING
    return look_at_copies(cache, keyed, [drawn], origins, _SEED)[1] or NO_ROUNDING


def _rows(table: Table) -> int:
    return min(_LOOKED_AT, max(_FEWEST, _BYTES // (8 * max(1, table.stored_width))))
