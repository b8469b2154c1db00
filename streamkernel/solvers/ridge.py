"""Reduced kernel ridge regression from the sums of one sweep.

With ``L L^T = k(Z, Z)``, whitened features ``G = K L^-T`` and the sums ``H = G^T G``, ``g = G^T Y``::

    beta = (H + alpha I)^-1 g,    coefficients = L^-T beta,    f(x) = k(x, Z) coefficients + intercept

which is the minimiser of ``|Y - K a|^2 + alpha a^T k(Z, Z) a`` (Smola & Schoelkopf 2000, eq. (7); ALGORITHMS 2.8,
10.1). An intercept is unpenalised: rows are centred, exactly, from the column sums of the same sweep.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import Basis
from streamkernel.errors import NumericalError, SingularKernelError
from streamkernel.linalg import (
    RidgePath,
    require_finite,
    single_threaded_blas,
    solve_lower_t,
)
from streamkernel.reductions import RidgeSums

__all__ = ["RidgeSolution", "RidgeSystem"]


@dataclass(frozen=True)
class RidgeSolution:
    """A fitted ridge regression.

    Attributes
    ----------
    alpha : ridge, added to the diagonal as scikit-learn's KernelRidge does.
    coefficients : (n, d) of the basis functions; intercept : (d,)
    residual_square : (d,) residual sum of squares of each target on the rows of the fit.
    effective_df : trace of the hat matrix (sum of leverages), the intercept's one included.
    gcv : generalised cross-validation score, in squared units of the targets (or of the scaled ones).
    """

    alpha: float
    coefficients: NDArray[np.float64]
    intercept: NDArray[np.float64]
    residual_square: NDArray[np.float64]
    effective_df: float
    gcv: float


class RidgeSystem:
    """The normal equations, whitened and decomposed once; every alpha is then O(n^2 d).

    Parameters
    ----------
    basis : Basis of n functions.
    sums : of the final sweep.
    intercept : whether to fit an unpenalised constant.
    scale : (d,) variance by which each target's error is divided in the GCV score; None for common units.
    independent : share of the rows whose errors are independent, which is all that scores count: `Repeats.share`.
    """

    def __init__(
        self,
        basis: Basis,
        sums: RidgeSums,
        *,
        intercept: bool = True,
        scale: NDArray[np.float64] | None = None,
        independent: float = 1.0,
    ) -> None:
        for name in ("H", "g", "YY"):
            require_finite(getattr(sums, name), f"the sum {name}")
        self._basis = basis
        self._sums = sums
        self._intercept = intercept
        self._scale = scale
        H, g = sums.H.copy(), sums.g.copy()
        with single_threaded_blas():
            square = np.diagonal(sums.YY).copy()
            # Exact for every leading part of the basis: whitening is triangular in the order of picking.
            self.residual_path = np.maximum(sums.trace - np.concatenate([[0.0], np.cumsum(np.diagonal(H))]), 0.0)
            if intercept:
                H -= np.outer(sums.G1, sums.G1) / sums.weight
                g -= np.outer(sums.G1, sums.Y1) / sums.weight
                square = np.maximum(square - sums.Y1**2 / sums.weight, 0.0)
            else:
                # Nothing stands for the constant that was taken off the targets: it is put back.
                g += np.outer(sums.G1, sums.centre)
                square += 2.0 * sums.centre * sums.Y1 + sums.weight * sums.centre**2
            self.path = RidgePath.of(H, g, square, independent * sums.count, int(intercept))

    @property
    def residual_trace(self) -> float:
        """``tr(K - K~) = sum_i k(x_i, x_i) - tr(G^T G)``, exact (Smola & Schoelkopf 2000, eq. (22))."""
        return float(self.residual_path[-1])

    def choose_alpha(self) -> float:
        """Alpha with the least GCV score."""
        return self.path.choose(self._scale)

    def solve(self, alpha: float) -> RidgeSolution:
        """Coefficients for one alpha.

        Raises
        ------
        SingularKernelError
            alpha = 0 and the normal equations are singular to working precision.
        NumericalError
            alpha > 0 is lost in their rounding.
        """
        if alpha == 0.0 and (not len(self.path.values) or self.path.values[0] <= self.path.smallest_alpha):
            raise SingularKernelError(
                f"alpha = 0 and the normal equations of {len(self._basis)} basis functions are singular "
                f"(smallest eigenvalue {self.path.values[0] if len(self.path.values) else 0.0:.3g}); "
                "give alpha > 0 or 'gcv'"
            )
        if alpha > 0.0 and not self.path.carries(alpha):
            raise NumericalError(
                f"alpha = {alpha:g} is lost in the rounding of the normal equations of {len(self._basis)} basis "
                f"functions; the least that their digits carry is {self.path.least_alpha:.2g}: give that or more "
                "(--alpha), or 'gcv'"
            )
        with single_threaded_blas():
            beta = self.path.beta(alpha)
            # In the order of the disk: the bits of a product differ with the order of its factors in memory.
            coefficients = np.ascontiguousarray(solve_lower_t(self._basis.L, beta))
        require_finite(coefficients, f"the solution for alpha = {alpha:g}")
        sums = self._sums
        intercept = np.zeros_like(sums.centre)
        if self._intercept:
            intercept = sums.centre + (sums.Y1 - sums.G1 @ beta) / sums.weight
        return RidgeSolution(
            alpha=alpha,
            coefficients=coefficients,
            intercept=intercept,
            residual_square=self.path.residual_square(alpha),
            effective_df=self.path.effective_df(alpha),
            gcv=self.path.gcv(alpha, self._scale),
        )
