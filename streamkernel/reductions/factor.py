"""The sweep that writes a factor: whitened features, row by row, and what each column takes off the residual trace.

``G = k(X, Z) L^-T``; ``tr(K - K~_t) = tr K - |g_1|^2 - ... - |g_t|^2`` for the first t functions, all t at once,
because the first t columns of G are the factor of the first t functions (Smola & Schoelkopf 2000, eq. (22)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import Basis
from streamkernel.reductions.contract import Reduction, State, add_states
from streamkernel.reductions.rows import RowMap
from streamkernel.table import RowBlock

__all__ = ["ColumnSquares", "FactorColumns"]


@dataclass(frozen=True)
class ColumnSquares(Reduction[NDArray[np.float64]]):
    """``|g_t|^2`` of each of n columns, (n,) float64."""

    width: int

    def map_block(self, block: RowBlock) -> State:
        return {"squares": np.einsum("ij,ij->j", block.X, block.X, dtype=np.float64)}

    def combine(self, left: State, right: State) -> State:
        return add_states(left, right)

    def finalize(self, state: State) -> NDArray[np.float64]:
        squares: NDArray[np.float64] = state["squares"]
        return squares

    def state_bytes(self) -> int:
        return 8 * self.width

    def scratch_bytes(self, rows: int) -> int:
        return 0

    def flops_per_row(self) -> float:
        return 2.0 * self.width


@dataclass(frozen=True)
class FactorColumns(RowMap):
    """G (m, n) and, while it is written, the squares of its columns as they are stored.

    Parameters
    ----------
    basis : of n functions.
    dtype : of G on disk; it is computed in float64.
    """

    basis: Basis
    dtype: np.dtype[Any]

    @property
    def columns(self) -> dict[str, tuple[int | None, np.dtype[Any]]]:
        return {"G": (len(self.basis), self.dtype)}

    @property
    def summary(self) -> tuple[str, Reduction[NDArray[np.float64]]]:
        return "G", ColumnSquares(len(self.basis))

    def map_block(self, block: RowBlock) -> dict[str, NDArray[Any]]:
        return {"G": self.basis.features(block.X).astype(self.dtype, copy=False)}

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        return int(rows * (8 * (n + p) + self.dtype.itemsize * n))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float(n * n + 2 * n * p)
