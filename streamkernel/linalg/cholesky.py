"""Rank-revealing Cholesky of a Gram matrix, in the order of its rows.

The order of a basis means something (it is the order in which its functions were picked), so that dependent
functions are left out rather than moved to the end, and no jitter is added in silence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from streamkernel.errors import NumericalError
from streamkernel.linalg.finite import require_finite

__all__ = ["RankRevealed", "cholesky", "independent_rows", "solve_lower", "solve_lower_t"]


_WAY_OUT = "take a shorter lengthscale, fewer basis functions, or more on the diagonal (alpha, noise)"


@dataclass(frozen=True)
class RankRevealed:
    """Rows of a Gram matrix that are independent, and their factor.

    Attributes
    ----------
    kept : (r,) int64
        Positions of the kept rows, ascending.
    L : (r, r) float64
        Lower triangular, ``L L^T = S[kept][:, kept]``.
    at_once : bool
        Whether L is that of all rows at once, to the bit; else it was made a row at a time.
    """

    kept: NDArray[np.int64]
    L: NDArray[np.float64]
    at_once: bool = False


def cholesky(S: NDArray[np.float64], what: str = "the matrix", way_out: str = _WAY_OUT) -> NDArray[np.float64]:
    """Lower Cholesky factor of a positive definite matrix, or `NumericalError` naming `what` and ending `way_out`."""
    require_finite(S, what)
    try:
        return np.linalg.cholesky(S).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        raise NumericalError(f"{what} is not positive definite to working precision; {way_out}") from None


def independent_rows(
    S: NDArray[np.float64], tolerance: float, known: NDArray[np.float64] | None = None
) -> RankRevealed:
    """Keep the rows whose pivot exceeds ``tolerance * S_ii``; factor what is kept (ALGORITHMS 1.1).

    Parameters
    ----------
    S : (n, n) positive semidefinite.
    tolerance : relative pivot below which a row counts as dependent on the rows kept before it.
    known : (r, r) factor of the first r rows, which are kept whatever their pivots are; None where r is 0.
    """
    require_finite(S, "the kernel matrix of the basis")
    n = len(S)
    diagonal = np.diagonal(S).copy()
    everything = np.arange(n, dtype=np.int64)
    if n == 0:
        return RankRevealed(everything, np.zeros((0, 0)), at_once=True)
    try:
        L: NDArray[np.float64] = np.linalg.cholesky(S).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        pass
    else:
        first = 0 if known is None else len(known)
        if np.all(np.diagonal(L)[first:] ** 2 > tolerance * diagonal[first:]):
            return RankRevealed(everything, L, at_once=True)
    return _skip_dependent(S, diagonal, tolerance, np.zeros((0, 0)) if known is None else known)


def _skip_dependent(
    S: NDArray[np.float64], diagonal: NDArray[np.float64], tolerance: float, known: NDArray[np.float64]
) -> RankRevealed:
    """Left-looking Cholesky, a row at a time: O(n^3) like the plain one, only met when a basis is dependent."""
    n, first = len(S), len(known)
    factor = np.zeros((n, n))
    factor[:first, :first] = known
    kept: list[int] = list(range(first))
    for i in range(first, n):
        r = len(kept)
        row = solve_lower(factor[:r, :r], S[kept, i])
        pivot = diagonal[i] - row @ row
        if pivot > tolerance * diagonal[i]:
            factor[r, :r] = row
            factor[r, r] = np.sqrt(pivot)
            kept.append(i)
    r = len(kept)
    return RankRevealed(np.asarray(kept, dtype=np.int64), factor[:r, :r].copy())


def solve_lower(L: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """``L^-1 B`` for a lower triangular L."""
    if len(L) == 0:
        return np.zeros_like(B)
    solution: NDArray[np.float64] = scipy.linalg.solve_triangular(L, B, lower=True, check_finite=False)
    return solution


def solve_lower_t(L: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """``L^-T B`` for a lower triangular L."""
    if len(L) == 0:
        return np.zeros_like(B)
    solution: NDArray[np.float64] = scipy.linalg.solve_triangular(L, B, lower=True, trans="T", check_finite=False)
    return solution
