"""The rows that a selection has fetched by number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session
from streamkernel.metric import MetricScaler
from streamkernel.reductions import Both, DrawnRows, Gather, Reduction, Sample
from streamkernel.reductions.contract import Result
from streamkernel.reductions.pools import CountRepeats, Lots, Origins, Repeats
from streamkernel.table import RowScaler, Table
from streamkernel.table.row_keys import RowRounding
from streamkernel.type_aliases import AnyArray, AnyDType, Int

# Sweeps.
GATHER, STATISTICS = "gather sampled rows", "column statistics"
COUNT, _LOTS = "count of repeated rows", "rows of each lot of copies"
_PIECE = 2048  # rows that are mapped at a time


class RowCache:
    """Cache of rows by number. A sweep fetches only the rows that are not in the cache.

    Rows are held as the table's blocks have them. Where the fit finds the map of its rows from a sample of them, its
    table has them in float64 as they are before that map (`before_metric`, `as_stored`), which may take twice or eight
    times the bytes that they have in the store: they are then held as stored, and scaled when they are asked for, to
    the bits of a block. `get` maps them, to these bits too. The rows of each sweep stay apart: to join them would take
    the memory of all of them twice more.

    Parameters
    ----------
    table : table of the rows as they are held; one whose blocks show the rows as stored, for rows that are held so.
    scaler : scaler of the rows. Of rows that are held with their columns scaled it maps by its metric; None for no map.
    dtype : dtype of the mapped rows.
    """

    def __init__(
        self, table: Table, session: Session, scaler: RowScaler | None = None, dtype: AnyDType | None = None
    ) -> None:
        self._as_stored = table.shows_stored or held_as_stored(table)
        self._table = table.with_stored() if self._as_stored else table
        self._session = session
        self._scaler, self._dtype = scaler, table.dtype if dtype is None else dtype
        self._parts: tuple[Sample, ...] = ()  # no row is in two of them
        self.repeats: Repeats | None = None  # None until they are counted

    @classmethod
    def of(cls, table: Table, session: Session) -> RowCache:
        """The cache of a table; its scaler may be of any kind."""
        if table.scaler is None or table.scaler.invertible:
            return cls(table, session)
        return cls(as_stored(table), session, table.scaler, table.dtype)

    def mapped_by(self, scaler: RowScaler | None, dtype: AnyDType) -> RowCache:
        """A cache with the same rows in another dtype, which maps them by a scaler if there is one."""
        cache = RowCache(self._table, self._session, scaler, dtype)
        cache._parts, cache.repeats = self._parts, self.repeats
        return cache

    def of_blocks(self, table: Table) -> RowCache:
        """A cache with the same rows as the blocks of a table have them, which differs in scaler and dtype.

        This cache, which has the rows as stored, is then empty: two copies of them are not in the plan.
        """
        assert self._as_stored, "rows that were scaled already have lost their digits"
        cache = RowCache(table, self._session)
        while self._parts:
            part, *rest = self._parts
            self._parts = tuple(rest)
            cache._parts += (part if cache._as_stored else replace(part, X=_scaled(part.X, table)),)
        cache.repeats = self.repeats
        return cache

    def take_keys(self, rounding: RowRounding) -> None:
        """Give the rows other keys of their features, in one sweep for all rows that are held.

        Keys are of features as stored, which a cache of scaled rows does not have.
        """
        rows = [part.rows for part in self._parts]
        self._table, self._parts = self._table.with_keys(rounding), ()  # two copies of the rows are not in the plan
        if rows:
            self.fetch(np.concatenate(rows))

    def fetch(self, rows: Int) -> None:
        """Fetch the missing ones of these rows, in one sweep over the blocks that hold them."""
        missing = self._missing(rows)
        if len(missing):
            self._parts += (self._session.sweep(self._gather(missing), self._table, GATHER),)

    def fetch_with(self, rows: Int, work: Reduction[Result], name: str) -> Result:
        """Fetch the missing ones of these rows in the sweep of another reduction, and return the result of that.

        Parameters
        ----------
        name : name of the sweep where no row is missing.
        """
        missing = self._missing(rows)
        if not len(missing):
            return self._session.sweep(work, self._table, name)
        fresh, result = self._session.sweep(Both(self._gather(missing), work), self._table, GATHER)
        self._parts += (fresh,)
        return result  # type: ignore[no-any-return]  # `Both` does not know the types of its results

    def counting(self, origins: Origins) -> CountRepeats:
        """The reduction that counts the repeated rows of the table."""
        return CountRepeats(self._table.width, self._table.n_targets, origins=origins)

    def count_repeats(self, rows: Int, origins: Origins) -> Repeats:
        """Fetch these rows, and count the repeated rows of the table in the same sweep."""
        self.repeats = self.fetch_with(rows, self.counting(origins), COUNT)
        return self.repeats

    def _missing(self, rows: Int) -> Int:
        missing = np.unique(rows)
        for part in self._parts:
            missing = np.setdiff1d(missing, part.rows, assume_unique=True)
        return missing

    def count_lots(self, drawn: DrawnRows, lots: Lots) -> Repeats:
        """Count the distinct rows of the table by the lots among drawn rows: exactly where these are all rows.

        Else one sweep counts the rows of each lot.
        """
        assert self.repeats is not None
        distinct = float(np.count_nonzero(lots.first))
        if len(drawn) < self._table.counted:
            sample, number = self.held(drawn.rows), np.cumsum(lots.first) - 1
            sizes = self._session.sweep(lots.sizes(sample), self._table, _LOTS)
            weights = np.ones(len(drawn)) if drawn.weights is None else drawn.weights
            distinct = float((drawn.importance / weights / sizes[number[lots.of]]).sum())
        self.repeats = self.repeats.with_distinct(min(distinct, self.repeats.rows))
        return self.repeats

    def _gather(self, rows: Int) -> Gather:
        table, stored = self._table, self._as_stored
        dtype = table.features.dtype if stored else table.dtype
        return Gather(rows, table.stored_width if stored else table.width, table.n_targets, np.dtype(dtype), stored)

    def get(self, rows: Int) -> Sample:
        """The rows with these numbers, in the order of `rows`."""
        if self._scaler is None and self._dtype == self._table.dtype:
            return self.held(rows)
        found = self.without_features(rows)
        width = self._table.width if self._scaler is None else self._scaler.width
        X = np.empty((len(rows), width), self._dtype)
        # Piece by piece: a float64 copy of all of them is not in the plan.
        for first in range(0, len(rows), _PIECE):
            piece = slice(first, first + _PIECE)
            X[piece] = self._mapped(self.held(rows[piece]).X)
        return replace(found, X=X)

    def _mapped(self, X: AnyArray) -> AnyArray:
        scaler = self._scaler
        if scaler is None:
            # The rounding of a scaler that computes in float64.
            return X.astype(self._dtype)
        if self._table.scaler is None:
            return scaler.apply(X, self._dtype)
        assert isinstance(scaler, MetricScaler), "rows whose columns are scaled are only mapped by a metric"
        return scaler.project(X, self._dtype)

    def held(self, rows: Int) -> Sample:
        """The rows with these numbers, as the blocks of the cache's table have them, in the order of `rows`."""
        self.fetch(rows)
        if not self._as_stored:
            return _at(self._parts, rows, self._none)
        X = np.empty((len(rows), self._table.width), self._table.dtype)
        for first in range(0, len(rows), _PIECE):
            piece = slice(first, first + _PIECE)
            X[piece] = self._table.scaled(_at(self._parts, rows[piece], self._none).X)
        return replace(self.without_features(rows), X=X)

    def without_features(self, rows: Int) -> Sample:
        """The same without their features: numbers, targets, weights and keys."""
        self.fetch(rows)
        parts = tuple(replace(part, X=part.X[:, :0]) for part in self._parts)
        return _at(parts, rows, replace(self._none, X=self._none.X[:, :0]))

    @property
    def _none(self) -> Sample:
        none, gather = np.zeros(0, np.int64), self._gather(np.zeros(0, np.int64))
        return Sample(
            none, np.zeros((0, gather.n_features), gather.dtype), np.zeros((0, gather.n_targets)), np.zeros(0)
        )

    def points(self, basis: Basis) -> AnyArray | None:
        """(n, p) points of a basis in the units of the columns; None where the scaler computes them from the basis.

        A point that is no row, such as a centre of k-means, gets one with its image: with a metric the shortest one
        (before means are added), in a column that has ends one between them.
        """
        scaler = self._scaler
        if scaler is None or scaler.invertible:
            return None
        is_row, before = basis.rows >= 0, self._table.scaler
        points = np.empty((len(basis), scaler.n_features))
        X = self.held(basis.rows[is_row]).X
        points[is_row] = X if before is None else before.unscaled(X)
        if not is_row.all():
            Z = basis.points[~is_row].astype(np.float64)
            if isinstance(scaler, MetricScaler):
                Z = Z @ np.linalg.pinv(scaler.metric)
            points[~is_row] = scaler.unscaled(Z)
        return points.astype(basis.points.dtype)


