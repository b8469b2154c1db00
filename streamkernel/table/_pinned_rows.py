"""What a table is: its fields, its sizes, the sums of its weights, and the digests by which its rows are known."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from streamkernel.atomic import array_digest, canonical_json, text_digest
from streamkernel.notebook import html_table
from streamkernel.table._matrix_rows import MatrixRows
from streamkernel.table.row_keys import RowRounding
from streamkernel.table.rows import NumbersBeside, RowArray, RowReader
from streamkernel.table.scaler import RowScaler
from streamkernel.table.statistics import TableStatistics
from streamkernel.table.targets import Targets
from streamkernel.table.values import check_largest_weight, check_weights
from streamkernel.table.weight_sums import WeightSums, known_sums
from streamkernel.type_aliases import AnyArray, AnyDType, Fields, Float

# Before the digest of sparse rows. Without it, one that an earlier version wrote also depends on the fullest row.
OF_ENTRIES = "entries:"


@dataclass(frozen=True, eq=False)
class PinnedRows:
    """Rows [start, stop) of a pinned input, which are not read here but for their weights; `Table` tells its fields."""

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
    keys: RowRounding | None = None
    weight_column: str | None = None
    schema: Fields | None = None
    ids: RowArray | None = None
    parts: NumbersBeside | None = None
    shows_stored: bool = False

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
        """Raise `DataError` for row weights that `weight_sums` refuses, or that are all 0 or next to it."""
        sums = self.weight_sums
        if sums is not None:
            check_largest_weight(float(sums.largest.max(initial=0.0)), self.n_rows)

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

    @property
    def of_matrix(self) -> bool:
        """Whether rows are those of a kernel matrix (`streamkernel.matrix_rows`)."""
        return isinstance(self.features, MatrixRows)

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
    def multilabel(self) -> bool:
        """Whether each target is a label that a row has (1) or has not (0)."""
        return self.targets is not None and self.targets.indicators

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
    def run_pins(self) -> Fields:
        """What the checkpoints of a run pin of its rows, which no later run may see changed.

        Of rows of others the fingerprint is that of the metadata; so the times of their chunk files are pinned, too.
        """
        stamp = "".join(rows.stamp for rows in self._arrays)
        pins = {"table": self.fingerprint, "rows": [self.start, self.stop]}
        return {**pins, "chunk_times": text_digest(stamp)} if stamp else pins

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

    def check_unchanged(self) -> None:
        """Raise `InputChangedError`, `MissingChunkError` or `CorruptChunkError` where the input is not as pinned."""
        for rows in self._arrays:
            rows.check_unchanged()

    def check_read(self) -> None:
        """The same check after a sweep, only for rows whose reads are not compared with a pinned digest."""
        for rows in self._arrays:
            if not rows.proved:
                rows.check_unchanged()

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
