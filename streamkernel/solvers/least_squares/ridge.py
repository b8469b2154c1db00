"""Reduced kernel ridge regression from the sums of one sweep.

With ``L L^T = k(Z, Z)``, whitened features ``G = K L^-T`` and the sums ``H = G^T G``, ``g = G^T Y``::

    beta = (H + alpha I)^-1 g,    coefficients = L^-T beta,    f(x) = k(x, Z) coefficients + intercept

The coefficients minimise ``|Y - K a|^2 + alpha a^T k(Z, Z) a`` (Smola & Schoelkopf 2000, eq. (7); ALGORITHMS 2.8,
10.1). An intercept is not penalised: the column sums of the same sweep centre the rows exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.errors import NumericalError, SingularKernelError
from streamkernel.linalg import RidgePath, require_finite, single_threaded_blas
from streamkernel.reductions.sums import RidgeSums
from streamkernel.type_aliases import Float
from streamkernel.wording import option


@dataclass(frozen=True)
class RidgeSolution:
    """A fitted ridge regression.

    Attributes
    ----------
    alpha : ridge, added to the diagonal as scikit-learn's KernelRidge does.
    coefficients : (n, d) coefficients of the basis functions; intercept : (d,)
    residual_square : (d,) residual sum of squares of each target on the rows of the fit.
    effective_df : trace of the hat matrix (sum of leverages), including 1 for the intercept.
    gcv : generalised cross-validation score, in squared units of the targets (or of the scaled ones).
    """

    alpha: float
    coefficients: Float
    intercept: Float
    residual_square: Float
    effective_df: float
    gcv: float


def least_squares(sums: RidgeSums, intercept: bool) -> tuple[Float, Float, Float]:
    """H (n, n), g (n, d) and the squares of the targets (d,) of a fit with an intercept, or of one without.

    With an intercept, features and targets are centred: the constant that fits best is then 0.
    """
    H, g, square = sums.H.copy(), sums.g.copy(), np.diagonal(sums.YY).copy()
    if intercept:
        H -= np.outer(sums.G1, sums.G1) / sums.weight
        g -= np.outer(sums.G1, sums.Y1) / sums.weight
        square = np.maximum(square - sums.Y1**2 / sums.weight, 0.0)
    else:
        # Without an intercept the centre must be added to the targets again.
        g += np.outer(sums.G1, sums.centre)
        square += 2.0 * sums.centre * sums.Y1 + sums.weight * sums.centre**2
    return H, g, square


class RidgeSystem:
    """The normal equations, whitened and decomposed once; each alpha then costs O(n^2 d).

    Parameters
    ----------
    basis : Basis of n functions.
    sums : RidgeSums of the final sweep.
    intercept : True to fit an unpenalised constant.
    scale : (d,) variances that divide the squared errors of the targets in the GCV score; None for ones.
    independent : share of the rows whose errors are independent (`Repeats.share`); the GCV score counts only these.
    """

    def __init__(
        self,
        basis: Basis,
        sums: RidgeSums,
        *,
        intercept: bool = True,
        scale: Float | None = None,
        independent: float = 1.0,
    ) -> None:
        for name in ("H", "g", "YY"):
            require_finite(getattr(sums, name), f"the sum {name}")
        self._basis = basis
        self._sums = sums
        self._intercept = intercept
        self._scale = scale
        with single_threaded_blas():
            # The traces are exact for the first t functions, for every t, because whitening is triangular.
            traces = np.concatenate([[0.0], np.cumsum(np.diagonal(sums.H))])
            self.residual_path = np.maximum(sums.trace - traces, 0.0)
            H, g, square = least_squares(sums, intercept)
            self.path = RidgePath.of(H, g, square, sums.weight, int(intercept), share=independent)

    @property
    def residual_trace(self) -> float:
        """``tr(K - K~) = sum_i k(x_i, x_i) - tr(G^T G)``, exact (Smola & Schoelkopf 2000, eq. (22))."""
        return float(self.residual_path[-1])

    def choose_alpha(self) -> float:
        """Alpha with the smallest GCV score."""
        return self.path.choose(self._scale)

    def solve(self, alpha: float) -> RidgeSolution:
        """Coefficients for one alpha.

        Raises
        ------
        SingularKernelError
            alpha = 0 and the normal equations are singular to working precision.
        NumericalError
            alpha > 0 is lost in the rounding of the normal equations.
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
                f"functions; the least that their digits carry is {self.path.least_alpha:.2g}: give "
                f"{option('alpha')} that or more, or 'gcv'"
            )
        with single_threaded_blas():
            beta = self.path.beta(alpha)
            coefficients = self._basis.coefficients(beta)
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
