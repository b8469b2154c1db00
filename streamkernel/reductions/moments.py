"""Count, mean, standard deviation and range of every column, for tables without stored statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from streamkernel.matrix_rows import LEADING
from streamkernel.reductions.contract import Reduction, State
from streamkernel.table import ColumnStatistics, RowBlock, Table, TableStatistics


@dataclass(frozen=True)
class Moments(Reduction[TableStatistics]):
    """Accumulate `TableStatistics`, merged pairwise.

    Pairwise merging loses no digits to a large offset (Chan, Golub & LeVeque 1983, eq. (2.1)).

    Parameters
    ----------
    n_features, n_targets : numbers of features and targets of the table; 0 targets for none.
    sparse : whether rows are sparse ones in pairs.
    """

    n_features: int
    n_targets: int
    sparse: bool = False

    @classmethod
    def of(cls, table: Table, n_targets: int) -> Self:
        """The statistics of the features of a table and of so many targets."""
        # Nobody needs statistics of the m columns of a kernel matrix: those of the columns before them are enough.
        return cls(LEADING if table.of_matrix else table.n_features, n_targets, table.sparse)

    @property
    def _prefixes(self) -> list[str]:
        return ["x", "y"] if self.n_targets else ["x"]

    def map_block(self, block: RowBlock) -> State:
        if self.sparse:
            features = ColumnStatistics.of_pairs(block.X, self.n_features, block.weights)
        else:
            features = ColumnStatistics.of(block.X[:, : self.n_features], block.weights)
        state = features.to_arrays("x_")
        if self.n_targets:
            assert block.Y is not None
            state |= ColumnStatistics.of(block.Y, block.weights).to_arrays("y_")
        return state

    def combine(self, left: State, right: State) -> State:
        merged: State = {}
        for prefix in self._prefixes:
            a, b = (ColumnStatistics.from_arrays(state, f"{prefix}_") for state in (left, right))
            merged |= a.merge(b).to_arrays(f"{prefix}_")
        return merged

    def finalize(self, state: State) -> TableStatistics:
        return TableStatistics(
            ColumnStatistics.from_arrays(state, "x_"),
            ColumnStatistics.from_arrays(state, "y_") if self.n_targets else None,
        )

    def state_bytes(self) -> int:
        return 32 * (self.n_features + self.n_targets) + 32

    def scratch_bytes(self, rows: int) -> int:
        if self.sparse:
            # Numbers of each column; those of each entry are less than ten times a block, which the engine counts.
            return 64 * self.n_features + 24 * rows * self.n_targets
        # Features, then targets: in float64, less their first row, and times the weights.
        return 24 * rows * max(self.n_features, self.n_targets)

    def flops_per_row(self) -> float:
        return 8.0 * (self.n_features + self.n_targets)
