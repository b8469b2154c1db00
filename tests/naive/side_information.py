"""Cholesky with side information (card 3.2 to 3.5; Bach & Jordan 2005)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from naive.dense import RANK_TOLERANCE, Array, Rows, columns_of, residual_trace, whitened_features
from naive.selection import Path, greedy


def csi_objective(K: Array, basis: Rows, Y: ArrayLike, *, kappa: float, centred: bool = False) -> float:
    """J(I) = (1 - kappa) tr R/tr K + kappa |Y - P Y|^2/|Y|^2, P the projector on span K[:,I] (card 3.2).

    Centred: Y less its means in both places, and the constant projected out with the columns.
    """
    J, one = list(basis), _constant(len(K), centred)
    Y = columns_of(Y) - one @ (one.T @ columns_of(Y))
    G = np.hstack([one, whitened_features(K[:, J], K[np.ix_(J, J)])])
    left = Y - G @ np.linalg.lstsq(G, Y, rcond=1e-15)[0]
    return (1 - kappa) * residual_trace(K, J) / float(np.trace(K)) + kappa * float((left**2).sum() / (Y**2).sum())


def csi_exact(K: Array, steps: Iterable[Rows], Y: ArrayLike, *, kappa: float, centred: bool = False) -> Path:
    """CSI with exact gains: of each step's candidates the one that takes most off J; the scores are J's drops."""

    def drop(K: Array, basis: Rows, pool: Rows) -> Array:
        before = csi_objective(K, basis, Y, kappa=kappa, centred=centred)
        after = [csi_objective(K, [*basis, i], Y, kappa=kappa, centred=centred) for i in pool]
        return before - np.array(after)

    return greedy(K, steps, drop)


def csi_look_ahead(
    K: Array, count: int, Y: ArrayLike, *, kappa: float, delta: int, centred: bool = False, published: bool = False
) -> tuple[Path, list[float]]:
    """Bach & Jordan 2005 with the look-ahead made afresh for every pick (card 3.3); true gains, and predicted ones.

    R ~ S = A A' by delta columns of incomplete Cholesky; G = Q (triangular), D = diag R. The pick is the best i by
    (1 - kappa)/tr K |S_i|^2/D_i + kappa/|Y|^2 |Y'(I-QQ')S_i|^2/|(I-QQ')S_i|^2, D_i in place of S_ii in the first part.
    Equal to rounding: the lowest row. As published (csi.m, kernlab) scans keep what they have unless a later row is
    better by 1/.99 (columns ahead) or 1/.9 (picks), and chosen rows change places with those that they come before.
    """
    Q = _constant(len(K), centred)
    Y = columns_of(Y) - Q @ (Q.T @ columns_of(Y))
    trace_part, target_part = (1 - kappa) / np.trace(K), kappa / (Y**2).sum()
    R, path, predicted = K.copy(), Path([], [], []), list[float]()
    rows, ahead = list(range(len(K))), 0  # not picked yet, the first `ahead` of them looked at
    for _ in range(count):
        D = np.where(np.diag(R) > RANK_TOLERANCE * np.diag(K), np.diag(R), 0)
        if D.max() == 0:
            break
        A, ahead = _look_ahead(K, R, rows, ahead, delta, 0.99 if published else None)
        S = A @ A.T
        unknown = np.maximum(D - np.diag(S), 0)
        unknown[rows[:ahead]] = 0
        beyond = S - Q @ (Q.T @ S)
        b = (beyond**2).sum(axis=0)
        seen = b > 1e-12 * np.mean(np.diag(K)) ** 2
        explained = np.where(seen, ((Y.T @ beyond) ** 2).sum(axis=0), 0) / np.where(seen, b, 1)
        trace_gain = ((S**2).sum(axis=0) + D**2 - (D - unknown) ** 2) / np.where(D > 0, D, 1)
        score = np.where(D > 0, trace_part * trace_gain + target_part * explained, -1)
        j = _best(score, rows, 0.9 if published else None)
        if rows.index(j) >= ahead:
            _swap(rows, ahead, j)
        else:
            ahead -= 1
        rows.remove(j)
        g = R[:, j] / math.sqrt(R[j, j])
        q = g - Q @ (Q.T @ g)
        q -= Q @ (Q.T @ q)
        R = R - np.outer(g, g)
        R[j] = R[:, j] = 0
        gain = trace_part * g @ g
        if q @ q > 1e-12 * g @ g:
            Q = np.hstack([Q, q[:, None] / np.linalg.norm(q)])
            gain += target_part * ((Y.T @ Q[:, -1]) ** 2).sum()
        path.add(j, gain, np.trace(R))
        predicted.append(float(score[j]))
    return path, predicted


def _look_ahead(K: Array, R: Array, rows: list[int], ahead: int, delta: int, slack: float | None) -> tuple[Array, int]:
    """Incomplete Cholesky of R on the first `ahead` rows, then on those of largest residual diagonal, to delta columns.

    The rows used are moved to the front; returns the columns and how many rows those are.
    """
    R, A, used = R.copy(), np.zeros((len(R), 0)), 0
    while A.shape[1] < delta:
        left = np.where(np.diag(R) > RANK_TOLERANCE * np.diag(K), np.diag(R), 0)
        if left.max() == 0:
            break
        if used == ahead:
            _swap(rows, used, _best(left, rows[used:], slack))
            ahead += 1
        j, used = rows[used], used + 1
        if left[j] > 0:
            A = np.hstack([A, R[:, [j]] / math.sqrt(R[j, j])])
            R = R - np.outer(A[:, -1], A[:, -1])
            R[j] = R[:, j] = 0
    return A, ahead


def _best(values: Array, rows: list[int], slack: float | None) -> int:
    """The row with the largest value; with slack, the last to exceed the best before it by 1/slack."""
    if slack is None:
        return min(i for i in rows if values[i] >= (1 - 1e-9) * values[rows].max())
    best = rows[0]
    for i in rows:
        best = i if values[i] > values[best] / slack else best
    return best


def _swap(rows: list[int], place: int, j: int) -> None:
    rows[rows.index(j)], rows[place] = rows[place], j


def _constant(m: int, centred: bool) -> Array:
    """The unit vector of the constant as the only column, or no column."""
    return np.full((m, int(centred)), 1 / math.sqrt(m))
