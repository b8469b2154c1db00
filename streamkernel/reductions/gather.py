"""Rows by their numbers, from wherever they lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.reductions.contract import Reduction, State
from streamkernel.table import RowBlock

__all__ = ["Gather", "Sample"]


@dataclass(frozen=True)
class Sample:
    """Some rows of a table, in ascending order of their numbers.

    Attributes
    ----------
    rows : (s,) int64
    X : (s, p), scaled, in the table's dtype
    Y : (s, d) float64; d = 0 without targets
    weights : (s,) float64
    """

    rows: NDArray[np.int64]
    X: NDArray[Any]
    Y: NDArray[np.float64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, rows: NDArray[np.int64]) -> Sample:
        """The rows with these numbers, in the order asked for."""
        return self.at_positions(np.searchsorted(self.rows, rows))

    def at_positions(self, positions: NDArray[np.int64]) -> Sample:
        """The rows at these positions of the sample."""
        return Sample(self.rows[positions], self.X[positions], self.Y[positions], self.weights[positions])


@dataclass(frozen=True)
class Gather(Reduction[Sample]):
    """Copy the wanted rows out of the stream.

    Parameters
    ----------
    rows : (s,) int64, ascending, without repeats.
    n_features, n_targets, dtype : of the table.
    """

    rows: NDArray[np.int64]
    n_features: int
    n_targets: int
    dtype: np.dtype[Any]

    def map_block(self, block: RowBlock) -> State:
        first, last = np.searchsorted(self.rows, [block.start, block.start + len(block.X)])
        rows = self.rows[first:last]
        local = rows - block.start
        targets = np.zeros((len(rows), 0)) if block.Y is None else block.Y[local]
        weights = np.ones(len(rows)) if block.weights is None else block.weights[local]
        return {"rows": rows, "X": block.X[local], "Y": targets, "weights": weights}

    def combine(self, left: State, right: State) -> State:
        return {name: np.concatenate([left[name], right[name]]) for name in left}

    def finalize(self, state: State) -> Sample:
        return Sample(state["rows"], state["X"], state["Y"], state["weights"])

    def state_bytes(self) -> int:
        return len(self.rows) * (16 + self.n_features * self.dtype.itemsize + 8 * self.n_targets)

    def scratch_bytes(self, rows: int) -> int:
        return 0

    def flops_per_row(self) -> float:
        return float(self.n_features)
