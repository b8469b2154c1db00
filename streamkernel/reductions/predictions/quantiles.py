"""Quantiles of several levels that do not cross, by monotone rearrangement.

Functions of several levels are fitted one by one, so that a higher level may have the smaller value at some rows.
Sorted values of each row do not cross, and are nearer to the true quantiles (Chernozhukov, Fernandez-Val & Galichon
2010). Sorting increases no sum of pinball losses over the levels, whatever the target of the row: the second derivative
of the loss by level and value is -1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.row_map import Predictions, RowMap
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float


@dataclass(frozen=True)
class QuantilePredictions(RowMap):
    """Quantiles of K levels, in the order of the levels: the sorted values of K functions.

    Parameters
    ----------
    functions : Predictions of one function for each level; `flat` there writes a vector where K = 1.
    levels : K levels between 0 and 1, in ascending order.
    """

    functions: Predictions
    levels: tuple[float, ...]

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        return self.functions.columns

    def unsorted(self, X: AnyArray) -> Float:
        """Values of the functions, (b, K), which may cross."""
        return self.functions.values(X)

    def values(self, X: AnyArray) -> Float:
        """Quantiles (b, K), ascending in each row."""
        return np.sort(self.unsorted(X), axis=1)

    def check_values(self, X: AnyArray) -> dict[str, Float]:
        """The values that are compared with the targets: those of the level nearest to 1/2, and of all levels."""
        values, middle = self.values(X), int(np.argmin(np.abs(np.array(self.levels) - 0.5)))
        return {"predicted": values[:, [middle]], "quantiles": values}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        values = self.values(block.X)
        return {"prediction": values[:, 0] if self.columns["prediction"][0] is None else values}

    def scratch_bytes(self, rows: int) -> int:
        return self.functions.scratch_bytes(rows) + 8 * rows * len(self.levels)

    def flops_per_row(self) -> float:
        K = len(self.levels)
        return self.functions.flops_per_row() + float(K * K)
