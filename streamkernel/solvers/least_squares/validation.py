"""Errors of a reduced ridge regression on rows that it was not trained on, from the sums of one sweep.

With sums H, g of all rows and H_v, g_v, ... of fold v (`FoldEquations`), in whitened features::

    beta_v = (H - H_v + alpha I)^-1 (g - g_v)
    b_v    = (Y1_T - G1_T^T beta_v) / w_T                                    the intercept; T: all rows but fold v
    SSE_v  = YY_v - 2 beta_v^T g_v + beta_v^T H_v beta_v - 2 b_v (Y1_v - G1_v^T beta_v) + w_v b_v^2
    error  = sum_v sum_targets SSE_v / scale  /  sum_v w_v                   in the units of the GCV score

No row is read again (ALGORITHMS 20). Whitening is triangular, so that the leading blocks of the sums are those of the
first t functions: the error at smaller bases costs less than that of the whole one. Alpha is searched for at n/8, n/4,
n/2 and n functions, each search from the result of the one before: the steps across decades are taken where they are
cheap. A Cholesky factor for each alpha is faster than one tridiagonal form, which costs as much as 8 factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import require_finite, single_threaded_blas, solve_shifted
from streamkernel.reductions.sums import FoldSums, RidgeSums, TargetSums
from streamkernel.solvers.least_squares.ridge import least_squares
from streamkernel.type_aliases import Float, Int

LEAST_ROWS = 30  # independent held-out rows, below which an error is too rough to choose anything by
_STEP = math.sqrt(10.0)  # factor of alpha in a search
_WORTH_THREADS = 250  # functions, from which on a factor takes longer than a thread to begin
_ROUNDING = 64.0 * float(np.finfo(np.float64).eps)  # of a sum of squared errors, relative to its terms


@dataclass(frozen=True)
class FoldSolution:
    """The fit to all rows but those of one fold, and its errors on these.

    Attributes
    ----------
    beta : (t, d) coefficients of the first t whitened features.
    intercept : (d,) constant, in the units of the targets.
    squares : (d,) weighted sum of squared errors of each target on the fold.
    """

    beta: Float
    intercept: Float
    squares: Float


@dataclass(frozen=True)
class FoldChoice:
    """Alpha with the least error on held-out folds, and the errors.

    Attributes
    ----------
    alpha, error : the choice at all n functions, and its error.
    alphas, errors : (k,) alphas that were tried at n functions, ascending, and their errors.
    sizes, size_alphas, size_errors : (s,) basis sizes, ascending to n, the best alpha of each, and its error.
    mse : (d,) mean squared error of each target at `alpha`, over the rows of all folds.
    rows : number of these rows.
    effective : number of independent errors in that mean: copies count as one row.
    folds : numbers of the folds that were used.
    solutions : a `FoldSolution` at `alpha` for each of these.
    """

    alpha: float
    error: float
    alphas: Float
    errors: Float
    sizes: Int
    size_alphas: Float
    size_errors: Float
    mse: Float
    rows: int
    effective: float
    folds: tuple[int, ...]
    solutions: tuple[FoldSolution, ...]


class FoldSystem:
    """The normal equations without each fold in turn.

    Parameters
    ----------
    sums : FoldSums of the final sweep.
    intercept : True to fit an unpenalised constant.
    scale : (d,) variances that divide the squared errors of the targets; None for ones.
    classes : whether targets are indicators of classes.

    Attributes
    ----------
    lacking : reason why held-out errors say nothing; "" if they do.
    """

    def __init__(
        self, sums: FoldSums, *, intercept: bool = True, scale: Float | None = None, classes: bool = False
    ) -> None:
        for part in (sums.total, *sums.folds):
            for name in ("H", "g", "YY"):
                require_finite(getattr(part, name), f"the sum {name}")
        self._n = len(sums.total.H)
        self._scale = np.ones(len(sums.total.centre)) if scale is None else scale
        with single_threaded_blas():
            self._folds = {
                number: _Fold(held, sums.total.without(held), intercept)
                for number, held in enumerate(sums.folds)
                if usable(held, sums.total, classes)
            }
        weights = np.array([fold.weight for fold in self._folds.values()])
        parts = sums.effective[list(self._folds)]
        self._weight = float(weights.sum())
        # Folds are independent: squares of their shares, which cannot vanish as those of small weights, add up.
        shares = weights / self._weight if len(weights) else weights
        self.effective = 1.0 / float((shares**2 / np.maximum(parts, 1.0)).sum()) if len(weights) else 0.0
        self.rows = sum(sums.folds[number].count for number in self._folds)
        self.lacking = ""
        if self.effective < LEAST_ROWS:
            self.lacking = f"only about {self.effective:.0f} distinct rows are held out in folds that leave others"

    def solve(self, alpha: float, size: int | None = None) -> tuple[FoldSolution, ...] | None:
        """The fit of the first `size` functions without each fold; None if alpha is lost in rounding."""
        wanted = self._n if size is None else size
        folds = list(self._folds.values())
        with single_threaded_blas():
            if wanted < _WORTH_THREADS or len(folds) == 1:
                found = [fold.solve(alpha, wanted) for fold in folds]
            else:
                # A factor releases the GIL.
                with ThreadPoolExecutor(len(folds), thread_name_prefix="streamkernel") as pool:
                    found = list(pool.map(lambda fold: fold.solve(alpha, wanted), folds))
        solved = tuple(each for each in found if each is not None)
        return solved if len(solved) == len(found) else None

    def error(self, alpha: float, size: int | None = None) -> float:
        """Mean squared error on the folds of the first `size` functions; infinite if alpha is lost in rounding."""
        return self._error(self.solve(alpha, size))

    def _error(self, solutions: tuple[FoldSolution, ...] | None) -> float:
        if solutions is None:
            return math.inf
        return float((sum(each.squares for each in solutions) / self._scale).sum() / self._weight)

    def choose(self, start: float, low: float, high: float, *, curve: bool = True) -> FoldChoice:
        """Search for the alpha of least error in [low, high].

        Parameters
        ----------
        start : alpha to begin with, such as that of GCV; its error at all functions is among those that are tried.
        curve : True to search at smaller bases first. Without their errors, `start` should be near the result.
        """
        sizes = sorted({max(1, self._n // part) for part in ((8, 4, 2, 1) if curve else (1,))} if self._n else {0})
        best: list[tuple[float, float]] = []
        solved: dict[float, tuple[FoldSolution, ...] | None] = {}

        def scored(alpha: float, size: int) -> float:
            solutions = self.solve(alpha, size)
            if size == self._n:
                solved[alpha] = solutions
            return self._error(solutions)

        at = min(max(start, low), high)
        tried: dict[float, float] = {}
        for size in sizes:
            tried = search(lambda alpha, size=size: scored(alpha, size), at, low, high)  # type: ignore[misc]
            at = least(tried)
            best.append((at, tried[at]))
        if start not in tried:
            tried[start] = scored(start, self._n)
        alphas = np.array(sorted(alpha for alpha, error in tried.items() if math.isfinite(error)))
        solutions = solved[at]
        assert solutions is not None, f"no alpha from {low:g} to {high:g} could be solved for"
        return FoldChoice(
            alpha=at,
            error=tried[at],
            alphas=alphas,
            errors=np.array([tried[float(alpha)] for alpha in alphas]),
            sizes=np.array(sizes, dtype=np.int64),
            size_alphas=np.array([alpha for alpha, _ in best]),
            size_errors=np.array([error for _, error in best]),
            mse=np.asarray(sum(each.squares for each in solutions)) / self._weight,
            rows=self.rows,
            effective=self.effective,
            folds=tuple(self._folds),
            solutions=solutions,
        )


class _Fold:
    """The sums of one fold, and the normal equations of all other rows."""

    def __init__(self, held: RidgeSums, others: RidgeSums, intercept: bool) -> None:
        self._held, self._intercept = held, intercept
        self._G1, self._Y1, self._weight = others.G1, others.Y1, others.weight
        self._H, self._g, _ = least_squares(others, intercept)
        self._square = np.diagonal(held.YY)
        self.weight = held.weight

    def solve(self, alpha: float, size: int) -> FoldSolution | None:
        beta = solve_shifted(self._H[:size, :size], alpha, self._g[:size])
        if beta is None:
            return None
        held = self._held
        # About the centre of the targets, which the sums are taken about.
        constant = (self._Y1 - self._G1[:size] @ beta) / self._weight if self._intercept else -held.centre
        squares = squared_errors(
            beta,
            held.H[:size, :size] @ beta,
            constant,
            held.g[:size],
            held.G1[:size],
            held.Y1,
            self._square,
            held.weight,
        )
        return FoldSolution(beta, held.centre + constant, squares) if np.isfinite(squares).all() else None


def squared_errors(
    beta: Float, H_beta: Float, constant: Float, g: Float, G1: Float, Y1: Float, square: Float, weight: float
) -> Float:
    """Weighted sum of squared errors (d,) of each target on a fold with these sums.

    Parameters
    ----------
    beta : (t, d) coefficients; H_beta : (t, d) ``H_v beta``.
    constant : (d,) intercept about the centre of the targets.
    g, G1, Y1, square, weight : sums of the fold, (t, d), (t,), (d,), (d,) and a number.
    """
    linear = np.einsum("nd,nd->d", beta, g)
    quadratic = np.einsum("nd,nd->d", beta, H_beta)
    means = constant * (Y1 - G1 @ beta)
    terms = square, -2.0 * linear, quadratic, -2.0 * means, weight * constant**2
    # A sum of squares that is smaller than the rounding of its terms is not known to be smaller.
    rounding = _ROUNDING * np.asarray(sum(np.abs(term) for term in terms))
    squares: Float = np.maximum(np.asarray(sum(terms)), rounding)
    return squares


def usable(held: RidgeSums | TargetSums, total: RidgeSums | TargetSums, classes: bool) -> bool:
    """Whether a fold has rows, and leaves rows to train on; of classes, at least two."""
    left = total.weight - held.weight
    if held.count == 0 or not held.weight > 0.0 or total.count == held.count or not left > 1e-9 * total.weight:
        return False
    if not classes:
        return True
    return classes_in((total.Y1 - held.Y1) / left + total.centre) > 1


def classes_in(shares: Float) -> int:
    """Number of classes that rows have, of which these (C,) are the shares by weight."""
    return int((shares > 1e-9).sum())


def least(tried: dict[float, float]) -> float:
    """Alpha with the least error; the largest of those with equal errors."""
    return min(tried, key=lambda alpha: (tried[alpha], -alpha))


def search(score: Callable[[float], float], start: float, low: float, high: float) -> dict[float, float]:
    """Scores of the alphas of a search for the least one: half decades downhill, then the vertex of a parabola.

    Returns
    -------
    dict
        Score by alpha. The least one has worse neighbours half a decade away, or is an end of [low, high].
    """
    tried: dict[float, float] = {}

    def alpha_at(step: float) -> float:
        return alpha_of_step(start, step, low, high)

    def at(step: float) -> float:
        alpha = alpha_at(step)
        if alpha not in tried:
            tried[alpha] = score(alpha)
        return tried[alpha]

    step = 0
    # An alpha that is lost in rounding has an infinite score, and so may the next one have.
    while at(step + 1) < at(step) or (math.isinf(at(step)) and alpha_at(step) < high):
        step += 1
    while step <= 0 and at(step - 1) < at(step):
        step -= 1
    left, centre, right = at(step - 1), at(step), at(step + 1)
    bend = left - 2.0 * centre + right
    if math.isfinite(bend) and bend > 0.0 and low < alpha_at(step) < high:
        at(step + 0.5 * (left - right) / bend)
    return tried


def alpha_of_step(start: float, step: float, low: float, high: float) -> float:
    """The alpha that is so many half decades from `start`, or the end of [low, high]."""
    return float(min(max(start * _STEP**step, low), high))


def standard_error(squares: Float, weights: Float, keys: Int) -> tuple[Float, Float, float]:
    """Means (k,) of values of sampled rows, their standard errors, and the number of independent rows.

    ::

        mean = sum_i w_i e_i / W,    SE^2 = sum_c ( sum_{i in c} w_i (e_i - mean) )^2 / W^2,    W = sum_i w_i

    over the sets c of rows with equal keys, whose values are not independent.

    Parameters
    ----------
    squares : (r, k) values of k kinds.
    weights : (r,) row weights.
    keys : (r,) keys of the rows' features.
    """
    total = float(weights.sum())
    if not total > 0.0:
        return np.full(squares.shape[1], np.nan), np.full(squares.shape[1], np.nan), 0.0
    mean = weights @ squares / total
    _, of = np.unique(keys, return_inverse=True)
    size = int(of.max()) + 1
    sums = np.stack([np.bincount(of, weights * column, size) for column in (squares - mean).T], axis=1)
    shares = np.bincount(of, weights, size)
    effective = total**2 / float((shares**2).sum())
    # One degree of freedom is used by the mean.
    inflation = effective / max(effective - 1.0, 1.0)
    return mean, np.sqrt(inflation * (sums**2).sum(axis=0)) / total, effective
