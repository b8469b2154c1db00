"""Greedy picks within a pool from the square-root form, which loses no digits (ALGORITHMS 1.3, remedy 2).

::

    C_ii = |U_G[:, i]|^2 + |U_R[:, i]|^2,   B = U_R^T U_R,   D = U_R^T U_Y
    pick i:  b = |U_R[:, i]|, q = U_R[:, i] / b, v = S[:, i] / S_ii
             new row = q^T U_R - b v^T;  U_R <- U_R - q (q^T U_R);  U_Y <- U_Y - q (q^T U_Y)
             U_G <- [U_G - U_G[:, i] v^T; new row];  S <- S - S[:, i] v^T
"""

from __future__ import annotations

import numpy as np

from streamkernel.reductions.pools import RootSums
from streamkernel.selection._picks import Coefficients, PickList, Picks, square_of
from streamkernel.selection.scores import Candidates, Score
from streamkernel.type_aliases import Float, Int


def root_picks(
    sums: RootSums,
    score: Score,
    count: int,
    *,
    scale: Float,
    diagonal: Float,
    pivot_tolerance: float,
    groups: Int | None = None,
    stop_after: float = np.inf,
    coefficients: Float | None = None,
) -> Picks:
    """Up to `count` greedy picks, with the least squares projection (rho = 0, ALGORITHMS 1.3, row CSI).

    `sums` are those of `PoolRoot`; the other parameters are those of `lazy_picks`.
    """
    k, n = len(sums.S), len(sums.G_R)
    count = min(count, k)
    squares = score.needs_squares or np.isfinite(stop_after)
    U_R, U_Y = sums.R_R.copy(), sums.R_Y / scale
    U_G = np.zeros((n + count, k))
    U_G[:n] = sums.G_R
    S = sums.S.copy()
    T = Coefficients(coefficients, count) if score.needs_coefficients and coefficients is not None else None
    none, square = np.zeros(0), square_of(sums.YY, scale)
    first: Float = np.einsum("ij,ij->j", U_G, U_G) + np.einsum("ij,ij->j", U_R, U_R)
    picked = PickList(k, groups)
    for t in range(count):
        sd = np.diagonal(S)
        alive = picked.alive(sd > pivot_tolerance * diagonal)
        if not alive.any():
            return picked.ended("rank")
        pivots = np.where(alive, sd, 1.0)
        left: Float = np.einsum("ij,ij->j", U_R, U_R)
        C = np.einsum("ij,ij->j", U_G[: n + t], U_G[: n + t]) + left if squares else none
        D = U_R.T @ U_Y
        candidates = Candidates(
            pivots=pivots,
            trace=sums.trace,
            square=square,
            rho=0.0,
            squares=C,
            first_squares=first,
            left=left,
            explained=np.einsum("ij,ij->i", D, D),
            cross=U_R.T @ U_R if score.needs_cross else np.zeros((0, 0)),
            coefficients=none if T is None else T.norms,
        )
        worth = score.values(candidates)
        i = int(np.argmax(np.where(alive, worth, -1.0)))
        taken = float(C[i] / pivots[i]) if squares else np.nan
        picked.add(i, worth[i], taken, score.parts(candidates)[:, i])
        v = S[:, i] / S[i, i]
        norm = float(np.sqrt(left[i]))
        # A column without a part outside the span of the basis adds no direction.
        q = U_R[:, i] / norm if norm > 0.0 else np.zeros(len(U_R))
        along = q @ U_R
        U_G[: n + t] -= np.outer(U_G[: n + t, i], v)
        U_G[n + t] = along - norm * v
        U_R -= np.outer(q, along)
        U_Y -= np.outer(q, q @ U_Y)
        S -= np.outer(S[:, i], v)
        if T is not None:
            T.deflate(t, i, v)
        if np.isfinite(stop_after) and sum(picked.trace_gains) >= stop_after:
            return picked.ended("tolerance")
    return picked.ended("count")
