"""Ridge regressions on a sample of rows, in one metric and kernel after another, judged by held-out rows of the sample.

All of a search are judged by the same rows, so that two errors are compared row by row (`better`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session
from streamkernel.kernels import Kernel, StationaryKernel
from streamkernel.records import MetricRound
from streamkernel.reductions import Sample
from streamkernel.reductions.sums import GradientProducts, NormalEquations
from streamkernel.solvers.lengthscale import MEDIAN_ROWS, median_lengthscale
from streamkernel.table import Table, open_table
from streamkernel.table.parts.folds import Folds
from streamkernel.tuning._regression import Regression
from streamkernel.type_aliases import AnyArray, Float, Int

FUNCTIONS, GRADIENT_ROWS = 400, 4000
_FIRST_FUNCTIONS, _FIRST_ROWS = 200, 3000  # of regressions that only compare lengthscales of the plain kernel
_MOVED_ROWS = 300  # whose median distances tell by how much a metric changes distances
_GAIN = 0.997  # share of the error that is a gain: of a round, of another lengthscale, of a metric over none
_NEGLIGIBLE = 1e-6  # share of the weights, from which nothing is learned
# Other rows than those of the folds of the fit, whose key is the user's seed: this one is no seed that anybody takes.
FOLDS = Folds(count=1, buckets=4, seed=0x9E3779B97F4A7C15)


def functions_of(rows: int, most: int = FUNCTIONS) -> int:
    """Number of functions of a regression on so many rows: at most half of them."""
    return min(most, max(1, rows // 2))


class RegressionSize(NamedTuple):
    """Size of a regression: positions of its points, and of the rows that it is trained on."""

    points: Int
    rows: Int

    @classmethod
    def within(cls, functions: int, rows: Int, keys: AnyArray) -> RegressionSize:
        """At most half as many points as distinct rows, each of these once: a copy would be found to be dependent."""
        _, first = np.unique(keys[rows], return_index=True)
        return cls(rows[np.sort(first)[: functions_of(len(first), functions)]], rows)


class Round(NamedTuple):
    """How a metric was made: name of its form, and number of the round, 0 without a metric."""

    form: str = "none"
    number: int = 0


NO_METRIC = Round()


@dataclass(frozen=True, eq=False)
class SampleFit:
    """A ridge regression in a metric, with its losses on the held-out rows."""

    metric: Float | None
    kernel: Kernel
    losses: Float  # (h,) of the held-out rows, each with its share of the weights
    record: MetricRound
    regression: Regression
    size: RegressionSize

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
    def round(self) -> Round:
        return Round(self.record.form, self.record.round)


def error_of(fit: SampleFit) -> float:
    """Its error: to compare by."""
    return fit.error


def better(fit: SampleFit, other: SampleFit, chance: float) -> bool:
    """Whether a fit is better than another one by more than 0.3 %, and by more than `chance` standard errors."""
    gains = other.losses - fit.losses
    deviation = float(np.sqrt(len(gains)) * gains.std())
    return fit.error <= _GAIN * other.error and float(gains.sum()) > chance * deviation


class SampleRegressions:
    """The rows that are trained on and those that are held out, and the regressions on them.

    Parameters
    ----------
    sample : rows in random order, with keys, their columns scaled; those of the fit's validation folds left out.
    session : session whose driver threads compute the sums.
    centre, scale : (d,) centre and spread of the targets.
    intercept : True to fit a constant.
    classes : whether the targets are indicators of classes.

    Attributes
    ----------
    usual, small : sizes of the regressions.
    """

    def __init__(
        self, sample: Sample, session: Session, *, centre: Float, scale: Float, intercept: bool, classes: bool
    ) -> None:
        weighted = np.flatnonzero(sample.weights > 0.0)
        # A single row has no distance to another: then all rows count once.
        rows = sample.at_positions(weighted) if len(weighted) > 1 else replace(sample, weights=np.ones(len(sample)))
        sample, weights = rows, rows.weights
        assert sample.keys is not None
        self._session, self._intercept, self._classes = session, intercept, classes
        held = FOLDS.held_out(sample.keys)
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
        self.small = RegressionSize.within(_FIRST_FUNCTIONS, self._train[:_FIRST_ROWS], sample.keys)
        self.usual = RegressionSize.within(FUNCTIONS, self._train, sample.keys)

    def __len__(self) -> int:
        return len(self._X)

    def fit(
        self,
        metric: Float | None,
        kernel: Kernel,
        made: Round = NO_METRIC,
        start: float | None = None,
        size: RegressionSize | None = None,
    ) -> SampleFit:
        """The regression in a metric.

        Parameters
        ----------
        metric : T (p, r), or None.
        kernel : kernel with its lengthscale.
        made : how the metric was made.
        start : where the search for alpha begins.
        size : size of the regression; None for the usual one.
        """
        size = self.usual if size is None else size
        points = self._mapped(metric, size.points)
        basis, _ = Basis.empty(kernel, points.shape[1], points.dtype).append(points, size.points)
        equations = NormalEquations.of(basis, np.zeros(self._Y.shape[1]), len(size.rows))
        sums = self._session.local(equations, self._table(self._mapped(metric, size.rows), size.rows))

        def block() -> Float:
            return basis.block(self._mapped(metric, self._held))

        regression = Regression(basis, sums, block, self._squares, intercept=self._intercept)
        best = regression.best(start)
        losses = self._losses(best.values)
        assert isinstance(kernel, StationaryKernel)
        assert isinstance(kernel.lengthscale, float)
        record = MetricRound(*made, points.shape[1], kernel.lengthscale, best.alpha, float(losses.sum()))
        return SampleFit(metric, kernel, losses, record, regression, size)

    def gradient_products(self, fit: SampleFit) -> Float:
        """A (p, p) of a regression, by the scaled columns before its metric."""
        rows, regression = fit.size.rows[:GRADIENT_ROWS], fit.regression
        work = GradientProducts(regression.basis, regression.roughest(fit.alpha))
        A: Float = self._session.local(work, self._table(self._mapped(fit.metric, rows), rows)).A
        return A if fit.metric is None else fit.metric @ A @ fit.metric.T

    def moved_lengthscale(self, fit: SampleFit, metric: Float) -> float:
        """The lengthscale in another metric that is the same multiple of the median distance as that of `fit`."""
        before, after = (self.median(each, fit.kernel, _MOVED_ROWS) for each in (fit.metric, metric))
        return fit.lengthscale / before * after

    def median(self, metric: Float | None, kernel: Kernel, count: int = MEDIAN_ROWS) -> float:
        """The median distance of the first `count` rows that are trained on, as `median_lengthscale`."""
        rows = self._train if len(self._train) > 1 else np.arange(len(self._X))
        mapped = self._mapped(metric, rows[:count])
        if (mapped == mapped[:1]).all():
            mapped = self._mapped(metric, rows[:MEDIAN_ROWS])
        return median_lengthscale(mapped, kernel)

    def _squares(self, values: Float) -> float:
        """Mean squared error of predictions of the held-out rows (h, d), summed over targets."""
        return float(self._shares @ self._row_squares(values))

    def _row_squares(self, values: Float) -> Float:
        """Squared errors (h,) of predictions (h, d), cut to the range of the targets that were trained on.

        A single row far from all others would otherwise decide.
        """
        squares: Float = ((np.clip(values, *self._range) - self._Y[self._held]) ** 2).sum(axis=1)
        return squares

    def _losses(self, values: Float) -> Float:
        """Losses (h,) of predictions of the held-out rows (h, d), times the shares of the rows in the weights.

        For classes the mean of the share of wrong predictions and of the Brier score, because indicators are also off
        where a prediction is right and beyond 1.
        """
        losses = self._row_squares(values)
        if self._classes:
            losses = 0.5 * (losses + (values.argmax(axis=1) != self._Y[self._held].argmax(axis=1)))
        return np.asarray(self._shares * losses)

    def _mapped(self, metric: Float | None, rows: np.ndarray) -> Float:
        X: Float = self._X[rows]
        return X if metric is None else X @ metric

    def _table(self, mapped: Float, rows: np.ndarray) -> Table:
        """Sampled rows, mapped, with their targets."""
        weights = self._weights[rows]
        return open_table(mapped, self._Y[rows], weights=None if (weights == 1.0).all() else weights)
