"""Kernel ridge: table -> lengthscale -> basis -> one sweep of sums, or one per iteration -> alpha -> model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamkernel.engine import Machine, Plan, Session, Step, TableShape, driver_step, make_plan, step_of
from streamkernel.errors import warn_user
from streamkernel.fits._choose_basis import Chosen, choose_basis
from streamkernel.fits._plan_steps import check_step, points_bytes, steps_of_choice
from streamkernel.fits._validation import validation_record, words_of
from streamkernel.fits.supervised import SupervisedRun, check_numbers
from streamkernel.models.ridge import (
    RidgeModel,
    falkon_arrays,
    falkon_record,
    solution_arrays,
    solution_record,
)
from streamkernel.models.seen_rows import seen_by_fit
from streamkernel.reductions import Predictions, Reduction
from streamkernel.reductions.sums import FoldEquations, FoldSums, NormalEquations, RidgeSums
from streamkernel.selection import Problem
from streamkernel.selection.problem import gather_step, unfilled_basis
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.solvers import FalkonSolution, FalkonSystem, FoldSystem, RidgeSystem, falkon_steps, sampled_rows
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import AnyArray, Fields, Float, Unchecked
from streamkernel.wording import option

# Largest root mean square error of fitted values without a warning, in deviations of the target.
_ENOUGH = 1e-3


def fit_ridge(
    table: Table, settings: RidgeSettings, session: Session, *, estimator: str = "ridge", **options: Unchecked
) -> RidgeModel:
    """Fit a kernel ridge model; options and errors are those of `SupervisedRun`."""
    if estimator == "ridge":
        check_numbers(table, estimator)
    run = SupervisedRun(table, settings, session, plan_ridge, estimator=estimator, **options)
    solver = settings.solver_for(table, run.n)
    with run.measured():
        folds = settings.folds(table.n_rows, run.n)
        chosen = choose_basis(table, settings, session, run.n, folds=folds)
        basis, table = chosen.selection.basis, chosen.table
        if solver == "cg":
            solved = _by_iterations(chosen, settings, session, run.n)
        else:
            equations = NormalEquations.of(basis, chosen.centre, table.n_rows, settings.given_alpha)
            work: Reduction[RidgeSums | FoldSums] = equations if folds is None else FoldEquations(equations, folds)
            solved = _direct(chosen, settings, session, session.sweep(work, table, "final sweep"), folds)
        coefficients, intercept = solved.arrays["dual_coef"], solved.arrays["intercept"]
        check = run.check(chosen, Predictions(basis, coefficients, intercept))
    own = {"seen": seen_by_fit(table), "updates": None, "validation": None, **solved.fields}
    return run.model(RidgeModel, chosen, check, solved.residual_path, solved.arrays, **own)


class _Solved(NamedTuple):
    """Residual traces (n + 1,) of the basis, and what a model stores of the solution, which depends on the solver."""

    residual_path: Float
    arrays: dict[str, AnyArray]
    fields: Fields


def _direct(
    chosen: Chosen, settings: RidgeSettings, session: Session, swept: RidgeSums | FoldSums, folds: Folds | None
) -> _Solved:
    """Alpha and coefficients from the sums of the final sweep."""
    scale = None if chosen.table.classes is not None else chosen.scale**2
    basis, intercept = chosen.selection.basis, settings.fit_intercept
    sums = swept.total if isinstance(swept, FoldSums) else swept
    system = RidgeSystem(basis, sums, intercept=intercept, scale=scale, independent=chosen.independent)
    alpha, own = settings.given_alpha, dict[str, Any]()
    if alpha is None:
        alpha = system.choose_alpha()
        if isinstance(swept, FoldSums) and folds is not None:
            alpha, own = _by_folds(chosen, settings, session, swept, folds, system, alpha)
        elif settings.alpha == "cv":
            session.progress.note(f"alpha {alpha:.6g} by GCV: {chosen.table.n_rows} rows are too few to hold some out")
    solution = system.solve(alpha)
    arrays = solution_arrays(sums, system, solution, scale)
    return _Solved(system.residual_path, arrays, {**solution_record(sums, system, solution), **own})


def _by_folds(
    chosen: Chosen,
    settings: RidgeSettings,
    session: Session,
    sums: FoldSums,
    folds: Folds,
    system: RidgeSystem,
    by_gcv: float,
) -> tuple[float, Fields]:
    """Alpha of least error on the held-out folds, and the record of these errors; that of GCV if folds say nothing."""
    classes = chosen.table.classes is not None
    scale = None if classes else chosen.scale**2
    by_fold = FoldSystem(sums, intercept=settings.fit_intercept, scale=scale, classes=classes)
    if by_fold.lacking:
        session.progress.note(f"alpha {by_gcv:.6g} by GCV: {by_fold.lacking}")
        return by_gcv, {}
    alphas = system.path.grid()
    choice = by_fold.choose(by_gcv, float(alphas[0]), float(alphas[-1]))
    assert chosen.held is not None
    basis = chosen.selection.basis
    record = validation_record(choice, by_gcv, basis, folds, chosen.held, scale=scale, classes=classes)
    for line in words_of(record, choice.alpha):
        session.progress.note(line)
    return choice.alpha, {"validation": record}


def _by_iterations(chosen: Chosen, settings: RidgeSettings, session: Session, n: int) -> _Solved:
    """Coefficients for one alpha by conjugate gradients, and the exact certificate from their first sweep."""
    table = chosen.table
    system = FalkonSystem(
        chosen.selection.basis,
        table,
        session,
        centre=chosen.centre,
        intercept=settings.fit_intercept,
        sample=sampled_rows(table, session, settings.preconditioner_rows(table, n), settings.seed),
    )
    solution = system.solve(float(settings.alpha))
    _warn_of_error(system, solution, chosen.scale)
    assert system.residual_path is not None
    return _Solved(system.residual_path, falkon_arrays(solution), falkon_record(system, solution))


def _warn_of_error(system: FalkonSystem, solution: FalkonSolution, scale: Float) -> None:
    """Warn where the iterations ended before they reached the solution: by their number, or by rounding."""
    # |f - f*|^2 over the rows is at most the excess of the regularised risk.
    off = np.sqrt(solution.excess / max(system.sums.weight, np.finfo(np.float64).tiny)) / scale
    if solution.converged and (off <= _ENOUGH).all():
        return
    stopped = "by rounding" if solution.converged else "by their number"
    warn_user(
        f"conjugate gradients were ended {stopped} after {solution.iterations} iterations, at a relative residual of "
        f"{solution.residuals[-1].max():.2g}: fitted values may be off by {off.max():.2g} deviations of the target; "
        f"give a larger {option('alpha')}, or {option('solver', 'direct')}"
    )


def plan_ridge(table: Table, settings: BasisSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory.

    Parameters
    ----------
    machine : workers and threads, with the bytes their processes hold already.
    n : basis size in place of the settings', to find one that fits.
    """
    n = settings.components(table) if n is None else n
    folds = settings.folds(table.n_rows, n) if isinstance(settings, RidgeSettings) else None
    problem, steps = steps_of_choice(table, settings, n, folds)
    if isinstance(settings, RidgeSettings) and settings.solver_for(table, n) == "cg":
        further, disk = _iterations(problem, n, settings.preconditioner_rows(table, n), machine)
    else:
        remedy = (
            f"{option('solver', 'cg')} with a number for {option('alpha')}"
            if isinstance(settings, RidgeSettings)
            else ""
        )
        further, disk = _decomposition(problem, n, remedy)
    if table.n_targets:
        further.append(check_step(problem, n))
    return make_plan(steps + further, TableShape.of(problem.table), machine, disk_bytes=disk, kernel=problem.kernel)


