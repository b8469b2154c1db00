"""Independent oracles: straight, slow NumPy over dense m x m matrices, in float64.

Nothing here is clever and nothing imports the package: each number the package computes by sweeps, updates or
factorisations is computed here from its definition, afresh at every step. Sections are those of the method card.

    K (m, m) kernel matrix      I basis (list of rows)      M candidate rows      Y (m,) or (m, d) targets
    Ktilde = K[:,I] K[I,I]^-1 K[I,:]      R = K - Ktilde      rho ridge (added to the diagonal, never scaled)

Sums over rows (|R_i|^2, R_i'Y, ...) run over `rows` (default all; a repeated row counts again) times `weights`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Rows = Collection[Any]  # row numbers: list, range, tuple, integer array

RANK_TOLERANCE = 1e-12  # card 1.1: S_ii <= 1e-12 k_ii means that the row already lies in the span


# ------------------------------------------------------------------------------------------ data, kernel, residuals
@dataclass(frozen=True)
class Card:
    """Card 0: the deterministic 40-row example behind every printed number; `t` class signs, `pool` is M12."""

    X: Array
    y: Array
    t: NDArray[np.int64]
    K: Array
    Xq: Array
    pool: list[int]


def card() -> Card:
    """Card 0: X_i = (2 sin(1.7 i + .3), 2 cos(2.3 i + .1)), y = sin x_1 + .5 x_2 + .1 cos 5i, K Gaussian, l = 1."""
    i = np.arange(40)
    X = np.stack([2 * np.sin(1.7 * i + 0.3), 2 * np.cos(2.3 * i + 0.1)], axis=1)
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * np.cos(5 * i)
    Xq = np.stack([np.linspace(-1.5, 1.5, 6), np.linspace(1, -1, 6)], axis=1)
    return Card(X, y, np.where(y > 0.1, 1, -1), gaussian(X, X, 1.0), Xq, [(7 * j + 3) % 40 for j in range(12)])


def gaussian(X: ArrayLike, Z: ArrayLike, lengthscale: float | ArrayLike = 1.0) -> Array:
    """k(x, z) = exp(-sum_j (x_j - z_j)^2 / (2 l_j^2)); l one number or one per feature."""
    A, B = (np.atleast_2d(np.asarray(V, np.float64)) / np.asarray(lengthscale, np.float64) for V in (X, Z))
    squared: Array = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-0.5 * squared)


def residual(K: Array, basis: Rows) -> Array:
    """R = K - K[:,I] K[I,I]^+ K[I,:] (card 0): symmetric, PSD, zero on the rows of I."""
    J = list(basis)
    return K - K[:, J] @ np.linalg.lstsq(K[np.ix_(J, J)], K[J, :], rcond=1e-15)[0] if J else K.copy()


def residual_trace(K: Array, basis: Rows) -> float:
    """tr R = tr K - tr K[:,I] K[I,I]^+ K[I,:]."""
    return float(np.trace(residual(K, basis)))


def whitened_features(K_mI: Array, K_II: Array) -> Array:
    """G = K_mI U l^-1/2, K_II = U diag(l) U' (card 1.1): G G' = Ktilde; eigenvalues below 1e-15 l_max dropped.

    Any other whitening (L^-T of the Cholesky factor) is this one times an orthogonal matrix.
    """
    values, vectors = np.linalg.eigh(K_II)
    kept = values > 1e-15 * values.max(initial=0.0)
    return np.asarray(K_mI @ (vectors[:, kept] / np.sqrt(values[kept])))


def _columns(Y: ArrayLike) -> Array:
    Y = np.asarray(Y, dtype=np.float64)
    return Y[:, None] if Y.ndim == 1 else Y


def _sampled(K: Array, rows: Rows | None, weights: ArrayLike | None) -> tuple[NDArray[np.int64], Array]:
    """The rows that sums run over and the square roots of their weights, as a column."""
    chosen = np.arange(len(K)) if rows is None else np.asarray(rows, dtype=np.int64)
    return chosen, np.sqrt(np.ones(len(chosen)) if weights is None else np.asarray(weights, np.float64))[:, None]


# ------------------------------------------------- scores of the candidates `pool`, given the basis; largest is best
def function_space(
    K: Array, basis: Rows, pool: Rows, *, rows: Rows | None = None, weights: ArrayLike | None = None
) -> Array:
    """C_ii/S_ii = |R_i|^2/R_ii: by how much tr R drops (Smola & Schoelkopf 2000, eq. 31; card 1.3)."""
    return column_norm(K, basis, pool, rows=rows, weights=weights) / diagonal(K, basis, pool)


def column_norm(
    K: Array, basis: Rows, pool: Rows, *, rows: Rows | None = None, weights: ArrayLike | None = None
) -> Array:
    """C_ii = |R_i|^2 (eq. 32; card 2.4)."""
    chosen, root = _sampled(K, rows, weights)
    return np.asarray(((root * residual(K, basis)[np.ix_(chosen, list(pool))]) ** 2).sum(axis=0))


def diagonal(K: Array, basis: Rows, pool: Rows) -> Array:
    """S_ii = R_ii: the pivot of incomplete Cholesky (card 3.1)."""
    return np.asarray(np.diag(residual(K, basis))[list(pool)])


def sparse_feature(K: Array, basis: Rows, pool: Rows) -> Array:
    """C_ii/(1 + |T_i|_1)^2, T_i = K[I,I]^-1 K[I,i]: SKFA (card 2.4)."""
    T = np.linalg.pinv(K[np.ix_(list(basis), list(basis))]) @ K[np.ix_(list(basis), list(pool))]
    return np.asarray(column_norm(K, basis, pool) / (1 + np.abs(T).sum(axis=0)) ** 2)


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
    J, (chosen, root) = list(basis), _sampled(K, rows, weights)
    G = root * whitened_features(K[np.ix_(chosen, J)], K[np.ix_(J, J)])
    R = root * residual(K, basis)[np.ix_(chosen, list(pool))]
    targets = np.hstack([R, root * _columns(Y)[chosen]])
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
    chosen, root = _sampled(K, rows, weights)
    norm = float(((root * _columns(Y)[chosen]) ** 2).sum()) if target_norm is None else target_norm
    trace = float((root[:, 0] ** 2 * np.diag(K)[chosen]).sum()) if kernel_trace is None else kernel_trace
    targets = greedy_ridge(K, basis, pool, Y=Y, rho=rho, rows=rows, weights=weights)
    return kappa * targets / norm + (1 - kappa) * function_space(K, basis, pool, rows=rows, weights=weights) / trace


def ridge_objective(
    K: Array, basis: Rows, Y: ArrayLike, rho: float, rows: Rows | None = None, weights: ArrayLike | None = None
) -> float:
    """J(I) = min_a sum_j w_j |Y_j - K[j,I] a|^2 + rho tr a'K[I,I]a; greedy_ridge_i = J(I) - J(I + i) (card 1.3)."""
    J, (chosen, root) = list(basis), _sampled(K, rows, weights)
    G, Yw = root * whitened_features(K[np.ix_(chosen, J)], K[np.ix_(J, J)]), root * _columns(Y)[chosen]
    b = np.linalg.solve(G.T @ G + rho * np.eye(G.shape[1]), G.T @ Yw)
    return float(((Yw - G @ b) ** 2).sum() + rho * (b**2).sum())


