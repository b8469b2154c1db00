"""Greedy picks by the cross quotient within a pool, from the triangular factor of the residual columns of both views.

::

    rho_i = <R^x_i, R^y_i> / sqrt( (|R^x_i|^2 + r_x S^x_ii) (|R^y_i|^2 + r_y S^y_ii) )        signed; is maximised
    pick i:  v = S^x[:, i] / S^x_ii,  U_x <- U_x - U_x[:, i] v^T,  S^x <- S^x - S^x[:, i] v^T;  same for y

(Hussain & Shawe-Taylor, section 4; ALGORITHMS 11.3.) With r = 0 this is the rule of the paper. The ridge r is that of
the canonical correlation analysis on the basis. rho_i is then the regularised correlation of the two residual
functions, and S_ii is the squared norm of each. Without a ridge, the late picks are residuals near 0, whose quotient is
noise.
"""

from __future__ import annotations

import numpy as np

from streamkernel.reductions.pools import CrossSums
from streamkernel.selection._picks import PickList, Picks
from streamkernel.type_aliases import Float, Int


def cross_picks(
    sums: CrossSums,
    count: int,
    *,
    ridges: tuple[float, float],
    diagonals: tuple[Float, Float],
    pivot_tolerance: float,
    groups: Int | None = None,
) -> Picks:
    """Up to `count` picks; their `gains` are the quotients.

    Parameters
    ----------
    sums : sums of `CrossPool`.
    ridges : the ridges r_x and r_y.
    diagonals : (k,) each, ``k_v(x_i, x_i)`` of the candidates.
    pivot_tolerance : candidates with ``S_ii <= pivot_tolerance * k_ii`` in either view are masked.
    groups : (k,) restricts each pick to the next group that has a live candidate (split pools).
    """
    roots = [root.copy() for root in sums.roots]
    residuals = [S.copy() for S in sums.residuals]
    k = len(residuals[0])
    picked = PickList(k, groups)
    for _ in range(min(count, k)):
        independent, spreads = np.ones(k, dtype=bool), []
        for U, S, ridge, diagonal in zip(roots, residuals, ridges, diagonals, strict=True):
            pivots = np.diagonal(S)
            independent &= pivots > pivot_tolerance * diagonal
            spreads.append(np.einsum("ij,ij->j", U, U) + ridge * np.maximum(pivots, 0.0))
        # A function that is 0 on all rows has no correlation.
        alive = picked.alive(independent & (spreads[0] > 0.0) & (spreads[1] > 0.0))
        if not alive.any():
            return picked.ended("rank")
        scale = np.sqrt(spreads[0]) * np.sqrt(spreads[1])
        quotients = np.einsum("ij,ij->j", *roots) / np.where(alive, scale, 1.0)
        i = int(np.argmax(np.where(alive, quotients, -np.inf)))
        for U, S in zip(roots, residuals, strict=True):
            v = S[:, i] / S[i, i]
            U -= np.outer(U[:, i], v)
            S -= np.outer(S[:, i], v)
        picked.add(i, quotients[i])
    return picked.ended("count")
