"""The tridiagonal form of a symmetric matrix, from which ridge regression follows for every alpha.

``A = Q T Q^T`` with Householder's reflections Q takes ``4/3 n^3`` operations (Golub & Van Loan 2013, section 8.3). From
T follow the eigenvalues of A in O(n^2), and solutions of ``(A + alpha I) x = b`` in O(n) for each alpha, once b is
turned by Q^T. With eigenvectors it would take 2.5 times as long, as measured for 20 to 2,000 rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numba import types

from streamkernel.compiled_loops import CompiledLoop, source_version
from streamkernel.linalg import _blas
from streamkernel.linalg.eigen import check_decomposed, converging
from streamkernel.type_aliases import Float, Untyped


def _loop(version: int) -> Untyped:
    def solve(diagonal, beside, B, alphas, squares, x):  # type: ignore[no-untyped-def]
        n, d = B.shape
        if version < 0:
            return
        pivots, factors = np.empty(n), np.empty(n)
        for k in range(len(alphas)):
            # T + alpha I = L D L^T. A pivot that is not positive is rounding: no eigenvalue is below 0.
            for i in range(n):
                factors[i] = beside[i - 1] * pivots[i - 1] if i > 0 else 0.0
                pivot = diagonal[i] + alphas[k] - (factors[i] * beside[i - 1] if i > 0 else 0.0)
                pivots[i] = 1.0 / pivot if pivot > 0.0 else 0.0
            for t in range(d):
                squares[0, k, t] = squares[1, k, t] = 0.0
            for i in range(n):
                for t in range(d):
                    x[i, t] = B[i, t] - (factors[i] * x[i - 1, t] if i > 0 else 0.0)
                    squares[0, k, t] += x[i, t] * x[i, t] * pivots[i]
            for i in range(n - 1, -1, -1):
                for t in range(d):
                    x[i, t] = x[i, t] * pivots[i] - (factors[i + 1] * x[i + 1, t] if i < n - 1 else 0.0)
                    squares[1, k, t] += x[i, t] * x[i, t]

    return solve


_vector, _matrix = types.float64[::1], types.float64[:, ::1]
_VERSION = source_version([Path(__file__)])
_SIGNATURES = {np.dtype(np.float64): types.void(_vector, _vector, _matrix, _vector, types.float64[:, :, ::1], _matrix)}
_SOLVE = CompiledLoop(_loop(_VERSION), _SIGNATURES, _VERSION)
TRIDIAGONAL_LOOPS = (_SOLVE,)


@dataclass(frozen=True)
class Tridiagonal:
    """``A = Q T Q^T`` of a symmetric matrix.

    Parameters
    ----------
    diagonal, beside : (n,) diagonal of T, and the (n - 1,) numbers beside it.
    reflections, scales : Q, as LAPACK stores it: (n, n) and (n - 1,).
    what : name of the matrix in errors.
    """

    diagonal: Float
    beside: Float
    reflections: Float
    scales: Float
    what: str

    @classmethod
    def of(cls, A: Float, what: str = "the matrix") -> Tridiagonal:
        """Reduce a symmetric matrix, of which the lower triangle is read; the errors are those of `symmetric_eigen`."""
        check_decomposed(A, what)
        if not len(A):
            return cls(np.zeros(0), np.zeros(0), np.zeros((0, 0)), np.zeros(0), what)
        reflections, scales, diagonal, beside = _blas.tridiagonal_form(A)
        return cls(diagonal, beside, reflections, scales, what)

    @cached_property
    def values(self) -> Float:
        """Ascending eigenvalues (n,).

        Raises
        ------
        NumericalError
            They did not converge.
        """
        with converging(self.what):
            return _blas.tridiagonal_values(self.diagonal, self.beside)

    def vectors(self) -> Float:
        """Eigenvectors (n, n) of A, in the order of the values; the errors are those of `values`."""
        if not len(self.diagonal):
            return np.zeros((0, 0))
        with converging(self.what):
            return self.from_form(_blas.tridiagonal_vectors(self.diagonal, self.beside))

    def to_form(self, B: Float) -> Float:
        """``Q^T B`` (n, d), C-contiguous."""
        return self._turned(B, transposed=True)

    def from_form(self, X: Float) -> Float:
        """``Q X`` (n, d)."""
        return self._turned(X, transposed=False)

    def _turned(self, B: Float, *, transposed: bool) -> Float:
        if not B.size:
            return np.zeros(B.shape)
        turned = _blas.times_reflections(self.reflections, self.scales, B, transposed=transposed)
        return np.ascontiguousarray(turned)

    def solve(self, B: Float, alphas: Float) -> tuple[Float, Float, Float]:
        """Solutions of ``(T + alpha I) x = b`` for A without eigenvalues below 0, and for alphas >= 0.

        Parameters
        ----------
        B : (n, d), C-contiguous, as `to_form` returns it; alphas : (k,).

        Returns
        -------
        explained, squares : (k, d) ``b^T x`` and ``x^T x`` for each alpha.
        x : (n, d) for the last alpha. A part of b for which ``T + alpha I`` is 0 to rounding is left out.
        """
        sums, x = np.zeros((2, len(alphas), B.shape[1])), np.zeros(B.shape)
        _SOLVE.of(B.dtype)(self.diagonal, self.beside, B, alphas, sums, x)
        return sums[0], sums[1], x
