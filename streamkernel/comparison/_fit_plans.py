"""What the fits of a comparison cost, and which of them can share the sums of a sweep within a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from streamkernel.comparison._splits import Splits
from streamkernel.comparison.candidates import Candidate
from streamkernel.engine import Machine, Plan, check_memory
from streamkernel.engine.limits import MemoryLimits
from streamkernel.fits.steps.fold_rows import FoldRows, SharedSums
from streamkernel.table import Table


@dataclass(frozen=True)
class FitPlan:
    """The plan of a fit, a function that plans it with another basis size, and its own size."""

    plan: Plan
    plan_of: Callable[[int], Plan]
    n: int


@dataclass(frozen=True)
class Shared:
    """A candidate whose fits share the sums of a sweep over these rows."""

    candidate: Candidate
    sums: SharedSums
    rows: FoldRows


@dataclass(frozen=True)
class FitPlans:
    """The fits of a comparison on a machine.

    Attributes
    ----------
    shared : candidates whose fits share sums.
    too_large : candidates whose shared sums would exceed a limit, and the plan of these.
    alone : candidates with a fit of its own for each fold.
    fits : a plan for each fit; those of shared sums first.
    """

    shared: tuple[Shared, ...]
    too_large: tuple[tuple[Candidate, Plan], ...]
    alone: tuple[Candidate, ...]
    fits: tuple[FitPlan, ...]

    @property
    def plans(self) -> list[Plan]:
        """The plans alone."""
        return [each.plan for each in self.fits]

    def check_memory(self, limits: MemoryLimits) -> None:
        """Raise the error of the first fit that would fail before it reads: too little memory, too large a basis."""
        for each in self.fits:
            check_memory(each.plan, limits, each.plan_of, each.n)


def fit_plans(
    candidates: Sequence[Candidate], splits: Splits, sharing: frozenset[str], machine: Machine, limits: MemoryLimits
) -> FitPlans:
    """Plan each fit once.

    Parameters
    ----------
    sharing : names of the candidates whose fits can share sums if memory allows it.
    """
    shared, too_large, fits = list[Shared](), list[tuple[Candidate, Plan]](), list[FitPlan]()
    rows = splits.fold_rows
    for each in candidates:
        sums = each.kind.folds
        if each.name not in sharing or rows is None or sums is None:
            continue
        of_sums = partial(sums.plan, rows, each.settings, machine)
        together = of_sums(None)
        if limits.exceeded(together) is None:
            shared.append(Shared(each, sums, rows))
            fits.append(FitPlan(together, of_sums, rows.resolved(each.settings).components(rows.whole)))
        else:
            too_large.append((each, together))
    names = [each.candidate.name for each in shared]
    alone = tuple(each for each in candidates if each.name not in names)
    fits += [_own(each, table, machine) for table, _ in splits.tables() for each in alone]
    return FitPlans(tuple(shared), tuple(too_large), alone, tuple(fits))


def _own(candidate: Candidate, table: Table, machine: Machine) -> FitPlan:
    settings = candidate.settings.for_table(table)
    plan_of, n = partial(candidate.kind.plan, table, settings, machine), settings.components(table)
    return FitPlan(plan_of(n), plan_of, n)
