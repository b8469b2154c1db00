"""Least squares support vector machines (ridge regression in a kernel, free intercept) by folds, and along a path.

With targets Y (m, d), kernel matrix K (m, m) and ridge rho::

    minimise |Y - K a - 1 b'|^2 + rho tr(a' K a)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri

Float = NDArray[np.float64]
Score = Callable[[Float, Float], float]


def folds_of(m: int, count: int) -> list[slice]:
    """Runs of rows, as even as can be; the rows are in random order already."""
    return [slice(m * k // count, m * (k + 1) // count) for k in range(count)]


def misclassified(predicted: Float, Y: Float) -> float:
    """Share of rows in the wrong class: by sign for one target of -1 and 1, by the largest of several indicators."""
    if Y.shape[1] == 1:
        return float(np.mean((predicted > 0.0) != (Y > 0.0)))
    return float(np.mean(predicted.argmax(axis=1) != Y.argmax(axis=1)))


def squared(predicted: Float, Y: Float) -> float:
    """Mean squared error."""
    return float(np.mean((predicted - Y) ** 2))


def held_out_residuals(K: Float, Y: Float, rho: float, folds: Sequence[slice]) -> list[Float] | None:
    """Residuals on each fold of the fit to all others, with no refit; None where K + rho I is singular in rounding.

    ``C = (K + rho I)^-1``, less ``C 1 1' C / (1' C 1)`` for the intercept; then ``C_ff^-1 (C Y)_f`` for fold f.
    """
    C = K.copy()
    C[np.diag_indices(len(C))] += rho
    # K is symmetric: its transpose has the order that LAPACK wants, and is worked on in place.
    C, failed = dpotrf(C.T, lower=1, clean=1, overwrite_a=1)
    if failed:
        return None
    C, failed = dpotri(C, lower=1, overwrite_c=1)
    if failed:
        return None
    C += np.tril(C, -1).T
    ones = C.sum(axis=0)
    CY = C @ Y - np.outer(ones, (ones @ Y) / ones.sum())
    return [np.linalg.solve(C[f, f] - np.outer(ones[f], ones[f]) / ones.sum(), CY[f]) for f in folds]


def fold_scores(K: Float, Y: Float, rho: float, folds: Sequence[slice], score: Score) -> Float | None:
    """Score of the full kernel on each fold, fitted to all others, (v,)."""
    left = held_out_residuals(K, Y, rho, folds)
    if left is None:
        return None
    return np.asarray([score(Y[f] - residual, Y[f]) for f, residual in zip(folds, left, strict=True)])


def leading_scores(G: Float, Y: Float, G_test: Float, Y_test: Float, rho: float, score: Score) -> Float:
    """Score on the test rows of the fits to the first t of n features, t = 1 ... n, from one factorisation, (n,).

    With H = G' G and g = G' Y of centred rows, and M M' = H + rho I, lower: the leading block of M is the factor of the
    leading block of H + rho I, and predictions ``G_t beta_t = (M_t^-1 G_t')' (M_t^-1 g_t)`` add up column by column.
    """
    mean, level = G.mean(axis=0), Y.mean(axis=0)
    G, G_test = G - mean, G_test - mean
    H = G.T @ G
    H[np.diag_indices(len(H))] += rho
    M = cholesky(H, lower=True)
    along = solve_triangular(M, G.T @ (Y - level), lower=True)
    rows = solve_triangular(M, G_test.T, lower=True)
    predicted = np.tile(level, (len(Y_test), 1))
    scores = np.empty(len(M))
    for t in range(len(M)):
        predicted += np.outer(rows[t], along[t])
        scores[t] = score(predicted, Y_test)
    return scores


def minimal_rank(means: Float, limit: float) -> int | None:
    """The smallest rank t (means[t - 1]) whose mean score is at most the limit; None where none is."""
    within = np.asarray(means) <= limit
    return int(np.argmax(within)) + 1 if within.any() else None
