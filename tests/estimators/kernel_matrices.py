"""A kernel matrix of some rows, those of other rows with them, and the matrix with one number changed."""

from __future__ import annotations

import numpy as np

from streamkernel.kernels import Gaussian

M = 240
_RNG = np.random.default_rng(0)
X, Q = _RNG.standard_normal((M, 3)), _RNG.standard_normal((40, 3))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * _RNG.standard_normal(M)
KERNEL = Gaussian(1.5)
K, KQ = KERNEL(X), KERNEL(Q, X)
K = 0.5 * (K + K.T)
GIVEN = {"kernel": "precomputed", "rule": "rpcholesky"}


def changed(row: int, column: int, value: float) -> np.ndarray:
    other = K.copy()
    other[row, column] = value
    return other
