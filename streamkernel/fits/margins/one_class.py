"""One class: basis without targets -> solution on a sample -> all rows -> the threshold by one more sweep -> model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamkernel.engine import Machine, Plan, Session, TableShape, driver_step, make_plan, step_of
from streamkernel.errors import warn_user
from streamkernel.fits.margins._full_margins import find_full_margins, full_steps
from streamkernel.fits.margins._margin_path import MarginFound, find_margins
from streamkernel.fits.margins._margin_problems import MarginProblems, sample_rows
from streamkernel.fits.margins.margins import INTERIOR_SWEEPS, sample_steps, solution_fields, solver_step
from streamkernel.fits.steps.choose_basis import choose_basis
from streamkernel.fits.steps.plan_steps import points_bytes, steps_of_choice
from streamkernel.fits.steps.predicting import PredictingRun
from streamkernel.models.certificate import certificate_of
from streamkernel.models.margins import OneClassModel, Threshold
from streamkernel.records import CountedTotals
from streamkernel.reductions import Predictions
from streamkernel.reductions.scores import CountDecisions, LoweredThreshold
from streamkernel.reductions.sums import Features
from streamkernel.selection.problem import unfilled_basis
from streamkernel.settings.one_class import OneClassSettings
from streamkernel.solvers import uniform_draw, uniform_sample
from streamkernel.table import Table
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

# Objective, as a share of nu of the mean k(x, x) at least, below which the rows are not separated from the origin.
_NO_REGION = 1e-12
_NEAR, _MOST_COUNTS = 0.01, 5  # step of a threshold, as a share of it, that is fine enough; sweeps to get there


def fit_one_class(
    table: Table, settings: OneClassSettings, session: Session, *, estimator: str, **options: Unchecked
) -> OneClassModel:
    """Fit one class to rows, without a look at their targets; options and errors are those of `PredictingRun`.

    The threshold rho of a solution is near the share nu of the values ``g^T b``, where the objective is least for
    given b. Many rows lie on it, on either side by less than the gap. So it is lowered, by the least step with at most
    the share nu below it.
    """
    table = table.without_targets()
    run = PredictingRun(table, settings, session, plan_one_class, estimator=estimator, **options)
    with run.measured():
        rows = 0 if settings.full else sample_rows(run.table.counted, 1, searched=False)
        drawn = uniform_draw(run.table, rows, settings.seed) if rows else None
        chosen = choose_basis(run.table, settings, session, run.n, later=None if drawn is None else drawn.rows)
        if settings.full:
            chosen, found = find_full_margins(chosen, settings, session, (None,), run.n)
        else:
            features = Features.of_basis(chosen.selection.basis)
            problems = MarginProblems(features, settings, (None,), False)
            sample = None if drawn is None else uniform_sample(drawn, chosen.fetch)
            found = find_margins(chosen.table, problems, session, None, sample)
        [b] = found.coefficients
        _warn_of_origin(found)
        basis, weights = chosen.selection.basis, np.ascontiguousarray(b[:-1, None])
        function = Predictions(basis, weights if settings.full else basis.coefficients(weights), b[-1:].copy())
        function, lowered, unit = _lowered(chosen.table, function, settings.nu, session)
    trail = found.residual_path
    return run.model(
        OneClassModel,
        chosen,
        None,
        trail,
        {
            "dual_coef": function.coefficients,
            "intercept": function.intercept,
            "decision_weights": lowered.histogram,
        },
        totals=CountedTotals(rows=found.count, trace=found.trace),
        certificate=certificate_of(float(trail[0]), float(trail[-1])),
        threshold=Threshold(
            rho=-float(function.intercept[0]),
            lowered=float(function.intercept[0] - b[-1]),
            outliers=lowered.outliers,
            unit=unit,
        ),
        **solution_fields(found),
    )


def _lowered(
    table: Table, function: Predictions, nu: float, session: Session
) -> tuple[Predictions, LoweredThreshold, float]:
    """The function with its threshold lowered to the share nu, what was lowered last, and the unit of its histogram."""
    for number in range(1, _MOST_COUNTS + 1):
        rho = -float(function.intercept[0])
        # Values of f are as large as rho at the origin of the features.
        unit = rho if rho > 0.0 else 1.0
        name = "decision values" if number == 1 else f"decision values {number}"
        lowered = session.sweep(CountDecisions(function, unit), table, name).lowered_for(nu)
        # Steps are fine near the threshold: where it is far away, as with nu = 1, it goes there first.
        near = lowered.step <= _NEAR * unit or number == _MOST_COUNTS
        function = replace(function, intercept=function.intercept + (lowered.step if near else lowered.before))
        if near:
            break
    return function, lowered, unit


def _warn_of_origin(found: MarginFound) -> None:
    """Warn where no function but 0 is near the minimum: the origin of the features is among the rows."""
    [solution] = found.solutions
    if solution.converged and -solution.primal <= _NO_REGION * found.trace * found.C:
        warn_user(
            "the rows lie around the origin of the features, from which one class separates them: no row is an "
            f"outlier; give {option('kernel', 'gaussian')} or another one with a constant k(x, x), a longer "
            f"lengthscale or more basis functions; the linear one wants {option('scale', 'none')} and columns above 0"
        )


def plan_one_class(table: Table, settings: OneClassSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory; parameters are those of `plan_ridge`."""
    table = table.without_targets()
    n = settings.components(table) if n is None else n
    rows = 0 if settings.full else sample_rows(table.counted, 1, searched=False)
    problem, steps = steps_of_choice(table, settings, n, later=rows)
    table = problem.table
    problems = MarginProblems(Features.of_basis(unfilled_basis(problem, n)), settings, (None,), False)
    # C follows from the weights of the rows, and costs do not depend on it.
    if settings.full:
        more, n = full_steps(problem, settings, (1.0,), n, (None,), None)
        steps += more
    else:
        steps += sample_steps(problem, problems, (1.0,), n, rows)
        steps.append(solver_step(problems, (1.0,), INTERIOR_SWEEPS[0], table, "solution"))
        steps.append(driver_step("solve", 4 * 8 * (n + 1) ** 2))
    function = Predictions(unfilled_basis(problem, n), np.zeros((n, 1)), np.zeros(1))
    steps.append(step_of("decision values", CountDecisions(function, 1.0), table, kernel_columns=n))
    disk = sum(step.times * step.state_bytes for step in steps if step.where == "sweep") + points_bytes(problem, n)
    return make_plan(steps, TableShape.of(table), machine, disk_bytes=disk, kernel=problem.kernel)
