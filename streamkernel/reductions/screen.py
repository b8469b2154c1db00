"""A first look at many candidates, one by one: what each would gain if it were picked next.

The same columns as `PoolGram`, but only what a single pick needs: the k x k Gram matrix, which is most of the cost of
a pool, is left out. With residual columns R of k candidates, scoring rows of weights w and a basis of n functions::

    c = diag(R^T W R) (k,)    E = G^T W R (n, k)    F = R^T W Y (k, d)    H = G^T W G    g = G^T W Y
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.reductions.contract import Reduction, State, add_states
from streamkernel.reductions.pool import PoolColumns
from streamkernel.table import RowBlock

__all__ = ["Screen", "ScreenSums"]


@dataclass(frozen=True)
class ScreenSums:
    """The sums of `Screen`, float64; `s` is the residual of each candidate at itself, (k,)."""

    c: NDArray[np.float64]
    E: NDArray[np.float64]
    F: NDArray[np.float64]
    H: NDArray[np.float64]
    g: NDArray[np.float64]
    YY: NDArray[np.float64]
    s: NDArray[np.float64]
    weight: float
    trace: float


@dataclass(frozen=True)
class Screen(Reduction[ScreenSums]):
    """Accumulate what single picks need of ``[G, R, Yc]``."""

    columns: PoolColumns

    def map_block(self, block: RowBlock) -> State:
        columns = self.columns.of(block)
        n, k = len(self.columns.basis), len(self.columns.pool)
        G, R, Y = columns[:, :n], columns[:, n : n + k], columns[:, n + k :]
        diagonal = self.columns.pool.kernel.diagonal(block.X)
        weights = np.ones(len(diagonal)) if block.weights is None else block.weights
        state = {
            "c": np.einsum("ij,ij->j", R, R),
            "E": G.T @ R,
            "F": R.T @ Y,
            "H": G.T @ G,
            "g": G.T @ Y,
            "YY": Y.T @ Y,
            "totals": np.array([weights.sum(), weights @ diagonal]),
        }
        return {name: np.asarray(values, dtype=np.float64) for name, values in state.items()}

    def combine(self, left: State, right: State) -> State:
        return add_states(left, right)

    def finalize(self, state: State) -> ScreenSums:
        G_M = self.columns.features_of_pool
        diagonal = self.columns.pool.kernel.diagonal(self.columns.pool.points)
        return ScreenSums(
            c=state["c"],
            E=state["E"],
            F=state["F"],
            H=state["H"],
            g=state["g"],
            YY=state["YY"],
            s=diagonal - np.einsum("ij,ij->i", G_M, G_M),
            weight=float(state["totals"][0]),
            trace=float(state["totals"][1]),
        )

    def state_bytes(self) -> int:
        n, k, d = len(self.columns.basis), len(self.columns.pool), len(self.columns.centre)
        return 8 * ((n + d + 1) * (n + k + d) + 2)

    def scratch_bytes(self, rows: int) -> int:
        n, k = len(self.columns.basis), len(self.columns.pool)
        return self.columns.scratch_bytes(rows) + self.columns.precision.itemsize * n * (n + k)

    def flops_per_row(self) -> float:
        n, k, p = len(self.columns.basis), len(self.columns.pool), self.columns.pool.points.shape[1]
        return float(4 * n * k + 3 * n * n + 2 * (n + k) * p)
