"""Rows with given numbers, copied out of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from streamkernel.reductions.contract import Reduction, State
from streamkernel.table import RowBlock, Table
from streamkernel.type_aliases import AnyArray, AnyDType, Float, Int


@dataclass(frozen=True)
class Sample:
    """Some rows of a table, in ascending order of their numbers.

    Attributes
    ----------
    rows : (s,) int64
    X : (s, p), scaled, in the table's dtype; as stored where it was asked for
    Y : (s, d) float64; d = 0 without targets
    weights : (s,) float64
    keys : (s,) uint64 keys of the features, if the blocks of the table have them; else None
    """

    rows: Int
    X: AnyArray
    Y: Float
    weights: Float
    keys: NDArray[np.uint64] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, rows: Int) -> Sample:
        """The rows with these numbers, in the order of `rows`."""
        return self.at_positions(np.searchsorted(self.rows, rows))

    def at_positions(self, positions: Int) -> Sample:
        """The rows at these positions of the sample."""
        keys = None if self.keys is None else self.keys[positions]
        return Sample(self.rows[positions], self.X[positions], self.Y[positions], self.weights[positions], keys)

    def merged(self, other: Sample) -> Sample:
        """The rows of both samples, in ascending order; no row may be in both."""
        names = ("rows", "X", "Y", "weights", *(("keys",) if self.keys is not None and other.keys is not None else ()))
        both = Sample(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))
        return both.at_positions(np.argsort(both.rows))


@dataclass(frozen=True)
class Gather(Reduction[Sample]):
    """Copy the wanted rows out of the stream.

    Parameters
    ----------
    rows : (s,) int64 row numbers, ascending, without repeats.
    n_features, n_targets, dtype : numbers of features and targets, and dtype of the copied rows.
    stored : whether the rows are copied as stored, from blocks that have them so (`Table.with_stored`).
    """

    rows: Int
    n_features: int
    n_targets: int
    dtype: AnyDType
    stored: bool = False

    @classmethod
    def of(cls, rows: Int, table: Table) -> Gather:
        """The copy of these rows as the blocks of a table have them."""
        return cls(rows, table.width, table.n_targets, np.dtype(table.dtype))

    def map_block(self, block: RowBlock) -> State:
        X = block.stored if self.stored else block.X
        assert X is not None, "blocks have their rows as stored only from a table that shows them"
        first, last = np.searchsorted(self.rows, [block.start, block.start + len(block.X)])
        rows = self.rows[first:last]
        local = rows - block.start
        targets = np.zeros((len(rows), 0)) if block.Y is None else block.Y[local]
        weights = np.ones(len(rows)) if block.weights is None else block.weights[local]
        state = {"rows": rows, "X": X[local], "Y": targets, "weights": weights}
        return state if block.keys is None else state | {"keys": block.keys[local]}

    def combine(self, left: State, right: State) -> State:
        # A state of no rows costs no copy: all rows may be those of one leaf.
        if not len(left["rows"]) or not len(right["rows"]):
            return dict(right if len(right["rows"]) else left)
        return {name: np.concatenate([left[name], right[name]]) for name in left}

    def finalize(self, state: State) -> Sample:
        return Sample(state["rows"], state["X"], state["Y"], state["weights"], state.get("keys"))

    def state_bytes(self) -> int:
        return len(self.rows) * (24 + self.n_features * self.dtype.itemsize + 8 * self.n_targets)

    def share_bytes(self, share: float) -> int:
        return ceil(share * self.state_bytes())

    def scratch_bytes(self, rows: int) -> int:
        return 0

    def flops_per_row(self) -> float:
        return float(self.n_features)
