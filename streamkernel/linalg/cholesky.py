"""Rank-revealing Cholesky of a Gram matrix, in the order of its rows.

The order of a basis is the order of its picks and must not change. Therefore dependent functions are left out, not
moved to the end. No jitter is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import types

from streamkernel.compiled_loops import CompiledLoop, source_version
from streamkernel.errors import NumericalError
from streamkernel.linalg._blas import factor_lower, solved_by_triangle, whiten_gram
from streamkernel.linalg.eigen import add_to_diagonal, mirror_upper
from streamkernel.linalg.finite import require_finite
from streamkernel.type_aliases import Float, Int, Untyped


def _loop(version: int) -> Untyped:
    def keep(S, diagonal, tolerance, most_rounding, first, L, kept):  # type: ignore[no-untyped-def]
        """Fill in the factor of the independent rows of S, and their numbers; returns how many there are.

        Of L and `kept`, the first rows are known.
        """
        n, r = len(S), first
        row, w = np.empty(n), np.empty(n)
        if version < 0:
            return 0
        for i in range(first, n):
            # L row = S[kept, i]: whether row i is dependent decides what later rows are solved against.
            pivot = diagonal[i]
            for j in range(r):
                before, c = L[j], 0
                s0 = s1 = s2 = s3 = 0.0  # four sums at a time, which do not wait for each other
                while c + 4 <= j:
                    s0 += before[c] * row[c]
                    s1 += before[c + 1] * row[c + 1]
                    s2 += before[c + 2] * row[c + 2]
                    s3 += before[c + 3] * row[c + 3]
                    c += 4
                while c < j:
                    s0 += before[c] * row[c]
                    c += 1
                row[j] = (S[kept[j], i] - ((s0 + s1) + (s2 + s3))) / before[j]
                pivot -= row[j] * row[j]
            if not pivot > tolerance * diagonal[i]:  # NaN, too, where numbers of the row overflow
                continue
            if most_rounding < np.inf:
                size = diagonal[i]
                for j in range(r):
                    w[j] = row[j]
                for j in range(r - 1, -1, -1):  # L^T w = row
                    before = L[j]
                    w[j] /= before[j]
                    factor = w[j]
                    for c in range(j):
                        w[c] -= factor * before[c]
                    size += factor * factor * diagonal[kept[j]]
                if not size <= most_rounding * pivot:
                    continue
            for j in range(r):
                L[r, j] = row[j]
            L[r, r] = np.sqrt(pivot)
            kept[r] = i
            r += 1
        return r

    return keep


_matrix, _vector, _real = types.float64[:, ::1], types.float64[::1], types.float64
_VERSION = source_version([Path(__file__)])
_SIGNATURES = {
    np.dtype(np.float64): types.int64(_matrix, _vector, _real, _real, types.int64, _matrix, types.int64[::1])
}
_KEEP = CompiledLoop(_loop(_VERSION), _SIGNATURES, _VERSION)
DEPENDENT_ROWS_LOOPS = (_KEEP,)

_ITERATIONS = 10  # of the power method, on an inverse whose largest eigenvalues are far apart
_REMEDY = "take a shorter lengthscale, fewer basis functions, or more on the diagonal (alpha, noise)"


@dataclass(frozen=True)
class RankRevealed:
    """Independent rows of a Gram matrix, and their factor.

    Attributes
    ----------
    kept : (r,) int64
        Positions of the kept rows, ascending.
    L : (r, r) float64
        Lower triangular, ``L L^T = S[kept][:, kept]``.
    at_once : bool
        True if L is the factor of all rows from one LAPACK call, bit for bit; False if it was computed row by row.
    """

    kept: Int
    L: Float
    at_once: bool = False


def cholesky(S: Float, what: str = "the matrix", remedy: str = _REMEDY) -> Float:
    """Lower Cholesky factor of a positive definite matrix.

    Raises
    ------
    NumericalError
        S is not finite or not positive definite; the message names `what` and ends with `remedy` in the latter case.
    """
    require_finite(S, what)
    try:
        return np.linalg.cholesky(S).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        raise NumericalError(f"{what} is not positive definite to working precision; {remedy}") from None


def independent_rows(
    S: Float, tolerance: float, known: Float | None = None, most_rounding: float = math.inf
) -> RankRevealed:
    """The rows whose pivot exceeds ``tolerance * S_ii``, and their Cholesky factor (ALGORITHMS 1.1).

    A pivot may be all rounding without being small. That of row i is ``(-w, 1) S (-w, 1)^T``, where w are the
    coefficients of the row in the previous independent ones, and rounding changes it by about
    ``eps (S_ii + sum_j w_j^2 S_jj)``. In the order of descending pivots w is small. In another order rows may be
    dependent together without one small pivot, and w is then as large as ``L^-1``, of which ``(-w, 1) / sqrt(pivot)``
    is row i.

    Parameters
    ----------
    S : (n, n) positive semidefinite.
    tolerance : relative pivot at or below which a row counts as dependent on the previous independent rows.
    known : (r, r) factor of the first r rows, which are kept for all values of their pivots; None if r is 0.
    most_rounding : the rounding of a pivot, in eps times the pivot, above which its row counts as dependent, too.

    Raises
    ------
    NumericalError
        S is not finite.
    """
    require_finite(S, "the kernel matrix of the basis")
    n = len(S)
    diagonal = np.diagonal(S).copy()
    everything = np.arange(n, dtype=np.int64)
    if n == 0:
        return RankRevealed(everything, np.zeros((0, 0)), at_once=True)
    try:
        L: Float = np.linalg.cholesky(S).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        pass
    else:
        first = 0 if known is None else len(known)
        if np.all(np.diagonal(L)[first:] ** 2 > tolerance * diagonal[first:]) and (
            math.isinf(most_rounding) or inverse_norm(L, diagonal, most_rounding) <= most_rounding
        ):
            return RankRevealed(everything, L, at_once=True)
    return _skip_dependent(S, diagonal, tolerance, np.zeros((0, 0)) if known is None else known, most_rounding)


def inverse_norm(L: Float, diagonal: Float, most: float = math.inf) -> float:
    """Largest eigenvalue of the inverse of ``L L^T``, scaled to a unit diagonal; by power iteration, to a few %.

    If it is more than `most`, the result is a number above `most`. The estimates of the power iteration never fall, so
    that the first one above `most` decides.
    """
    root, largest = np.sqrt(diagonal), 0.0
    v = np.random.Generator(np.random.Philox(0)).standard_normal(len(L))
    v /= np.linalg.norm(v)
    for _ in range(_ITERATIONS):
        if largest > most:
            break
        v = root * solve_lower_t(L, solve_lower(L, root * v))
        largest = float(np.linalg.norm(v))
        v /= largest
    return largest


def _skip_dependent(S: Float, diagonal: Float, tolerance: float, known: Float, most_rounding: float) -> RankRevealed:
    """Left-looking Cholesky, row by row: O(n^3) like the plain one, and only used for a dependent basis."""
    n, first = len(S), len(known)
    L, kept = np.zeros((n, n)), np.arange(n, dtype=np.int64)
    L[:first, :first] = known
    # Compiled: of 30 rows, two calls of LAPACK for each of them take forty times as long.
    loop = _KEEP.of(np.dtype(np.float64))
    r = loop(np.ascontiguousarray(S, np.float64), diagonal.astype(np.float64), tolerance, most_rounding, first, L, kept)
    return RankRevealed(kept[:r].copy(), L[:r, :r].copy())


def solve_lower(L: Float, B: Float) -> Float:
    """``L^-1 B`` for a lower triangular L.

    Raises
    ------
    numpy.linalg.LinAlgError
        The diagonal of L has a zero.
    """
    return _solved(L, B, transposed=False)


def whitened(H: Float, L: Float) -> Float:
    """``L^-1 H L^-T`` of a symmetric H (n, n), whose upper triangle is read, for a lower triangular L; H is used up."""
    if len(L) == 0:
        return np.zeros_like(H)
    H = np.ascontiguousarray(H)
    whiten_gram(H, L)
    return mirror_upper(H)


def solve_shifted(H: Float, shift: float, B: Float) -> Float | None:
    """``(H + shift I)^-1 B``; None if the matrix is not positive definite, as its shift is lost in rounding."""
    L = H.copy()
    add_to_diagonal(L, shift)
    # In place: NumPy's Cholesky copies the matrix twice, which takes a third of its time.
    return solve_lower_t(L, solve_lower(L, B)) if factor_lower(L) is None else None


def solve_lower_t(L: Float, B: Float) -> Float:
    """``L^-T B`` for a lower triangular L; the error is that of `solve_lower`."""
    return _solved(L, B, transposed=True)


def _solved(L: Float, B: Float, *, transposed: bool) -> Float:
    if len(L) == 0 or B.size == 0:
        return np.zeros_like(B)
    if B.shape[0] != len(L):
        raise ValueError(f"a factor of shape {L.shape} and a right side of shape {B.shape} do not fit")
    # The call of LAPACK that scipy.linalg.solve_triangular makes: of twenty rows, its checks take thirty times as long.
    solution, zero = solved_by_triangle(L, B, transposed=transposed)
    if zero is not None:
        raise np.linalg.LinAlgError(f"the triangle is singular: row {zero} has a zero on the diagonal")
    return solution
