"""Card 0 and 1.1: the example, the kernel, residuals."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Rows = Collection[Any]  # row numbers: list, range, tuple, integer array

RANK_TOLERANCE = 1e-12  # card 1.1: S_ii <= 1e-12 k_ii means that the row already lies in the span


@dataclass(frozen=True)
class Card:
    """Card 0: the deterministic 40-row example behind every printed number; `t` class signs, `pool` is M12."""

    X: Array
    y: Array
    t: NDArray[np.int64]
    K: Array
    Xq: Array
    pool: list[int]


def card() -> Card:
    """Card 0: X_i = (2 sin(1.7 i + .3), 2 cos(2.3 i + .1)), y = sin x_1 + .5 x_2 + .1 cos 5i, K Gaussian, l = 1."""
    i = np.arange(40)
    X = np.stack([2 * np.sin(1.7 * i + 0.3), 2 * np.cos(2.3 * i + 0.1)], axis=1)
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * np.cos(5 * i)
    Xq = np.stack([np.linspace(-1.5, 1.5, 6), np.linspace(1, -1, 6)], axis=1)
    return Card(X, y, np.where(y > 0.1, 1, -1), gaussian(X, X, 1.0), Xq, [(7 * j + 3) % 40 for j in range(12)])


def gaussian(X: ArrayLike, Z: ArrayLike, lengthscale: float | ArrayLike = 1.0) -> Array:
    """k(x, z) = exp(-sum_j (x_j - z_j)^2 / (2 l_j^2)); l one number or one per feature."""
    A, B = (np.atleast_2d(np.asarray(V, np.float64)) / np.asarray(lengthscale, np.float64) for V in (X, Z))
    squared: Array = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-0.5 * squared)


def residual(K: Array, basis: Rows) -> Array:
    """R = K - K[:,I] K[I,I]^+ K[I,:] (card 0): symmetric, PSD, zero on the rows of I."""
    J = list(basis)
    return K - K[:, J] @ np.linalg.lstsq(K[np.ix_(J, J)], K[J, :], rcond=1e-15)[0] if J else K.copy()


def residual_trace(K: Array, basis: Rows) -> float:
    """tr R = tr K - tr K[:,I] K[I,I]^+ K[I,:]."""
    return float(np.trace(residual(K, basis)))


def whitened_features(K_mI: Array, K_II: Array) -> Array:
    """G = K_mI U l^-1/2, K_II = U diag(l) U' (card 1.1): G G' = Ktilde; eigenvalues below 1e-15 l_max dropped.

    Any other whitening (L^-T of the Cholesky factor) is this one times an orthogonal matrix.
    """
    values, vectors = np.linalg.eigh(K_II)
    kept = values > 1e-15 * values.max(initial=0.0)
    return np.asarray(K_mI @ (vectors[:, kept] / np.sqrt(values[kept])))


def columns_of(Y: ArrayLike) -> Array:
    Y = np.asarray(Y, dtype=np.float64)
    return Y[:, None] if Y.ndim == 1 else Y


def sampled(K: Array, rows: Rows | None, weights: ArrayLike | None) -> tuple[NDArray[np.int64], Array]:
    """The rows that sums run over and the square roots of their weights, as a column."""
    chosen = np.arange(len(K)) if rows is None else np.asarray(rows, dtype=np.int64)
    return chosen, np.sqrt(np.ones(len(chosen)) if weights is None else np.asarray(weights, np.float64))[:, None]
