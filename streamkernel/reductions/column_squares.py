"""Sums of squares of the columns of a factor G, added while G is written: the decrease of the residual trace.

``tr(K - K~_t) = tr K - |g_1|^2 - ... - |g_t|^2`` for the first t functions. One set of sums serves every t, because
the first t columns of G are the factor of the first t functions (Smola & Schoelkopf 2000, eq. (22)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.linalg import PANEL_ROWS
from streamkernel.reductions.contract import Reduction, State, add_states
from streamkernel.table import RowBlock

__all__ = ["ColumnSquares"]


@dataclass(frozen=True)
class ColumnSquares(Reduction[NDArray[np.float64]]):
    """``|g_t|^2`` of each of n columns, (n,) float64."""

    width: int

    def map_block(self, block: RowBlock) -> State:
        squares = np.zeros(self.width)
        exact = block.X.dtype == np.float64
        # Panels of another dtype are converted one at a time: sums in float64 need no second copy of the block.
        scratch = np.empty((0 if exact else min(PANEL_ROWS, len(block.X)), self.width))
        for start in range(0, len(block.X), PANEL_ROWS):
            rows = block.X[start : start + PANEL_ROWS]
            panel = rows if exact else scratch[: len(rows)]
            if not exact:
                panel[...] = rows
            squares += np.einsum("ij,ij->j", panel, panel)
        return {"squares": squares}

    def combine(self, left: State, right: State) -> State:
        return add_states(left, right)

    def finalize(self, state: State) -> NDArray[np.float64]:
        squares: NDArray[np.float64] = state["squares"]
        return squares

    def state_bytes(self) -> int:
        return 8 * self.width

    def scratch_bytes(self, rows: int) -> int:
        return 8 * min(rows, PANEL_ROWS) * self.width

    def flops_per_row(self) -> float:
        return 2.0 * self.width
