"""Linear systems with K and Ktilde (card 9, 10.4, 10.6, 12.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from naive.approximation import nystroem
from naive.dense import Array, Rows, columns_of


def skilling_bounds(K: Array, y: Array, rho: float, w: Array) -> tuple[float, float]:
    """2w'y - w'Mw <= y'M^-1 y <= (y'y - [2w'(Ky) - w'(KM)w])/rho, M = K + rho I (card 9.1 with z = w)."""
    M = K + rho * np.eye(len(K))
    lower = 2 * w @ y - w @ M @ w
    return float(lower), float((y @ y - (2 * w @ (K @ y) - w @ (K @ M) @ w)) / rho)


def woodbury_weights(K: Array, basis: Rows, y: Array, noise: float) -> Array:
    """w = y/s2 - (1/s2) U (s2 Lam^-1 + U'U)^-1 U'y, U Lam U' = Ktilde as Williams and Seeger print it (card 9.2)."""
    chosen, m = list(basis), len(K)
    values, vectors = np.linalg.eigh(K[np.ix_(chosen, chosen)])
    U, Lam = np.sqrt(len(chosen) / m) * K[:, chosen] @ vectors / values, m / len(chosen) * values
    np.testing.assert_allclose(U * Lam @ U.T, nystroem(K, chosen), atol=1e-9)
    return np.asarray((y - U @ np.linalg.solve(noise * np.diag(1 / Lam) + U.T @ U, U.T @ y)) / noise)


def projected_bayes(K: Array, basis: Rows, y: ArrayLike, noise: float, count: int) -> tuple[Array, Array, Array]:
    """phi = sqrt(n0) K_mI U/l, lambda = l/n0 of the `count` largest l; b for finite m and m -> oo (card 10.4).

    Returns Phi (m, n), b = (s2 diag(1/lambda) + Phi'Phi)^-1 Phi'y, and lambda/(lambda + s2/m) Phi'y/m.
    """
    chosen, Y, m = list(basis), columns_of(y), len(K)
    values, vectors = np.linalg.eigh(K[np.ix_(chosen, chosen)])
    values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    Phi, eigenvalues = np.sqrt(len(chosen)) * K[:, chosen] @ vectors / values, values / len(chosen)
    finite = np.linalg.solve(noise * np.diag(1 / eigenvalues) + Phi.T @ Phi, Phi.T @ Y)
    return Phi, finite, (eigenvalues / (eigenvalues + noise / m))[:, None] * (Phi.T @ Y) / m


@dataclass
class Online:
    """Csato and Opper's state (card 10.4): basis, mean and covariance of f at the basis."""

    basis: list[int]
    mu: Array
    P: Array


def online(K: Array, y: Array, noise: float, tolerance: float, most: int | None = None) -> Online:
    """Row by row: gamma = k - k_I'K_II^-1 k_I; above the tolerance the row is appended; then one Kalman step."""
    state = Online([], np.zeros(0), np.zeros((0, 0)))
    for i in range(len(y)):
        chosen = state.basis
        h = np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen, i])
        gamma = K[i, i] - K[chosen, i] @ h
        if gamma > tolerance and (most is None or len(chosen) < most):
            Ph = state.P @ h
            state.P = np.block([[state.P, Ph[:, None]], [Ph[None], np.array([[h @ Ph + gamma]])]])
            state.mu = np.append(state.mu, h @ state.mu)
            state.basis = [*chosen, i]
            h, variance = np.eye(len(state.basis))[-1], noise
        else:
            variance = noise + gamma
        gain = state.P @ h / (h @ state.P @ h + variance)
        state.mu = state.mu + gain * (y[i] - h @ state.mu)
        state.P = state.P - np.outer(gain, h @ state.P)
    return state


def primal(K: Array, y: Array, rho: float, a: Array) -> float:
    """Qp(a) = -y'Ka + a'(rho K + K^2)a/2 (card 10.6)."""
    return float(-y @ K @ a + a @ (rho * K + K @ K) @ a / 2)


def dual(K: Array, y: Array, rho: float, u: Array) -> float:
    """Qd(u) = -y'u + u'(rho I + K)u/2 (card 10.6)."""
    return float(-y @ u + u @ (rho * np.eye(len(K)) + K) @ u / 2)


def sparse_primal(K: Array, y: Array, rho: float, basis: Rows) -> Array:
    """The a, 0 off the basis, that minimises Qp: a_I = (K_Im K_mI + rho K_II)^-1 K_Im y (card 2.8)."""
    chosen, a = list(basis), np.zeros(len(K))
    a[chosen] = np.linalg.solve(K[chosen] @ K[:, chosen] + rho * K[np.ix_(chosen, chosen)], K[chosen] @ y)
    return a


def sparse_dual(K: Array, y: Array, rho: float, rows: Rows) -> Array:
    """The u, 0 off the rows J, with u_J = (rho I + K_JJ)^-1 y_J (card 10.6 (i))."""
    J, u = list(rows), np.zeros(len(K))
    u[J] = np.linalg.solve(rho * np.eye(len(J)) + K[np.ix_(J, J)], y[J])
    return u


def duality_gap(K: Array, y: Array, rho: float, a: Array, u: Array) -> float:
    """Qp(a) + rho Qd(u) + y'y/2 >= 0 (card 10.6)."""
    return primal(K, y, rho, a) + rho * dual(K, y, rho, u) + float(y @ y) / 2


def relative_duality_gap(K: Array, y: Array, rho: float, a: Array, u: Array) -> float:
    """2 gap/(|Qp| + |rho Qd + y'y/2|) (card 10.6)."""
    gap = duality_gap(K, y, rho, a, u)
    return 2 * gap / (abs(primal(K, y, rho, a)) + abs(rho * dual(K, y, rho, u) + float(y @ y) / 2))


def falkon_system(K_mI: Array, K_II: Array, Y: ArrayLike, lam: float) -> tuple[Array, Array, Array]:
    """W, its right side and alpha = T^-1 A^-1 W^-1 rhs (card 12.3).

    T = chol_upper(K_II), A = chol_upper(TT'/n + lam I), W = A^-T [T^-T (K_mI'K_mI/m) T^-1 + lam I] A^-1.
    """
    m, n = K_mI.shape
    T = np.linalg.cholesky(K_II).T
    A = np.linalg.cholesky(T @ T.T / n + lam * np.eye(n)).T
    inner = np.linalg.solve(T.T, K_mI.T @ K_mI / m) @ np.linalg.inv(T) + lam * np.eye(n)
    W = np.linalg.solve(A.T, inner) @ np.linalg.inv(A)
    rhs = np.linalg.solve(A.T, np.linalg.solve(T.T, K_mI.T @ columns_of(Y) / m))
    return W, rhs, np.asarray(np.linalg.solve(T, np.linalg.solve(A, np.linalg.solve(W, rhs))))
