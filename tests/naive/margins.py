"""Squared hinges in the dual, with Q = I / nu + H H^T (m, m) as it is (ALGORITHMS 8)."""

from __future__ import annotations

import numpy as np

from naive.dense import Array


def squared_hinge(H: Array, nu: float, b: Array) -> float:
    """The primal objective ``1/2 |b|^2 + nu / 2 |(1 - H b)_+|^2``."""
    return float(0.5 * b @ b + 0.5 * nu * (np.maximum(1.0 - H @ b, 0.0) ** 2).sum())


def active_sets(H: Array, nu: float) -> tuple[Array, list[Array]]:
    """The dual variables of the solution, and the active rows of each iteration; no safeguard."""
    m = len(H)
    Q, B, found = np.eye(m) / nu + H @ H.T, np.ones(m, bool), []
    for _ in range(100):
        found.append(B)
        u = np.zeros(m)
        face = np.linalg.solve(Q[np.ix_(B, B)], np.ones(B.sum()))
        u[B] = np.maximum(face, 0.0)
        if (face > 0.0).all():
            missing = ~B & (Q @ u - 1.0 < 0.0)
            if not missing.any():
                return u, found
            B = B | missing
        else:
            B = u > 0.0
    raise AssertionError("the active set method went round in a circle")


def lagrangian_iterates(H: Array, nu: float, beta: float, count: int) -> list[Array]:
    """The first dual variables u of the Lagrangian method, from ``u = Q^-1 e`` on."""
    Q, e = np.eye(len(H)) / nu + H @ H.T, np.ones(len(H))
    iterates = [np.linalg.solve(Q, e)]
    for _ in range(count - 1):
        u = iterates[-1]
        iterates.append(np.linalg.solve(Q, e + np.maximum(Q @ u - e - beta * u, 0.0)))
    return iterates
