"""Support vector machines on all rows: values of C on a validation fold -> all rows -> the support vectors as basis.

Several functions are solved for one after another, so that one working set is in memory at a time; each has its own
sweeps, and the basis is the union of their support vectors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session, Step, step_of
from streamkernel.fits.margins._margin_path import (
    PATH_GAP,
    PATH_SWEEPS,
    MarginFound,
    check_trained,
    held_out_errors,
    path_errors,
)
from streamkernel.fits.steps.choose_basis import Chosen
from streamkernel.reductions import Predictions
from streamkernel.reductions.margins import PiecewiseLinear, Target
from streamkernel.reductions.scores import HeldOutErrors, MarginErrors
from streamkernel.selection import Problem
from streamkernel.selection.problem import gather_step, in_double, unfilled_basis
from streamkernel.settings.gap import GapSettings
from streamkernel.solvers import (
    LinearMachine,
    SupportVectorSolution,
    full_margin_steps,
    solve_full_margins,
    warn_of_gap,
)
from streamkernel.table import Folds
from streamkernel.type_aliases import Float

Machines = tuple[SupportVectorSolution | LinearMachine, ...]


def find_full_margins(
    chosen: Chosen,
    settings: GapSettings,
    session: Session,
    targets: tuple[Target | None, ...],
    n: int,
    folds: Folds | None = None,
    solver_class: type[FullSolver] | None = None,
) -> tuple[Chosen, MarginFound]:
    """Solve for C that is given, or for the one of several with the least error on a validation fold.

    Parameters
    ----------
    chosen : the rows and their kernel, with an empty basis.
    targets : the targets of the K functions; None where rows have none.
    n : largest number of rows of a working set.
    folds : one validation fold; None where C is one number and no held-out rows are needed.
    solver_class : how the problems are solved; None for one working set after another.

    Returns
    -------
    chosen : the same with the support vectors of all functions as basis.
    found : the solution; its coefficients are those of the kernel functions.
    """
    solver = (solver_class or FullSolver)(chosen, settings, session, targets, n)
    costs, path, histogram, starts = settings.costs(chosen.table), None, None, None
    C = costs[0]
    if folds is not None:
        solved: dict[float, Machines] = {}
        errors: dict[float, tuple[MarginErrors, int]] = {}
        for C in costs:
            starts = solver.solve(C, starts, folds, PATH_GAP, PATH_SWEEPS)
            check_trained(starts[-1].count, settings)
            scores = held_out_errors(solver.errors(C, starts, folds), chosen.table, session, settings)
            solved, errors = solved | {C: starts}, errors | {C: (scores, 0)}
        C = min(costs, key=lambda each: float(errors[each][0].errors[0]))
        gaps = {each: max(one.relative_gap for one in machines) for each, machines in solved.items()}
        path, histogram, starts = path_errors(gaps, errors, C, session), errors[C][0].histogram[0], solved[C]
    machines = solver.solve(C, starts, None, settings.gap_tol, settings.max_sweeps)
    solver.warn(machines)
    basis, coefficients = solver.union(machines)
    last = machines[-1]
    found = MarginFound(
        C=C,
        method=solver.method,
        solutions=machines,
        coefficients=coefficients,
        # No features are computed of the support vectors: all of the trace, which certifies nothing.
        residual_path=np.full(len(basis) + 1, last.trace),
        trace=last.trace,
        count=last.count,
        path=path,
        histogram=histogram,
    )
    chosen = replace(chosen, selection=replace(chosen.selection, basis=basis))
    # A sweep of the fit: the model then finds these rows in the cache.
    chosen.points_of(basis)
    return chosen, found


class FullSolver:
    """The K problems of a fit, each of which has its own working set and its own sweeps."""

    method: ClassVar[str] = "chunking"

    def __init__(
        self, chosen: Chosen, settings: GapSettings, session: Session, targets: tuple[Target | None, ...], n: int
    ) -> None:
        self.chosen, self.settings, self.session, self.targets, self.n = chosen, settings, session, targets, n

    def losses(self, C: float) -> list[PiecewiseLinear]:
        """The losses of the K functions."""
        found = [loss for _ in self.targets for loss in self.settings.losses(C)]
        assert all(isinstance(loss, PiecewiseLinear) for loss in found)
        return found  # type: ignore[return-value]  # as the settings have checked

    def solve(
        self, C: float, starts: Machines | None, folds: Folds | None, gap_tol: float, most_sweeps: int
    ) -> Machines:
        """The K machines for one C, from those of another C or of fewer rows."""
        found = []
        for k, (loss, target) in enumerate(zip(self.losses(C), self.targets, strict=True)):
            words = [f"function {k + 1}"] * (len(self.targets) > 1) + ["without fold"] * (folds is not None)
            machine = solve_full_margins(
                self.chosen.table,
                self.chosen.kernel,
                loss,
                self.session,
                target=target,
                intercept=self.settings.fit_intercept,
                n_components=max(self.n, 2),
                gap_tol=gap_tol,
                folds=folds,
                start=None if starts is None else starts[k],  # type: ignore[arg-type]  # of this class
                seed=self.settings.seed,
                most_sweeps=most_sweeps,
                name="".join(f", {each}" for each in words),
            )
            self.session.progress.note(f"{len(machine.rows)} support vectors, gap {machine.relative_gap:.3g}")
            found.append(machine)
        return tuple(found)

    def warn(self, machines: Machines) -> None:
        """Warn of a gap that is larger than the tolerance."""
        warn_of_gap(machines, self.settings.gap_tol, self.settings.easier)

    def union(self, machines: Machines) -> tuple[Basis, Float]:
        """The basis of all support vectors, ascending by row, and (K, n + 1) coefficients; the last are constants."""
        table = self.chosen.table
        rows = np.unique(np.concatenate([machine.rows for machine in machines]))
        points = np.zeros((len(rows), table.width), table.dtype)
        coefficients = np.zeros((len(machines), len(rows) + 1))
        for each, machine in zip(coefficients, machines, strict=True):
            at = np.searchsorted(rows, machine.rows)
            points[at], each[at], each[-1] = machine.vectors.X, machine.coefficients, machine.offset
        return Basis(self.chosen.kernel, points, rows), coefficients

    def errors(self, C: float, machines: Machines, folds: Folds) -> HeldOutErrors:
        """The reduction of the errors of machines for one C."""
        basis, b = self.union(machines)
        values = Predictions(basis, np.ascontiguousarray(b[:, :-1].T), b[:, -1].copy())
        targets = tuple(target for target in self.targets if target is not None)
        classes = self.chosen.table.classes is not None
        return HeldOutErrors(values, tuple(self.losses(C)), targets, folds, classes)


def full_steps(
    problem: Problem,
    settings: GapSettings,
    costs: tuple[float, ...],
    n: int,
    targets: tuple[Target | None, ...],
    folds: Folds | None,
) -> tuple[list[Step], int]:
    """The steps of `find_full_margins`, and the largest number of support vectors of all functions."""
    table, kernel, K = problem.table, problem.kernel, len(targets)
    n = max(n, 2)
    most = min(K * n, table.n_rows)
    [loss, *_] = settings.losses(1.0)
    assert isinstance(loss, PiecewiseLinear)
    steps: list[Step] = []
    # The machines of this C, of the one before, and of the best.
    kept = K if folds is None else 3 * K
    if folds is not None:
        steps += full_margin_steps(table, kernel, loss, n, solutions=K * len(costs), kept=kept, name="path")
        values = Predictions(unfilled_basis(problem, most), np.zeros((most, K)), np.zeros(1))
        scored = tuple(target for target in targets if target is not None)
        scores = HeldOutErrors(values, (loss,) * K, scored, folds, table.classes is not None)
        steps.append(step_of("held-out errors", scores, table, kernel_columns=most, times=len(costs)))
    steps += full_margin_steps(table, kernel, loss, n, solutions=K, kept=kept, name="solution")
    if table.scaler is not None and not table.scaler.invertible:
        steps.append(in_double(replace(gather_step(problem, most), name="rows of the support vectors"), table))
    return steps, most
