"""Eigendecomposition of a symmetric matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from streamkernel.errors import NumericalError
from streamkernel.linalg.finite import require_finite
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class SymmetricEigen:
    """``A = vectors diag(values) vectors^T``; values ascending."""

    values: Float
    vectors: Float


def symmetric_eigen(A: Float, what: str = "the matrix") -> SymmetricEigen:
    """Eigenvalues and eigenvectors of a symmetric matrix.

    Raises
    ------
    NumericalError
        A is not finite, or the eigenvalues did not converge; the message names `what`.
    """
    require_finite(A, what)
    try:
        values, vectors = scipy.linalg.eigh(A, driver="evd", check_finite=False)
    except np.linalg.LinAlgError as error:
        raise NumericalError(f"the eigenvalues of {what} did not converge ({error})") from None
    return SymmetricEigen(values, vectors)
