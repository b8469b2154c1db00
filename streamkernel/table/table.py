"""Table: a pinned description of rows that yields them block by block."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamkernel.atomic import array_digest, canonical_json
from streamkernel.errors import EmptyDataError, ParameterError, ShapeError
from streamkernel.notebook import html_table
from streamkernel.table._matrix_rows import MatrixRows
from streamkernel.table._sparse_rows import DensifiedRows, SparseRows, SparsifiedRows, check_pairs
from streamkernel.table.block import RowBlock
from streamkernel.table.rows import ColumnRows, NumbersBeside, OrderedRows, RowArray, RowReader
from streamkernel.table.scaler import RowScaler
from streamkernel.table.statistics import TableStatistics
from streamkernel.table.targets import Targets
from streamkernel.table.values import cast_rows, check_rows, check_weights, listed
from streamkernel.table.weight_sums import WeightSums, known_sums
from streamkernel.type_aliases import AnyArray, AnyDType, Fields, Float, Int
from streamkernel.wording import option

# Before the digest of sparse rows. Without it, one that an earlier version wrote also depends on the fullest row.
OF_ENTRIES = "entries:"


@dataclass(frozen=True, eq=False)
class Table:
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
    keyed
        Whether blocks have keys of their rows' features.
    ids
        Ids of the rows as stored (`_row_ids`), or None.
    schema
        What the columns of the source were, as plain JSON, where they were not all numbers.
    weight_column
        Name of the column of the input that is the weights (`weighted_by`); "none" where its own weights were left
        out; else None.
    """

    features: RowArray
    dtype: AnyDType
    columns: tuple[str, ...]
    start: int
    stop: int
    targets: Targets | None = None
    weights: RowArray | None = None
    statistics: TableStatistics | None = None
    scaler: RowScaler | None = None
    named: bool = False
    keyed: bool = False
    weight_column: str | None = None
    schema: Fields | None = None
    ids: RowArray | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the range."""
        return self.stop - self.start

    @property
    def weight(self) -> float:
        """Sum of the row weights; the number of rows where every row counts once."""
        sums = self.weight_sums
        return float(self.n_rows) if sums is None else sums.total

    @property
    def counted(self) -> int:
        """Number of rows of weight > 0: what decides where a choice needs enough rows.

        Raises
        ------
        DataError
            As of `check_weights`.
        """
        self.check_weights()
        sums = self.weight_sums
        return self.n_rows if sums is None else sums.counted

    def check_weights(self) -> None:
        """Raise `DataError` for row weights that `weight_sums` refuses, or that are all 0."""
        sums = self.weight_sums
        if sums is not None and not sums.counted:
            raise EmptyDataError(f"all {self.n_rows} weights are zero, so no row counts; give some rows a weight > 0")

    @property
    def first_counted(self) -> int:
        """Number of the first row of weight > 0."""
        sums = self.weight_sums
        return self.start if sums is None else sums.first

    @property
    def weight_sums(self) -> WeightSums | None:
        """Sums of the row weights, by one pass over these; None where every row counts once.

        The sums are kept as long as the weights are, for all tables that share them.

        Raises
        ------
        DataError
            Weights that are negative, NaN, infinite or too large.
        """
        if self.weights is None:
            return None
        kept = known_sums(self.weights)
        found = kept.get((self.start, self.stop))
        if found is None:
            cuts = self.weights.cuts(self.start, self.stop)
            found = kept[self.start, self.stop] = WeightSums.of(cuts, (w for _, w in self.weight_runs()))
        return found

    def weight_runs(self, runs: Sequence[int] | None = None) -> Iterator[tuple[int, Float]]:
        """The row weights in runs: the number of the first row, and the weights (b,); no other column is read.

        Parameters
        ----------
        runs
            Numbers of the runs that are read, ascending, as in `weight_sums`; None for all.
        """
        if self.weights is None:
            return
        reader, cuts = RowReader(self.weights), self.weights.cuts(self.start, self.stop)
        for run in range(len(cuts) - 1) if runs is None else runs:
            first, last = int(cuts[run]), int(cuts[run + 1])
            yield first, self._weights_of(first, last, reader)

    def weights_of(self, start: int, stop: int) -> Float | None:
        """The weights (b,) of rows [start, stop); None where every row counts once."""
        return None if self.weights is None else self._weights_of(start, stop, RowReader(self.weights))

    def _weights_of(self, first: int, last: int, reader: RowReader) -> Float:
        return self.checked_weights(reader.read(first, last), first)

    def checked_weights(self, weights: AnyArray, first: int) -> Float:
        """Row weights (b,) as read, of which `first` is the first, checked and in float64."""
        assert self.weights is not None
        w = np.ascontiguousarray(weights, dtype=np.float64)
        check_weights(w, first, self.weights.where, self.weight_column)
        return w

    @property
    def own_statistics(self) -> TableStatistics | None:
        """The stored statistics where they count the rows as this table does; else None."""
        known = self.statistics
        return known if known is None or (known.X.weight is None) == (self.weights is None) else None

    @property
    def n_features(self) -> int:
        """Columns p, as stored."""
        return self.features.shape[1]

    @property
    def width(self) -> int:
        """Columns of a block's X: those of the scaler's result; without a scaler, or of sparse rows, `stored_width`."""
        return self.stored_width if self.scaler is None or self.sparse else self.scaler.width

    @property
    def stored_width(self) -> int:
        """Numbers of a row before the scaler: the columns p; of sparse rows two for each entry of the fullest row."""
        return self.features.width

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse: blocks then hold them in pairs of columns and values (`streamkernel.pairs`)."""
        return self.features.in_pairs

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

    @property
    def of_matrix(self) -> bool:
        """Whether rows are those of a kernel matrix (`streamkernel.matrix_rows`)."""
        return isinstance(self.features, MatrixRows)

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

    @property
    def n_targets(self) -> int:
        """Columns of Y: targets, or classes; 0 without y."""
        return 0 if self.targets is None else self.targets.n_targets

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the target columns."""
        return () if self.targets is None else self.targets.names

    @property
    def classes(self) -> AnyArray | None:
        """Sorted labels of a classification target, else None."""
        return None if self.targets is None else self.targets.classes

    @property
    def chunk_rows(self) -> int:
        """Rows of one chunk of X."""
        return self.features.chunk_rows

    @property
    def in_memory(self) -> bool:
        """True where the rows are a NumPy array."""
        return self.features.in_memory

    @property
    def bytes_per_row(self) -> int:
        """Bytes of one decoded row of X, in the stored dtype, with columns that are no features."""
        return self.features.as_stored[0].width * self.features.dtype.itemsize

    @property
    def chunk_bytes(self) -> int:
        """Bytes of one decoded chunk of X; 0 for rows in memory, which need no decoding."""
        return 0 if self.in_memory else self.bytes_per_row * self.chunk_rows

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the pinned rows, targets, classes, weights, dtype and row range; without path and scaler."""
        targets = self.targets
        classes = None if targets is None or targets.classes is None else [str(label) for label in targets.classes]
        pinned = {
            "X": self.features.fingerprint,
            "y": None if targets is None else targets.rows.fingerprint,
            "classes": classes,
            "weights": None if self.weights is None else self.weights.fingerprint,
            "dtype": str(self.dtype),
            "rows": [self.start, self.stop],
        }
        return hashlib.sha256(canonical_json(pinned).encode()).hexdigest()

    @property
    def _arrays(self) -> list[RowArray]:
        """The arrays as stored: X, y where there are targets, w where there are weights."""
        targets = [] if self.targets is None else [self.targets.rows]
        return [self.features, *targets, *([] if self.weights is None else [self.weights])]

    def digest_known(self, first: int, last: int) -> bool:
        """Whether `digest` needs no read: for chunks of an ingested store, and in memory."""
        return all(rows.digest_known(first, last) for rows in self._arrays)

    def digest(self, first: int, last: int) -> str:
        """Digest of rows [first, last), numbered as in the whole input: X, y and weights as stored.

        That of sparse rows begins with `OF_ENTRIES`.
        """
        parts = [(rows.dtype, rows.digest(first, last)) for rows in self._arrays]
        # Digests are of little-endian values, so use that byte order here. They do not depend on how text is stored.
        words = [f"{'U' if dtype.kind in 'UTO' else dtype.newbyteorder('<').str}:{text}" for dtype, text in parts]
        digest = array_digest(np.frombuffer(" ".join(words).encode(), dtype=np.uint8))
        return f"{OF_ENTRIES}{digest}" if self.sparse else digest

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

    def with_keys(self) -> Table:
        """The same rows, with a key per row in every block; keys are of stored values, which no scaler has rounded."""
        return replace(self, keyed=True)

    @property
    def multilabel(self) -> bool:
        """Whether each target is a label that a row has (1) or has not (0)."""
        return self.targets is not None and self.targets.indicators

    def with_indicators(self) -> Table:
        """The same rows, whose targets must be 0 or 1 where they are read."""
        assert self.targets is not None
        return replace(self, targets=replace(self.targets, indicators=True))

    def for_model(self, classes: AnyArray | None, d: int) -> Table:
        """The same rows with `Targets.for_model`."""
        assert self.targets is not None
        return replace(self, targets=self.targets.for_model(classes, d))

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

    def check_unchanged(self) -> None:
        """Raise `InputChangedError`, `MissingChunkError` or `CorruptChunkError` where the input is not as pinned."""
        for rows in self._arrays:
            rows.check_unchanged()

    def check_read(self) -> None:
        """The same check after a sweep, only for rows whose reads are not compared with a pinned digest."""
        for rows in self._arrays:
            if not rows.proved:
                rows.check_unchanged()

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
        weights = None if self.weights is None or self._beside is not None else RowReader(self.weights)
        for start, stop in runs:
            count = -(-(stop - start) // rows)
            for index in range(count):
                first = start + (stop - start) * index // count
                last = start + (stop - start) * (index + 1) // count
                yield self._block(first, last, features, targets, weights)

    @property
    def _beside(self) -> list[int] | None:
        """Columns beside the features from which the weights follow, so that one read gives both; None for no such."""
        return self.weights.columns_beside(self.features) if isinstance(self.weights, NumbersBeside) else None

    def _block(
        self, first: int, last: int, features: RowReader, targets: RowReader | None, weights: RowReader | None
    ) -> RowBlock:
        w: AnyArray | None = None
        columns = self._beside
        if columns is None:
            raw = features.read(first, last)
        else:
            assert isinstance(self.weights, NumbersBeside)
            raw, beside = features.read_beside(first, last, columns)
            w = self.weights.of_block(raw, beside, first)
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
        if weights is not None:
            w = weights.read(first, last)
        checked = None if w is None else self.checked_weights(w, first)
        return RowBlock(first, X, Y, checked, self.features.keys(raw) if self.keyed else None)

    def read(self, start: int, stop: int) -> RowBlock:
        """Rows [start, stop) as one block."""
        if start == stop:
            raise EmptyDataError(f"rows {start}:{stop} are no rows; choose A < B")
        return next(self.blocks(start, stop, max(1, stop - start)))

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        kind = type(self.features).__name__.removesuffix("Rows").lower()
        target = f", classes={len(self.classes)}" if self.classes is not None else f", targets={self.n_targets}"
        return f"Table({kind}, rows={self.start}:{self.stop}, features={self.n_features}{target}, dtype={self.dtype})"

    def _repr_html_(self) -> str:
        """What a notebook shows; no row is read."""
        return html_table(
            "Table",
            {
                "rows": f"{self.n_rows:,} ({self.start}:{self.stop})",
                "features": self.n_features,
                "columns": self.columns,
                "targets": self.target_names or None,
                "classes": None if self.classes is None else self.classes.tolist(),
                "row weights": None if self.weights is None else self.weight_column or "stored with the rows",
                "dtype": str(self.dtype),
                "rows of a chunk": self.chunk_rows,
                "scaled by": None if self.scaler is None else type(self.scaler).__name__,
            },
        )


def _check_rows_argument(rows: int) -> None:
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
        raise ParameterError(f"{option('rows')} must be a positive whole number, not {rows!r}", value=rows)
