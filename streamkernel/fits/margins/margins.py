"""Support vector machines and quantiles: basis -> values of C on a sample -> validation fold -> all rows -> model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streamkernel.engine import Machine, Plan, Session, Step, TableShape, driver_step, make_plan, step_of
from streamkernel.errors import ParameterError, warn_user
from streamkernel.fits.margins._full_margins import FullSolver, find_full_margins, full_steps
from streamkernel.fits.margins._linear_programs import LinearSolver, limits_of, linear_record, linear_steps
from streamkernel.fits.margins._margin_path import SAMPLE_FUNCTIONS, MarginFound, find_margins, path_costs
from streamkernel.fits.margins._margin_problems import MarginProblems, sample_rows
from streamkernel.fits.steps.choose_basis import Chosen, choose_basis
from streamkernel.fits.steps.plan_steps import check_step, points_bytes, steps_of_choice
from streamkernel.fits.steps.supervised import SupervisedRun
from streamkernel.fits.steps.target_checks import check_numbers
from streamkernel.models.certificate import certificate_of
from streamkernel.models.linear import LinearClassifierModel, LinearRegressorModel
from streamkernel.models.margins import (
    MarginClassifierModel,
    MarginModel,
    MarginPath,
    MarginProblem,
    MarginRegressorModel,
    MarginSolutionRecord,
    QuantileModel,
)
from streamkernel.models.predicting import Predicting
from streamkernel.records import CountedTotals
from streamkernel.reductions import Predictions
from streamkernel.reductions.margins import PairTarget, PiecewiseLinear, SmoothStep, Target, class_pairs
from streamkernel.reductions.predictions import (
    CalibratedProbabilities,
    Curves,
    PairwisePredictions,
    PairwiseProbabilities,
    QuantilePredictions,
)
from streamkernel.reductions.scores import HeldOutErrors
from streamkernel.reductions.sums import Features
from streamkernel.selection import Problem
from streamkernel.selection.problem import unfilled_basis
from streamkernel.settings.classes import ClassifierSettings
from streamkernel.settings.linear import LinearSettings
from streamkernel.settings.margins import CalibratedSettings, MarginSettings
from streamkernel.settings.quantile import QuantileSettings
from streamkernel.solvers import (
    drawn_numbers,
    isotonic_curves,
    most_drawn,
    platt_curves,
    quantile_shifts,
    require_highs,
    uniform_draw,
    uniform_sample,
)
from streamkernel.table import Folds, Table
from streamkernel.table.class_weights import class_counts
from streamkernel.table.values import listed
from streamkernel.type_aliases import AnyArray, Float, Unchecked
from streamkernel.wording import option

# Sweeps of a solution, and of one that begins at the solution without the fold, as measured on spambase, a9a and
# covtype for C from 1 to 100.
_NEWTON_SWEEPS, INTERIOR_SWEEPS = (5, 4), (14, 10)
_LINEAR: dict[type[MarginModel], type[MarginModel]] = {
    MarginClassifierModel: LinearClassifierModel,
    MarginRegressorModel: LinearRegressorModel,
}


def fit_margins(
    table: Table, settings: MarginSettings, session: Session, *, estimator: str, **options: Unchecked
) -> MarginModel:
    """Fit a support vector machine; options and errors are those of `SupervisedRun`."""
    classify = isinstance(settings, ClassifierSettings)
    if not classify:
        check_numbers(table, estimator)
    settings = settings.for_table(table)
    if isinstance(settings, QuantileSettings):
        _check_one_target(table)
        # Several levels have a column each, as several targets do; of one level, predictions are a vector.
        options["targets_are_2d"] = isinstance(settings.quantile, tuple)
    if isinstance(settings, LinearSettings):
        require_highs()
    run = SupervisedRun(table, settings, session, plan_margins, estimator=estimator, **options)
    with run.measured():
        folds = settings.folds(table.counted)
        rows = _sample_rows(run.table, settings, folds)
        drawn, later = uniform_draw(run.table, rows, settings.seed) if rows else None, None
        if drawn is not None:
            later = drawn.rows
        elif isinstance(settings, LinearSettings):
            later = drawn_numbers(run.table, limits_of(settings, run.n), settings.seed)
        chosen = choose_basis(run.table, settings, session, run.n, folds=folds, later=later)
        targets = targets_of(chosen, settings)
        if settings.full:
            solver = LinearSolver if isinstance(settings, LinearSettings) else FullSolver
            chosen, found = find_full_margins(chosen, settings, session, targets, run.n, folds, solver)
        else:
            problems = MarginProblems(Features.of_basis(chosen.selection.basis), settings, targets, classify)
            sample = None if drawn is None else uniform_sample(drawn, chosen.fetch)
            found = find_margins(chosen.table, problems, session, folds, sample)
        values = _predictions(chosen, found.coefficients, whitened=not settings.full)
        corrected, kind, own = _corrected(settings, chosen, values, found)
        fields = solution_fields(found)
        if isinstance(settings, LinearSettings):
            kind, fields["solution"] = _LINEAR[kind], linear_record(fields["solution"], found.solutions)
        check = run.check(chosen, corrected)
    trail = found.residual_path
    return run.model(
        kind,
        chosen,
        check,
        trail,
        own,
        totals=CountedTotals(rows=found.count, trace=found.trace),
        certificate=certificate_of(float(trail[0]), float(trail[-1])),
        **({"centre": float(chosen.centre[0])} if kind is QuantileModel else {}),
        **fields,
    )


def _check_one_target(table: Table) -> None:
    if table.n_targets > 1:
        raise ParameterError(
            f"quantiles are of one target, and the table has {table.n_targets}; fit each of them on its own"
        )


def _corrected(
    settings: MarginSettings, chosen: Chosen, values: Predictions, found: MarginFound
) -> tuple[Predicting, type[MarginModel], dict[str, AnyArray]]:
    """What predicts, corrected by the histogram of the validation fold, the class of the model, and its own arrays."""
    calibrates = isinstance(settings, CalibratedSettings) and settings.calibrates
    histogram = found.histogram if calibrates else None
    arrays: dict[str, AnyArray] = {}
    predictor: Predicting = values
    kind: type[MarginModel] = MarginRegressorModel
    if isinstance(settings, QuantileSettings):
        kind = QuantileModel
        if histogram is not None:
            shift = quantile_shifts(histogram, np.array(settings.levels)) * float(chosen.scale[0])
            values = replace(values, intercept=values.intercept + shift)
            arrays["calibration_shift"] = shift
        predictor = QuantilePredictions(values, settings.levels)
    elif isinstance(settings, ClassifierSettings):
        kind = MarginClassifierModel
        assert chosen.table.classes is not None
        classes = len(chosen.table.classes)
        paired = settings.pairs(classes)
        curves: Curves | None = None
        if histogram is not None:
            isotonic = getattr(settings, "calibration", None) == "isotonic"
            curves = isotonic_curves(histogram) if isotonic else platt_curves(histogram)
            arrays |= curves.to_arrays()
            predictor = CalibratedProbabilities(values, curves)
            if paired:
                predictor = PairwiseProbabilities(values, curves, classes)
        elif paired:
            predictor = PairwisePredictions(values, classes)
        if found.histogram is not None:
            arrays["margin_weights"] = found.histogram
            _warn_of_fold(found.histogram, curves, chosen.table, paired=paired)
    return predictor, kind, {"dual_coef": values.coefficients, "intercept": values.intercept, **arrays}


def targets_of(chosen: Chosen, settings: MarginSettings) -> tuple[Target, ...]:
    """The targets: indicators of classes, or numbers in deviations from their mean."""
    table = chosen.table
    if table.classes is None:
        return tuple(
            Target(column, float(centre), float(scale))
            for column, (centre, scale) in enumerate(zip(chosen.centre, chosen.scale, strict=True))
        )
    return class_targets(settings, len(table.classes))


def _sample_rows(table: Table, settings: MarginSettings, folds: Folds | None) -> int:
    """Number of the rows on which solutions are found first; 0 for none."""
    if settings.full:
        return 0
    functions = len(_planned_targets(table, settings)) * len(settings.losses(1.0))
    return sample_rows(table.counted, functions, searched=folds is not None)


def _planned_targets(table: Table, settings: MarginSettings) -> tuple[Target, ...]:
    """As many targets as `targets_of` gives, before means and deviations are known."""
    if table.classes is None:
        return tuple(map(Target, range(max(table.n_targets, 1))))
    return class_targets(settings, len(table.classes))


def class_targets(settings: MarginSettings, classes: int) -> tuple[Target, ...]:
    """Indicators: of the second of two classes, of each class, or of the second class of each pair."""
    if settings.pairs(classes):
        return tuple(PairTarget(second, other=first) for first, second in class_pairs(classes))
    return (Target(1),) if classes == 2 else tuple(Target(column) for column in range(classes))


def solution_fields(found: MarginFound) -> dict[str, Any]:
    """Fields of a model: the solution, and the path of C."""
    solutions = found.solutions
    path = found.path
    return {
        "solution": MarginSolutionRecord(
            method=found.method,
            C=found.C,
            gap=max(solution.relative_gap for solution in solutions),
            converged=all(solution.converged for solution in solutions),
            iterations=max(len(solution.iterations) for solution in solutions),
            problems=tuple(
                MarginProblem(primal=solution.primal, dual=solution.dual, gaps=tuple(solution.relative_gaps.tolist()))
                for solution in solutions
            ),
        ),
        "path": None
        if path is None
        else MarginPath(
            C=path.costs,
            errors=tuple(path.errors.tolist()),
            errors_se=tuple(path.errors_se.tolist()),
            gaps=path.gaps,
            rows=path.rows,
            effective=path.effective,
        ),
    }


def _predictions(chosen: Chosen, b: Float, *, whitened: bool) -> Predictions:
    """The row map of K functions with the coefficients b (K, n + 1), in the units of the targets.

    They are those of the whitened features, or of the kernel functions.
    """
    basis, table = chosen.selection.basis, chosen.table
    if table.classes is None:
        weights, constants = b[:, :-1] * chosen.scale[:, None], chosen.centre + chosen.scale * b[:, -1]
    elif len(table.classes) == 2:
        # Two functions, whose difference is f, and of which the larger is that of the class.
        halves = np.array([[-0.5], [0.5]])
        weights, constants = halves * b[:, :-1], halves[:, 0] * b[0, -1]
    else:
        weights, constants = b[:, :-1], b[:, -1]
    columns = np.ascontiguousarray(weights.T)
    return Predictions(basis, basis.coefficients(columns) if whitened else columns, np.ascontiguousarray(constants))


def _warn_of_fold(histogram: Float, curves: Curves | None, table: Table, *, paired: bool) -> None:
    """Warn of classes whose rows are all held out, and of functions whose probabilities are one number."""
    assert table.classes is not None
    labels, sides = [repr(label) for label in table.classes.tolist()], histogram.sum(axis=2)
    names, held = labels[-len(sides) :], sides[0] if len(sides) == 1 else sides[:, 1]
    if paired:
        pairs = class_pairs(len(labels))
        names, held = [f"{labels[i]} against {labels[j]}" for i, j in pairs], np.zeros(len(labels))
        for (i, j), (first, second) in zip(pairs, sides, strict=True):
            held[[i, j]] = first, second
    total = class_counts(table)
    unseen = [label for label, w, of in zip(labels, held, total, strict=True) if w > 0.0 and w >= of * (1.0 - 1e-9)]
    if unseen:
        warn_user(
            f"all rows of {listed(unseen)} are held out: {option('C')} and probabilities follow from functions that "
            f"were fitted without them; give {option('C')} one number and {option('calibration', 'none')}, or more "
            "rows of these classes that are not equal"
        )
    if curves is None or not curves.flat.any():
        return
    flat = [name for name, each in zip(names, curves.flat, strict=True) if each]
    without = [label for label, w in zip(labels, held, strict=True) if not w > 0.0]
    why = f"of {listed(without)} there is no held-out row" if without else "on held-out rows they do not rise with them"
    warn_user(
        f"probabilities of {listed(flat)} do not depend on the decision values, which labels follow: {why}; give more "
        f"rows, or {option('calibration', 'none')}"
    )


def plan_margins(table: Table, settings: MarginSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory; parameters are those of `plan_ridge`."""
    settings = settings.for_table(table)
    n = settings.components(table) if n is None else n
    folds = settings.folds(table.counted)
    targets = _planned_targets(table, settings)
    rows = _sample_rows(table, settings, folds)
    later = most_drawn(limits_of(settings, n), table.counted) if isinstance(settings, LinearSettings) else rows
    problem, steps = steps_of_choice(table, settings, n, folds, later=later)
    table = problem.table
    classes = 0 if table.classes is None else len(table.classes)
    problems = MarginProblems(Features.of_basis(unfilled_basis(problem, n)), settings, targets, classes > 0)
    costs = settings.costs(table)
    if settings.full:
        steps_of = linear_steps if isinstance(settings, LinearSettings) else full_steps
        more, n = steps_of(problem, settings, costs, n, targets, folds)
        return _whole_plan([*steps, *more], problem, n, machine)
    steps += sample_steps(problem, problems, costs, n, rows)
    interior = isinstance(settings.losses(1.0)[0], PiecewiseLinear)
    first, warm = INTERIOR_SWEEPS if interior else _NEWTON_SWEEPS
    if folds is not None:
        tried = path_costs(costs, settings)
        steps.append(solver_step(problems, tried, first, table, "path"))
        scores = HeldOutErrors(
            Predictions(unfilled_basis(problem, n), np.zeros((n, len(problems.losses(tried)))), np.zeros(1)),
            problems.losses(tried),
            tuple(target for target in targets for _ in settings.losses(1.0)),
            folds,
            classes > 0,
        )
        steps.append(step_of("held-out errors", scores, table, kernel_columns=n))
    steps.append(solver_step(problems, costs[:1], warm if folds is not None else first, table, "solution"))
    steps.append(driver_step("solve", 4 * 8 * (n + 1) ** 2))
    return _whole_plan(steps, problem, n, machine)


