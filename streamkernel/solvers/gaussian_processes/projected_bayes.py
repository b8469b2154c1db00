"""Projected Bayes regression: a Gaussian process prior restricted to the leading eigenfunctions of the kernel.

The eigenfunctions under the density of the rows are approximated by those of the n0 basis points (Nystroem), with
``k(Z, Z) = U diag(l) U^T``::

    phi_j(x) = sqrt(n0) k(x, Z) u_j / l_j,    lambda_j = l_j / n0
    f = sum over j <= n of  phi_j b_j,        b ~ N(0, diag(lambda))

For m rows the posterior mean is ``b = (s2 diag(1 / lambda) + Phi^T Phi)^-1 Phi^T y``. The asymptotic form replaces
``Phi^T Phi`` by m I: ``b_j = lambda_j / (lambda_j + s2 / m) phi_j^T y / m`` (Tresp 2001, section 3.5; ALGORITHMS 10.4).
In whitened features ``Phi = G W diag(lambda)^-1/2`` with ``W = L^T U diag(l)^-1/2`` orthonormal. With
``c = diag(lambda)^-1/2 b ~ N(0, I)`` both forms are small algebra on the sums of one sweep::

    c = (s2 I + W^T H W)^-1 W^T g,    coefficients = L^-T W c

With all n0 directions this is the reduced ridge regression.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.linalg import RidgePath, require_finite, single_threaded_blas, symmetric_eigen
from streamkernel.reductions.sums import RidgeSums
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class ProjectedSolution:
    """Posterior of a projected Bayes regression, for targets ``y = centre + f + N(0, noise)``.

    Attributes
    ----------
    b : (n, d) weights of the eigenfunctions.
    coefficients : (n0, d) coefficients of the basis functions; intercept : (d,), the centre of the sums.
    residual_square : (d,) residual sum of squares on the rows of the sums.
    noise, signal : noise variance s2, and the prior variance that multiplies the kernel.
    rotation, shares : (n0, n), (n,): with ``z = L^-1 k(Z, x)`` the variance of f is
        ``signal (k(x, x) - sum_j (rotation^T z)_j^2 shares_j)``.
    """

    b: Float
    coefficients: Float
    intercept: Float
    residual_square: Float
    noise: float
    signal: float
    rotation: Float
    shares: Float


class ProjectedBayes:
    """The sums, decomposed once; each noise variance then costs O(n0^2 d).

    Parameters
    ----------
    basis : Basis of n0 functions, a sample of the rows.
    sums : sums of `NormalEquations` over the rows of the fit.
    count : number n of leading eigenfunctions; None for all that are not rounding.

    Attributes
    ----------
    eigenvalues : (n,) lambda_j of the covariance operator, descending.

    Raises
    ------
    ParameterError
        `count` exceeds the rank of the basis.
    """

    def __init__(self, basis: Basis, sums: RidgeSums, count: int | None = None) -> None:
        n0 = len(basis)
        require_finite(sums.H, "the sum H")
        with single_threaded_blas():
            # L^T L has the eigenvalues of k(Z, Z), and its eigenvectors are the columns of W.
            eigen = symmetric_eigen(basis.L.T @ basis.L, "the kernel matrix of the basis")
            values, W = eigen.values[::-1], eigen.vectors[:, ::-1]
            rank = int(np.count_nonzero(values > n0 * np.finfo(np.float64).eps * values.max(initial=0.0)))
            kept = rank if count is None else checked_integer("count", count)
            if kept > rank:
                raise ParameterError(f"count = {kept} eigenfunctions of a basis of rank {rank}; give at most {rank}")
            self._W = np.ascontiguousarray(W[:, :kept])
            self.eigenvalues = values[:kept] / max(n0, 1)
            self._basis, self._sums = basis, sums
            self._g = self._W.T @ sums.g
            H = self._W.T @ sums.H @ self._W
            self.path = RidgePath.of(0.5 * (H + H.T), self._g, np.diagonal(sums.YY).copy(), sums.weight)

    def solve(self, noise: float, signal: float = 1.0) -> ProjectedSolution:
        """The posterior given the rows; `signal` is the prior variance that multiplies the kernel."""
        noise, signal = checked_number("noise", noise), checked_number("signal", signal)
        rho = noise / signal
        shares = self.path.values / (self.path.values + rho)
        return self._solution(self.path.beta(rho), noise, signal, shares, self.path.vectors)

    def asymptotic(self, noise: float, signal: float = 1.0) -> ProjectedSolution:
        """The posterior in the limit of many rows, separately for each eigenfunction; for comparison."""
        noise, signal = checked_number("noise", noise), checked_number("signal", signal)
        # phi_j^T y = lambda_j^-1/2 (W^T g)_j, and c_j = lambda_j^-1/2 b_j.
        informed = self._sums.weight * self.eigenvalues
        shrunk = informed + noise / signal
        return self._solution(self._g / shrunk[:, None], noise, signal, informed / shrunk, np.eye(len(shrunk)))

    def _solution(self, c: Float, noise: float, signal: float, shares: Float, rotation: Float) -> ProjectedSolution:
        with single_threaded_blas():
            coefficients = self._basis.coefficients(self._W @ c)
            H = (self.path.vectors * self.path.values) @ (self.path.vectors.T @ c)
            rotation = self._W @ rotation
        require_finite(coefficients, f"the solution for noise = {noise:g}")
        left = self.path.square - 2.0 * (c * self._g).sum(axis=0) + (c * H).sum(axis=0)
        return ProjectedSolution(
            b=np.sqrt(self.eigenvalues)[:, None] * c,
            coefficients=coefficients,
            intercept=self._sums.centre.copy(),
            residual_square=np.maximum(left, 0.0),
            noise=noise,
            signal=signal,
            rotation=rotation,
            shares=shares,
        )