# -------------------------------------------------------------------------------------------------------- selection
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


def csi_objective(K: Array, basis: Rows, Y: ArrayLike, *, kappa: float, centred: bool = False) -> float:
    """J(I) = (1 - kappa) tr R/tr K + kappa |Y - P Y|^2/|Y|^2, P the projector on span K[:,I] (card 3.2).

    Centred: Y less its means in both places, and the constant projected out with the columns.
    """
    J, one = list(basis), _constant(len(K), centred)
    Y = _columns(Y) - one @ (one.T @ _columns(Y))
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
    Y = _columns(Y) - Q @ (Q.T @ _columns(Y))
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


# ------------------------------------------------------------------------------ random pivots and weighted sampling
def residual_diagonal(K: Array, basis: Rows) -> Array:
    """diag R, clipped at 0 and exactly 0 on the basis, so that no row is ever drawn twice."""
    d = np.maximum(np.diag(residual(K, basis)), 0)
    d[list(basis)] = 0
    return d


def rpcholesky(K: Array, uniforms: ArrayLike, basis: Rows = ()) -> list[int]:
    """Row i with probability R_ii/tr R: the first with cumulative sum > u tr R; one uniform a pick (card 12.1)."""
    picks: list[int] = []
    for u in np.asarray(uniforms, dtype=np.float64):
        cumulative = np.cumsum(residual_diagonal(K, [*basis, *picks]))
        picks.append(int(np.searchsorted(cumulative, u * cumulative[-1], side="right")))
    return picks


def rpcholesky_block(K: Array, basis: Rows, proposals: Rows, uniforms: ArrayLike) -> list[int]:
    """Accept/reject: proposal a, drawn by the diagonal at the block's start, stays iff u_a d_a(start) < d_a(now)."""
    start, accepted = residual_diagonal(K, basis), list[int]()
    for i, u in zip(proposals, np.asarray(uniforms, dtype=np.float64), strict=True):
        if u * start[i] < residual_diagonal(K, [*basis, *accepted])[i]:
            accepted.append(int(i))
    return accepted


