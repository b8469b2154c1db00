"""What is done with Ktilde = G G' (card 13.3, 13.4)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from naive.dense import Array, Rows, residual
from naive.sampling import residual_diagonal


def nystroem(K: Array, basis: Rows) -> Array:
    """Ktilde = K[:,I] K[I,I]^+ K[I,:] = K - R (card 0)."""
    return K - residual(K, basis)


def centred(K: Array) -> Array:
    """C K C, C = I - 11'/m: the kernel matrix of the rows less their mean in feature space."""
    C = np.eye(len(K)) - 1 / len(K)
    return np.asarray(C @ K @ C)


def preconditioned_eigenvalues(K: Array, basis: Rows, rho: float) -> Array:
    """Eigenvalues, ascending, of P^-1/2 (K + rho I) P^-1/2, P = Ktilde + rho I (card 13.4)."""
    values, vectors = np.linalg.eigh(nystroem(K, basis) + rho * np.eye(len(K)))
    half = vectors / np.sqrt(values)
    return np.linalg.eigvalsh(half.T @ (K + rho * np.eye(len(K))) @ half)


def conjugate_gradients(A: Array, b: Array, apply: Callable[[Array], Array], tolerance: float) -> tuple[Array, int]:
    """Solve A x = b with preconditioner `apply` (P^-1 v) until |b - A x| <= tolerance |b|; x and the iterations."""
    x, r, iterations = np.zeros_like(b), b.copy(), 0
    z = apply(r)
    p, rz = z.copy(), r @ z
    while np.linalg.norm(r) > tolerance * np.linalg.norm(b):
        step = rz / (p @ A @ p)
        x, r, iterations = x + step * p, r - step * (A @ p), iterations + 1
        z = apply(r)
        p, rz = z + (r @ z) / rz * p, r @ z
    return x, iterations


def squared_distances(K: Array) -> Array:
    """d^2_ij = K_ii + K_jj - 2 K_ij (card 13.3)."""
    return np.diag(K)[:, None] + np.diag(K) - 2 * K


def code_bounds(K: Array, basis: Rows) -> tuple[Array, Array]:
    """|z-z'|^2 + (r-r')^2 and |z-z'|^2 + (r+r')^2, |z-z'|^2 the distance in Ktilde, r^2 = R_ii (card 13.3)."""
    between = squared_distances(nystroem(K, basis))
    r = np.sqrt(residual_diagonal(K, basis))
    return between + (r[:, None] - r) ** 2, between + (r[:, None] + r) ** 2


def nearest(squares: Array, count: int) -> NDArray[np.int64]:
    """The `count` smallest of each row, smallest first, ties by column."""
    return np.argsort(squares, axis=1, kind="stable")[:, :count]


def nearest_scan(squares: Array, lower: Array, count: int) -> tuple[set[int], int]:
    """One query: look by increasing lower bound until it exceeds the count-th best; rows, looks (card 13.3)."""
    best: list[tuple[float, int]] = []
    for looks, i in enumerate(np.argsort(lower, kind="stable")):
        if len(best) >= count and lower[i] > sorted(best)[count - 1][0]:
            return {row for _, row in sorted(best)[:count]}, looks
        best.append((float(squares[i]), int(i)))
    return {row for _, row in sorted(best)[:count]}, len(squares)
