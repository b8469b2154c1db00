"""One pick at a time (card 1.3, 2, 3.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from naive.dense import RANK_TOLERANCE, Array, Rows, residual, residual_trace


@dataclass(frozen=True)
class Path:
    """The rows picked in order, the score of each when it was picked, and tr R over ALL rows after it."""

    picks: list[int]
    scores: list[float]
    traces: list[float]

    def add(self, pick: int, score: float, trace: float) -> None:
        for values, value in ((self.picks, int(pick)), (self.scores, float(score)), (self.traces, float(trace))):
            values.append(value)  # type: ignore[arg-type]


def greedy(K: Array, steps: Iterable[Rows], score: Callable[..., Array], basis: Rows = (), **options: Any) -> Path:
    """One pick a step: the best-scored row of the step's candidates; nothing is carried over but the set of rows.

    steps = [M] * c is a shared pool, split_pool(M, c) a split one, [range(m)] * c a full search, fresh draws SGMA.
    Rows of the basis or in its span (S_ii <= 1e-12 k_ii) are masked; ties go to the first of the list; a step without
    a live candidate picks nothing. `options` go to the score. Card 1.3, 2.2.
    """
    path = Path([], [], [])
    for candidates in steps:
        chosen = [*map(int, basis), *path.picks]
        left = np.diag(residual(K, chosen)) / np.diag(K)
        live = [int(i) for i in candidates if int(i) not in chosen and left[i] > RANK_TOLERANCE]
        if live:
            values = score(K, chosen, live, **options)
            best = int(np.argmax(values))
            path.add(live[best], values[best], residual_trace(K, [*chosen, live[best]]))
    return path


def split_pool(pool: Rows, count: int) -> list[Rows]:
    """`count` consecutive disjoint sub-pools of equal size: pick j may look only at sub-pool j (card 1.3)."""
    return [list(part) for part in np.asarray(pool).reshape(count, -1)]


def sgma(K: Array, subsets: Iterable[Rows]) -> tuple[Path, Array]:
    """Smola & Schoelkopf 2000, Algorithm 2, literally: T-form, one pick per random subset; returns the path and T.

    r_i = K_i - Kc T[i]';  i* = argmax |r_i|^2/r_i[i];  tt = [-T[i*], 1]/r_i*[i*];  T <- [T, 0] + r_i* tt'  (card 2.2)
    """
    T, Kc, path = np.zeros((len(K), 0)), np.zeros((len(K), 0)), Path([], [], [])
    for subset in subsets:
        best, best_score = -1, -math.inf
        for i in map(int, subset):
            r = K[:, i] - Kc @ T[i]
            if i not in path.picks and r[i] > RANK_TOLERANCE * K[i, i] and r @ r / r[i] > best_score:
                best, best_score = i, float(r @ r / r[i])
        if best >= 0:
            r = K[:, best] - Kc @ T[best]
            step = np.append(-T[best], 1.0) / r[best]
            T = np.hstack([T, np.zeros((len(K), 1))]) + np.outer(r, step)
            Kc = np.hstack([Kc, K[:, [best]]])
            path.add(best, best_score, np.trace(K) - (Kc * T).sum())  # eq. 22
    return path, T


def matching_pursuit_kpca(K: Array, count: int) -> Path:
    """Hussain & Shawe-Taylor, Algorithm 1: argmax |K_i|^2/K_ii; K <- K - K_i K_i'/K_ii (card 2.3)."""
    R, path = K.copy(), Path([], [], [])
    for _ in range(count):
        d = np.diag(R)
        live = d > RANK_TOLERANCE * np.diag(K)
        live[path.picks] = False
        values = np.where(live, (R**2).sum(axis=0) / np.where(live, d, 1), -np.inf)
        i = int(np.argmax(values))
        R = R - np.outer(R[:, i], R[:, i]) / R[i, i]
        path.add(i, values[i], np.trace(R))
    return path


def incomplete_cholesky(K: Array, count: int) -> tuple[Path, Array]:
    """Card 3.1, literally: j = argmax d; g = (K_j - G G[j]')/sqrt(d_j); d <- d - g^2; returns the path and G."""
    d, G, path = np.diag(K).copy(), np.zeros((len(K), 0)), Path([], [], [])
    for _ in range(count):
        j = int(np.argmax(d))
        g = (K[:, j] - G @ G[j]) / math.sqrt(d[j])
        pivot, G, d = d[j], np.hstack([G, g[:, None]]), np.maximum(d - g * g, 0)
        d[[*path.picks, j]] = 0
        path.add(j, pivot, d.sum())
    return path, G


def incomplete_cholesky_by_looks(K: Array, count: int, block: int, share: float) -> tuple[Path, list[int]]:
    """Weak greedy: looks at the `block` rows of largest R_ii, picks the largest of them, now, until that falls below
    `share` times what was the largest left out; the path, and the basis size at each look. Row 0 is picked unseen.
    """
    path, looks = Path([], [], []), list[int]()
    path.add(0, K[0, 0], residual_trace(K, [0]))
    while len(path.picks) < count:
        looks.append(len(path.picks))
        d = np.diag(residual(K, path.picks)).copy()
        d[path.picks] = 0
        order = np.argsort(-d, kind="stable")
        seen, theta = np.sort(order[:block]), d[order[block]] if block < len(K) else 0.0
        while len(path.picks) < count:
            left = np.diag(residual(K, path.picks))[seen] * ~np.isin(seen, path.picks)
            j = int(np.argmax(left))
            if len(path.picks) > looks[-1] and left[j] < share * theta:
                break
            path.add(int(seen[j]), left[j], residual_trace(K, [*path.picks, int(seen[j])]))
    return path, looks


def frobenius(K: Array, count: int, columns: Rows | None = None) -> Path:
    """Column space: sum_{j in N} <R_j,R_i>^2/|R_i|^2; R <- R - R_i(R_i'R)/|R_i|^2 (eq. 27; card 2.5).

    Candidates and target columns N are `columns` (default all); the traces are |R|_F^2 over those columns.
    """
    N = list(range(len(K)) if columns is None else columns)
    R, path = K[:, N].copy(), Path([], [], [])
    start = (R**2).sum(axis=0)
    for _ in range(count):
        norms = (R**2).sum(axis=0)
        live = norms > RANK_TOLERANCE * start
        values = np.where(live, ((R.T @ R) ** 2).sum(axis=0) / np.where(live, norms, 1), -np.inf)
        i = int(np.argmax(values))
        R = R - np.outer(R[:, i], R[:, i] @ R) / norms[i]
        path.add(N[i], values[i], (R**2).sum())
    return path


def pca_traces(K: Array, count: int) -> list[float]:
    """tr K - (sum of the n largest eigenvalues), n = 1..count: no n rows do better (card 2.7)."""
    values = np.sort(np.linalg.eigvalsh(K))[::-1]
    return [float(values[n:].sum()) for n in range(1, count + 1)]
