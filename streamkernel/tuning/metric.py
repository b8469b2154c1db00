"""A metric learned from the gradients of fits to a sample of rows (Radhakrishnan et al. 2024; ALGORITHMS 19).

A ridge regression f in the present metric T (p, r) gives the mean outer product of its gradients by the scaled rows,
and that the next metric::

    A = 1/m sum_i sum_outputs grad f(x_i) grad f(x_i)^T  (p, p),      T = V s^(power / 2)  of  A = V diag(s) V^T

or of the diagonal of A. Directions in which f changes much get short distances. Every metric is judged by the error of
its ridge regression on rows of the sample that neither the regression nor the gradients have seen; the plain kernel is
one of the candidates.

Which power is best, and whether the full matrix or its diagonal, differs from table to table: the diagonal finds a few
relevant columns of many (pumadyn-32nm .24 against .36), the full matrix their combinations (kin40k .14 against .24).
The forms of power 1 therefore take some rounds each; then all follow from the best fit, while it gains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from streamkernel.basis import Basis, unfilled
from streamkernel.engine import Session, Step, step_of
from streamkernel.kernels import Kernel, Laplacian, StationaryKernel
from streamkernel.linalg import metric_factor, single_threaded_blas
from streamkernel.records import LengthscaleChoice, MetricChoiceRecord, MetricRound
from streamkernel.reductions import Sample
from streamkernel.reductions.sums import GradientProducts, NormalEquations
from streamkernel.selection import Problem
from streamkernel.solvers.lengthscale import MEDIAN_ROWS, median_lengthscale
from streamkernel.table import Table, open_table
from streamkernel.table.folds import Folds
from streamkernel.tuning._regression import Regression
from streamkernel.type_aliases import AnyArray, Float, Int
from streamkernel.wording import option

_FUNCTIONS = 400  # of a regression
_FIRST_FUNCTIONS, _FIRST_ROWS = 200, 3000  # of those that a lengthscale of the plain kernel is searched with
_GRADIENT_ROWS = 4000
_ALL_FORMS = 3  # rounds that a form may take by itself: few relevant columns of many show in the second or third
_BEHIND = 1.2  # times the error of the leading form, above which a form is given up
_MOVED_ROWS = 300  # whose median distances tell by how much a metric changes distances
_MOST_FITS = 25  # usual number of regressions of a search, for the plan
_MOST_ROUNDS = 10
_MOST_STEPS = 4  # of a lengthscale in one direction
_GAIN = 0.997  # share of the error that is a gain: of a round, of another lengthscale, of a metric over none
_NEGLIGIBLE = 1e-6  # share of the weights, from which nothing is learned
_CHANCE = 3.0  # standard errors of the gain of a metric on held-out rows: some twenty candidates are compared
_SMALL_CHANCE = 1.0  # of that of another lengthscale, where two or three are
# Other rows than those of the folds of the fit, whose key is the user's seed: this one is no seed that anybody takes.
_FOLDS = Folds(count=1, buckets=4, seed=0x9E3779B97F4A7C15)


def _functions(most: int, rows: int) -> int:
    """Number of functions of a regression on so many rows."""
    return min(most, max(1, rows // 2))


class _Size(NamedTuple):
    """Size of a regression: positions of its points, and of the rows that it is trained on."""

    points: Int
    rows: Int

    @classmethod
    def within(cls, functions: int, rows: Int, keys: AnyArray) -> _Size:
        """At most half as many points as rows, no two with equal keys: the second would be found to be dependent."""
        _, first = np.unique(keys[rows], return_index=True)
        return cls(rows[np.sort(first)[: _functions(functions, len(rows))]], rows)


class _Round(NamedTuple):
    """How a metric was made: name of its form, and number of the round, 0 without a metric."""

    form: str = "none"
    number: int = 0


_NO_METRIC = _Round()


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
    losses: Float  # (h,) of the held-out rows, each with its share of the weights
    record: MetricRound
    regression: Regression
    size: _Size

    @property
    def alpha(self) -> float:
        return self.record.alpha

    @property
    def error(self) -> float:
        return self.record.error

    @property
    def lengthscale(self) -> float:
        return self.record.lengthscale

    @property
    def round(self) -> _Round:
        return _Round(self.record.form, self.record.round)


def _error(fit: _Fit) -> float:
    return fit.error


def _better(fit: _Fit, other: _Fit, chance: float) -> bool:
    """Whether a fit is better than another one by more than 0.3 %, and by more than `chance` standard errors."""
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
        trained = self._Y[self._train]
        self._range = trained.min(axis=0), trained.max(axis=0)
        self._shares = weights[self._held] / weights[self._held].sum()
        self._first = _Size.within(_FIRST_FUNCTIONS, self._train[:_FIRST_ROWS], sample.keys)
        self._size = _Size.within(_FUNCTIONS, self._train, sample.keys)
        self._records: list[MetricRound] = []

    def choose(self, forms: Sequence[MetricForm], rounds: int = _MOST_ROUNDS) -> MetricChoice:
        """The metric, kernel and lengthscale with the smallest error; none of the metrics where they gain nothing.

        Parameters
        ----------
        forms : forms that are tried; none to choose the kernel and its lengthscale only.
        rounds : largest number of rounds of a form.
        """
        # For all of it: beside a task that limits BLAS, a product would run on one thread or on all, by chance.
        with single_threaded_blas():
            return self._choose(forms, rounds)

    def _choose(self, forms: Sequence[MetricForm], rounds: int) -> MetricChoice:
        plain = self._plain_fits()
        best = best_plain = self._at_best_lengthscale(min(plain, key=_error))
        if forms:
            # Coordinates have no meaning after a rotation, and the gradient of |x_k| is rough: the others lead.
            smooth = [fit for fit in plain if not isinstance(fit.kernel, Laplacian)] or plain
            learned = self._finished(self._learned(min(smooth, key=_error), forms, rounds), plain)
            best = learned if _better(learned, best_plain, _CHANCE) else best_plain
        lengthscale = LengthscaleChoice(
            value=best.lengthscale,
            median=self._median(best.metric, best.kernel),
            sample_rows=len(self._X),
            grid=(),
            scores=(),
        )
        record = MetricChoiceRecord(
            rounds=tuple(self._records),
            best=self._records.index(best.record),
            plain=self._records.index(best_plain.record),
            sample_rows=len(self._X),
        )
        return MetricChoice(best.metric, best.kernel, lengthscale, record)

    def _each(self, tasks: Sequence[Callable[[list[MetricRound]], _Fit]]) -> list[_Fit]:
        """The fits of tasks that do not depend on each other, side by side; each adds to a list of records."""
        lists: list[list[MetricRound]] = [[] for _ in tasks]
        fits = self._session.side_by_side([partial(task, own) for task, own in zip(tasks, lists, strict=True)])
        for own in lists:
            self._records += own
        return fits

    def _plain_fits(self) -> list[_Fit]:
        """The regressions of the kernels without a metric, but for those that are far behind.

        Lengthscales are searched for with fewer functions and rows; these regressions are not recorded.
        """
        first = self._session.side_by_side([partial(self._first_fit, kernel) for kernel in self._kernels])
        most = _BEHIND * min(fit.error for fit in first)
        return self._each([partial(self._again, fit) for fit in first if fit.error <= most])

    def _first_fit(self, kernel: Kernel) -> _Fit:
        """The small regression with the best lengthscale among powers of 2 of the median distance."""
        fit = self._fit([], None, kernel.with_lengthscale(self._median(None, kernel)), size=self._first)
        shorter = self._downhill(0.5, fit, [])
        # If it gained, the other direction goes uphill.
        return self._downhill(2.0, fit, []) if shorter is fit else shorter

    def _again(self, fit: _Fit, records: list[MetricRound]) -> _Fit:
        """The regression of the usual size."""
        alpha = fit.alpha * len(self._size.rows) / len(fit.size.rows)
        return self._fit(records, fit.metric, fit.kernel, fit.round, alpha)

    def _learned(self, plain: _Fit, forms: Sequence[MetricForm], rounds: int) -> _Fit:
        """The best of metric after metric.

        Each form of power 1 first takes some rounds of its own. Then all forms follow from the best fit, while this
        gains: on pumadyn-32nm the full matrix is the one that leads away from a straight line, and the diagonal the one
        to end with. A form that falls behind is given up.
        """
        chains, best = [(form, plain) for form in forms if form.power == 1.0], plain
        for number in range(1, min(rounds, _ALL_FORMS) + 1):
            chains = self._next_metrics(chains, number)
            best = min([best, *(fit for _, fit in chains)], key=_error)
        while best.metric is not None and best.round.number < rounds:
            chains = self._next_metrics([(form, best) for form in forms], best.round.number + 1)
            leading = min((fit for _, fit in chains), key=_error)
            gained = _better(leading, best, _SMALL_CHANCE)
            best, forms = min(best, leading, key=_error), [form for form, _ in chains]
            if not gained:
                break
        return best

    def _next_metrics(self, chains: Sequence[tuple[MetricForm, _Fit]], number: int) -> list[tuple[MetricForm, _Fit]]:
        """The fits in the metrics of the gradients of these, in each form; without those that fall behind."""
        fits = list(dict.fromkeys(fit for _, fit in chains))
        found = self._session.side_by_side([partial(self._gradient_products, fit) for fit in fits])
        products = dict(zip(fits, found, strict=True))
        following = self._each([partial(self._next, fit, products[fit], form, number) for form, fit in chains])
        most = _BEHIND * min(fit.error for fit in following)
        return [(form, fit) for (form, _), fit in zip(chains, following, strict=True) if fit.error <= most]

    def _finished(self, best: _Fit, plain: Sequence[_Fit]) -> _Fit:
        """The best kernel in a metric, with its best lengthscale."""
        if best.metric is None:
            return best
        others = [fit for fit in plain if fit.kernel.name != best.kernel.name]
        found = self._each([partial(self._with_kernel_of, fit, best) for fit in others])
        return self._at_best_lengthscale(min([best, *found], key=_error))

    def _with_kernel_of(self, plain: _Fit, best: _Fit, records: list[MetricRound]) -> _Fit:
        assert best.metric is not None
        kernel = plain.kernel.with_lengthscale(self._moved(plain, best.metric))
        return self._fit(records, best.metric, kernel, best.round, plain.alpha)

    def _moved(self, fit: _Fit, metric: Float) -> float:
        """The lengthscale in another metric that is the same multiple of the median distance as that of `fit`."""
        before, after = (self._median(each, fit.kernel, _MOVED_ROWS) for each in (fit.metric, metric))
        return fit.lengthscale / before * after

    def _gradient_products(self, fit: _Fit) -> Float:
        """A (p, p) of a fit, by the scaled columns before its metric."""
        rows, regression = fit.size.rows[:_GRADIENT_ROWS], fit.regression
        work = GradientProducts(regression.basis, regression.roughest(fit.alpha))
        A: Float = self._session.local(work, self._table(self._mapped(fit.metric, rows), rows)).A
        return A if fit.metric is None else fit.metric @ A @ fit.metric.T

    def _next(self, fit: _Fit, A: Float, form: MetricForm, number: int, records: list[MetricRound]) -> _Fit:
        """The regression in the metric of the gradient products A of `fit`."""
        metric = metric_factor(A, power=form.power, diagonal=form.diagonal, rank=self._rank)
        if metric is None:
            return fit
        kernel = fit.kernel.with_lengthscale(self._moved(fit, metric))
        return self._fit(records, metric, kernel, _Round(form.name, number), fit.alpha)

    def _at_best_lengthscale(self, fit: _Fit) -> _Fit:
        """The regression with the best lengthscale among those of `fit` times powers of sqrt(2), downhill from it."""
        steps = 1.0 / math.sqrt(2.0), math.sqrt(2.0)
        return min(self._each([partial(self._downhill, step, fit) for step in steps]), key=_error)

    def _downhill(self, step: float, best: _Fit, records: list[MetricRound]) -> _Fit:
        """The regression with the best lengthscale among those of `best` times powers of `step`."""
        for _ in range(_MOST_STEPS):
            kernel = best.kernel.with_lengthscale(best.lengthscale * step)
            other = self._fit(records, best.metric, kernel, best.round, best.alpha, best.size)
            # Few held-out rows favour a lengthscale by chance: on boston (404 rows) the error was 5 % above that of the
            # median. But three standard errors are too many: on kin40k a shorter one, better by 4 % here, has an error
            # of .108 in place of .130 with the functions of the fit.
            if not _better(other, best, _SMALL_CHANCE):
                break
            # The error is flat towards long lengthscales, where functions become dependent: a fit of as many functions
            # would have fewer than it was asked for.
            if step > 1.0 and len(other.regression.basis) < len(best.regression.basis):
                break
            best = other
        return best

    def _squares(self, values: Float) -> float:
        """Mean squared error of predictions of the held-out rows (h, d), summed over targets."""
        return float(self._shares @ self._row_squares(values))

    def _row_squares(self, values: Float) -> Float:
        """Squared errors (h,) of predictions (h, d), cut to the range of the targets that were trained on.

        A single row far from all others would otherwise decide.
        """
        squares: Float = ((np.clip(values, *self._range) - self._Y[self._held]) ** 2).sum(axis=1)
        return squares

    def _held_out_losses(self, values: Float) -> Float:
        """Losses (h,) of predictions of the held-out rows (h, d), times the shares of the rows in the weights.

        For classes the mean of the share of wrong predictions and of the Brier score, because indicators are also off
        where a prediction is right and beyond 1.
        """
        losses = self._row_squares(values)
        if self._classes:
            losses = 0.5 * (losses + (values.argmax(axis=1) != self._Y[self._held].argmax(axis=1)))
        return np.asarray(self._shares * losses)

    def _median(self, metric: Float | None, kernel: Kernel, count: int = MEDIAN_ROWS) -> float:
        rows = self._train if len(self._train) > 1 else np.arange(len(self._X))
        mapped = self._mapped(metric, rows[:count])
        if (mapped == mapped[:1]).all():
            mapped = self._mapped(metric, rows[:MEDIAN_ROWS])
        return median_lengthscale(mapped, kernel)

    def _mapped(self, metric: Float | None, rows: np.ndarray) -> Float:
        X: Float = self._X[rows]
        return X if metric is None else X @ metric

    def _table(self, mapped: Float, rows: np.ndarray) -> Table:
        """Sampled rows, mapped, with their targets."""
        weights = self._weights[rows]
        return open_table(mapped, self._Y[rows], weights=None if (weights == 1.0).all() else weights)

    def _fit(
        self,
        records: list[MetricRound],
        metric: Float | None,
        kernel: Kernel,
        made: _Round = _NO_METRIC,
        start: float | None = None,
        size: _Size | None = None,
    ) -> _Fit:
        """The regression in a metric, added to the records; the search for alpha begins at `start`.

        Parameters
        ----------
        made : how the metric was made.
        size : size of the regression; None for that of the search.
        """
        size = self._size if size is None else size
        points = self._mapped(metric, size.points)
        basis, _ = Basis.empty(kernel, points.shape[1], points.dtype).append(points, size.points)
        equations = NormalEquations.of(basis, np.zeros(self._Y.shape[1]), len(size.rows))
        sums = self._session.local(equations, self._table(self._mapped(metric, size.rows), size.rows))

        def block() -> Float:
            return basis.block(self._mapped(metric, self._held))

        regression = Regression(basis, sums, block, self._squares, intercept=self._intercept)
        best = regression.best(start)
        losses = self._held_out_losses(best.values)
        assert isinstance(kernel, StationaryKernel)
        assert isinstance(kernel.lengthscale, float)
        record = MetricRound(*made, points.shape[1], kernel.lengthscale, best.alpha, float(losses.sum()))
        records.append(record)
        return _Fit(metric, kernel, losses, record, regression, size)


def metric_steps(problem: Problem, rows: int, *, metrics: bool) -> list[Step]:
    """The costs of a search on `rows` sampled rows: its regressions, and with `metrics` the gradients."""
    table, p, d = problem.table, problem.table.width, problem.table.n_targets
    n = _functions(_FUNCTIONS, rows)
    basis = Basis.unfilled(problem.kernel, n, p)
    sums, gradients = NormalEquations(basis, np.zeros(d)), GradientProducts(basis, unfilled(n, d))
    # The rows in float64; three regressions at a time, with their rows mapped, blocks, and kernel values of held-out
    # rows; the metrics, points and coefficients of ten regressions, A and its eigenvectors.
    held = 8 * rows * (8 * p + d + 3 * n) + 8 * 15 * p * p + 8 * 10 * n * (p + d)
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
                packings=10,
            ),
            remedy=remedy,
        )
        for name, work, count, times, extra in (
            ("regressions for the metric", sums, rows, _MOST_FITS, 8 * 30 * n * n),
            ("gradients for the metric", gradients, min(rows, _GRADIENT_ROWS), _MOST_FITS, 0),
        )[: 2 if metrics else 1]
    ]
