"""A metric learned from the gradients of fits to a sample of rows (Radhakrishnan et al. 2024; ALGORITHMS 19).

A ridge regression f in the present metric T (p, r) gives the mean outer product of its gradients by the scaled rows,
and that the next metric::

    A = 1/m sum_i sum_outputs grad f(x_i) grad f(x_i)^T  (p, p),      T = V s^(power / 2)  of  A = V diag(s) V^T

or of the diagonal of A. Directions in which f changes much get short distances. Every metric is judged by the error of
its ridge regression on rows of the sample that neither the regression nor the gradients have seen; the plain kernel is
one of the candidates.

Which power is best, and whether the full matrix or its diagonal, differs from table to table: the diagonal finds a few
relevant columns of many (pumadyn-32nm .24 against .36), the full matrix their combinations (kin40k .14 against .24).
All forms therefore take some rounds; then all follow from the best fit, while it gains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from streamkernel.basis import Basis, unfilled
from streamkernel.engine import Session, Step, step_of
from streamkernel.kernels import Kernel, Laplacian, StationaryKernel
from streamkernel.linalg import metric_factor, single_threaded_blas
from streamkernel.records import LengthscaleChoice, MetricChoiceRecord, MetricRound
from streamkernel.reductions import Sample
from streamkernel.reductions.sums import FoldSums, GradientProducts, NormalEquations
from streamkernel.selection import Problem
from streamkernel.solvers import FoldChoice, FoldSolution, FoldSystem
from streamkernel.solvers.lengthscale import MEDIAN_ROWS, median_lengthscale
from streamkernel.table import Table, open_table
from streamkernel.table.folds import Folds
from streamkernel.type_aliases import Float
from streamkernel.wording import option

_BASIS = 400  # functions of a regression
_GRADIENT_ROWS = 4000
_ALL_FORMS = 3  # rounds that every form takes: few relevant columns of many show in the second or third
# Gradients are those of the least regularised regression with at most this times the smallest error: where little is
# explained, that of the smallest error is a straight line, and shows none of the columns that act together.
_ROUGHER = 1.1
_STEP_DOWN = 0.1  # factor of alpha on the way there, at the end its root
_LEAST_ALPHA, _START_ALPHA, _MOST_ALPHA = 1e-12, 1e-4, 1.0  # of the trace of the sums
_MOST_FITS = 20  # usual number of regressions of a search, for the plan
_MOST_ROUNDS = 10
_MOST_STEPS = 4  # of a lengthscale in one direction
_GAIN = 0.99  # share of the error that is a gain: of a round, of another lengthscale, of a metric over none
_NEGLIGIBLE = 1e-6  # share of the weights, from which nothing is learned
_CHANCE = 3.0  # standard errors of the gain of a metric on held-out rows: some twenty candidates are compared
_SMALL_CHANCE = 1.0  # of that of another lengthscale, where two or three are
# Other rows than those of the folds of the fit, whose key is the user's seed: this one is no seed that anybody takes.
_FOLDS = Folds(count=1, buckets=4, seed=0x9E3779B97F4A7C15)


def _functions(rows: int) -> int:
    """Number of functions of a regression on so many rows."""
    return min(_BASIS, max(1, rows // 2))


class MetricForm(NamedTuple):
    """How a metric follows from A: by its diagonal or all of it, and with this power of its eigenvalues."""

    diagonal: bool
    power: float

    @property
    def name(self) -> str:
        return f"{'diagonal' if self.diagonal else 'full'}, power {self.power:g}"


FORMS = {
    "learned": (MetricForm(False, 1.0), MetricForm(False, 0.5), MetricForm(True, 1.0)),
    "diagonal": (MetricForm(True, 1.0), MetricForm(True, 0.5)),
}


@dataclass(frozen=True)
class MetricChoice:
    """A metric, and the record of its choice.

    Attributes
    ----------
    metric : T (p, r); None where the plain kernel is as good.
    kernel : kernel with its lengthscale, for the mapped rows.
    lengthscale : this lengthscale, and the median distance of the mapped rows.
    record : what was tried, the plain kernel first, and which was chosen.
    """

    metric: Float | None
    kernel: Kernel
    lengthscale: LengthscaleChoice
    record: MetricChoiceRecord

    @property
    def metric_line(self) -> str:
        """A line that tells of the choice of a metric, or of none."""
        best, plain = self.record.chosen, self.record.plain_error
        if self.metric is None:
            tried = sum(each.round > 0 for each in self.record.rounds)
            return f"no metric: none of {tried} lowers the held-out error by more than chance"
        share = best.error / plain if plain > 0.0 else 1.0
        return (
            f"metric of {best.columns} columns ({best.form}, round {best.round}): {share:.3g} of the held-out "
            "error of the plain kernel"
        )


@dataclass(frozen=True, eq=False)
class _Fit:
    """A ridge regression in a metric, with its error on the held-out rows (`MetricSearch._held_out_losses`)."""

    metric: Float | None
    kernel: Kernel
    alpha: float
    losses: Float  # (h,) of the held-out rows, each with its share of the weights
    number: int  # position among the rounds
    basis: Basis
    coefficients: Float

    @property
    def error(self) -> float:
        return float(self.losses.sum())

    @property
    def lengthscale(self) -> float:
        assert isinstance(self.kernel, StationaryKernel)
        assert isinstance(self.kernel.lengthscale, float)
        return self.kernel.lengthscale


def _error(fit: _Fit) -> float:
    return fit.error


def _better(fit: _Fit, other: _Fit, chance: float) -> bool:
    """Whether a fit is better than another one by more than 1 %, and by more than `chance` standard errors."""
    gains = other.losses - fit.losses
    deviation = float(np.sqrt(len(gains)) * gains.std())
    return fit.error <= _GAIN * other.error and float(gains.sum()) > chance * deviation


class MetricSearch:
    """The search for a metric, a kernel and its lengthscale on a sample of rows.

    Parameters
    ----------
    sample : rows in random order, with keys, their columns scaled; those of the fit's validation folds left out.
    kernels : candidates with one lengthscale, which is replaced.
    session : session whose driver threads compute the sums.
    centre, scale : (d,) centre and spread of the targets.
    intercept : True to fit a constant.
    rank : largest number of columns of the metric; None for p.
    classes : whether the targets are indicators of classes.
    """

    def __init__(
        self,
        sample: Sample,
        kernels: Sequence[Kernel],
        session: Session,
        *,
        centre: Float,
        scale: Float,
        intercept: bool = True,
        rank: int | None = None,
        classes: bool = False,
    ) -> None:
        weighted = np.flatnonzero(sample.weights > 0.0)
        # A single row has no distance to another: then all rows count once.
        rows = sample.at_positions(weighted) if len(weighted) > 1 else replace(sample, weights=np.ones(len(sample)))
        sample, weights = rows, rows.weights
        assert sample.keys is not None
        self._session, self._intercept, self._rank, self._classes = session, intercept, rank, classes
        self._kernels = tuple(kernels)
        held = _FOLDS.held_out(sample.keys)
        self._X = sample.X.astype(np.float64)
        # Of predicted indicators the largest wins: they are not centred.
        self._Y = sample.Y if classes else (sample.Y - centre) / scale
        self._weights = weights
        kept = self._X[~held][:MEDIAN_ROWS]
        left = weights[~held].sum() > _NEGLIGIBLE * weights.sum() and (kept != kept[:1]).any()
        if not held.any() or not left:
            # Too few rows to hold some out, or rows that are left have no distance; the plain kernel wins ties.
            self._train, self._held = np.arange(len(held)), np.arange(len(held))
        else:
            self._train, self._held = np.flatnonzero(~held), np.flatnonzero(held)
        self.rounds: list[MetricRound] = []

    def choose(self, forms: Sequence[MetricForm], rounds: int = _MOST_ROUNDS) -> MetricChoice:
        """The metric, kernel and lengthscale with the smallest error; none of the metrics where they gain nothing.

        Parameters
        ----------
        forms : forms that are tried; none to choose the kernel and its lengthscale only.
        rounds : largest number of rounds of a form.
        """
        plain = [self._at_best_lengthscale(self._at_median(None, kernel, "none", 0), 2.0) for kernel in self._kernels]
        best = best_plain = min(plain, key=_error)
        if forms:
            # Coordinates have no meaning after a rotation, and the gradient of |x_k| is rough: the others lead.
            smooth = [fit for fit in plain if not isinstance(fit.kernel, Laplacian)] or plain
            learned = self._learned(min(smooth, key=_error), forms, rounds)
            learned = self._finished(learned, plain)
            best = learned if _better(learned, best_plain, _CHANCE) else best_plain
        lengthscale = LengthscaleChoice(
            value=best.lengthscale,
            median=self._median(best.metric, best.kernel),
            sample_rows=len(self._X),
            grid=(),
            scores=(),
        )
        record = MetricChoiceRecord(
            rounds=tuple(self.rounds), best=best.number, plain=best_plain.number, sample_rows=len(self._X)
        )
        return MetricChoice(best.metric, best.kernel, lengthscale, record)

    def _learned(self, plain: _Fit, forms: Sequence[MetricForm], rounds: int) -> _Fit:
        """The best of metric after metric.

        Each form first takes some rounds of its own. Then all forms follow from the best fit, while this gains: on
        pumadyn-32nm the full matrix is the one that leads away from a straight line, and the diagonal the one to end
        with.
        """
        chains, best = [(form, plain) for form in forms], plain
        for number in range(1, rounds + 1):
            if number > _ALL_FORMS:
                chains = [(form, best) for form in forms]
            products: dict[int, Float] = {}
            for fit in (fit for _, fit in chains):
                if fit.number not in products:
                    products[fit.number] = self._gradient_products(fit)
            chains = [(form, self._next(fit, products[fit.number], form, number)) for form, fit in chains]
            leading = min((fit for _, fit in chains), key=_error)
            gained = leading.error <= _GAIN * best.error
            best = min(best, leading, key=_error)
            if number > _ALL_FORMS and not gained:
                break
        return best

    def _finished(self, best: _Fit, plain: Sequence[_Fit]) -> _Fit:
        """The best kernel in a metric, with its best lengthscale."""
        if best.metric is None:
            return best
        chosen, found = self.rounds[best.number], best
        for fit in plain:
            if fit.kernel.name != best.kernel.name:
                kernel = fit.kernel.with_lengthscale(self._moved(fit, best.metric))
                found = min(found, self._fit(best.metric, kernel, chosen.form, chosen.round, fit.alpha), key=_error)
        return self._at_best_lengthscale(found, math.sqrt(2.0))

    def _moved(self, fit: _Fit, metric: Float) -> float:
        """The lengthscale in another metric that is the same multiple of the median distance as that of `fit`."""
        return fit.lengthscale / self._median(fit.metric, fit.kernel) * self._median(metric, fit.kernel)

    def _gradient_products(self, fit: _Fit) -> Float:
        """A (p, p) of a fit, by the scaled columns before its metric."""
        rows = self._train[:_GRADIENT_ROWS]
        work = GradientProducts(fit.basis, fit.coefficients)
        A: Float = self._session.local(work, self._table(self._mapped(fit.metric, rows), rows)).A
        return A if fit.metric is None else fit.metric @ A @ fit.metric.T

    def _next(self, fit: _Fit, A: Float, form: MetricForm, number: int) -> _Fit:
        """The regression in the metric of the gradient products A of `fit`."""
        metric = metric_factor(A, power=form.power, diagonal=form.diagonal, rank=self._rank)
        if metric is None:
            return fit
        kernel = fit.kernel.with_lengthscale(self._moved(fit, metric))
        return self._fit(metric, kernel, form.name, number, fit.alpha)

    def _at_median(self, metric: Float | None, kernel: Kernel, form: str, number: int) -> _Fit:
        return self._fit(metric, kernel.with_lengthscale(self._median(metric, kernel)), form, number)

    def _at_best_lengthscale(self, fit: _Fit, step: float) -> _Fit:
        """The regression with the best lengthscale among those of `fit` times powers of `step`, downhill from it."""
        tried, best = self.rounds[fit.number], fit
        for factor in (1.0 / step, step):
            for _ in range(_MOST_STEPS):
                kernel = best.kernel.with_lengthscale(best.lengthscale * factor)
                other = self._fit(fit.metric, kernel, tried.form, tried.round, best.alpha)
                # The error is flat towards long lengthscales, where functions become dependent and lose digits. And few
                # held-out rows favour one by chance: on boston (404 rows) the error was 5 % above that of the median.
                # But three standard errors are too many: on kin40k a shorter one, better by 4 % here, has an error of
                # .108 in place of .130 with the functions of the fit.
                if not _better(other, best, _SMALL_CHANCE):
                    break
                best = other
            if best is not fit:
                break  # the other direction goes uphill
        return best

    def _held_out_losses(self, values: Float) -> Float:
        """Losses (h,) of predictions of the held-out rows (h, d), times the shares of the rows in the weights.

        Predictions are cut to the range of the targets that were trained on: a single row far from all others would
        otherwise decide. For classes the mean of the share of wrong predictions and of the Brier score, because
        indicators are also off where a prediction is right and beyond 1.
        """
        truth, trained = self._Y[self._held], self._Y[self._train]
        shares = self._weights[self._held] / self._weights[self._held].sum()
        cut = np.clip(np.nan_to_num(values), trained.min(axis=0), trained.max(axis=0))
        losses: Float = ((cut - truth) ** 2).sum(axis=1)
        if self._classes:
            losses = 0.5 * (losses + (values.argmax(axis=1) != truth.argmax(axis=1)))
        return np.asarray(shares * losses)

    def _median(self, metric: Float | None, kernel: Kernel) -> float:
        rows = self._train if len(self._train) > 1 else np.arange(len(self._X))
        return median_lengthscale(self._mapped(metric, rows[:MEDIAN_ROWS]), kernel)

    def _mapped(self, metric: Float | None, rows: np.ndarray) -> Float:
        X: Float = self._X[rows]
        return X if metric is None else X @ metric

    def _table(self, mapped: Float, rows: np.ndarray) -> Table:
        """Sampled rows, mapped, with their targets."""
        weights = self._weights[rows]
        return open_table(mapped, self._Y[rows], weights=None if (weights == 1.0).all() else weights)

    def _fit(self, metric: Float | None, kernel: Kernel, form: str, number: int, start: float | None = None) -> _Fit:
        """The regression in a metric; the search for alpha begins at `start`."""
        unseen_rows = self._mapped(metric, self._held)
        train, held = self._table(self._mapped(metric, self._train), self._train), self._table(unseen_rows, self._held)
        first = np.arange(_functions(len(self._train)))
        points = self._mapped(metric, self._train[first])
        basis, _ = Basis.empty(kernel, points.shape[1], points.dtype).append(points, first)
        equations = NormalEquations.of(basis, np.zeros(self._Y.shape[1]), train.n_rows)
        sums, unseen = (self._session.local(equations, rows) for rows in (train, held))
        both = FoldSums(sums.merge(unseen), (unseen,), np.array([float(unseen.count)]))
        system = FoldSystem(both, intercept=self._intercept)
        trace = max(float(np.trace(sums.H)), np.finfo(np.float64).tiny)
        low, high = _LEAST_ALPHA * trace, _MOST_ALPHA * trace
        choice = system.choose(_START_ALPHA * trace if start is None else start, low, high, curve=start is None)
        best = choice.solutions[0]
        with single_threaded_blas():
            values = basis.block(unseen_rows) @ basis.coefficients(best.beta) + best.intercept
            rough = basis.coefficients(self._roughest(system, choice, low).beta)
        fit = _Fit(metric, kernel, choice.alpha, self._held_out_losses(values), len(self.rounds), basis, rough)
        columns = self._X.shape[1] if metric is None else metric.shape[1]
        self.rounds.append(MetricRound(form, number, columns, fit.lengthscale, choice.alpha, fit.error))
        return fit

    @staticmethod
    def _roughest(system: FoldSystem, choice: FoldChoice, low: float) -> FoldSolution:
        """The least regularised solution whose error is at most `_ROUGHER` times the smallest one."""
        found, alpha, step = choice.solutions[0], choice.alpha, _STEP_DOWN
        most = _ROUGHER * float(found.squares.sum())
        while alpha * step >= low:
            solved = system.solve(alpha * step)
            if solved is not None and float(solved[0].squares.sum()) <= most:
                found, alpha = solved[0], alpha * step
            elif step > _STEP_DOWN:
                break
            else:
                step = math.sqrt(_STEP_DOWN)
        return found


def metric_steps(problem: Problem, rows: int, *, metrics: bool) -> list[Step]:
    """The costs of a search on `rows` sampled rows: its regressions, and with `metrics` the gradients."""
    table, p, d = problem.table, problem.table.width, problem.table.n_targets
    n = _functions(rows)
    basis = Basis.unfilled(problem.kernel, n, p)
    sums, gradients = NormalEquations(basis, np.zeros(d)), GradientProducts(basis, unfilled(n, d))
    # The rows scaled, in float64, and mapped; the metrics of five regressions, A and its eigenvectors; their points.
    held = 8 * rows * (3 * p + d) + 8 * 10 * p * p + 8 * 5 * n * (p + d)
    remedy = option("metric", "none") if metrics else ""
    return [
        replace(
            step_of(
                name,
                work,
                replace(table, dtype=np.dtype(np.float64)),
                sampled=count,
                kernel_columns=n,
                where="sample",
                times=times,
                held_bytes=held + extra,
                packings=2,
            ),
            remedy=remedy,
        )
        for name, work, count, times, extra in (
            ("regressions for the metric", sums, rows, _MOST_FITS, 8 * 10 * n * n),
            ("gradients for the metric", gradients, min(rows, _GRADIENT_ROWS), _MOST_FITS, 0),
        )[: 2 if metrics else 1]
    ]
