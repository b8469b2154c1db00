"""Decisions of one class: the value of its function, and the side of the threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.row_map import Predictions, RowMap
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float


@dataclass(frozen=True)
class Decisions(RowMap):
    """``f(x)``, and 1 where it is at least 0, -1 for the outliers below.

    Parameters
    ----------
    function : Predictions of one function f.
    """

    function: Predictions

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        return {"prediction": (None, np.dtype(np.int64)), "decision": (None, np.dtype(np.float64))}

    def values(self, X: AnyArray) -> Float:
        """Decision values (b, 1)."""
        return self.function.values(X)

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        f = self.values(block.X)[:, 0]
        return {"prediction": np.where(f < 0.0, -1, 1), "decision": f}

    def scratch_bytes(self, rows: int) -> int:
        return self.function.scratch_bytes(rows) + 16 * rows

    def flops_per_row(self) -> float:
        return self.function.flops_per_row()
