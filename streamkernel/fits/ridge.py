"""Kernel ridge: table -> lengthscale -> basis -> one sweep of sums, or one per iteration -> alpha -> model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streamkernel.engine import Machine, Plan, Session, Step, TableShape, driver_step, eigen_flops, make_plan, step_of
from streamkernel.fits._choose_basis import Chosen, choose_basis
from streamkernel.fits._iterations import Solved, by_iterations, iteration_steps
from streamkernel.fits._plan_steps import check_step, points_bytes, steps_of_choice
from streamkernel.fits._validation import left_out_rows, validation_record, words_of
from streamkernel.fits.supervised import SupervisedRun, check_numbers
from streamkernel.models.ridge import (
    RidgeModel,
    solution_arrays,
    solution_record,
)
from streamkernel.models.seen_rows import seen_by_fit
from streamkernel.reductions import Predictions, Reduction
from streamkernel.reductions.predictions import calibrated, curves_of
from streamkernel.reductions.sums import FoldEquations, FoldSums, NormalEquations, RidgeSums
from streamkernel.selection import Problem
from streamkernel.selection.problem import unfilled_basis
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.solvers import FoldSystem, RidgeSystem
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import Fields, Float, Unchecked
from streamkernel.wording import option


def fit_ridge(
    table: Table, settings: RidgeSettings, session: Session, *, estimator: str = "ridge", **options: Unchecked
) -> RidgeModel:
    """Fit a kernel ridge model; options and errors are those of `SupervisedRun`."""
    if estimator == "ridge":
        check_numbers(table, estimator)
    settings = settings.for_table(table)
    run = SupervisedRun(table, settings, session, plan_ridge, estimator=estimator, **options)
    solver = settings.solver_for(table, run.n)
    with run.measured():
        folds = settings.folds(table.counted, run.n, solver)
        chosen = choose_basis(run.table, settings, session, run.n, folds=folds)
        basis, table = chosen.selection.basis, chosen.table
        if solver == "cg":
            solved = by_iterations(chosen, settings, session, run.n, folds)
        else:
            equations = NormalEquations.of(basis, chosen.centre, table.counted, settings.given_alpha)
            work: Reduction[RidgeSums | FoldSums] = equations if folds is None else FoldEquations(equations, folds)
            solved = _direct(chosen, settings, session, session.sweep(work, table, "final sweep"), folds)
        coefficients, intercept = solved.arrays["dual_coef"], solved.arrays["intercept"]
        values = Predictions(basis, coefficients, intercept)
        check = run.check(chosen, calibrated(values, curves_of(solved.arrays)))
    own = {"seen": seen_by_fit(table), "updates": None, "validation": None, **solved.fields}
    if table.multilabel:
        own["multilabel"] = True
    return run.model(RidgeModel, chosen, check, solved.residual_path, solved.arrays, **own)


def _direct(
    chosen: Chosen, settings: RidgeSettings, session: Session, swept: RidgeSums | FoldSums, folds: Folds | None
) -> Solved:
    """Alpha and coefficients from the sums of the final sweep."""
    scale = None if chosen.table.classes is not None else chosen.scale**2
    basis, intercept = chosen.selection.basis, settings.fit_intercept
    sums = swept.total if isinstance(swept, FoldSums) else swept
    system = RidgeSystem(basis, sums, intercept=intercept, scale=scale, independent=chosen.independent)
    alpha, own, curves = settings.given_alpha, dict[str, Any](), dict[str, Float]()
    if alpha is None:
        alpha = system.choose_alpha()
        if isinstance(swept, FoldSums) and folds is not None:
            alpha, own, curves = _by_folds(chosen, settings, session, swept, folds, system, alpha)
        elif settings.alpha == "cv":
            session.progress.note(f"alpha {alpha:.6g} by GCV: {chosen.table.counted} rows are too few to hold some out")
    solution = system.solve(alpha)
    arrays = {**solution_arrays(sums, system, solution, scale), **curves}
    return Solved(system.residual_path, arrays, {**solution_record(sums, system, solution), **own})


def _by_folds(
    chosen: Chosen,
    settings: RidgeSettings,
    session: Session,
    sums: FoldSums,
    folds: Folds,
    system: RidgeSystem,
    by_gcv: float,
) -> tuple[float, Fields, dict[str, Float]]:
    """Alpha of least error on the held-out folds, the record of these errors, and the arrays of classes' curves.

    If folds say nothing, alpha is that of GCV.
    """
    classes = chosen.table.classes is not None
    scale = None if classes else chosen.scale**2
    by_fold = FoldSystem(sums, intercept=settings.fit_intercept, scale=scale, classes=classes)
    if by_fold.lacking:
        session.progress.note(f"alpha {by_gcv:.6g} by GCV: {by_fold.lacking}")
        return by_gcv, {}, {}
    alphas = system.path.grid()
    choice = by_fold.choose(by_gcv, float(alphas[0]), float(alphas[-1]))
    assert chosen.held is not None
    basis = chosen.selection.basis
    rows = left_out_rows(choice, basis, folds, chosen.held)
    record = validation_record(choice, by_gcv, rows, folds, scale=scale, classes=classes)
    for line in words_of(record, choice.alpha):
        session.progress.note(line)
    return choice.alpha, {"validation": record}, rows.calibration() if classes else {}


def plan_ridge(
    table: Table,
    settings: BasisSettings,
    machine: Machine,
    n: int | None = None,
    after: Callable[[Problem, int], list[Step]] | None = None,
) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory.

    Parameters
    ----------
    machine : workers and threads, with the bytes their processes hold already.
    n : basis size in place of the settings', to find one that fits.
    after : steps of a problem and a basis size that follow those of a ridge fit.
    """
    settings = settings.for_table(table)
    n = settings.components(table) if n is None else n
    folds, by_iterations = None, False
    if isinstance(settings, RidgeSettings):
        solver = settings.solver_for(table, n)
        folds, by_iterations = settings.folds(table.counted, n, solver), solver == "cg"
    problem, steps = steps_of_choice(table, settings, n, folds)
    if isinstance(settings, RidgeSettings) and by_iterations:
        further, disk = iteration_steps(problem, n, settings, machine)
    else:
        remedy = (
            f"{option('solver', 'cg')} with {option('alpha', 'cv')} or a number for it"
            if isinstance(settings, RidgeSettings)
            else ""
        )
        alpha = settings.given_alpha if isinstance(settings, RidgeSettings) else None
        further, disk = _decomposition(problem, n, remedy, alpha)
    if table.n_targets:
        further.append(check_step(problem, n))
    if after is not None:
        further += after(problem, n)
    return make_plan(steps + further, TableShape.of(problem.table), machine, disk_bytes=disk, kernel=problem.kernel)