def _whole_plan(steps: list[Step], problem: Problem, n: int, machine: Machine) -> Plan:
    """The plan of these steps, and of what comes after them, for a model of n functions."""
    disk = sum(step.times * step.state_bytes for step in steps if step.where == "sweep") + points_bytes(problem, n)
    steps.append(check_step(problem, n))
    return make_plan(steps, TableShape.of(problem.table), machine, disk_bytes=disk, kernel=problem.kernel)


def solver_step(
    problems: MarginProblems, costs: tuple[float, ...], times: int, table: Table, name: str, sampled: int | None = None
) -> Step:
    """The sweeps of one solution for each of several costs, over the table or over sampled rows of it."""
    n = problems.features.width
    step, groups = problems.largest_step(costs, times)
    # Sums of a sweep, the system of one problem and its factor; with a band, its features and the systems of its model.
    held = step.state_bytes() + 24 * (n + 1) ** 2
    if isinstance(step, SmoothStep):
        held += 16 * step.band_rows * n + 40 * (n + 1) ** 2
    options: dict[str, Any] = {} if sampled is None else {"where": "sample", "sampled": sampled}
    options["algebra"] = len(costs) * (n + 1) ** 3 / (3.0 * groups)  # the factor of each problem's system
    return step_of(name, step, table, kernel_columns=n, times=times * groups, held_bytes=held, **options)


def sample_steps(problem: Problem, problems: MarginProblems, costs: tuple[float, ...], n: int, rows: int) -> list[Step]:
    """The solutions on a sample of so many rows, if any."""
    if rows == 0:
        return []
    small = replace(problems, features=Features.of_basis(unfilled_basis(problem, min(n, SAMPLE_FUNCTIONS))))
    solutions = solver_step(small, costs, INTERIOR_SWEEPS[0], problem.table, "values of C on the sample", rows)
    # The cached rows of the sample, once mapped and once in two parts.
    wide = 16 * rows * (problem.table.width + problem.table.n_targets)
    return [replace(solutions, rows_bytes=solutions.rows_bytes + wide)]
