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
from streamkernel.engine import Session, SideBySide, Step, factor_flops, step_of
from streamkernel.kernels import Kernel, Laplacian
from streamkernel.linalg import metric_factor, single_threaded_blas
from streamkernel.records import LengthscaleChoice, MetricChoiceRecord, MetricRound
from streamkernel.reductions import Sample
from streamkernel.reductions.sums import GradientProducts, NormalEquations
from streamkernel.selection import Problem
from streamkernel.tuning._sample_fits import (
    FOLDS,
    GRADIENT_ROWS,
    Round,
    SampleFit,
    SampleRegressions,
    better,
    error_of,
    functions_of,
)
from streamkernel.type_aliases import Float
from streamkernel.wording import option

_ALL_FORMS = 3  # rounds that a form may take by itself: few relevant columns of many show in the second or third
_BEHIND = 1.2  # times the error of the leading form, above which a form is given up
_MOST_FITS, _MOST_GRADIENTS = 25, 12  # largest usual numbers of regressions and of gradients of a search, for the plan
_FACTORS = 7  # usual number of alphas of a regression, each with a factor
_MOST_ROUNDS = 10
_MOST_STEPS = 4  # of a lengthscale in one direction
_CLEAR = 0.5  # share of the plain kernel's error, below which a metric wins whatever the lengthscale of that kernel
_CHANCE = 3.0  # standard errors of the gain of a metric on held-out rows: some twenty candidates are compared
_SMALL_CHANCE = 1.0  # of that of another lengthscale, where two or three are


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
        """A line about the choice of a metric, or of none."""
        best, plain = self.record.chosen, self.record.plain_error
        if self.metric is None:
            tried = sum(each.round > 0 for each in self.record.rounds)
            return f"no metric: none of {tried} lowers the held-out error by more than chance"
        share = best.error / plain if plain > 0.0 else 1.0
        return (
            f"metric of {best.columns} columns ({best.form}, round {best.round}): {share:.3g} of the held-out "
            "error of the plain kernel"
        )


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
        self._session, self._kernels, self._rank = session, tuple(kernels), rank
        self._regressions = SampleRegressions(
            sample, session, centre=centre, scale=scale, intercept=intercept, classes=classes
        )

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
        records: list[MetricRound] = []
        plain = self._plain_fits(records)
        best_plain = min(plain, key=error_of)
        # Coordinates have no meaning after a rotation, and the gradient of |x_k| is rough: the others lead.
        leading = min([fit for fit in plain if not isinstance(fit.kernel, Laplacian)] or plain, key=error_of)
        chains = self._next_metrics([(form, leading) for form in forms if form.power == 1.0], 1, records)
        tasks = [partial(self._learned, leading, plain, chains, forms, rounds)] if forms else []
        # Another lengthscale of the plain kernel gains some %. Side by side, because each of both is a chain of fits.
        if min((fit.error for _, fit in chains), default=math.inf) > _CLEAR * best_plain.error:
            tasks.append(partial(self._at_best_lengthscale, best_plain))
        found = self._each(tasks, records)
        best_plain = min([best_plain, *(fit for fit in found if fit.metric is None)], key=error_of)
        learned = [fit for fit in found if better(fit, best_plain, _CHANCE)]
        best = min(learned, key=error_of, default=best_plain)
        lengthscale = LengthscaleChoice(
            value=best.lengthscale,
            median=self._regressions.median(best.metric, best.kernel),
            sample_rows=len(self._regressions),
            grid=(),
            scores=(),
        )
        record = MetricChoiceRecord(
            rounds=tuple(records),
            best=records.index(best.record),
            plain=records.index(best_plain.record),
            sample_rows=len(self._regressions),
        )
        return MetricChoice(best.metric, best.kernel, lengthscale, record)

    def _each(
        self, tasks: Sequence[Callable[[list[MetricRound]], SampleFit]], records: list[MetricRound]
    ) -> list[SampleFit]:
        """The fits of tasks that do not depend on each other, side by side; each adds to a list of records.

        `records` gets them in the order of the tasks, as it does in all methods that add to it.
        """
        lists: list[list[MetricRound]] = [[] for _ in tasks]
        fits = self._session.side_by_side([partial(task, own) for task, own in zip(tasks, lists, strict=True)])
        for own in lists:
            records += own
        return fits

    def _plain_fits(self, records: list[MetricRound]) -> list[SampleFit]:
        """The regressions of the kernels without a metric, but for those that are far behind.

        Lengthscales are searched for with fewer functions and rows; these regressions are not recorded.
        """
        first = self._session.side_by_side([partial(self._first_fit, kernel) for kernel in self._kernels])
        most = _BEHIND * min(fit.error for fit in first)
        return self._each([partial(self._again, fit) for fit in first if fit.error <= most], records)

    def _first_fit(self, kernel: Kernel) -> SampleFit:
        """The small regression with the best lengthscale among powers of 2 of the median distance."""
        median = self._regressions.median(None, kernel)
        fit = self._regressions.fit(None, kernel.with_lengthscale(median), size=self._regressions.small)
        shorter = self._downhill(0.5, fit, [])
        # If it gained, the other direction goes uphill.
        return self._downhill(2.0, fit, []) if shorter is fit else shorter

    def _again(self, fit: SampleFit, records: list[MetricRound]) -> SampleFit:
        """The regression of the usual size."""
        alpha = fit.alpha * self._regressions.usual.rows / fit.size.rows
        return _recorded(self._regressions.fit(fit.metric, fit.kernel, fit.round, alpha), records)

    def _learned(
        self,
        best: SampleFit,
        plain: Sequence[SampleFit],
        chains: Sequence[tuple[MetricForm, SampleFit]],
        forms: Sequence[MetricForm],
        rounds: int,
        records: list[MetricRound],
    ) -> SampleFit:
        """The best of metric after metric, with the best kernel and lengthscale in it.

        `chains` are the first metrics, from the gradients of `best`. Each form of power 1 first takes some rounds of
        its own. Then all forms follow from the best fit, while this gains: on pumadyn-32nm the full matrix is the one
        that leads away from a straight line, and the diagonal the one to end with. A form that falls behind is given
        up.
        """
        best = min([best, *(fit for _, fit in chains)], key=error_of)
        for number in range(2, min(rounds, _ALL_FORMS) + 1):
            chains = self._next_metrics(chains, number, records)
            best = min([best, *(fit for _, fit in chains)], key=error_of)
        while best.metric is not None and best.round.number < rounds:
            chains = self._next_metrics([(form, best) for form in forms], best.round.number + 1, records)
            leading = min((fit for _, fit in chains), key=error_of)
            gained = better(leading, best, _SMALL_CHANCE)
            best, forms = min(best, leading, key=error_of), [form for form, _ in chains]
            if not gained:
                break
        return self._finished(best, plain, records)

    def _next_metrics(
        self, chains: Sequence[tuple[MetricForm, SampleFit]], number: int, records: list[MetricRound]
    ) -> list[tuple[MetricForm, SampleFit]]:
        """The fits in the metrics of the gradients of these, in each form; without those that fall behind."""
        fits = list(dict.fromkeys(fit for _, fit in chains))
        found = self._session.side_by_side([partial(self._regressions.gradient_products, fit) for fit in fits])
        products = dict(zip(fits, found, strict=True))
        following = self._each([partial(self._next, fit, products[fit], form, number) for form, fit in chains], records)
        most = _BEHIND * min((fit.error for fit in following), default=0.0)
        return [(form, fit) for (form, _), fit in zip(chains, following, strict=True) if fit.error <= most]

    def _finished(self, best: SampleFit, plain: Sequence[SampleFit], records: list[MetricRound]) -> SampleFit:
        """The best kernel in a metric, with its best lengthscale."""
        if best.metric is None:
            return best
        others = [fit for fit in plain if fit.kernel.name != best.kernel.name]
        found = self._each([partial(self._with_kernel_of, fit, best) for fit in others], records)
        return self._at_best_lengthscale(min([best, *found], key=error_of), records)

    def _with_kernel_of(self, plain: SampleFit, best: SampleFit, records: list[MetricRound]) -> SampleFit:
        assert best.metric is not None
        kernel = plain.kernel.with_lengthscale(self._regressions.moved_lengthscale(plain, best.metric))
        return _recorded(self._regressions.fit(best.metric, kernel, best.round, best.alpha), records)

    def _next(self, fit: SampleFit, A: Float, form: MetricForm, number: int, records: list[MetricRound]) -> SampleFit:
        """The regression in the metric of the gradient products A of `fit`."""
        metric = metric_factor(A, power=form.power, diagonal=form.diagonal, rank=self._rank)
        if metric is None:
            return fit
        kernel = fit.kernel.with_lengthscale(self._regressions.moved_lengthscale(fit, metric))
        return _recorded(self._regressions.fit(metric, kernel, Round(form.name, number), fit.alpha), records)

    def _at_best_lengthscale(self, fit: SampleFit, records: list[MetricRound]) -> SampleFit:
        """The regression with the best lengthscale among those of `fit` times powers of sqrt(2), downhill from it."""
        steps = 1.0 / math.sqrt(2.0), math.sqrt(2.0)
        return min(self._each([partial(self._downhill, step, fit) for step in steps], records), key=error_of)

    def _downhill(self, step: float, best: SampleFit, records: list[MetricRound]) -> SampleFit:
        """The regression with the best lengthscale among those of `best` times powers of `step`."""
        for _ in range(_MOST_STEPS):
            kernel = best.kernel.with_lengthscale(best.lengthscale * step)
            fit = self._regressions.fit(best.metric, kernel, best.round, best.alpha, best.size)
            other = _recorded(fit, records)
            # Few held-out rows favour a lengthscale by chance: on boston (404 rows) the error was 5 % above that of the
            # median. But three standard errors are too many: on kin40k a shorter one, better by 4 % here, has an error
            # of .108 in place of .130 with the functions of the fit.
            if not better(other, best, _SMALL_CHANCE):
                break
            # The error is flat towards long lengthscales, where functions become dependent: a fit of as many functions
            # would have fewer than it was asked for.
            if step > 1.0 and len(other.regression.basis) < len(best.regression.basis):
                break
            best = other
        return best


