"""Greedy picks inside a pool from the square-root form, which keeps the digits (ALGORITHMS 1.3, remedy 2).

::

    C_ii = |U_G[:, i]|^2 + |U_R[:, i]|^2,   B_ii = |U_R[:, i]|^2,   Dm = U_R^T U_Y
    pick i:  b = |U_R[:, i]|, q = U_R[:, i] / b, v = S[:, i] / S_ii
             new row = q^T U_R - b v^T;  U_R <- U_R - q (q^T U_R);  U_Y <- U_Y - q (q^T U_Y)
             U_G <- [U_G - U_G[:, i] v^T; new row];  S <- S - S[:, i] v^T
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamkernel.reductions import RootSums
from streamkernel.selection.picks import Mixture, Picks

__all__ = ["root_picks"]


def root_picks(
    sums: RootSums,
    mixture: Mixture,
    count: int,
    *,
    diagonal: NDArray[np.float64],
    pivot_tolerance: float,
    groups: NDArray[np.int64] | None = None,
) -> Picks:
    """Up to `count` greedy picks; the prediction part is the least squares one (rho = 0, ALGORITHMS 1.3, row CSI).

    Parameters as `lazy_picks`.
    """
    k = len(sums.S)
    U_R, U_Y = sums.R_R.copy(), sums.R_Y.copy()
    U_G = np.zeros((len(sums.G_R) + min(count, k), k))
    U_G[: len(sums.G_R)] = sums.G_R
    S = sums.S.copy()
    square = float((np.diagonal(sums.YY) / mixture.scale**2).sum()) or 1.0
    free = np.ones(k, dtype=bool)
    order: list[int] = []
    gains: list[float] = []
    trace_gains: list[float] = []
    for t in range(min(count, k)):
        sd = np.diagonal(S)
        alive = free & (sd > pivot_tolerance * diagonal)
        if groups is not None:
            alive &= groups == t
        if not alive.any():
            return _picks(order, gains, trace_gains, "rank")
        pivots = np.where(alive, sd, 1.0)
        b2 = np.einsum("ij,ij->j", U_R, U_R)
        trace_gain = (np.einsum("ij,ij->j", U_G, U_G) + b2) / pivots
        score = (1.0 - mixture.kappa) / mixture.trace * trace_gain
        if mixture.kappa > 0.0:
            D = (U_R.T @ U_Y) / mixture.scale
            explained = np.einsum("ij,ij->i", D, D)
            score += mixture.kappa / square * np.divide(explained, b2, out=np.zeros(k), where=b2 > 0.0)
        i = int(np.argmax(np.where(alive, score, -1.0)))
        v = S[:, i] / S[i, i]
        norm = float(np.sqrt(b2[i]))
        q = U_R[:, i] / norm if norm > 0.0 else np.zeros(len(U_R))
        along = q @ U_R
        U_G -= np.outer(U_G[:, i], v)
        U_G[len(sums.G_R) + t] = along - norm * v
        U_R -= np.outer(q, along)
        U_Y -= np.outer(q, q @ U_Y)
        S -= np.outer(S[:, i], v)
        free[i] = False
        order.append(i)
        gains.append(float(score[i]))
        trace_gains.append(float(trace_gain[i]))
    return _picks(order, gains, trace_gains, "count")


def _picks(order: list[int], gains: list[float], trace_gains: list[float], ended: str) -> Picks:
    return Picks(np.asarray(order, np.int64), np.asarray(gains), np.asarray(trace_gains), ended)
