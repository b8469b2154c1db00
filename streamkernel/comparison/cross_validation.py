"""Cross-validation: every estimator fitted to all folds but one and scored on that one, by sweeps over a stored table.

Rows are left out by a weight of 0: fits, scores, draws and statistics do not see such rows, whatever the estimator
(`table.parts.weights`). Nothing is copied, and memory is that of the largest fit. Where the fits of an estimator can be
made of the sums of one sweep, they are (`fits.steps.fold_rows`); a part of the rows is then in no fold, for all
estimators, so that errors are still paired by the same rows.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkernel.byte_counts import format_bytes, parse_bytes
from streamkernel.comparison._fit_plans import FitPlans, Shared, fit_plans
from streamkernel.comparison._splits import Splits, checked_folds, share_beside, splits_of, without_columns
from streamkernel.comparison.candidates import Candidate, candidates_of, check_candidates, opened_for
from streamkernel.comparison.result import Compared, Comparison
from streamkernel.engine import (
    Executor,
    Machine,
    Progress,
    Session,
    executor_of,
    machine_of,
    memory_limits,
    resident_bytes,
)
from streamkernel.engine.limits import MemoryLimits
from streamkernel.errors import DataError, NumericalError, ParameterError
from streamkernel.fits.steps.near_copies import rounding_of_copies
from streamkernel.models.predicting import PredictingModel
from streamkernel.reductions.scores import FoldScores
from streamkernel.reductions.scores.standard_errors import without_errors
from streamkernel.table import Table
from streamkernel.table.row_keys import NO_ROUNDING, RowRounding
from streamkernel.table.rows import RowArray
from streamkernel.type_aliases import Unchecked, Untyped
from streamkernel.wording import option


@dataclass(frozen=True)
class CrossValidation:
    """A checked request: estimators, folds, the error by which they are compared, and which of them can share sums."""

    candidates: tuple[Candidate, ...]
    splits: Splits
    error: str
    sharing: frozenset[str] = frozenset()

    def planned(self, machine: Machine, limits: MemoryLimits) -> FitPlans:
        """What each fit costs on a machine, and which fits share sums within these limits."""
        return fit_plans(self.candidates, self.splits, self.sharing, machine, limits)

    def run(
        self,
        executor: Executor,
        progress: Progress,
        memory_limit: int | None = None,
        planned: FitPlans | None = None,
    ) -> Comparison:
        """Fit and score every estimator on every fold.

        The first sweeps look for near copies, which folds by content hold together. The plan of the fits is checked
        before them, and that of other folds after them.

        Parameters
        ----------
        memory_limit : bytes of all processes together; None for what the machines have.
        planned : what `planned` found, within whose limits it is; None to plan and check here.
        """
        limits, machine = memory_limits(executor, memory_limit), machine_of(executor, resident_bytes())
        if planned is None:
            planned = self._planned_within(limits, machine)
        together = self._with_copies_together(Session(executor, progress=progress))
        if together is not self:
            planned = together._planned_within(limits, machine)
        return together._fitted(executor, progress, memory_limit, planned)

    def _planned_within(self, limits: MemoryLimits, machine: Machine) -> FitPlans:
        """`planned`; raises `ResourceLimitError` where a fit needs more memory than is allowed."""
        planned = self.planned(machine, limits)
        planned.check_memory(limits)
        return planned

    def _with_copies_together(self, session: Session) -> CrossValidation:
        """The comparison whose folds by content hold near copies together; this one where there are none."""
        table = self.splits.table
        rounding = rounding_of_copies(table, session) if self.splits.by == "content" else NO_ROUNDING
        if rounding is NO_ROUNDING:
            return self
        return _with_folds(self.candidates, table, self.splits.folds, self.error, self.sharing, rounding=rounding)

    def _fitted(
        self, executor: Executor, progress: Progress, memory_limit: int | None, planned: FitPlans
    ) -> Comparison:
        for each, plan in planned.too_large:
            needed = format_bytes(plan.memory_bytes)
            progress.note(f"{each.name}: the sums of all folds would need {needed}, so that each fold has a fit")
        found: dict[str, list[_Outcome]] = {each.name: [] for each in self.candidates}
        for of_sums in planned.shared:
            found[of_sums.candidate.name] = self._of_shared_sums(of_sums, executor, progress, memory_limit)
        tables = list(self.splits.tables())
        for fold, (fitted, left_out) in enumerate(tables, 1):
            for each in planned.alone:
                progress.note(f"{each.name}, fold {fold} of {self.splits.folds}")
                began = clock.perf_counter()
                with _named(each.name, fold):
                    model = each.kind.fit(
                        fitted,
                        each.settings,
                        Session(executor, progress=progress),
                        memory_limit=memory_limit,
                        **each.kind.options_of_fit(fitted),
                    )
                    scored = model.prepare(model.prepare_targets(left_out))
                    scores = Session(executor, progress=progress).sweep(model.scores(), scored, "scores")
                outcome = _Outcome.of(model, self._error(each, scores, fold), clock.perf_counter() - began)
                found[each.name].append(self._told(each, fold, outcome, progress))
        together = {each.candidate.name for each in planned.shared}
        return Comparison(
            self.error,
            self.splits.by,
            tuple(table.counted for table, _ in tables),
            tuple(table.counted for _, table in tables),
            tuple(_compared(each, found[each.name], shared=each.name in together) for each in self.candidates),
        )

    def _of_shared_sums(
        self, shared: Shared, executor: Executor, progress: Progress, memory_limit: int | None
    ) -> list[_Outcome]:
        """The outcome of each fold, from the sums of one sweep and the scores of another."""
        candidate, rows = shared.candidate, shared.rows
        progress.note(f"{candidate.name}, {self.splits.folds} folds from the sums of one sweep")
        began, session = clock.perf_counter(), Session(executor, progress=progress)
        models = shared.sums.fit(
            rows, candidate.settings, session, estimator=candidate.kind.name, memory_limit=memory_limit
        )
        # The models differ in their coefficients alone: rows are scaled alike for all of them.
        scored = models[0].prepare(models[0].prepare_targets(rows.whole)).with_keys()
        found = session.sweep(FoldScores(tuple(model.scores() for model in models), rows.folds), scored, "scores")
        seconds = (clock.perf_counter() - began) / len(models)
        return [
            self._told(candidate, fold, _Outcome.of(model, self._error(candidate, scores, fold), seconds), progress)
            for fold, (model, scores) in enumerate(zip(models, found, strict=True), 1)
        ]

    def _told(self, candidate: Candidate, fold: int, outcome: _Outcome, progress: Progress) -> _Outcome:
        progress.note(f"{candidate.name}, fold {fold} of {self.splits.folds}: {self.error} {outcome.error:.6g}")
        return outcome

    def _lacking(self, candidate: Candidate) -> str:
        """Why a model may lack the error, and the way out."""
        if not candidate.kind.classify:
            return "choose another error, or other settings"
        return (
            "probabilities come from rows that a fit holds out: its settings and their number must allow it, and two "
            "classes be left; choose another error, other settings, or other folds"
        )

    def _error(self, candidate: Candidate, found: Any, fold: int) -> float:
        """The error in the result of a model's scores."""
        scores = found if isinstance(found, dict) else found.scalars
        if self.error == "error":
            return 1.0 - float(scores["accuracy"])
        if self.error not in scores:
            raise ParameterError(
                f"{option('error', self.error)}: fold {fold} of {candidate.name} has no {self.error}, but "
                f"{', '.join(without_errors(scores))}; {self._lacking(candidate)}"
            )
        return float(np.mean(scores[self.error]))  # some errors of several targets are lists of one for each