def _recorded(fit: SampleFit, records: list[MetricRound]) -> SampleFit:
    """The fit, after its record was added."""
    records.append(fit.record)
    return fit


def metric_steps(problem: Problem, rows: int, *, metrics: bool) -> list[Step]:
    """The costs of a search on `rows` sampled rows: its regressions, and with `metrics` the gradients."""
    p, d = problem.table.width, problem.table.n_targets
    n = functions_of(rows)
    trained = max(1, rows - rows // FOLDS.buckets)
    basis, centre = Basis.unfilled(problem.kernel, n, p), np.zeros(d)
    table = replace(problem.table, dtype=np.dtype(np.float64))
    # The rows in float64, and a copy of them before the first regression. Then regressions side by side (two
    # lengthscales, and three forms of a metric), each with its rows mapped, or with those that are held out and their
    # kernel values; the metrics and coefficients of ten regressions, A and its eigenvectors. Points are those packed.
    out = rows - trained
    each = max(trained * p, out * (p + n)) if metrics else out * n
    beside = SideBySide(5 if metrics else 2, 8 * each, 8 * rows * p)
    held = 8 * (rows * (p + d) + 10 * n * d + (15 * p * p if metrics else 0))

    def step(name: str, work: NormalEquations | GradientProducts, count: int, times: int, extra: int) -> Step:
        one = step_of(
            name,
            work,
            table,
            sampled=count,
            kernel_columns=n,
            where="sample",
            times=times,
            packings=10,
            algebra=0.0 if isinstance(work, GradientProducts) else _FACTORS * factor_flops(n),
        )
        return replace(one, rows_bytes=held + extra, beside=beside)

    sums, usual = NormalEquations(basis, centre), NormalEquations.usual(basis, centre)
    regressions = step("regressions for the metric", sums, trained, _MOST_FITS, 8 * 30 * n * n)
    regressions = replace(regressions, usual=replace(regressions, flops_per_row=usual.flops_per_row()))
    if not metrics:
        return [regressions]
    work = GradientProducts(basis, unfilled(n, d))
    gradients = step("gradients for the metric", work, min(trained, GRADIENT_ROWS), _MOST_GRADIENTS, 0)
    return [replace(each, remedy=option("metric", "none")) for each in (regressions, gradients)]
