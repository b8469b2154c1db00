"""Linear programming machines in a fit: the programs of all functions, in the same sweeps, and their plan."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from streamkernel.engine import Step, step_of
from streamkernel.errors import warn_user
from streamkernel.fits.margins._full_margins import FullSolver, Machines
from streamkernel.models.linear import LinearProblem, LinearSolutionRecord
from streamkernel.models.margins import MarginSolutionRecord
from streamkernel.reductions import Predictions
from streamkernel.reductions.margins import PiecewiseLinear, Target
from streamkernel.reductions.scores import HeldOutErrors
from streamkernel.selection import Problem
from streamkernel.selection.problem import gather_step, in_double, unfilled_basis
from streamkernel.settings.gap import GapSettings
from streamkernel.settings.linear import LinearSettings
from streamkernel.solvers import (
    LinearLimits,
    LinearMachine,
    linear_program_step,
    solve_linear_machines,
)
from streamkernel.table import Folds
from streamkernel.wording import option


class LinearSolver(FullSolver):
    """The K linear programs of a fit."""

    method: ClassVar[str] = "linear-program"

    def solve(
        self, C: float, starts: Machines | None, folds: Folds | None, gap_tol: float, most_sweeps: int
    ) -> Machines:
        settings = self.settings
        assert isinstance(settings, LinearSettings)
        machines = solve_linear_machines(
            self.chosen.table,
            self.chosen.kernel,
            self.losses(C),
            [target for target in self.targets if target is not None],
            self.session,
            limits=limits_of(settings, self.n),
            intercept=settings.fit_intercept,
            # Errors on held-out rows want no smaller gap than the solution.
            gap_tol=max(gap_tol, settings.gap_tol),
            folds=folds,
            starts=starts,  # type: ignore[arg-type]  # of this class
            seed=settings.seed,
            most_sweeps=most_sweeps,
            fetch=self.chosen.fetch,
            name=", without fold" * (folds is not None),
        )
        gap = max(machine.relative_gap for machine in machines)
        functions = ", ".join(str(len(machine.rows)) for machine in machines)
        self.session.progress.note(f"{functions} functions, gap {gap:.3g}")
        return machines

    def warn(self, machines: Machines) -> None:
        """As in the base class; or tell that the largest number of functions ended the fit."""
        capped = [machine for machine in machines if isinstance(machine, LinearMachine) and machine.capped]
        if not capped:
            super().warn(machines)
        elif not all(machine.converged for machine in machines):
            gap = max(machine.relative_gap for machine in machines)
            warn_user(
                f"the solution of at most {self.n} functions is within {gap:.3g} of the least objective of all, not "
                f"within {self.settings.gap_tol:g}; give more ({option('n_components')}), a larger gap "
                f"({option('gap_tol')}) or {self.settings.easier}"
            )


def limits_of(settings: LinearSettings, n: int) -> LinearLimits:
    """The limits of the programs of a fit of n functions."""
    return LinearLimits(n, settings.working_rows, settings.candidates)


def linear_record(record: MarginSolutionRecord, machines: object) -> LinearSolutionRecord:
    """The record of a solution, with what each sweep has found of the programs."""
    assert isinstance(machines, tuple)
    return LinearSolutionRecord(
        **{
            **record.to_config(),
            "problems": tuple(
                LinearProblem(
                    primal=machine.primal,
                    dual=machine.dual,
                    gaps=tuple(machine.relative_gaps.tolist()),
                    functions=tuple(each.functions for each in machine.iterations),
                    rows=tuple(each.rows for each in machine.iterations),
                    prices=tuple(each.price for each in machine.iterations),
                )
                for machine in machines
            ),
            "candidates": machines[0].candidates,
            "capped": any(machine.capped for machine in machines),
        }
    )


def linear_steps(
    problem: Problem,
    settings: GapSettings,
    costs: tuple[float, ...],
    n: int,
    targets: tuple[Target | None, ...],
    folds: Folds | None,
) -> tuple[list[Step], int]:
    """The steps of `LinearSolver`, and the largest number of functions of the model."""
    assert isinstance(settings, LinearSettings)
    table, kernel, K = problem.table, problem.kernel, len(targets)
    most = min(K * n, table.n_rows)
    [loss, *_] = settings.losses(1.0)
    assert isinstance(loss, PiecewiseLinear)
    limits = limits_of(settings, n)
    steps: list[Step] = []
    if folds is not None:
        # The machines of this C, of the one before, and of the best.
        steps.append(linear_program_step(table, kernel, loss, K, limits, solutions=len(costs), kept=3 * K, name="path"))
        values = Predictions(unfilled_basis(problem, most), np.zeros((most, K)), np.zeros(1))
        scored = tuple(target for target in targets if target is not None)
        scores = HeldOutErrors(values, (loss,) * K, scored, folds, table.classes is not None)
        steps.append(step_of("held-out errors", scores, table, kernel_columns=most, times=len(costs)))
    steps.append(linear_program_step(table, kernel, loss, K, limits, kept=K if folds is None else 3 * K))
    if table.scaler is not None and not table.scaler.invertible:
        steps.append(in_double(replace(gather_step(problem, most), name="rows of the functions"), table))
    return steps, most
