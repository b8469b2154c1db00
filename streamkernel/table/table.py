"""Table: a pinned description of rows that yields them block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamkernel.errors import EmptyDataError, ParameterError, ShapeError
from streamkernel.table._matrix_rows import MatrixRows
from streamkernel.table._pinned_rows import OF_ENTRIES, PinnedRows
from streamkernel.table._row_ids import codes_of
from streamkernel.table._sparse_rows import DensifiedRows, SparseRows, SparsifiedRows, check_pairs
from streamkernel.table.block import RowBlock
from streamkernel.table.parts.folds import keys_of_parts
from streamkernel.table.row_keys import NO_ROUNDING, RowRounding
from streamkernel.table.rows import ColumnRows, NumbersBeside, NumpyRows, OrderedRows, RowArray, RowReader
from streamkernel.table.scaler import RowScaler
from streamkernel.table.statistics import TableStatistics
from streamkernel.table.values import cast_rows, check_rows, listed
from streamkernel.type_aliases import AnyArray, Float, Int
from streamkernel.wording import option

__all__ = ["OF_ENTRIES", "Table"]


@dataclass(frozen=True, eq=False)
class Table(PinnedRows):
    """Rows [start, stop) of a pinned input. Immutable, picklable, cheap to copy; `open_table` makes one.

    Attributes
    ----------
    features
        The rows X (m, p) as stored.
    dtype
        float32 or float64: dtype of the blocks.
    columns
        p names.
    start, stop
        The row range; row numbers are those of the whole input.
    targets
        y, or None.
    weights
        Row weights (m,) as stored, at least 0, or None where every row counts once.
    statistics
        Stored statistics of the whole input (an ingested store), or None.
    scaler
        Scaler that is applied to every block, or None.
    named
        Whether `columns` are real names; an array's are x0, x1, ...
    keys
        How features are rounded for the keys that blocks then have of their rows; None for no keys.
    ids
        Ids of the rows as stored (`_row_ids`), or None.
    schema
        What the columns of the source were, as plain JSON, where they were not all numbers.
    parts
        The number (m,) of the part that each row is in, with which its key then begins (`table.parts`), or None.
    weight_column
        Name of the column of the input that is the weights (`weighted_by`); "none" where its own weights were left
        out; else None.
    shows_stored
        Whether blocks have their rows as stored, too.
    """

    @property
    def id_name(self) -> str | None:
        """Name of the column of the source that is the ids; None where there are none."""
        columns = [] if self.schema is None or self.ids is None else self.schema["columns"]
        return next((column["name"] for column in columns if column.get("role") == "id"), None)

    def id_codes(self) -> NumpyRows:
        """A number (m,) for each row of the whole input, equal where the ids are; the ids are read."""
        assert self.ids is not None
        return NumpyRows(codes_of(self.ids), self.id_name or "id")

    def as_sparse(self, sparse: bool) -> Table:
        """The same rows, sparse or dense, without scaler; chunks are turned when they are read."""
        if sparse == self.sparse:
            return self
        features = SparsifiedRows(self.features) if sparse else DensifiedRows(self.features)
        return replace(self, features=features, dtype=features.dtype, statistics=None, scaler=None)

    def with_room(self, width: int) -> Table:
        """The same sparse rows, whose blocks have room for so many numbers of a row at least."""
        return (
            replace(self, features=self.features.with_room(width // 2))
            if isinstance(self.features, SparseRows)
            else self
        )

    def as_matrix(self) -> Table:
        """The same rows as those of a kernel matrix whose column i is row i, without scaler."""
        return self if self.of_matrix else self._of_matrix(MatrixRows(self.features))

    def as_matrix_at(self, columns: Int, first: AnyArray) -> Table:
        """The same rows as those of a kernel matrix of which some columns are read, without scaler.

        Their k(x, x) is known where this is the square matrix of a fit: that has, in the row of the first of these
        columns, the values of the fit.

        Parameters
        ----------
        columns
            Positions of the n columns.
        first
            (n,) values of the fit in that row; none where there are no columns, of a matrix of zeros.
        """
        stored = self.features
        square = stored.shape[0] == stored.shape[1] and len(columns) > 0
        if square:
            row = int(columns[0])
            values = RowReader(stored).read(row, row + 1)[0, columns]
            square = np.array_equal(values.astype(first.dtype), first)
        return self._of_matrix(MatrixRows(stored, columns, square=square))

    def with_diagonal(self, diagonal: Float) -> Table:
        """The same rows of a kernel matrix, with these values k(x, x) (m,) of the rows of this range."""
        assert isinstance(self.features, MatrixRows)
        return self._of_matrix(self.features.with_diagonal(diagonal, self.start))

    def _of_matrix(self, features: MatrixRows) -> Table:
        return replace(self, features=features, dtype=features.dtype, scaler=None)

    def slice(self, start: int, stop: int) -> Table:
        """Rows [start, stop), numbered as in the whole input; both must lie within this table's range."""
        if not self.start <= start <= stop <= self.stop:
            raise ParameterError(
                f"rows {start}:{stop} are not within the table's {self.start}:{self.stop}; choose A:B inside it"
            )
        if start == stop:
            raise EmptyDataError(f"rows {start}:{stop} are no rows; choose A < B")
        return replace(self, start=int(start), stop=int(stop))

    def with_scaler(self, scaler: RowScaler | None) -> Table:
        """The same rows, scaled by `scaler` instead of the present one."""
        if scaler is not None and scaler.n_features != self.n_features:
            raise ShapeError(
                f"the scaler has {scaler.n_features} columns, the table {self.n_features}; give a table with the "
                "same columns"
            )
        return replace(self, scaler=scaler)

    def scaled(self, X: AnyArray) -> AnyArray:
        """Other rows X (b, p), cast and scaled as the blocks of this table."""
        return cast_rows(X, self.dtype) if self.scaler is None else self.scaler.apply(X, self.dtype)

    def reordered(self, order: Sequence[int]) -> Table:
        """The same rows with column ``order[j]`` in place of column j; nothing is read or copied."""
        positions = list(order)
        if self.sparse:
            raise ParameterError(
                "the columns of sparse rows stay in their order, and another one is wanted; give rows with the columns "
                "of the fit in its order, or dense rows"
            )
        return replace(
            self,
            features=OrderedRows(self.features, positions),
            columns=tuple(self.columns[position] for position in positions),
            statistics=None if self.statistics is None else self.statistics.of_columns(positions),
            scaler=None if self.scaler is None else self.scaler.of_columns(positions),
        )

    def with_keys(self, rounding: RowRounding = NO_ROUNDING) -> Table:
        """The same rows, with a key per row in every block; keys are of stored values, which no scaler has rounded."""
        return replace(self, keys=rounding)

    def with_stored(self) -> Table:
        """The same rows, whose blocks have them as stored, too, for a reduction that copies some of them."""
        return replace(self, shows_stored=True)

    def in_parts(self, parts: NumbersBeside) -> Table:
        """The same rows, whose keys begin with the part that they are in."""
        return replace(self, parts=parts)

    def with_indicators(self) -> Table:
        """The same rows, whose targets must be 0 or 1 where they are read."""
        assert self.targets is not None
        return replace(self, targets=replace(self.targets, indicators=True))

    def for_model(self, classes: AnyArray | None, d: int) -> Table:
        """The same rows with `Targets.for_model`."""
        assert self.targets is not None
        return replace(self, targets=self.targets.for_model(classes, d))

    def targets_in_order(self, names: Sequence[str]) -> Table:
        """The same rows with their targets in the order of these names; unchanged where their names are others."""
        found = self.targets
        if found is None or found.names == tuple(names) or sorted(found.names) != sorted(names):
            return self
        order = [found.names.index(name) for name in names]
        statistics = self.statistics
        if statistics is not None and statistics.y is not None:
            statistics = TableStatistics(statistics.X, statistics.y.of_columns(order))
        targets = replace(found, rows=OrderedRows(found.rows, order), names=tuple(names))
        return replace(self, targets=targets, statistics=statistics)

    def without_targets(self) -> Table:
        """The same rows without y."""
        return replace(self, targets=None)

    def without_weights(self) -> Table:
        """The same rows, each of which counts once."""
        # Stored statistics are of the weighted rows.
        return self if self.weights is None else replace(self, weights=None, statistics=None, weight_column=None)

    def weighted_by(self, column: str) -> Table:
        """The same rows with one of the columns as their weights, and no longer as a feature; errors: `apart`."""
        features, weights = self.apart(column, "row weights", "weights")
        return replace(features, weights=weights, statistics=None, weight_column=column)

    def apart(self, column: str, what: str, name: str) -> tuple[Table, ColumnRows]:
        """The same rows without one of their columns, and that column; nothing is copied.

        Parameters
        ----------
        what
            What the column is used for, for messages.
        name
            Name of the column's numbers, for messages.

        Raises
        ------
        ParameterError
            There is no such column, or it is the only one.
        """
        if self.sparse:
            raise ParameterError(
                f"the rows are sparse, and a column of them cannot be the {what}; give these as an array of their own"
            )
        if column not in self.columns:
            raise ParameterError(f"there is no column {column!r} of {what}; choose one of {listed(self.columns, 20)}")
        if self.n_features == 1:
            raise ParameterError(f"{column!r} is the only column, and cannot be the {what}; add a feature")
        position = self.columns.index(column)
        stored, order = self.features.as_stored
        found = ColumnRows(stored, position if order is None else int(order[position]), name)
        return self.reordered([index for index in range(self.n_features) if index != position]), found

    def spans(self, rows: int) -> list[tuple[int, int]]:
        """Cut the range into spans of whole chunks, each of about `rows` rows or more; they depend on the layout only.

        The number of spans is ``max(1, n_rows // rows)``; each end is the chunk boundary nearest to its even share.
        """
        _check_rows_argument(rows)
        cuts = self.features.cuts(self.start, self.stop)
        wanted = max(1, min(self.n_rows // rows, cuts.size - 1))
        ideal = self.start + np.arange(1, wanted) * (self.n_rows / wanted)
        after = np.clip(np.searchsorted(cuts, ideal), 1, cuts.size - 1)
        nearest = np.where(ideal - cuts[after - 1] <= cuts[after] - ideal, after - 1, after)
        ends = np.unique(np.concatenate((cuts[nearest], [self.stop])))
        ends = ends[ends > self.start]
        starts = np.concatenate(([self.start], ends[:-1]))
        return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]

    def blocks(self, start: int, stop: int, rows: int) -> Iterator[RowBlock]:
        """Rows [start, stop) in ``ceil((stop - start) / rows)`` blocks of nearly equal size.

        Each chunk is decoded once per call. Memory holds at most one chunk of X, y and w each, and the block. Several
        threads may iterate over one Table.
        """
        return self.blocks_between([(start, stop)], rows)

    def blocks_between(self, runs: Sequence[tuple[int, int]], rows: int) -> Iterator[RowBlock]:
        """The blocks of each run of rows, one run after another, ascending; a block never spans two runs."""
        _check_rows_argument(rows)
        for start, stop in runs:
            if not self.start <= start <= stop <= self.stop:
                raise ParameterError(f"rows {start}:{stop} are not within the table's {self.start}:{self.stop}")
        return self._blocks([(int(start), int(stop)) for start, stop in runs], int(rows))

    def _blocks(self, runs: Sequence[tuple[int, int]], rows: int) -> Iterator[RowBlock]:
        features = RowReader(self.features)
        targets = None if self.targets is None else RowReader(self.targets.rows)
        beside = self._beside
        apart = {name: RowReader(rows) for name, rows in self._numbers.items() if name not in beside}
        for start, stop in runs:
            count = -(-(stop - start) // rows)
            for index in range(count):
                first = start + (stop - start) * index // count
                last = start + (stop - start) * (index + 1) // count
                raw, numbers = _read_beside(features, first, last, beside)
                numbers |= {name: reader.read(first, last) for name, reader in apart.items()}
                yield self._block(first, last, raw, targets, numbers)

    @property
    def _numbers(self) -> dict[str, RowArray]:
        """Numbers of the rows, beside features and targets."""
        parts = None if self.keys is None else self.parts
        return {name: rows for name, rows in (("weights", self.weights), ("parts", parts)) if rows is not None}

    @property
    def _beside(self) -> dict[str, tuple[NumbersBeside, list[int]]]:
        """Those of the numbers that follow from columns beside the features, so that one read gives all; and these."""
        found = {}
        for name, rows in self._numbers.items():
            columns = rows.columns_beside(self.features) if isinstance(rows, NumbersBeside) else None
            if columns is not None:
                assert isinstance(rows, NumbersBeside)
                found[name] = rows, columns
        return found

    def _block(
        self, first: int, last: int, raw: AnyArray, targets: RowReader | None, numbers: dict[str, AnyArray]
    ) -> RowBlock:
        X = self.scaled(raw)
        if self.sparse:
            check_pairs(raw, X, first, self.columns, self.features.where)
        elif isinstance(self.features, MatrixRows):
            self.features.check(raw, first, self.columns)
        else:
            check_rows(raw, X, first, self.columns, self.features.where)
        Y = None
        if targets is not None:
            assert self.targets is not None
            Y = self.targets.encode(targets.read(first, last), first)
        w = numbers.get("weights")
        checked = None if w is None else self.checked_weights(w, first)
        keys = None if self.keys is None else self.features.keys(raw, self.keys)
        if keys is not None and "parts" in numbers:
            keys = keys_of_parts(keys, numbers["parts"])
        return RowBlock(first, X, Y, checked, keys, raw if self.shows_stored else None)

    def read(self, start: int, stop: int) -> RowBlock:
        """Rows [start, stop) as one block."""
        if start == stop:
            raise EmptyDataError(f"rows {start}:{stop} are no rows; choose A < B")
        return next(self.blocks(start, stop, max(1, stop - start)))


def _read_beside(
    features: RowReader, first: int, last: int, beside: dict[str, tuple[NumbersBeside, list[int]]]
) -> tuple[AnyArray, dict[str, AnyArray]]:
    """Rows [first, last) as stored, and the numbers that follow from these and from columns beside them."""
    if not beside:
        return features.read(first, last), {}
    raw, values = features.read_beside(first, last, [column for _, own in beside.values() for column in own])
    numbers, at = {}, 0
    for name, (rows, own) in beside.items():
        numbers[name] = rows.of_block(raw, values[:, at : at + len(own)], first)
        at += len(own)
    return raw, numbers


def _check_rows_argument(rows: int) -> None:
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
        raise ParameterError(f"{option('rows')} must be a positive whole number, not {rows!r}", value=rows)
