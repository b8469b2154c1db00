"""Two views of the same rows: greedy cross quotient and regularised canonical correlations (card 11.3)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import scipy.linalg

from naive.dense import RANK_TOLERANCE, Array, Rows


def cross_quotient(
    Kx: Array, Ky: Array, steps: Iterable[Rows], ridges: tuple[float, float] = (0.0, 0.0)
) -> tuple[list[int], list[float]]:
    """Hussain & Shawe-Taylor, section 4, on dense deflated kernels: picks and their quotients.

    argmax e_i'Kx Ky e_i / sqrt(e_i'(Kx^2 + rx Kx)e_i e_i'(Ky^2 + ry Ky)e_i), then K <- K - K_i K_i'/K_ii in each view;
    one pick a step, of the step's candidates.
    """
    R, starts = [Kx.copy(), Ky.copy()], [np.diag(Kx), np.diag(Ky)]
    picks: list[int] = []
    quotients: list[float] = []
    for candidates in steps:
        best, value = -1, -math.inf
        for i in map(int, candidates):
            live = all(K[i, i] > RANK_TOLERANCE * start[i] for K, start in zip(R, starts, strict=True))
            if i in picks or not live:
                continue
            x, y = R[0][:, i], R[1][:, i]
            rho = x @ y / math.sqrt((x @ x + ridges[0] * x[i]) * (y @ y + ridges[1] * y[i]))
            if rho > value:
                best, value = i, float(rho)
        if best >= 0:
            R = [K - np.outer(K[:, best], K[:, best]) / K[best, best] for K in R]
            picks.append(best)
            quotients.append(value)
    return picks, quotients


def canonical_correlations(
    Kx: Array, Ky: Array, basis: Rows, ridges: tuple[float, float], count: int
) -> tuple[Array, Array, Array, Array]:
    """Regularised CCA of functions sum_j a_j k_v(., z_j), from the generalised eigenproblem of all of it.

    Returns s, correlations over the rows, and both variates (m, count), centred, of variance 1, of any sign.
    """
    rows = list(basis)
    n, m = len(rows), len(Kx)
    C = np.eye(m) - 1.0 / m
    A = [K[:, rows] for K in (Kx, Ky)]
    norms = [A[v].T @ C @ A[v] + ridges[v] * K[np.ix_(rows, rows)] for v, K in enumerate((Kx, Ky))]
    left = np.zeros((2 * n, 2 * n))
    left[:n, n:] = A[0].T @ C @ A[1]
    left[n:, :n] = left[:n, n:].T
    values, vectors = scipy.linalg.eigh(left, scipy.linalg.block_diag(*norms))
    order = np.argsort(-values)[:count]
    variates = [C @ A[0] @ vectors[:n, order], C @ A[1] @ vectors[n:, order]]
    variates = [f / f.std(axis=0) for f in variates]
    return values[order], (variates[0] * variates[1]).mean(axis=0), variates[0], variates[1]
