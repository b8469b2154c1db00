"""Kernel ridge: table -> lengthscale -> basis -> one sweep of sums, or one per iteration -> alpha -> model."""

from __future__ import annotations

from collections.abc import Callable

from streamkernel.engine import Machine, Plan, Session, Step, TableShape, make_plan
from streamkernel.fits.ridge._decomposition import by_decomposition, decomposition_steps
from streamkernel.fits.ridge._iterations import by_iterations, iteration_steps
from streamkernel.fits.steps.choose_basis import choose_basis
from streamkernel.fits.steps.kernel_matrix import final_sums, final_work
from streamkernel.fits.steps.plan_steps import check_step, steps_of_choice
from streamkernel.fits.steps.supervised import SupervisedRun
from streamkernel.fits.steps.target_checks import check_numbers
from streamkernel.models.ridge import RidgeModel
from streamkernel.models.seen_rows import seen_by_fit
from streamkernel.reductions import Predictions, Reduction
from streamkernel.reductions.predictions import calibrated, curves_of
from streamkernel.reductions.sums import FoldEquations, FoldSums, NormalEquations, RidgeSums
from streamkernel.selection import Problem
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.solvers import uniform_sample
from streamkernel.table import Table
from streamkernel.type_aliases import Unchecked
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
        drawn = settings.preconditioner_draw(run.table, run.n) if solver == "cg" else None
        later = None if drawn is None else drawn.rows
        chosen = choose_basis(run.table, settings, session, run.n, folds=folds, looks_at_errors=True, later=later)
        basis, table = chosen.selection.basis, chosen.table
        if drawn is not None:
            solved = by_iterations(chosen, settings, session, uniform_sample(drawn, chosen.fetch), folds)
        else:
            equations = NormalEquations.of(basis, chosen.centre, table.counted, settings.given_alpha)
            work: Reduction[RidgeSums | FoldSums] = equations if folds is None else FoldEquations(equations, folds)
            found = session.sweep(final_work(work, table, basis), table, "final sweep")
            sums = final_sums(found, table, told=chosen.indefinite)
            solved = by_decomposition(chosen, settings, session, sums, folds)
        coefficients, intercept = solved.arrays["dual_coef"], solved.arrays["intercept"]
        values = Predictions(basis, coefficients, intercept)
        check = run.check(chosen, calibrated(values, curves_of(solved.arrays)))
    own = {"seen": seen_by_fit(table), "updates": None, "validation": None, **solved.fields}
    if table.multilabel:
        own["multilabel"] = True
    return run.model(RidgeModel, chosen, check, solved.residual_path, solved.arrays, **own)


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
    later = settings.preconditioner_rows(table, n) if isinstance(settings, RidgeSettings) and by_iterations else 0
    problem, steps = steps_of_choice(table, settings, n, folds, looks_at_errors=True, later=later)
    if isinstance(settings, RidgeSettings) and by_iterations:
        further, disk = iteration_steps(problem, n, settings, machine)
    else:
        remedy = (
            f"{option('solver', 'cg')} with {option('alpha', 'cv')} or a number for it"
            if isinstance(settings, RidgeSettings)
            else ""
        )
        alpha = settings.given_alpha if isinstance(settings, RidgeSettings) else None
        further, disk = decomposition_steps(problem, n, remedy, alpha)
    if table.n_targets:
        further.append(check_step(problem, n))
    if after is not None:
        further += after(problem, n)
    return make_plan(steps + further, TableShape.of(problem.table), machine, disk_bytes=disk, kernel=problem.kernel)
