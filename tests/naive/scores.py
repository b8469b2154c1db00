"""What a candidate is worth, given the basis; the largest is best (card 1.3, 1.9)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from naive.dense import Array, Rows, columns_of, residual, sampled, whitened_features


def function_space(
    K: Array, basis: Rows, pool: Rows, *, rows: Rows | None = None, weights: ArrayLike | None = None
) -> Array:
    """C_ii/S_ii = |R_i|^2/R_ii: by how much tr R drops (Smola & Schoelkopf 2000, eq. 31; card 1.3)."""
    return column_norm(K, basis, pool, rows=rows, weights=weights) / diagonal(K, basis, pool)


def column_norm(
    K: Array, basis: Rows, pool: Rows, *, rows: Rows | None = None, weights: ArrayLike | None = None
) -> Array:
    """C_ii = |R_i|^2 (eq. 32; card 2.4)."""
    chosen, root = sampled(K, rows, weights)
    return np.asarray(((root * residual(K, basis)[np.ix_(chosen, list(pool))]) ** 2).sum(axis=0))


def diagonal(K: Array, basis: Rows, pool: Rows) -> Array:
    """S_ii = R_ii: the pivot of incomplete Cholesky (card 3.1)."""
    return np.asarray(np.diag(residual(K, basis))[list(pool)])


def sparse_feature(K: Array, basis: Rows, pool: Rows) -> Array:
    """C_ii/(1 + |T_i|_1)^2, T_i = K[I,I]^-1 K[I,i]: SKFA (card 2.4)."""
    T = np.linalg.pinv(K[np.ix_(list(basis), list(basis))]) @ K[np.ix_(list(basis), list(pool))]
    return np.asarray(column_norm(K, basis, pool) / (1 + np.abs(T).sum(axis=0)) ** 2)


def column_space(K: Array, basis: Rows, pool: Rows, *, columns: Rows) -> Array:
    """sum_{j in N} <R_j,R_i>^2/|R_i|^2, R = (I - P) K: what |R|_F^2 over the columns N loses (eq. 27; card 2.5)."""
    P = K[:, list(basis)] @ np.linalg.pinv(K[:, list(basis)], rcond=1e-12) if len(basis) else np.zeros_like(K)
    left = K - P @ K
    R = left[:, list(pool)]
    return np.asarray(((left[:, list(columns)].T @ R) ** 2).sum(axis=0) / (R**2).sum(axis=0))


def first_norm(K: Array, basis: Rows, pool: Rows) -> Array:
    """|K_i|^2 whatever the basis: by how much the sum over columns that are not picked drops (card 2.6)."""
    return np.asarray((K[:, list(pool)] ** 2).sum(axis=0))


def csi(K: Array, basis: Rows, pool: Rows, *, Y: ArrayLike, trace_part: float, target_part: float) -> Array:
    """lambda C_ii/S_ii + mu |D_i|^2/B_ii, B and D with span K[:,I] projected out (card 1.3, 3.2)."""
    D, B = _ridge_projected(K, basis, pool, Y, 0.0, None, None)
    return np.asarray(trace_part * function_space(K, basis, pool) + target_part * (D**2).sum(axis=1) / B)


def _ridge_projected(
    K: Array, basis: Rows, pool: Rows, Y: ArrayLike, rho: float, rows: Rows | None, weights: ArrayLike | None
) -> tuple[Array, Array]:
    """B_ii = min_b |R_i - G b|^2 + rho |b|^2 and D_i = R_i'(Y - G b_Y), b_Y the ridge fit of Y (card 1.3, 1.9).

    Each is one least-squares problem with the rows sqrt(rho) I put below G; G, R and Y carry sqrt(w).
    """
    J, (chosen, root) = list(basis), sampled(K, rows, weights)
    G = root * whitened_features(K[np.ix_(chosen, J)], K[np.ix_(J, J)])
    R = root * residual(K, basis)[np.ix_(chosen, list(pool))]
    targets = np.hstack([R, root * columns_of(Y)[chosen]])
    A = np.vstack([G, math.sqrt(rho) * np.eye(G.shape[1])])
    targets = np.vstack([targets, np.zeros((G.shape[1], targets.shape[1]))])
    left = targets - A @ np.linalg.lstsq(A, targets, rcond=1e-15)[0]
    return R.T @ left[: len(R), len(pool) :], (left[:, : len(pool)] ** 2).sum(axis=0)


def greedy_ridge(
    K: Array,
    basis: Rows,
    pool: Rows,
    *,
    Y: ArrayLike,
    rho: float,
    rows: Rows | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """|D_i|^2/S_ii / (rho + B_ii/S_ii): by how much J = |Y - G b|^2 + rho |b|^2 drops (card 1.3, last row)."""
    D, B = _ridge_projected(K, basis, pool, Y, rho, rows, weights)
    S = diagonal(K, basis, pool)
    return np.asarray((D**2).sum(axis=1) / S / (rho + B / S))


def prediction(
    K: Array,
    basis: Rows,
    pool: Rows,
    *,
    Y: ArrayLike,
    rho: float,
    kappa: float = 1.0,
    rows: Rows | None = None,
    weights: ArrayLike | None = None,
    target_norm: float | None = None,
    kernel_trace: float | None = None,
) -> Array:
    """kappa greedy_ridge_i/|Y|^2 + (1 - kappa) (C_ii/S_ii)/tr K (card 1.9).

    |Y|^2 and tr K are weighted sums over the scoring rows unless given: with weights m/s both estimate the full sums.
    """
    chosen, root = sampled(K, rows, weights)
    norm = float(((root * columns_of(Y)[chosen]) ** 2).sum()) if target_norm is None else target_norm
    trace = float((root[:, 0] ** 2 * np.diag(K)[chosen]).sum()) if kernel_trace is None else kernel_trace
    targets = greedy_ridge(K, basis, pool, Y=Y, rho=rho, rows=rows, weights=weights)
    return kappa * targets / norm + (1 - kappa) * function_space(K, basis, pool, rows=rows, weights=weights) / trace


def ridge_objective(
    K: Array, basis: Rows, Y: ArrayLike, rho: float, rows: Rows | None = None, weights: ArrayLike | None = None
) -> float:
    """J(I) = min_a sum_j w_j |Y_j - K[j,I] a|^2 + rho tr a'K[I,I]a; greedy_ridge_i = J(I) - J(I + i) (card 1.3)."""
    J, (chosen, root) = list(basis), sampled(K, rows, weights)
    G, Yw = root * whitened_features(K[np.ix_(chosen, J)], K[np.ix_(J, J)]), root * columns_of(Y)[chosen]
    b = np.linalg.solve(G.T @ G + rho * np.eye(G.shape[1]), G.T @ Yw)
    return float(((Yw - G @ b) ** 2).sum() + rho * (b**2).sum())
