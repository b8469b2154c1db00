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
    """Size of a regression: positions of its points, and the number of rows that it is trained on, the first ones."""

    points: Int
    rows: int

    @classmethod
    def within(cls, functions: int, rows: int, keys: AnyArray) -> RegressionSize:
        """At most half as many points as distinct rows, each of these once: a copy would be found to be dependent."""
        _, first = np.unique(keys[:rows], return_index=True)
        return cls(np.sort(first)[: functions_of(len(first), functions)], rows)


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
        counted = np.flatnonzero(sample.weights > 0.0)
        # A single row has no distance to another: then all rows count once.
        if len(counted) < 2:
            counted, sample = np.arange(len(sample)), replace(sample, weights=np.ones(len(sample)))
        assert sample.keys is not None
        self._session, self._intercept, self._classes = session, intercept, classes
        out = FOLDS.held_out(sample.keys[counted])
        kept, weights = counted[~out], sample.weights
        first = sample.X[kept[:MEDIAN_ROWS]]
        left = weights[kept].sum() > _NEGLIGIBLE * weights[counted].sum() and (first != first[:1]).any()
        # Too few rows to hold some out, or rows that are left have no distance; the plain kernel wins ties.
        all_in_both = not out.any() or not left
        # Those that are trained on, then those that are held out: either are views, where they would be copies in every
        # regression.
        order = counted if all_in_both else np.concatenate([kept, counted[out]])
        self._X = sample.X[order].astype(np.float64, copy=False)
        # Of predicted indicators the largest wins: they are not centred.
        self._Y = sample.Y[order] if classes else (sample.Y[order] - centre) / scale
        self._weights, keys = weights[order], sample.keys[order]
        m, trained = len(order), len(order) if all_in_both else len(kept)
        self._train, self._held = slice(0, trained), slice(0 if all_in_both else trained, m)
        self._range = self._Y[self._train].min(axis=0), self._Y[self._train].max(axis=0)
        self._shares = self._weights[self._held] / self._weights[self._held].sum()
        self.small = RegressionSize.within(_FIRST_FUNCTIONS, min(trained, _FIRST_ROWS), keys)
        self.usual = RegressionSize.within(FUNCTIONS, trained, keys)

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
        equations = NormalEquations.of(basis, np.zeros(self._Y.shape[1]), size.rows)
        sums = self._session.local(equations, self._table(metric, slice(0, size.rows)))

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
        rows, regression = slice(0, min(fit.size.rows, GRADIENT_ROWS)), fit.regression
        work = GradientProducts(regression.basis, regression.roughest(fit.alpha))
        A: Float = self._session.local(work, self._table(fit.metric, rows)).A
        return A if fit.metric is None else fit.metric @ A @ fit.metric.T

    def moved_lengthscale(self, fit: SampleFit, metric: Float) -> float:
        """The lengthscale in another metric that is the same multiple of the median distance as that of `fit`."""
        before, after = (self.median(each, fit.kernel, _MOVED_ROWS) for each in (fit.metric, metric))
        return fit.lengthscale / before * after

    def median(self, metric: Float | None, kernel: Kernel, count: int = MEDIAN_ROWS) -> float:
        """The median distance of the first `count` rows that are trained on, as `median_lengthscale`."""
        # A single row that is trained on is joined by those that are held out.
        most = self._train.stop if self._train.stop > 1 else len(self._X)
        mapped = self._mapped(metric, slice(0, min(most, count)))
        if (mapped == mapped[:1]).all():
            mapped = self._mapped(metric, slice(0, min(most, MEDIAN_ROWS)))
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

    def _mapped(self, metric: Float | None, rows: slice | Int) -> Float:
        X: Float = self._X[rows]
        return X if metric is None else X @ metric

    def _table(self, metric: Float | None, rows: slice) -> Table:
        """Sampled rows, mapped, with their targets."""
        weights = self._weights[rows]
        once = (weights == 1.0).all()
        return open_table(self._mapped(metric, rows), self._Y[rows], weights=None if once else weights)
