"""The sums that a reduced least squares fit needs, and its certificate.

With ``K = k(X, Z)`` (m, n), targets ``Y`` (m, d), row weights ``w`` (ones unless given) and ``W = diag w``::

    KK = K^T W K    KY = K^T W Yc    YY = Yc^T W Yc    K1 = K^T w    Y1 = Yc^T w    trace = sum_i w_i k(x_i, x_i)

``Yc = Y - centre``: targets are shifted by a constant near their mean before they are squared, so that a large
offset costs no digits; the exact mean is in the sums. Smola & Schoelkopf 2000, eq. (7), whitened afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import Basis
from streamkernel.linalg import mirror_upper, syrk
from streamkernel.reductions.contract import Reduction, State, add_states
from streamkernel.table import RowBlock

__all__ = ["NormalEquations", "RidgeSums"]


@dataclass(frozen=True)
class RidgeSums:
    """Everything a reduced ridge regression, its alpha path and its certificate are made of; all float64.

    Attributes
    ----------
    KK : (n, n), KY : (n, d), YY : (d, d), K1 : (n,), Y1 : (d,)
    centre : (d,) constant that was taken off the targets
    weight : sum of the row weights
    trace : weighted trace of K
    count : number of rows
    """

    KK: NDArray[np.float64]
    KY: NDArray[np.float64]
    YY: NDArray[np.float64]
    K1: NDArray[np.float64]
    Y1: NDArray[np.float64]
    centre: NDArray[np.float64]
    weight: float
    trace: float
    count: int


@dataclass(frozen=True)
class NormalEquations(Reduction[RidgeSums]):
    """Accumulate `RidgeSums` over the rows of a table.

    Parameters
    ----------
    basis : Basis of n functions.
    centre : (d,) constant near the mean of each target; d = 0 without targets.
    """

    basis: Basis
    centre: NDArray[np.float64]

    def _empty(self) -> State:
        n, d = len(self.basis), len(self.centre)
        return {
            "KK": np.zeros((n, n)),
            "KY": np.zeros((n, d)),
            "YY": np.zeros((d, d)),
            "K1": np.zeros(n),
            "Y1": np.zeros(d),
            "totals": np.zeros(3),
        }

    def map_block(self, block: RowBlock) -> State:
        return self.fold(self._empty(), block)

    def fold(self, state: State, block: RowBlock) -> State:
        b = len(block.X)
        weights = np.ones(b) if block.weights is None else block.weights
        diagonal = self.basis.kernel.diagonal(block.X)
        Y = np.zeros((b, 0)) if block.Y is None else block.Y - self.centre
        # Sums in float64 from blocks in the table's dtype: the products are the sweep's whole cost, and its digits.
        K = self.basis.block(block.X).astype(np.float64, copy=False)
        if block.weights is not None:
            root = np.sqrt(weights)[:, None]
            state["K1"] += weights @ K
            state["Y1"] += weights @ Y
            K = K * root
            Y = Y * root
        else:
            state["K1"] += K.sum(axis=0)
            state["Y1"] += Y.sum(axis=0)
        syrk(K, into=state["KK"])
        state["KY"] += K.T @ Y
        state["YY"] += Y.T @ Y
        state["totals"] += [b, weights.sum(), weights @ diagonal]
        return state

    def combine(self, left: State, right: State) -> State:
        return add_states(left, right)

    def finalize(self, state: State) -> RidgeSums:
        count, weight, trace = (float(value) for value in state["totals"])
        return RidgeSums(
            KK=mirror_upper(state["KK"].copy()),
            KY=state["KY"],
            YY=state["YY"],
            K1=state["K1"],
            Y1=state["Y1"],
            centre=self.centre,
            weight=weight,
            trace=trace,
            count=int(count),
        )

    def state_bytes(self) -> int:
        n, d = len(self.basis), len(self.centre)
        return 8 * (n * n + n * (d + 1) + d * (d + 1))

    def scratch_bytes(self, rows: int) -> int:
        n = len(self.basis)
        cast = 8 if self.basis.points.dtype == np.float32 else 0
        return rows * n * (self.basis.points.dtype.itemsize + cast) + 8 * rows * (len(self.centre) + 2)

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float(n * n + 2 * n * (p + len(self.centre)))
