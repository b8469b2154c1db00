"""The two views of a row, for methods that look at pairs: two groups of its columns, or its features and targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.table import RowBlock, Scaler

__all__ = ["View"]

Float = NDArray[np.float64]


@dataclass(frozen=True)
class View:
    """One of the two.

    Parameters
    ----------
    columns : positions among the features; None for all of them.
    of_targets : the targets Y are the view, and not the features.
    scaler : applied to the view's columns, or None.
    """

    columns: tuple[int, ...] | None = None
    of_targets: bool = False
    scaler: Scaler | None = None

    def of(self, X: NDArray[Any], Y: Float | None) -> Float:
        """The view (b, p) float64 of rows X and their targets Y; it may be a view of X, and is not to be written to."""
        values: NDArray[Any] = X
        if self.of_targets:
            assert Y is not None
            values = Y
        elif self.columns is not None:
            values = X[:, list(self.columns)]
        if self.scaler is not None:
            return self.scaler.apply(values, np.float64)
        return np.ascontiguousarray(values, dtype=np.float64)

    def block(self, block: RowBlock) -> RowBlock:
        """The block as rows of the view alone, each counted once."""
        return RowBlock(block.start, self.of(block.X, block.Y), None)
