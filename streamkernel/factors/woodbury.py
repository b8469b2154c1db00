"""Nystroem Gaussian process regression with Woodbury's identity (Williams & Seeger 2001), on K~ instead of K.

With a factor ``K~ = G G^T`` and the noise variance s2, in the safe form (ALGORITHMS 9.2)::

    w = (K~ + s2 I)^-1 y = (y - G (s2 I + G^T G)^-1 G^T y) / s2
    f(x) = k~(x, X) w = z(x)^T G^T w,    G^T w = (s2 I + G^T G)^-1 G^T y,    z(x) = L^-1 k(Z, x)

so that f lies in the span of the n basis functions: it is the reduced ridge regression with alpha = s2. The published
predictor uses the full ``k(x, X) w`` with the same w. It needs all rows for each prediction, and it is unstable,
because w solves the system of K~ and not that of K.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.engine import Session
from streamkernel.errors import ParameterError
from streamkernel.factors.features import FeatureRows
from streamkernel.factors.operators import RidgeFactor, checked_ridge
from streamkernel.kernels.parameters import checked_columns, checked_rows
from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import Predictions
from streamkernel.reductions.sums import CrossProducts, Features, FeatureSums
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class NystroemRegression:
    """The solution: weights of all rows, and of the basis functions.

    Attributes
    ----------
    weights : (m,) or (m, d), w.
    beta : (n,) or (n, d), ``G^T w``: coefficients of the whitened features.
    noise : noise variance s2.
    rows : the factor.
    """

    weights: Float
    beta: Float
    noise: float
    rows: FeatureRows

    @property
    def features(self) -> Features:
        return self.rows.features

    def predictions(self) -> Predictions:
        """``k~(x, X) w = k(x, Z) L^-T beta`` as a map of rows.

        Raises
        ------
        ParameterError
            The factor is a stored one; it has no functions for other rows.
        """
        basis = self.rows.basis
        if basis is None:
            raise ParameterError("a stored factor has no functions to predict with; give the rows and the basis")
        with single_threaded_blas():
            coefficients = self.features.coefficients(np.atleast_2d(self.beta.T).T)
        return Predictions(basis, coefficients, np.zeros(coefficients.shape[1]), flat=self.beta.ndim == 1)

    def full_kernel(self, X: ArrayLike, session: Session) -> Float:
        """``k(x, X) w``, as published, for q rows scaled as the table's: one sweep over the table; (q,) or (q, d)."""
        basis, table = self.rows.basis, self.rows.table
        if basis is None:
            raise ParameterError("a stored factor has no kernel to predict with; give the rows and the basis")
        V = checked_columns(self.weights, table.n_rows, "the vector of weights")
        work = CrossProducts(basis.kernel, checked_rows(X, "X", table.width), V, table.start)
        values = session.sweep(work, table, "k(x, X) w")
        return values[:, 0] if self.weights.ndim == 1 else values


def nystroem_regression(
    rows: FeatureRows, y: ArrayLike, noise: float, session: Session, sums: FeatureSums | None = None
) -> NystroemRegression:
    """Solve ``(K~ + noise I) w = y`` in three sweeps: for ``G^T G``, for ``G^T y``, and for w.

    Parameters
    ----------
    rows : the factor.
    y : (m,) or (m, d) targets.
    noise : noise variance s2 > 0.
    sums : result of `FeatureRows.gram`; None to compute them now, in one sweep.

    Raises
    ------
    ParameterError, NumericalError, DTypeError, ShapeMismatchError, NonFiniteDataError
        noise is not > 0 or is lost in rounding; y is not numeric, has another shape, or is not finite.
    """
    noise = checked_ridge(noise)
    flat = np.ndim(y) == 1
    Y = checked_columns(y, rows.shape[0], "the vector")
    factor = RidgeFactor((sums or rows.gram(session)).H, noise)
    beta = factor.solve(rows.transposed_times(Y, session, "G^T y"))
    weights = (Y - rows.times(beta, session, "weights of the rows")) / noise
    return NystroemRegression(weights[:, 0] if flat else weights, beta[:, 0] if flat else beta, noise, rows)