def _decomposition(problem: Problem, n: int, remedy: str, alpha: float | None) -> tuple[list[Step], int]:
    """Steps and bytes on disk of the direct solve."""
    table = problem.table
    plain = NormalEquations(unfilled_basis(problem, n), problem.centre)
    usual = NormalEquations.usual(plain.basis, problem.centre, table.counted, alpha)
    final: NormalEquations | FoldEquations = plain
    count = 0
    if problem.folds is not None:
        final, count = FoldEquations(plain, problem.folds), problem.folds.count
    # The sums and those of each fold are whitened and decomposed.
    operations = (1 + count) * (2.0 * n**3 + eigen_flops(n))
    # The sums, their whitened copy, its eigenvectors and LAPACK's workspace (evd takes 2 n^2 beside the matrix). With
    # folds also the sums of each; in place of the workspace, later, those of all other rows, a matrix and its factor.
    algebra = 8 * n * ((8 + 3 * count) * n + 4 * table.n_targets)
    sweep = step_of("final sweep", final, table, kernel_columns=n, held_bytes=8 * (2 + count) * n * n)
    steps = [
        replace(sweep, usual=(usual.flops_per_row(), step_of("", usual, table, kernel_columns=n).leaves)),
        driver_step("solve", algebra, remedy, operations),
    ]
    return steps, final.state_bytes() + plain.state_bytes() + points_bytes(problem, n)