def rpcholesky_blocked(K: Array, count: int, block: int, rng: np.random.Generator) -> list[int]:
    """Blocks of `block` proposals with replacement until `count` are accepted: RPCholesky's own distribution."""
    picks: list[int] = []
    while len(picks) < count:
        d = residual_diagonal(K, picks)
        proposals = rng.choice(len(K), size=block, p=d / d.sum())
        picks += rpcholesky_block(K, picks, proposals, rng.random(block))
    return picks[:count]


def rpcholesky_distribution(K: Array, count: int) -> dict[tuple[int, ...], float]:
    """P(i_1..i_n) = prod_t d_{i_t}/sum d, d the diagonal before pick t, for every ordered n-tuple (small m only)."""
    probabilities = {}
    for picks in itertools.permutations(range(len(K)), count):
        diagonals = [residual_diagonal(K, picks[:t]) for t in range(count)]
        probabilities[picks] = math.prod(float(d[i] / d.sum()) for d, i in zip(diagonals, picks, strict=True))
    return probabilities


def chi_square(draws: Iterable[Rows], probabilities: dict[tuple[int, ...], float]) -> float:
    """(chi^2 - degrees)/sqrt(2 degrees): about standard normal when the draws follow the probabilities."""
    counts = dict.fromkeys(probabilities, 0)
    for draw in draws:
        counts[tuple(map(int, draw))] += 1
    total, degrees = sum(counts.values()), len(counts) - 1
    statistic = sum((counts[k] - total * p) ** 2 / (total * p) for k, p in probabilities.items())
    return (statistic - degrees) / math.sqrt(2 * degrees)