def _at(parts: tuple[Sample, ...], rows: Int, none: Sample) -> Sample:
    """The rows with these numbers, each in one of the parts, in the order of `rows`; `none` where there are none."""
    if len(parts) <= 1:
        return parts[0].at(rows) if parts else none
    found = [np.flatnonzero(np.isin(rows, part.rows)) for part in parts]
    of = [np.searchsorted(part.rows, rows[places]) for part, places in zip(parts, found, strict=True)]

    def joined(name: str) -> AnyArray:
        first = getattr(parts[0], name)
        values = np.empty((len(rows), *first.shape[1:]), first.dtype)
        for part, places, positions in zip(parts, found, of, strict=True):
            values[places] = getattr(part, name)[positions]
        return values

    keyed = all(part.keys is not None for part in parts)
    return Sample(rows, joined("X"), joined("Y"), joined("weights"), joined("keys") if keyed else None)


def _scaled(X: AnyArray, table: Table) -> AnyArray:
    """Rows as stored, cast and scaled as the blocks of a table: in their own memory if there is room for them."""
    fits = X.dtype == table.dtype and X.shape[1] == table.width and X.flags.writeable
    out = X if fits else np.empty((len(X), table.width), table.dtype)
    for first in range(0, len(X), _PIECE):
        piece = slice(first, first + _PIECE)
        out[piece] = table.scaled(X[piece])
    return out


def held_as_stored(table: Table) -> bool:
    """Whether a cache holds the rows of a table as stored: where its blocks have more bytes than these."""
    return bool(table.features.dtype.itemsize < table.dtype.itemsize)


def before_metric(table: Table, columns: RowScaler) -> Table:
    """The rows of a table as a metric takes them: its columns scaled, in float64."""
    return replace(table, scaler=columns, dtype=np.dtype(np.float64))


def as_stored(table: Table) -> Table:
    """The rows of a table in the units of its columns, in float64."""
    return replace(table, scaler=None, dtype=np.dtype(np.float64))
