"""Random pivots, weighted sampling, clusters (card 1.5, 1.6, 12.1, 12.2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naive.dense import Array, Rows, residual


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


def leverage_draw(
    K: Array, ridge: float, sample: Rows, probabilities: ArrayLike, asked: Rows, uniforms: ArrayLike, count: int
) -> tuple[list[int], Array]:
    """`count` of the rows `asked`, by the largest keys of their estimated scores, clipped to [0, 1], and the chance
    that each had given the key that comes next (card 12.2)."""
    rows = np.asarray(list(asked), dtype=np.int64)
    tau = np.clip(leverage_scores(K, ridge, sample, probabilities), 0, 1)[rows]
    keys = a_res_keys(uniforms, tau)
    order = np.argsort(-keys, kind="stable")
    threshold = keys[order[count]] if count < len(rows) else -np.inf
    drawn = order[:count]
    return rows[drawn].tolist(), -np.expm1(tau[drawn] * threshold)


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