def a_res_keys(uniforms: ArrayLike, weights: ArrayLike) -> Array:
    """log(u_i)/w_i, -inf where w_i = 0: the s largest keys are a weighted sample without replacement (card 1.5)."""
    u, w = np.asarray(uniforms, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    return np.where(w > 0, np.log(u) / np.where(w > 0, w, 1), -np.inf)


def leverage_scores(
    K: Array, ridge: float, sample: Rows | None = None, probabilities: ArrayLike | None = None
) -> Array:
    """tau_i = (K (K + lam I)^-1)_ii; from a sample S (k_ii - k_iS (K_SS + lam diag p)^-1 k_Si)/lam (card 12.2)."""
    if sample is None:
        return np.asarray(np.diag(K @ np.linalg.inv(K + ridge * np.eye(len(K)))))
    S = list(sample)
    p = np.ones(len(S)) if probabilities is None else np.asarray(probabilities, dtype=np.float64)
    explained = K[:, S] @ np.linalg.inv(K[np.ix_(S, S)] + ridge * np.diag(p)) @ K[S, :]
    return np.asarray((np.diag(K) - np.diag(explained)) / ridge)


def kmeans_plus_plus(X: Array, uniforms: ArrayLike) -> list[int]:
    """The first row with cumulative sum > u total: the first uniform, then ~ squared distance to the nearest so far."""
    picks, squares = list[int](), np.ones(len(X))
    for u in np.asarray(uniforms, dtype=np.float64):
        if squares.sum() > 0:
            picks.append(int(np.argmax(np.cumsum(squares) > u * squares.sum())))
            squares = ((X[:, None] - X[picks]) ** 2).sum(axis=2).min(axis=1)
    return picks


def kmeans(X: Array, centres: Array, steps: int) -> tuple[Array, NDArray[np.int64]]:
    """Lloyd: label_i = argmin_j |x_i - c_j|^2, c_j = mean of its rows; the last centres, and the labels by them.

    Centres without rows move to the distinct rows farthest from their own, the farthest first.
    """

    def squares(C: Array) -> Array:
        return np.asarray(((X[:, None] - C[None]) ** 2).sum(axis=2))

    for _ in range(steps):
        label, left = squares(centres).argmin(axis=1), squares(centres).min(axis=1)
        far, moved = list(np.argsort(-left, kind="stable")), centres.copy()
        for j in range(len(centres)):
            if (label == j).any():
                moved[j] = X[label == j].mean(axis=0)
            elif far and left[far[0]] > 0:
                moved[j] = X[far[0]]
                far = [i for i in far if (X[i] != moved[j]).any()]
        centres = moved
    return centres, squares(centres).argmin(axis=1)


def priority_estimates(uniforms: ArrayLike, weights: ArrayLike, size: int) -> tuple[list[int], float, Array]:
    """Priority sampling (Duffield, Lund & Thorup 2007): (sample, tau, estimate of every weight).

    q_i = w_i/u_i; sample the `size` largest q; tau = the (size+1)-th largest (0 if there is none);
    estimate_i = max(w_i, tau) on the sample, 0 off it. Unbiased for every w_i, hence for every subset sum.
    """
    u, w = np.asarray(uniforms, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    order = np.argsort(-w / u, kind="stable")
    sample = [int(i) for i in order[:size] if w[i] > 0]
    tau = float((w / u)[order[size]]) if size < len(w) else 0.0
    estimates = np.zeros(len(w))
    estimates[sample] = np.maximum(w[sample], tau)
    return sample, tau, estimates


def candidates_per_pick(eps: float, q: float, rows: int | None = None) -> int:
    """Smallest s for which the best of s draws is in the top 1 - q with probability >= 1 - eps (card 1.6).

    Independent draws: q^s <= eps. Without replacement from N rows, g = floor((1-q) N) good: C(N-g,s)/C(N,s) <= eps,
    in exact rationals (q and eps as the decimals they print as); N where no smaller s does.
    """
    if rows is None:
        return math.ceil(math.log(eps) / math.log(q))
    good, limit = math.floor((1 - Fraction(str(q))) * rows), Fraction(str(eps))
    miss = (s for s in range(1, rows) if math.comb(rows - good, s) <= limit * math.comb(rows, s))
    return next(miss, rows)


# ---------------------------------------------------------------------------------------------------------- solvers
@dataclass(frozen=True)
class Ridge:
    """f(x) = k(x, I) alpha + b: alpha (n, d), b (d,), fit (m, d), RSS per target, edf = tr hat, GCV per target."""

    alpha: Array
    intercept: Array
    fitted: Array
    rss: Array
    edf: float
    gcv: Array

    def predict(self, K_qI: Array) -> Array:
        return K_qI @ self.alpha + self.intercept


def reduced_ridge(
    K_mI: Array,
    K_II: Array,
    Y: ArrayLike,
    rho: float,
    *,
    intercept: bool = False,
    weights: ArrayLike | None = None,
    raw: bool = True,
) -> Ridge:
    """alpha = (K_mI'W K_mI + rho K_II)^+ K_mI'W Y (card 2.8), the minimiser of |Y - K_mI a|_W^2 + rho tr a'K_II a.

    intercept: b is not penalised: centre Y and the columns of K_mI by their (weighted) means. raw=False takes the
    same minimiser in whitened coordinates, a = U l^-1/2 b: for K_II too ill conditioned for the formula (cond > 1e6).
    H: fitted = H Y, H = K A^+ K'W (+ 1 w'/sum w);  edf = tr H;  GCV = m RSS/(m - edf)^2, m the number of rows.
    """
    Y, m = _columns(Y), len(K_mI)
    w = np.ones(m) if weights is None else np.asarray(weights, dtype=np.float64)
    mean = np.outer(np.ones(m), w / w.sum()) if intercept else np.zeros((m, m))
    Kc = K_mI - mean @ K_mI
    P = np.eye(len(K_II)) if raw else whitened_features(np.eye(len(K_II)), K_II)
    Q = Kc @ P
    inverse = P @ np.linalg.pinv(Q.T @ (w[:, None] * Q) + rho * P.T @ K_II @ P, rcond=1e-15, hermitian=True) @ P.T
    smoother = inverse @ (Kc * w[:, None]).T
    alpha, hat = smoother @ (Y - mean @ Y), Kc @ smoother + mean
    b = (mean @ (Y - K_mI @ alpha))[0]
    rss, edf = (w[:, None] * (Y - hat @ Y) ** 2).sum(axis=0), float(np.trace(hat))
    return Ridge(alpha, b, hat @ Y, rss, edf, m * rss / (m - edf) ** 2)


def kernel_ridge(K: Array, Y: ArrayLike, rho: float, *, intercept: bool = False) -> tuple[Array, Array]:
    """[K + rho I, 1; 1', 0] [alpha; b] = [Y; 0] (without intercept (K + rho I) alpha = Y, b = 0): exact, n = m."""
    Y, m = _columns(Y), len(K)
    if not intercept:
        return np.asarray(np.linalg.solve(K + rho * np.eye(m), Y), np.float64), np.zeros(Y.shape[1])
    bordered = np.block([[K + rho * np.eye(m), np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
    solution = np.linalg.solve(bordered, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solution[:m], solution[m]


def gaussian_process(K: Array, y: Array, noise: float, K_qm: Array, k_qq: Array) -> tuple[Array, Array, float]:
    """Mean K_qm w, variance k_qq - diag K_qm (K + s2 I)^-1 K_mq, log evidence (card 5.1); K = Ktilde: SoR (10.1)."""
    A = K + noise * np.eye(len(K))
    w = np.linalg.solve(A, y)
    evidence = -0.5 * (len(y) * math.log(2 * math.pi) + np.linalg.slogdet(A)[1] + y @ w)
    return K_qm @ w, k_qq - np.einsum("qm,mq->q", K_qm, np.linalg.solve(A, K_qm.T)), float(evidence)


# ------------------------------------------------------------------------------------- what is done with Ktilde = G G'
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
