"""The least noise that the digits of a committee's members carry.

The covariance of a member's targets given f at the basis is ``noise I + s R``, ``R = K - G G^T >= 0``. R is a
difference of large numbers. With ``w(x) = k(Z, Z)^-1 k(Z, x)``, rounding of the kernel's values comes through times
``|w|^2``, and that is large where a smooth kernel's basis points are almost dependent: R then has eigenvalues below 0,
of whatever size that rounding has (Higham 2002, section 10.3). Noise below their size is no noise: the covariance has
no factor, or one whose small pivots are chance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.basis import Basis
from streamkernel.kernels.parameters import checked_rows
from streamkernel.linalg import InPlaceCholesky, require_finite, single_threaded_blas
from streamkernel.type_aliases import Float

_TIMES = 4.0  # rounding is at most a quarter of the noise: no pivot is chance
_ROWS = 100.0  # times eps, and the rows of a member: the factor's own rounding


def least_ratio(basis: Basis, X: ArrayLike, block_size: int, ratio: float) -> float:
    """`ratio` of noise to signal, or the larger one that members carry, as far as sampled rows tell.

    Parameters
    ----------
    basis : the query points.
    X : (c, p) sampled rows, in the units of the basis.
    block_size : most rows of a member.
    ratio : that is wanted. Where R has a factor with a quarter of it that is enough: a third of c^3 operations.
    """
    rows = np.asarray(checked_rows(X), np.float64)
    if not len(rows):
        return ratio
    of_factor = _ROWS * block_size * float(np.finfo(np.float64).eps)
    ratio = max(ratio, of_factor * float(basis.kernel.diagonal(rows).max()))
    # The rounding's norm grows at most as fast as the rows.
    larger = max(1.0, block_size / len(rows))
    with single_threaded_blas():
        R = _residual(basis, rows)
        require_finite(R, "the residual kernel matrix of the sample")
        tried = R.copy()
        tried.reshape(-1)[:: len(R) + 1] += ratio / _TIMES / larger
        if InPlaceCholesky(tried).failed is None:
            return ratio
        lowest = float(np.linalg.eigvalsh(R)[0])
    return max(ratio, -_TIMES * larger * lowest)


def _residual(basis: Basis, rows: Float) -> Float:
    """``K - G G^T`` (c, c), its lower triangle to be read."""
    G = basis.features(rows)
    return np.ascontiguousarray(basis.kernel(rows) - G @ G.T)
