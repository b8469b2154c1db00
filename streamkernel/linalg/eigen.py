"""Symmetric matrices: their eigendecomposition, and copies of an accumulated upper triangle."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from streamkernel.errors import NumericalError
from streamkernel.linalg._blas import MOST_DECOMPOSED, eigenvectors
from streamkernel.linalg.finite import require_finite
from streamkernel.type_aliases import AnyArray, Bool, Float


@dataclass(frozen=True)
class SymmetricEigen:
    """``A = vectors diag(values) vectors^T``; values ascending."""

    values: Float
    vectors: Float


def check_decomposed(A: Float, what: str) -> None:
    """Raise NumericalError for a matrix that is not finite, or has more rows than LAPACK decomposes."""
    if len(A) > MOST_DECOMPOSED:
        raise NumericalError(
            f"{what} has {len(A):,} rows, and LAPACK decomposes at most {MOST_DECOMPOSED:,}; take fewer basis functions"
        )
    require_finite(A, what)


@contextmanager
def converging(what: str) -> Iterator[None]:
    """Raise NumericalError, which names the matrix, for eigenvalues that do not converge."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise NumericalError(f"the eigenvalues of {what} did not converge ({error})") from None


def symmetric_eigen(A: Float, what: str = "the matrix") -> SymmetricEigen:
    """Eigenvalues and eigenvectors of a symmetric matrix.

    Raises
    ------
    NumericalError
        A is not finite, has more rows than LAPACK decomposes, or the eigenvalues did not converge; the message names
        `what`.
    """
    check_decomposed(A, what)
    with converging(what):
        return SymmetricEigen(*eigenvectors(A))


_PANEL = 256  # columns that are copied together: one at a time would miss the cache at every row


def mirror_upper(matrix: AnyArray) -> AnyArray:
    """Copy the upper triangle onto the lower one, in place, and return the matrix."""
    n = len(matrix)
    for start in range(0, n, _PANEL):
        stop = min(start + _PANEL, n)
        matrix[start:stop, :start] = matrix[:start, start:stop].T
        corner = matrix[start:stop, start:stop]
        np.copyto(corner, corner.T, where=_below_diagonal(stop - start))
    return matrix


def upper_triangle(matrices: AnyArray, out: AnyArray | None = None) -> AnyArray:
    """The upper triangles of matrices (..., w, w), row after row: (..., w (w + 1) / 2), in `out` where it is given."""
    *leading, w, _ = matrices.shape
    triangles = np.empty((*leading, w * (w + 1) // 2), matrices.dtype) if out is None else out
    for row, first, stop in _rows_of_triangle(w):
        triangles[..., first:stop] = matrices[..., row, row:]
    return triangles


def from_upper_triangle(triangles: AnyArray) -> AnyArray:
    """The matrices of `upper_triangle`, with zeros below the diagonal."""
    *leading, length = triangles.shape
    w = (math.isqrt(8 * length + 1) - 1) // 2
    matrices = np.zeros((*leading, w, w), triangles.dtype)
    for row, first, stop in _rows_of_triangle(w):
        matrices[..., row, row:] = triangles[..., first:stop]
    return matrices


def _rows_of_triangle(w: int) -> Iterator[tuple[int, int, int]]:
    """Number of each row, and where it begins and ends among the numbers of the triangle."""
    first = 0
    for row in range(w):
        yield row, first, first + w - row
        first += w - row


def leading_square(matrix: Float, n: int) -> Float:
    """The first n rows and columns of a C-contiguous square matrix, C-contiguous; the matrix is overwritten.

    They are in its memory, as a copy would need one more matrix; or a copy where they are less than half of it, which
    would else be held for them.
    """
    assert matrix.flags.c_contiguous, "reshape would make a copy"
    if 2 * n * n < matrix.size:
        return matrix[:n, :n].copy()
    flat = matrix.reshape(-1)
    if n < len(matrix):
        for row in range(1, n):  # in this order, no row is overwritten before it is moved
            flat[row * n : (row + 1) * n] = matrix[row, :n]
    return flat[: n * n].reshape(n, n)


@lru_cache(maxsize=64)
def _below_diagonal(n: int) -> Bool:
    return np.tri(n, k=-1, dtype=np.bool_)


def add_to_diagonal(matrix: Float, values: Float | float) -> None:
    """Add one number, or one for each row, to the diagonal of a C-contiguous matrix, in place.

    The diagonal is a strided view: the sum with a diagonal matrix would need one more matrix.
    """
    assert matrix.flags.c_contiguous, "reshape would make a copy, and add to that"
    matrix.reshape(-1)[:: len(matrix) + 1] += values