@contextmanager
def _named(name: str, fold: int) -> Iterator[None]:
    """Say in errors of a fit which of the many it is."""
    try:
        yield
    except (DataError, NumericalError, ParameterError) as error:
        raise type(error)(f"{name}, fold {fold}: {error.message}", value=error.value) from error


@dataclass(frozen=True)
class _Outcome:
    """Of one estimator on one fold."""

    error: float
    seconds: float
    functions: int
    model_bytes: int

    @classmethod
    def of(cls, model: PredictingModel, error: float, seconds: float) -> _Outcome:
        """The outcome of a model."""
        return cls(error, seconds, model.record.basis_size, sum(array.nbytes for array in model.arrays.values()))


def _compared(candidate: Candidate, outcomes: Sequence[_Outcome], *, shared: bool) -> Compared:
    return Compared(
        candidate.name,
        candidate.kind.name,
        tuple(each.error for each in outcomes),
        sum(each.seconds for each in outcomes),
        tuple(each.functions for each in outcomes),
        tuple(each.model_bytes for each in outcomes),
        shared,
    )


def cross_validation(
    table: Table,
    candidates: Sequence[Candidate],
    *,
    folds: Unchecked = 5,
    groups: Unchecked = None,
    time: Unchecked = None,
    error: str | None = None,
    share: Unchecked = False,
) -> CrossValidation:
    """Check a request and find its folds; parameters and errors are those of `cross_validate`."""
    count = checked_folds(folds)
    if not isinstance(share, bool):
        raise ParameterError(f"{option('share')} must be True or False, not {share!r}", value=share)
    features, group_values, times = without_columns(table, groups, time)
    if features.classes is None and any(each.kind.classify for each in candidates):
        features = opened_for(candidates, features)
    name = check_candidates(candidates, features, error)
    sharing = frozenset[str]()
    if share:
        features.check_weights()
        sharing = _sharing(features, candidates, share_beside(count))
    return _with_folds(candidates, features, count, name, sharing, group_values, times)


