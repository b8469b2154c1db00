"""The two views of a row, for methods on paired data: two groups of its columns, or its features and its targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.pairs import of_some_columns
from streamkernel.table import RowBlock, RowScaler
from streamkernel.type_aliases import AnyArray, Float


@dataclass(frozen=True)
class View:
    """One of the two views.

    Parameters
    ----------
    columns : positions of its columns among the features; None for all features.
    of_targets : True if the view is the targets Y, not the features.
    scaler : Scaler for the columns of the view, or None.
    sparse : whether the view is sparse rows in pairs (`streamkernel.pairs`), whose columns are those of the view.
    """

    columns: tuple[int, ...] | None = None
    of_targets: bool = False
    scaler: RowScaler | None = None
    sparse: bool = False

    def of(self, X: AnyArray, Y: Float | None) -> Float:
        """The columns (b, p) float64 of this view; of sparse rows pairs (b, 2 w).

        They may share memory with X: the caller must not write to them.
        """
        values: AnyArray = X
        if self.of_targets:
            assert Y is not None
            values = Y
        elif self.columns is not None:
            values = of_some_columns(X, self.columns) if self.sparse else X[:, list(self.columns)]
        if self.scaler is not None:
            return self.scaler.apply(values, np.float64)
        return np.ascontiguousarray(values, dtype=np.float64)

    def scratch_bytes(self, rows: int, width: int) -> int:
        """Bytes that `of` needs in addition to its result, of rows of so many numbers: to number columns anew."""
        return 32 * rows * width if self.sparse and self.columns is not None else 0

    def block(self, block: RowBlock) -> RowBlock:
        """A block that has only the columns of this view, with the row weights."""
        return RowBlock(block.start, self.of(block.X, block.Y), None, block.weights)