def _decomposition(problem: Problem, n: int, remedy: str) -> tuple[list[Step], int]:
    """Steps and bytes on disk of the direct solve."""
    table = problem.table
    plain = NormalEquations(unfilled_basis(problem, n), problem.centre)
    final: NormalEquations | FoldEquations = plain
    count = 0
    if problem.folds is not None:
        final, count = FoldEquations(plain, problem.folds), problem.folds.count
    # The sums, their whitened copy, its eigenvectors and LAPACK's workspace (evd takes 2 n^2 beside the matrix). With
    # folds also the sums of each; in place of the workspace, later, those of all other rows, a matrix and its factor.
    algebra = 8 * n * ((8 + 3 * count) * n + 4 * table.n_targets)
    steps = [
        step_of("final sweep", final, table, kernel_columns=n, held_bytes=8 * (2 + count) * n * n),
        driver_step("solve", algebra, remedy),
    ]
    return steps, final.state_bytes() + plain.state_bytes() + points_bytes(problem, n)


def _iterations(problem: Problem, n: int, sample: int, machine: Machine) -> tuple[list[Step], int]:
    """Steps and bytes on disk of conjugate gradients, for the usual number of iterations.

    Parameters
    ----------
    sample : number of rows that the preconditioner is computed from.
    """
    table = problem.table
    basis, d = unfilled_basis(problem, n), table.n_targets
    gather = gather_step(problem, sample)
    gather = replace(gather, name="rows for the preconditioner", held_bytes=gather.held_bytes + 8 * n * n)
    steps = [gather, *falkon_steps(basis, table, d, sample=sample)]
    # Threads end with their sweep; what the allocator holds for them does not, and the factors come on top of it.
    here = [step for step in steps if step.where == "sample" or not machine.workers]
    kept = machine.driver_threads * sum(step.scratch_bytes for step in here)
    steps[-1] = replace(steps[-1], held_bytes=steps[-1].held_bytes + kept)
    states = sum(step.times * step.state_bytes for step in steps if step.where == "sweep")
    return steps, states + points_bytes(problem, n) + 8 * n * d
