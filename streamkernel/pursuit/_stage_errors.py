"""The measurements of every size of a pursuit, in addition to the sums for the picks.

Held-out rows are a share of the table, whose sums come with those of the fit, or another table, which has its own
sweeps. One sweep at the end counts the wrong rows of each size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamkernel.basis import unfilled
from streamkernel.engine import Session, Step, step_of
from streamkernel.errors import ParameterError
from streamkernel.pursuit._state import PursuitState
from streamkernel.pursuit.choices import FEWEST, share_of
from streamkernel.reductions.pools import HeldOut, Repeats
from streamkernel.reductions.scores import StagedScores
from streamkernel.selection.problem import Problem, unfilled_basis
from streamkernel.table import Table
from streamkernel.type_aliases import Float
from streamkernel.wording import option

_HELD_OUT = (23,)  # stream
_COUNTED = "errors of every size"


@dataclass(frozen=True)
class StageErrors:
    """The held-out rows of a pursuit, and the errors on them.

    Parameters
    ----------
    validation, patience, by_error, gamma : see `MatchingPursuit`.
    """

    validation: float | str | Table
    patience: int | None
    by_error: bool
    gamma: float | None

    def held_out(self, problem: Problem) -> HeldOut | None:
        """The rule for the rows that are held out; None where none are."""
        share = self.validation
        if isinstance(share, Table):
            return None
        part = share_of(problem.table.counted) if isinstance(share, str) else share
        return HeldOut(problem.seed, _HELD_OUT, part) if part else None

    @property
    def automatic(self) -> bool:
        """Whether the held-out share is the default ("auto")."""
        return isinstance(self.validation, str)

    def may_hold_out(self, problem: Problem, repeats: Repeats | None) -> bool:
        """Whether enough rows are distinct to hold some out: a held-out row must have no copy among the fitted ones."""
        return self.held_out(problem) is not None and (repeats is None or repeats.features >= FEWEST)

    def without(self, rows: int) -> None:
        """Raise `ParameterError` where an option needs held-out rows, and the table has too few distinct rows."""
        if self.patience is not None or self.by_error:
            what = option("patience") if self.patience is not None else option("choose_by", "error")
            raise ParameterError(
                f"{what} watches held-out rows, and of {rows} rows of which too few are different none are held out; "
                f"give {option('validation')} a share, or other rows"
            )

    def table(self, problem: Problem) -> Table | None:
        """The rows of another table, scaled as those of the fit."""
        other = self.validation
        return other.with_scaler(problem.table.scaler) if isinstance(other, Table) else None

    def counts(self, problem: Problem) -> bool:
        """Whether wrong rows are counted."""
        classes, d = problem.table.classes is not None, problem.table.n_targets
        if self.by_error and not (classes and self.validation):
            raise ParameterError(
                f"{option('choose_by', 'error')}: the error rate chooses among models that tell classes, on held-out "
                f"rows; leave it out, or give {option('validation')} rows"
            )
        if self.gamma is not None and (classes or d != 1):
            what = "classes are right or wrong" if classes else f"there are {d} targets"
            raise ParameterError(
                f"{option('bound_gamma')} is how far one target may be missed, and {what}; leave it out"
            )
        return classes or self.gamma is not None

    def measure(self, problem: Problem, session: Session, model: PursuitState, coding: Float | None) -> None:
        """Measure the errors of each size on another table, if there is one."""
        rows = self.table(problem)
        if rows is not None and model.terms:
            work = model.scores_of_other_rows(coding, self.gamma)
            model.store_scores(session.sweep(work, rows, f"watch {model.terms} terms"))

    def count(self, problem: Problem, session: Session, model: PursuitState, coding: Float | None) -> None:
        """Count the wrong rows of each size."""
        if not self.counts(problem) or not model.terms:
            return
        work = model.scores(coding, self.held_out(problem), self.gamma)
        model.count(session.sweep(work, problem.table, _COUNTED))
        rows = self.table(problem)
        if rows is not None and model.logistic:
            # `measure` measured the models that sweeps began with; these are the sizes of the final model.
            other = replace(work, held_out=None, chosen=np.zeros(0, np.int64))
            model.check_wrong = session.sweep(other, rows, _COUNTED).wrong[0]

    def steps(
        self, problem: Problem, coding: Float | None, constant: bool, logistic: bool, rounds: int, held_bytes: int
    ) -> list[Step]:
        """The sweeps of `measure` and `count`, for the plan."""
        n = problem.n
        d = problem.table.n_targets if coding is None else coding.shape[1]
        V, Z = unfilled(n + int(constant), n + 1), unfilled(n + 1, d)
        rows, basis = np.zeros(n, np.int64), unfilled_basis(problem, n)
        work = StagedScores(basis, V, Z, np.zeros(d), constant, rows, coding, self.held_out(problem))

        def step(name: str, table: Table, times: int = 1) -> Step:
            return step_of(name, work, table, kernel_columns=n, times=times, held_bytes=held_bytes)

        watched = self.table(problem)
        steps = [] if watched is None else [step("watch", watched, rounds if self.patience else 1)]
        if self.counts(problem):
            steps.append(step(_COUNTED, problem.table))
            if watched is not None and logistic:
                steps.append(step(_COUNTED, watched))
        return steps