def _with_folds(
    candidates: Sequence[Candidate],
    table: Table,
    count: int,
    error: str,
    sharing: frozenset[str],
    groups: RowArray | None = None,
    times: RowArray | None = None,
    *,
    rounding: RowRounding = NO_ROUNDING,
) -> CrossValidation:
    """The comparison with the folds of a table; `sharing` are the candidates that may share sums."""
    splits = splits_of(table, count, groups, times, beside=bool(sharing), rounding=rounding)
    if sharing:
        # The part beside the folds has some rows less than its share, or far fewer where many rows are equal.
        rows = splits.fold_rows
        beside = 0.0 if rows is None else rows.chosen_on.counted / table.counted
        sharing = _sharing(table, candidates, beside)
        if rows is not None and not rows.past and not sharing:
            splits = splits_of(table, count, groups, times, rounding=rounding)
    return CrossValidation(_settled(candidates, splits), splits, error, sharing)


def _settled(candidates: Sequence[Candidate], splits: Splits) -> tuple[Candidate, ...]:
    """The candidates with what their settings leave to the fit chosen once, for the fit to the most rows.

    Near a number of rows from which a fit searches for a metric, some folds would search, and others not.
    """
    largest = max((fitted for fitted, _ in splits.tables()), key=lambda table: table.counted)
    return tuple(replace(each, settings=each.settings.for_table(largest)) for each in candidates)


def _sharing(table: Table, candidates: Sequence[Candidate], beside: float) -> frozenset[str]:
    """Names of the candidates whose fits can share sums, with such a share of the rows in no fold."""
    # All values of a row tell its fold, and rows of a kernel matrix are scored by those at the columns of the basis.
    return frozenset(
        each.name
        for each in candidates
        if each.kind.folds is not None
        and not each.settings.of_matrix
        and each.kind.folds.possible(table, each.settings, beside)
    )


