"""Laplace evidence of rows in memory, and its gradient by the logarithms of lengthscales and signal variance.

With ``F = sqrt(s) G`` (m, n), ``rho = A'(f) - y`` and ``W_i = sum_k w_ik d_k d_k^T`` the curvature at the minimum, all
in free coordinates (`Likelihood`), and ``M = I + sum_i W_i kron F_i F_i^T``, the evidence
``-loss - |u|^2 / 2 - 1/2 log det M`` depends on F directly, and through W on the minimum, which moves with F (Rasmussen
& Williams 2006, section 5.5.1; here by the whitened features)::

    dE / dF_i = -rho_i u^T - sum_k w_ik F_i^T N_k  +  q_i u^T - rho_i t^T - W_i (F_i^T t + t_b) u^T
    N_k = (d_k kron I)^T M^-1 (d_k kron I),    q_i = -1/2 sum_k (F_i^T N_k F_i) dw_ik / df
    (t, t_b) = H^-1 [F, 1]^T q

H is the Hessian of the objective with its constants; ``t u^T`` is a sum over the free coordinates. The evidence depends
on F only through ``F F^T = s K_mn k(Z, Z)^-1 K_nm``, so that the rest is as in `sample_evidence`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.errors import NumericalError
from streamkernel.kernels import Kernel, prepare_gradient
from streamkernel.linalg import cholesky, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions import Reduction
from streamkernel.reductions.likelihoods import Latent, Likelihood
from streamkernel.reductions.sums import Features
from streamkernel.solvers.generalised.laplace import precision_factor
from streamkernel.solvers.generalised.latent_coordinates import REMEDY, Coordinates, GeneralisedFit, Result
from streamkernel.solvers.generalised.newton import newton_minimum
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float

_MOST_ITERATIONS = 60


@dataclass(frozen=True)
class LaplaceValue:
    """The evidence at one choice of hyper-parameters.

    Attributes
    ----------
    value : log evidence of all rows, nats.
    fit : GeneralisedFit at the minimum; basis : the points without those that depend on earlier points.
    G : (m, n) whitened features of the rows; factor : lower Cholesky factor of the precision, (n r, n r).
    """

    value: float
    fit: GeneralisedFit
    basis: Basis
    G: Float
    factor: Float


class LaplaceEvidence:
    """The evidence of fixed rows and basis points, as a function of kernel and signal variance.

    Parameters
    ----------
    X : (m, p) rows, Y : (m, d) targets in the form of the likelihood, weights : (m,) or None for ones.
    likelihood : Likelihood
    points : basis points among the rows; their kernel is not used.
    tolerance : tolerance of the minimum, as in `solve_newton`.
    """

    def __init__(
        self,
        X: AnyArray,
        Y: Float,
        weights: Float | None,
        likelihood: Likelihood,
        points: Basis,
        tolerance: float = 1e-9,
    ) -> None:
        self._X = np.ascontiguousarray(X, dtype=np.float64)
        self._Y, self._weights = Y, weights
        self._likelihood = likelihood
        self._points = points
        self._tolerance = tolerance
        self._last: GeneralisedFit | None = None

    def at(self, kernel: Kernel, signal_variance: float) -> LaplaceValue:
        """The evidence, by Newton's method, which starts from the previous minimum.

        Raises
        ------
        DataError, NumericalError
            As in `solve_newton`; NumericalError also if the minimum is not found.
        """
        empty = Basis.empty(kernel, self._X.shape[1], self._points.points.dtype)
        basis, _ = empty.append(self._points.points, self._points.rows)
        with single_threaded_blas():
            G = np.asarray(basis.features(self._X))
        block = RowBlock(0, G, self._Y, self._weights)

        def sweep(reduction: Reduction[Result], name: str, /) -> Result:
            with single_threaded_blas():
                return reduction.finalize(reduction.map_block(block))

        last = self._last
        start = None
        if last is not None and len(last.u) == len(basis):
            # Start from the same u: for a similar kernel the functions are near the minimum.
            start = Latent(np.sqrt(signal_variance / last.signal_variance) * last.latent.A, last.latent.a)
        space = Coordinates(self._likelihood, len(basis), signal_variance, intercept=True)
        fit = newton_minimum(sweep, Features(None, len(basis)), space, self._tolerance, _MOST_ITERATIONS, start)
        if not fit.converged:
            raise NumericalError(
                f"no minimum after {_MOST_ITERATIONS} Newton iterations at signal variance {signal_variance:g}; "
                "give a smaller one"
            )
        self._last = fit
        with single_threaded_blas():
            factor = precision_factor(fit)
        value = -fit.objective - float(np.log(np.diagonal(factor)).sum())
        return LaplaceValue(value, fit, basis, G, factor)

    def gradient(self, at: LaplaceValue) -> Float:
        """Gradient by the log lengthscales (`kernels.log_lengthscales`) and the log signal variance, (t + 1,)."""
        basis, root = at.basis, np.sqrt(at.fit.signal_variance)
        with single_threaded_blas():
            F = root * at.G
            slope = self._by_features(F, at)
            by_signal = 0.5 * float(np.vdot(slope, F))
            by_features = root * slope
            S = at.G.T @ by_features
            V = -0.5 * solve_lower_t(basis.L, solve_lower_t(basis.L, S).T)
            by_kernel = np.ascontiguousarray(solve_lower_t(basis.L, by_features.T).T)
            points = basis.prepared.points
            slopes = prepare_gradient(basis.kernel, points)
            return np.append(slopes(self._X, by_kernel) + slopes(points, 0.5 * (V + V.T)), by_signal)

    def _by_features(self, F: Float, at: LaplaceValue) -> Float:
        """dE / dF, (m, n)."""
        likelihood, fit = self._likelihood, at.fit
        (m, n), r, u = F.shape, likelihood.free, fit.u
        rows = np.ones((m, 1)) if self._weights is None else self._weights[:, None]
        Q = likelihood.contrasts
        D = likelihood.pairs @ Q
        f = fit.latent.values(at.G)
        rho = rows * (likelihood.mean(f) - likelihood.targets(self._Y, 0)) @ Q
        weights = rows * likelihood.weights(f)
        half = solve_lower(at.factor, np.eye(n * r)).reshape(n * r, r, n)
        slope = np.zeros((m, n))
        leverage = np.empty_like(weights)
        for k, direction in enumerate(D):
            along = np.tensordot(half, direction, axes=(1, 0))
            FN = F @ (along.T @ along)
            leverage[:, k] = np.einsum("ij,ij->i", FN, F)
            slope -= weights[:, k : k + 1] * FN
        q = -0.5 * rows * likelihood.weights_slope(f, leverage) @ Q
        t = self._response(fit, np.concatenate([F.T @ q, q.sum(axis=0)[None]]))
        moved = F @ t[:-1] + t[-1]
        through = ((moved @ D.T) * weights) @ D
        slope += (q - rho - through) @ u.T - rho @ t[:-1].T
        return slope

    def _response(self, fit: GeneralisedFit, q: Float) -> Float:
        """``H^-1 q``, (n + 1, r)."""
        assert fit.curvature is not None
        L = cholesky(fit.coordinates.hessian(fit.curvature), "the Hessian of the likelihood", REMEDY)
        solved = solve_lower_t(L, solve_lower(L, q.T.ravel()))
        return np.asarray(solved.reshape(fit.coordinates.likelihood.free, -1).T)
