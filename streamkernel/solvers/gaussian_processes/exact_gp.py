"""The exact Gaussian process, for tables that one factorisation can hold. It is the reference of the sparse ones.

Prior ``f ~ GP(0, s k)``, ``Y = f + N(0, noise)``, ``S = s K + noise I = L L^T``, ``a = S^-1 Y`` (Rasmussen & Williams
2006, Algorithm 2.1; Tresp 2001, eq. (5); ALGORITHMS 5.1)::

    mean(x) = s k(x, X) a        cov(x, x') = s k(x, x') - s^2 k(x, X) S^-1 k(X, x')
    log p(Y) = -1/2 sum over targets [ m log 2 pi + log det S + y^T S^-1 y ]
    d log p / dS = (a a^T - d S^-1) / 2
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.errors import ResourceLimitError, ShapeMismatchError
from streamkernel.kernels import Kernel, prepare_gradient
from streamkernel.kernels.parameters import checked_number, checked_rows
from streamkernel.linalg import cholesky, require_finite, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.type_aliases import Float, Unchecked

MOST_ROWS = 20_000


@dataclass(frozen=True)
class Posterior:
    """Posterior of f, without the noise, at q points: mean (q, d), variance (q,), and covariance (q, q) or None."""

    mean: Float
    variance: Float
    covariance: Float | None = None


class ExactGP:
    """The process given m rows, factored once in O(m^3) time and O(m^2) memory; then it predicts at any points.

    Parameters
    ----------
    X : (m, p) rows; Y : (m,) or (m, d) targets with prior mean 0, which share the kernel.
    kernel : unit kernel k; signal : signal variance s; noise : noise variance.

    Raises
    ------
    ResourceLimitError
        More than `MOST_ROWS` rows.
    ParameterError, DataError
        A variance is not positive, or X and Y have different numbers of rows.
    NumericalError
        S is not positive definite to working precision, or not finite.
    """

    def __init__(self, X: Unchecked, Y: Unchecked, kernel: Kernel, *, signal: float = 1.0, noise: float = 1.0) -> None:
        self.X = checked_rows(X).astype(np.float64, copy=False)
        targets = np.asarray(Y, dtype=np.float64)
        m = len(self.X)
        if targets.ndim not in (1, 2) or len(targets) != m:
            raise ShapeMismatchError(f"X has {m} rows, Y the shape {targets.shape}; give a target for each row")
        if m > MOST_ROWS:
            raise ResourceLimitError(
                f"an exact Gaussian process of {m} rows holds {3 * 8 * m * m / 2**30:.0f} GiB and is for at most "
                f"{MOST_ROWS} rows; take fewer rows, or a sparse approximation (GaussianSystem)"
            )
        require_finite(self.X, "X")
        require_finite(targets, "Y")
        self.Y = targets.reshape(m, -1)
        self.kernel = kernel
        self.signal, self.noise = checked_number("signal", signal), checked_number("noise", noise)
        with single_threaded_blas():
            S = kernel(self.X)
            S *= self.signal
            S[np.diag_indices(m)] += self.noise
            self.L = cholesky(S, "the covariance of the targets")
            self.coefficients = solve_lower_t(self.L, solve_lower(self.L, self.Y))

    @property
    def log_evidence(self) -> float:
        """``log p(Y)``, nats, all targets together."""
        m, d = self.Y.shape
        log_det = 2.0 * float(np.log(np.diagonal(self.L)).sum())
        return -0.5 * (d * (m * math.log(2.0 * math.pi) + log_det) + float(np.vdot(self.Y, self.coefficients)))

    def posterior(self, X: Unchecked, *, covariance: bool = False) -> Posterior:
        """Posterior of f at rows X (q, p)."""
        rows = checked_rows(X, "X", self.X.shape[1]).astype(np.float64, copy=False)
        with single_threaded_blas():
            K = self.signal * self.kernel(rows, self.X)
            half = solve_lower(self.L, K.T)
            mean = K @ self.coefficients
            if covariance:
                full = self.signal * self.kernel(rows) - half.T @ half
                return Posterior(mean, np.diagonal(full).copy(), full)
        explained = np.einsum("ij,ij->j", half, half)
        return Posterior(mean, np.maximum(self.signal * self.kernel.diagonal(rows) - explained, 0.0))

    @cached_property
    def gradient(self) -> Float:
        """Gradient of `log_evidence` by the log lengthscales, log signal and log noise variance, (t + 2,)."""
        m, d = self.Y.shape
        with single_threaded_blas():
            root = solve_lower(self.L, np.eye(m))
            W = root.T @ root
            # In place: each further (m, m) matrix would need as much memory as the factor.
            W *= -d
            W += self.coefficients @ self.coefficients.T
            W *= 0.5
            by_noise = self.noise * float(np.trace(W))
            # s K = S - noise I, and tr W S = (y^T S^-1 y - d m) / 2.
            by_signal = 0.5 * (float(np.vdot(self.Y, self.coefficients)) - d * m) - by_noise
            W *= self.signal
            lengthscales = prepare_gradient(self.kernel, self.X)(self.X, W)
        return np.concatenate([lengthscales, [by_signal, by_noise]])
