"""Operations of the driver's dense algebra, in units of an eigendecomposition, whose rate is measured."""

from __future__ import annotations


def eigen_flops(n: int) -> float:
    """Operations of the eigendecomposition of a symmetric (n, n) matrix (Golub & Van Loan 2013, section 8.3)."""
    return 9.0 * n**3


def tridiagonal_flops(n: int) -> float:
    """Operations of an eigendecomposition that take as long as a tridiagonal form and its eigenvalues, as measured."""
    return eigen_flops(n) / 2.5


def factor_flops(n: int) -> float:
    """Operations of an eigendecomposition that take as long as a Cholesky factor of a (n, n) matrix, as measured.

    They are more than those of the factor, ``n^3 / 3``, because `Rates.algebra_flops` is that of eigendecompositions.
    """
    return eigen_flops(n) / 14.0
