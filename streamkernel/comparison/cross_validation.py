"""Cross-validation: every estimator fitted to all folds but one and scored on that one, by sweeps over a stored table.

Rows are left out by a weight of 0: fits, scores, draws and statistics do not see such rows, whatever the estimator
(`table.part_weights`). Nothing is copied, and memory is that of the largest fit.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from streamkernel.comparison._splits import Splits, checked_folds, splits_of, without_columns
from streamkernel.comparison.candidates import Candidate, candidates_of, check_candidates
from streamkernel.comparison.result import Compared, Comparison
from streamkernel.engine import (
    Executor,
    Machine,
    Plan,
    Progress,
    Session,
    check_memory,
    executor_of,
    machine_of,
    memory_limits,
    resident_bytes,
)
from streamkernel.engine.limits import MemoryLimits, parse_bytes
from streamkernel.errors import ParameterError
from streamkernel.models.predicting import PredictingModel
from streamkernel.reductions.scores.standard_errors import without_errors
from streamkernel.table import Table, open_table
from streamkernel.type_aliases import Unchecked, Untyped
from streamkernel.wording import option


@dataclass(frozen=True)
class CrossValidation:
    """A checked request: estimators, folds, and the error by which they are compared."""

    candidates: tuple[Candidate, ...]
    splits: Splits
    error: str

    def plans(self, machine: Machine) -> Iterator[tuple[Plan, Callable[[int], Plan], int]]:
        """For each fit its plan, a function that plans for another basis size, and the basis size."""
        for table, _ in self.splits.tables():
            for each in self.candidates:
                settings = each.settings.for_table(table)
                plan_of = partial(each.kind.plan, table, settings, machine)
                n = settings.components(table)
                yield plan_of(n), plan_of, n

    def check_memory(self, machine: Machine, limits: MemoryLimits) -> None:
        """Raise the error of the first fit that would fail before it reads: too little memory, too large a basis."""
        for plan, plan_of, n in self.plans(machine):
            check_memory(plan, limits, plan_of, n)

    def run(self, executor: Executor, progress: Progress, memory_limit: int | None = None) -> Comparison:
        """Fit and score every estimator on every fold.

        Parameters
        ----------
        memory_limit : bytes of all processes together; None for what the machines have.
        """
        self.check_memory(machine_of(executor, resident_bytes()), memory_limits(executor, memory_limit))
        found: dict[str, list[_Outcome]] = {each.name: [] for each in self.candidates}
        tables = list(self.splits.tables())
        for fold, (fitted, left_out) in enumerate(tables, 1):
            for each in self.candidates:
                progress.note(f"{each.name}, fold {fold} of {self.splits.folds}")
                began = clock.perf_counter()
                model = each.kind.fit(
                    fitted,
                    each.settings,
                    Session(executor, progress=progress),
                    memory_limit=memory_limit,
                    **each.kind.options_of_fit(fitted),
                )
                error = self._error(each, model, left_out, Session(executor, progress=progress))
                size = sum(array.nbytes for array in model.arrays.values())
                found[each.name].append(_Outcome(error, clock.perf_counter() - began, model.record.basis_size, size))
                progress.note(f"{each.name}, fold {fold} of {self.splits.folds}: {self.error} {error:.6g}")
        return Comparison(
            self.error,
            self.splits.by,
            tuple(table.counted for table, _ in tables),
            tuple(table.counted for _, table in tables),
            tuple(_compared(each, found[each.name]) for each in self.candidates),
        )

    def _error(self, candidate: Candidate, model: PredictingModel, table: Table, session: Session) -> float:
        """The error of a model on the rows of a table."""
        found: Any = session.sweep(model.scores(), model.prepare(model.prepare_targets(table)), "scores")
        scores = found if isinstance(found, dict) else found.scalars
        if self.error == "error":
            return 1.0 - float(scores["accuracy"])
        if self.error not in scores:
            raise ParameterError(
                f"{option('error', self.error)}: {candidate.name} has no {self.error} with these settings, but "
                f"{', '.join(without_errors(scores))}; choose another error, or other settings"
            )
        return float(scores[self.error])


@dataclass(frozen=True)
class _Outcome:
    """Of one estimator on one fold."""

    error: float
    seconds: float
    functions: int
    model_bytes: int


def _compared(candidate: Candidate, outcomes: Sequence[_Outcome]) -> Compared:
    return Compared(
        candidate.name,
        candidate.kind.name,
        tuple(each.error for each in outcomes),
        sum(each.seconds for each in outcomes),
        tuple(each.functions for each in outcomes),
        tuple(each.model_bytes for each in outcomes),
    )


def cross_validation(
    table: Table,
    candidates: Sequence[Candidate],
    *,
    folds: Unchecked = 5,
    groups: Unchecked = None,
    time: Unchecked = None,
    error: str | None = None,
) -> CrossValidation:
    """Check a request and find its folds; parameters and errors are those of `cross_validate`."""
    count = checked_folds(folds)
    features, group_values, times = without_columns(table, groups, time)
    if features.classes is None and any(each.kind.classify for each in candidates):
        features = open_table(features, classify=True)
    name = check_candidates(candidates, features, error)
    return CrossValidation(tuple(candidates), splits_of(features, count, group_values, times), name)


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
    memory_limit: Unchecked = None,
    client: Untyped = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare estimators by cross-validation, out of core.

    Each estimator is fitted to all folds but one and scored on that one, in turn. Its error is the mean of the errors
    ``e_j`` of the K folds; its standard error ``sqrt(sum_j (e_j - mean)^2 / (K (K - 1)))``. Estimators see the same
    folds, so that `Comparison.difference` compares them fold by fold.

    Without `groups` and `time` a row is in the fold that a hash of its features gives: equal rows share a fold, and no
    order or chunks of the rows change it.

    Parameters
    ----------
    table : Table, path of a store, or anything else that `open_table` takes.
    estimators : a streamkernel estimator that predicts, or the name of one such as "ridge"; a list of these, or a dict
        of them by name. They are not fitted themselves, and their `client`, `memory_limit` and `progress` are not used.
    folds : number of folds K, from 2 to 100.
    y : (m,) or (m, d) targets, where the table does not contain them.
    sample_weight : (m,) row weights; None for those of the table. A row of weight w counts as if it stood w times, in
        fits, in errors and in the sizes of folds.
    groups : name of a column, or array (m,) of numbers or text: rows of one group share a fold. Folds are of about
        equal weight. A column is no feature then.
    time : name of a column, or array (m,) of numbers or dates: fold j is part j + 1 of K + 1 parts of about equal
        weight in the order of time, and fitted to are only the parts before it (an expanding window). Rows of one time
        are never separated, so that all rows of a fit are before all rows of its fold. A column is no feature then.
    error : "rmse", "mae", "nlpd" or "deviance" for numbers, "error" (the share of wrong classes), "log_loss" or "brier"
        for classes, "pinball" for quantiles; None for the first that all the estimators have.
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
        Rows that cannot be used, or too few for so many folds.
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
    opened = open_table(table, y, weights=sample_weight, classify=any(each.kind.classify for each in candidates))
    request = cross_validation(opened, candidates, folds=folds, groups=groups, time=time, error=error)
    executor = executor_of(client)
    return request.run(executor, Session(executor, progress=progress).progress, limit)
