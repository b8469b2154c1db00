"""What each column of a factor G takes off the residual trace, summed while G is written.

``tr(K - K~_t) = tr K - |g_1|^2 - ... - |g_t|^2`` for the first t functions, all t at once,
because the first t columns of G are the factor of the first t functions (Smola & Schoelkopf 2000, eq. (22)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.reductions.contract import Reduction, State, add_states
from streamkernel.table import RowBlock

__all__ = ["ColumnSquares"]

_PANEL_ROWS = 512  # whose float64 copies stay in the cache


@dataclass(frozen=True)
class ColumnSquares(Reduction[NDArray[np.float64]]):
    """``|g_t|^2`` of each of n columns, (n,) float64."""

    width: int

    def map_block(self, block: RowBlock) -> State:
        squares = np.zeros(self.width)
        for start in range(0, len(block.X), _PANEL_ROWS):
            panel = block.X[start : start + _PANEL_ROWS].astype(np.float64, copy=False)
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
        return 8 * min(rows, _PANEL_ROWS) * self.width

    def flops_per_row(self) -> float:
        return 2.0 * self.width
