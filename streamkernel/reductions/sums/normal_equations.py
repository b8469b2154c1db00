"""Sums of a reduced least squares fit, and its certificate.

With whitened features ``G = k(X, Z) L^-T`` (m, n), targets ``Y`` (m, d), row weights ``w`` (ones unless given) and
``W = diag w``::

    H = G^T W G    g = G^T W Yc    YY = Yc^T W Yc    G1 = G^T w    Y1 = Yc^T w    trace = sum_i w_i k(x_i, x_i)

``Yc = Y - centre``: targets are shifted by a constant near their mean before they are squared, so that a large
offset loses no digits. Y1 gives the exact mean. Smola & Schoelkopf 2000, eq. (7), in whitened coordinates.

There are two ways to these sums. To accumulate ``K^T W K`` and whiten it at the end costs half the operations, but
lifts the rounding of the sum, about ``eps m sqrt(n)``, by `Basis.lift`. To whiten every block first does not
(ALGORITHMS 1.1). `NormalEquations.of` takes the first way if the basis allows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import mirror_upper, solve_lower, syrk
from streamkernel.reductions._mergeable import MergeableSums
from streamkernel.reductions.contract import State, Sums
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float

# Largest harmless rounding error of the whitened sums, in the units of alpha, for every alpha that a score may choose.
# Measured on functions without noise in 1 to 5 dimensions, with alphas from 1e-2 to 1e-12: the predictions of the two
# ways differed by 7e-7 to 3e-5 of the target's standard deviation, and by at most 3 % of the error of both.
_MOST_LIFTED_ROUNDING = 3e-4


@dataclass(frozen=True)
class RidgeSums(MergeableSums):
    """Sufficient statistics of a reduced ridge regression, of its alpha path and of its certificate, float64.

    Attributes
    ----------
    H : (n, n), g : (n, d), YY : (d, d), G1 : (n,), Y1 : (d,)
    centre : (d,) constant that was subtracted from the targets
    weight : sum of the row weights
    trace : weighted trace of K
    count : number of rows
    """

    H: Float
    g: Float
    YY: Float
    G1: Float
    Y1: Float
    centre: Float
    weight: float
    trace: float
    count: int

    @property
    def residual_trace(self) -> float:
        """``tr(K - K~)`` of these rows, exact: the certificate."""
        return max(self.trace - float(np.trace(self.H)), 0.0)


@dataclass(frozen=True)
class NormalEquations(Sums[RidgeSums]):
    """Accumulate `RidgeSums` over the rows of a table.

    Parameters
    ----------
    basis : Basis of n functions.
    centre : (d,) constant near the mean of each target; d = 0 without targets.
    whiten_first : True to whiten every block before the sum; False to whiten the sums, for half the operations.
    """

    basis: Basis
    centre: Float
    whiten_first: bool = True

    @classmethod
    def of(cls, basis: Basis, centre: Float, rows: int, alpha: float | None = None) -> NormalEquations:
        """Whiten the sums of a well-conditioned basis, and the blocks of others.

        The choice depends on the basis, the number of rows and alpha only.

        Parameters
        ----------
        rows : number of rows m of the table.
        alpha : ridge that the user gave, or None if it is chosen from the sums. The rounding error stays below it,
            because a user who gives 1e-9 needs the digits.
        """
        lifted = np.finfo(np.float64).eps * rows * np.sqrt(len(basis)) * basis.lift
        most = _MOST_LIFTED_ROUNDING if alpha is None else min(_MOST_LIFTED_ROUNDING, alpha)
        return cls(basis, centre, whiten_first=bool(lifted > most))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n, d = len(self.basis), len(self.centre)
        return {"H": (n, n), "g": (n, d), "YY": (d, d), "G1": (n,), "Y1": (d,), "totals": (3,)}

    def fold(self, state: State, block: RowBlock) -> State:
        b = len(block.X)
        weights = block.row_weights
        diagonal = self.basis.kernel.diagonal(block.X)
        Y = np.zeros((b, 0)) if block.Y is None else block.Y - self.centre
        K = self.basis.features(block.X) if self.whiten_first else self.basis.block(block.X)
        if block.weights is not None:
            # Roots of the weights on both factors, so that SYRK computes K^T W K.
            root = np.sqrt(weights)[:, None]
            state["G1"] += weights @ K
            state["Y1"] += weights @ Y
            K = K * root
            Y = Y * root
        else:
            state["G1"] += K.sum(axis=0)
            state["Y1"] += Y.sum(axis=0)
        syrk(K, into=state["H"])
        state["g"] += K.T @ Y
        state["YY"] += Y.T @ Y
        state["totals"] += [b, weights.sum(), weights @ diagonal]
        return state

    def finalize(self, state: State) -> RidgeSums:
        count, weight, trace = (float(value) for value in state["totals"])
        H, g, G1 = mirror_upper(state["H"]), state["g"], state["G1"]
        if not self.whiten_first:
            L = self.basis.L
            H = solve_lower(L, solve_lower(L, H).T)
            # Two triangular solves round the two triangles differently; an eigendecomposition reads one of them.
            H = 0.5 * (H + H.T)
            g, G1 = solve_lower(L, g), solve_lower(L, G1)
        return RidgeSums(H, g, state["YY"], G1, state["Y1"], self.centre, weight, trace, int(count))

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        return int(8 * rows * (n + p + len(self.centre) + 2))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float((2 if self.whiten_first else 1) * n * n + 2 * n * (p + len(self.centre)))
