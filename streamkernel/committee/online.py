"""The Bayesian committee machine as a Kalman filter: each member updates the state, and is not stored.

With ``L L^T = k(Z, Z)`` at the query points Z (n, p), ``f(Z) = mu + sqrt(s) L u`` and ``u ~ N(0, I)`` before the first
row. A member of b rows has whitened features ``G = k(X, Z) L^-T`` and noise covariance ``Om = noise I + s (k(X, X) -
G G^T)``. With the matrix ``H = sqrt(s) Om^-1/2 G`` and ``y = Om^-1/2 (Y - mu)``, whose noise is white::

    S = I + H P H^T        K = P H^T S^-1
    m <- m + K (y - H m)   P <- (I - K H) P (I - K H)^T + K K^T        (Joseph's form: P stays symmetric and positive)

Tresp 2001, section 3.1.2 (Tresp 2000); ALGORITHMS 6.1, there in coordinates of f(Z), which need ``k(Z, Z)^-1``. The
result equals that of the sums of all members, in any order. Rows need neither be stored nor come from one table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.basis import Basis
from streamkernel.errors import NonFiniteDataError, ShapeMismatchError
from streamkernel.kernels.parameters import checked_number, checked_rows
from streamkernel.linalg import cholesky, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions.sums.row_noise import BlockNoise
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float, Unchecked


@dataclass(frozen=True)
class OnlineCommittee:
    """A committee after some members. Immutable: `update` returns the next committee.

    Attributes
    ----------
    basis : the query points Z.
    signal, noise : signal variance s and noise variance.
    centre : (d,) prior mean of each target.
    m : (n, d), P : (n, n) mean and covariance of u.
    count : number of rows so far.
    log_evidence : ``log p(Y)`` of all rows so far, summed over the targets.
    """

    basis: Basis
    signal: float
    noise: float
    centre: Float
    m: Float
    P: Float
    count: int = 0
    log_evidence: float = 0.0

    @classmethod
    def start(cls, basis: Basis, signal: float, noise: float, centre: ArrayLike = 0.0) -> OnlineCommittee:
        """The committee before the first row; `centre` has one number for each target."""
        mu, n = np.atleast_1d(np.asarray(centre, np.float64)), len(basis)
        s, variance = checked_number("signal", signal), checked_number("noise", noise)
        return cls(basis, s, variance, mu, np.zeros((n, len(mu))), np.eye(n))

    def update(self, X: Unchecked, Y: ArrayLike) -> OnlineCommittee:
        """The committee with one more member: rows X (b, p), targets Y (b,) or (b, d).

        Costs ``b^3 / 3 + 2 b^2 n + 4 n^2 b + 2 n^3`` operations.

        Raises
        ------
        ShapeError, ShapeMismatchError, NonFiniteDataError
            Rows or targets have another shape, or are not finite.
        NumericalError
            The noise is smaller than the rounding of the signal.
        """
        rows = np.asarray(checked_rows(X, "X", self.basis.points.shape[1]), np.float64)
        targets = np.asarray(Y, np.float64)
        targets = targets[:, None] if targets.ndim == 1 else targets
        if targets.shape != (len(rows), len(self.centre)):
            raise ShapeMismatchError(
                f"X has {len(rows)} rows and Y the shape {np.shape(Y)}; give {len(self.centre)} targets for each row"
            )
        if not (np.isfinite(rows).all() and np.isfinite(targets).all()):
            raise NonFiniteDataError("the rows of a member hold NaN or infinity; leave those rows out")
        return self if len(rows) == 0 else self._updated(rows, targets)

    def _updated(self, X: Float, Y: Float) -> OnlineCommittee:
        b, d = Y.shape
        with single_threaded_blas():
            block, own = RowBlock(self.count, X, None), BlockNoise(self.signal, self.noise, b)
            H, y = self.basis.features(X), Y - self.centre
            log_det = own.whiten(block, own.members(X, self.basis.kernel)[0], self.basis.kernel, np.zeros(b), H, y)
            H *= sqrt(self.signal)
            HP = H @ self.P
            S = HP @ H.T
            S.reshape(-1)[:: b + 1] += 1.0  # I + H P H^T, in place
            L = cholesky(S, "the covariance of a member's prediction")
            surprise = solve_lower(L, y - H @ self.m)
            white = solve_lower(L, HP)
            K = solve_lower_t(L, white).T
            A = np.eye(len(self.P)) - K @ H
            P = A @ self.P @ A.T + K @ K.T
        density = d * (b * log(2.0 * pi) + log_det + 2.0 * float(np.log(np.diagonal(L)).sum()))
        return replace(
            self,
            m=self.m + white.T @ surprise,
            P=0.5 * (P + P.T),
            count=self.count + b,
            log_evidence=self.log_evidence - 0.5 * (density + float((surprise**2).sum())),
        )

    @property
    def mean(self) -> Float:
        """Mean of f at the query points, (n, d)."""
        return self.centre + sqrt(self.signal) * (self.basis.L @ self.m)

    @property
    def covariance(self) -> Float:
        """Covariance of f at the query points, (n, n), the same for each target."""
        return self.signal * (self.basis.L @ self.P @ self.basis.L.T)

    def moments(self, X: Unchecked) -> tuple[Float, Float]:
        """Mean (q, d) and variance (q,) of f at rows X (q, p).

        ``mean = mu + sqrt(s) v^T m``, ``variance = s (k(x, x) - v^T v + v^T P v)``, ``v = L^-1 k(Z, x)``.
        """
        rows = np.asarray(checked_rows(X, "X", self.basis.points.shape[1]), np.float64)
        with single_threaded_blas():
            V = self.basis.features(rows)
            left = self.basis.kernel.diagonal(rows) - np.einsum("ij,ij->i", V, V)
            spread = np.einsum("ij,ij->i", V @ self.P, V)
            mean = self.centre + sqrt(self.signal) * (V @ self.m)
        return mean, self.signal * (np.maximum(left, 0.0) + np.maximum(spread, 0.0))