def cross_validate(
    table: Unchecked,
    estimators: Unchecked,
    folds: int = 5,
    *,
    y: Unchecked = None,
    sample_weight: Unchecked = None,
    groups: Unchecked = None,
    time: Unchecked = None,
    error: str | None = None,
    share: bool = False,
    memory_limit: Unchecked = None,
    client: Untyped = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare estimators by cross-validation, out of core.

    Each estimator is fitted to all folds but one and scored on that one, in turn. Its error is the mean of the errors
    ``e_j`` of the K folds; its standard error ``sqrt(sum_j (e_j - mean)^2 / (K (K - 1)))``. Estimators see the same
    folds, so that `Comparison.difference` compares them fold by fold.

    Without `groups` and `time` a row is in the fold that a hash of its features gives: equal rows share a fold, and so
    do rows that repeat others in all but their last digits. No order or chunks of the rows change it.

    Parameters
    ----------
    table : Table, path of a store, or anything else that `open_table` takes.
    estimators : a streamkernel estimator that predicts, or the name of one such as "ridge"; a list of these, or a dict
        of them by name. They are not fitted themselves, and their `client`, `memory_limit` and `progress` are not used.
    folds : number of folds K, from 2 to 100.
    y : (m,) or (m, d) targets, where the table does not contain them.
    sample_weight : (m,) row weights; None for those of the table. A row of weight w counts as if it stood w times, in
        fits, in errors and in the sizes of folds.
    groups : name of a column, also of that of the ids, or array (m,) of numbers or text: rows of one group share a
        fold. Folds are of about equal weight. A column is no feature then.
    time : name of a column, or array (m,) of numbers or dates: fold j is part j + 1 of K + 1 parts of about equal
        weight in the order of time, and fitted to are only the parts before it (an expanding window). Rows of one time
        are never separated, so that all rows of a fit are before all rows of its fold. A column is no feature then.
    error : "rmse", "mae", "nlpd" or "deviance" for numbers, "relative_rmse" for several targets, "error" (the share of
        wrong classes), "log_loss" or "brier" for classes, "pinball" for quantiles; None for the first that all the
        estimators have. "relative_rmse" is the root mean square of the errors of all targets, each divided by the
        standard deviation of its target in the rows of the fit; the others are averages over the targets, which of
        "rmse" and "mae" mean something for targets of one unit only.
    share : whether estimators whose coefficients follow from sums (ridge, its classifier, "gp") take all folds from the
        sums of one sweep, where rows are enough: K folds in about the time of one. Of K + 1 parts of the rows, or of
        the `groups`, the last is then in no fold; of parts by `time` the first never is. Scaling, hyper-parameters and
        basis of all K fits are chosen on it, so that no row of a fold has a part in them; that folds have one basis is
        not in the standard errors. All other estimators see the same folds. `Compared.shared` tells which estimators
        shared sums.
    memory_limit : int or str, limit on the memory of all processes together; None for that of this machine and, with a
        client, the limits of its workers.
    client : distributed.Client, cluster that runs the sweeps; None for threads of this process.
    progress : receiver of progress; see `streamkernel.engine.Progress`.

    Returns
    -------
    Comparison

    Raises
    ------
    ParameterError
        Wrong estimators, folds or error; raised before any fit.
    DataError
        Rows that cannot be used, or too few for so many folds; or the target is numbers, and an estimator takes class
        labels only.
    ResourceLimitError
        A fit would need more memory than is allowed; raised before any fit.
    StreamKernelError
        An error of a fit.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelRidge, cross_validate
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> found = cross_validate(X, {"few": KernelRidge(5), "many": KernelRidge(60)}, y=np.sin(X[:, 0]) + X[:, 1])
    >>> found.best.name
    'many'
    """
    candidates = candidates_of(estimators)
    limit = parse_bytes(memory_limit)
    opened = opened_for(candidates, table, y, weights=sample_weight)
    request = cross_validation(opened, candidates, folds=folds, groups=groups, time=time, error=error, share=share)
    executor = executor_of(client)
    return request.run(executor, Session(executor, progress=progress).progress, limit)
