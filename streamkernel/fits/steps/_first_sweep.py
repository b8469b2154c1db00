"""The first sweep of a fit: sampled rows, repeated rows, and statistics of the columns where the store has none.

Repeated rows are compared less an origin, as the first digits of a number far from 0 say nothing of its row, and the
origins are means of the columns. Where these are to be found in the same sweep, rows are compared at the means of the
first rows of the table. Nearly always hardly any row repeats another, whatever the origins are. Else a sweep of its own
counts at those that a store with statistics has: the count is the same. So it does where rows that are apart from each
other less the means of the first rows are not so less those of the table: numbers of columns of many sizes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamkernel.engine import Session
from streamkernel.matrix_rows import LEADING
from streamkernel.reductions import Both, Moments
from streamkernel.reductions.pools import Origins, Repeats
from streamkernel.selection import RowCache
from streamkernel.selection.row_cache import STATISTICS
from streamkernel.table import ColumnStatistics, RowBlock, Table, TableStatistics
from streamkernel.type_aliases import Int

_ROWS, _BYTES = 1024, 4 << 20  # first rows that are looked at: fewer of wide rows


def statistics_and_rows(
    table: Table, rows: Int, session: Session, *, centred: bool
) -> tuple[TableStatistics, RowCache]:
    """Statistics of the columns of a table without a scaler, and its rows with these numbers, as stored.

    Where the table has targets the cache has counts of repeated rows, too, unless there may be such rows.

    Parameters
    ----------
    centred : whether the fit compares rows whose columns have a mean of 0.
    """
    cache = RowCache(table.with_stored(), session)
    moments = Moments.of(table, 0 if table.classes is not None else table.n_targets)
    if not table.n_targets:
        return cache.fetch_with(rows, moments, STATISTICS), cache
    origins = _guessed_origins(table, centred=centred)
    statistics: TableStatistics
    statistics, repeats = cache.fetch_with(rows, Both(moments, cache.counting(origins)), STATISTICS)
    if repeats.clear() and origins.near(statistics):
        some = rows[:: max(1, -(-len(rows) // first_rows(table)))]
        seen = _count_among(cache, some, _origins(table, statistics, centred=centred))
        cache.repeats = repeats if seen.clear(repeats.stored) else None
    return statistics, cache


def _count_among(cache: RowCache, rows: Int, origins: Origins) -> Repeats:
    """Repeated rows among some that are held."""
    sample, count = cache.held(np.unique(rows)), cache.counting(origins)
    return count.finalize(count.map_block(RowBlock(0, sample.X, sample.Y, None)))


def first_rows(table: Table) -> int:
    """Number of the first rows of a table that are looked at."""
    return min(table.n_rows, _ROWS, max(1, _BYTES // (8 * max(1, table.stored_width))))


def _guessed_origins(table: Table, *, centred: bool) -> Origins:
    """The origins of a table, as its first rows have them, or the store, whose statistics may be of other weights."""
    statistics = table.statistics
    if statistics is None:
        table.check_unchanged()  # as before a sweep: rows that were rewritten are not taken for those that were opened
        block = table.read(table.start, table.start + first_rows(table))
        X = ColumnStatistics.of(block.X[:, :LEADING] if table.of_matrix else block.X, block.weights)
        statistics = TableStatistics(X, None if block.Y is None else ColumnStatistics.of(block.Y, block.weights))
    return _origins(table, statistics, centred=centred)


def _origins(table: Table, statistics: TableStatistics, *, centred: bool) -> Origins:
    origins = Origins.of_table(table, statistics, scaled=False)
    return replace(origins, X=statistics.X.mean) if centred and origins.X is not None else origins
