"""Bound on the difference in regularised risk between a reduced fit and the fit with all rows as basis functions.

Ridge regression with rho = m Lambda, whitened features G of n functions, ``beta = (G^T G + rho I)^-1 G^T Y`` and
residuals r = Y - G beta::

    R_n = (|Y|^2 - g^T beta) / (2 m) = (Lambda / 2) Y^T (K~ + rho I)^-1 Y
    0 <= R_n - R_full <= (Lambda / (2 rho^2)) r^T (K - K~) r <= (Lambda / (2 rho^2)) tr R |r|^2

(Smola & Schoelkopf 2000, eqs. (5) to (7); ALGORITHMS 2.8). All terms come from the sums of one sweep. The first
inequality expands ((K~ + rho I) + R)^-1 to first order in R >= 0; the expansion lies below it. The second uses
|R| <= tr R. With an unpenalised intercept the same holds for centred sums: centring a positive semidefinite R does not
raise its trace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.bounds._checks import checked_path
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.linalg import cholesky, require_finite, single_threaded_blas, solve_lower
from streamkernel.type_aliases import Float

# |r|^2 is a difference of sums: this share of |Y|^2 may be rounding.
_ROUNDING = 1e-8


@dataclass(frozen=True)
class DualGap:
    """The risk of a reduced fit, and a bound on its excess over the full fit.

    Attributes
    ----------
    risk : regularised risk R_n of the reduced fit.
    bound : bound on R_n - R_full, where R_full is the risk of the full fit.
    residual_square : ``|r|^2`` of the reduced fit.
    """

    risk: float
    bound: float
    residual_square: float

    @property
    def lower(self) -> float:
        """Lower bound of R_full."""
        return max(0.0, self.risk - self.bound)

    @property
    def relative(self) -> float:
        """``bound / R_n``; 0 if R_n is 0."""
        return self.bound / self.risk if self.risk > 0.0 else 0.0

    @property
    def vacuous(self) -> bool:
        """Whether the bound gives no more information than R_full >= 0."""
        return self.lower == 0.0 < self.bound


def dual_gap_bound(yy: float, g: ArrayLike, beta: ArrayLike, rho: float, residual_trace: float, rows: int) -> DualGap:
    """Bound ``R_n - R_full`` from the sums of one sweep.

    Parameters
    ----------
    yy : ``|Y|_F^2``, centred if the fit has an intercept.
    g : ``G^T Y``, (n,) or (n, d).
    beta : minimiser ``(G^T G + rho I)^-1 g`` in whitened coordinates, in the shape of g.
    rho : ridge on the diagonal, > 0.
    residual_trace : ``tr(K - K~)``.
    rows : number m of rows.

    Raises
    ------
    ParameterError
        Shapes differ, rho is not positive, or beta is not the minimiser for this rho.
    """
    products, solution = np.asarray(g, np.float64), np.asarray(beta, np.float64)
    if products.shape != solution.shape:
        raise ParameterError(f"g has shape {products.shape}, beta {solution.shape}; give one row of each per function")
    require_finite(products, "the sum g")
    require_finite(solution, "beta")
    rho, rows = _checked(rho, rows)
    yy = checked_number("yy", yy, zero=True)
    residual_trace = checked_number("residual_trace", residual_trace, zero=True)
    explained, penalty = float((products * solution).sum()), rho * float((solution**2).sum())
    # g^T beta = beta^T G^T G beta + rho |beta|^2 at the minimiser, and a fit explains at most |Y|^2 - rho |beta|^2.
    if not penalty - _ROUNDING * yy <= explained <= yy - penalty + _ROUNDING * yy:
        raise ParameterError(
            f"g^T beta = {explained:.6g} cannot be of the minimiser for rho = {rho:g} (|Y|^2 = {yy:.6g}, rho |beta|^2 "
            f"= {penalty:.6g}); give beta = (G^T G + rho I)^-1 g in whitened coordinates, and yy of the same rows"
        )
    return _gap(yy, explained, penalty, rho, residual_trace, rows)


def dual_gap_path(
    H: ArrayLike, g: ArrayLike, yy: float, rho: float, residual_path: ArrayLike, rows: int
) -> list[DualGap]:
    """`dual_gap_bound` for every leading part of a basis, from the sums of the whole basis.

    With ``H + rho I = L L^T`` and ``u = L^-1 g``, the minimiser of the first t functions is the sum over j <= t of
    ``(L^-T)_j u_j``. So one factorisation serves all t, in O(n^3 / 3 + n^2 d).

    Parameters
    ----------
    H : (n, n) ``G^T G``, whitened in the order of the picks.
    residual_path : (n,) ``tr R_t`` after each pick.
    g, yy, rho, rows : as in `dual_gap_bound`.

    Raises
    ------
    ParameterError
        H, g and residual_path have different numbers of functions, or rho is not positive.
    """
    gram, products = np.asarray(H, np.float64), np.asarray(g, np.float64)
    path = checked_path("residual_path", residual_path)
    n = len(path)
    if gram.shape != (n, n) or products.ndim not in (1, 2) or len(products) != n:
        raise ParameterError(
            f"H has shape {gram.shape} and g {products.shape} for a path of {n} functions; give the sums of this basis"
        )
    rho, rows = _checked(rho, rows)
    yy = checked_number("yy", yy, zero=True)
    require_finite(products, "the sum g")
    with single_threaded_blas():
        L = cholesky(gram + rho * np.eye(n), "H + rho I")
        u = solve_lower(L, products.reshape(n, -1))
        inverse = solve_lower(L, np.eye(n))
    explained = np.cumsum((u**2).sum(axis=1))
    norms = sum((_square_norms(inverse, column) for column in u.T), np.zeros(n))
    return [_gap(yy, explained[t], rho * norms[t], rho, path[t], rows) for t in range(n)]


def _square_norms(inverse: Float, u: Float) -> Float:
    """``|sum_(j <= t) L^-T_j u_j|^2`` for each t; the rows of `inverse` = L^-1 are the columns L^-T_j."""
    solutions = np.cumsum(inverse * u[:, None], axis=0)
    norms: Float = np.einsum("tj,tj->t", solutions, solutions)
    return norms


def _gap(yy: float, explained: float, penalty: float, rho: float, residual_trace: float, rows: int) -> DualGap:
    square = max(0.0, float(yy - explained - penalty))
    risk = max(0.0, float(yy - explained)) / (2.0 * rows)
    # Lambda / (2 rho^2) with rho = m Lambda.
    return DualGap(risk, float(residual_trace) * square / (2.0 * rows * rho), square)


def _checked(rho: float, rows: int) -> tuple[float, int]:
    return checked_number("rho", rho), checked_integer("rows", rows)
