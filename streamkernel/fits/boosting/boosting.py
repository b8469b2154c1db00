"""Boosting: kernel on a sample -> members, each by one sweep that also draws the rows of the next -> vote -> model."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Machine, Plan, Session, Step, TableShape, make_plan, step_of
from streamkernel.errors import warn_user
from streamkernel.fits.boosting._boosting_members import learner_bytes
from streamkernel.fits.boosting._boosting_path import BoostingFound, BoostingPath
from streamkernel.fits.boosting._boosting_weights import sample_rows
from streamkernel.fits.steps.choose_basis import choose_basis
from streamkernel.fits.steps.plan_steps import check_step, points_bytes, steps_of_choice
from streamkernel.fits.steps.supervised import SupervisedRun
from streamkernel.models.boosting import BoostingModel, BoostingSolution, MemberRecord
from streamkernel.models.certificate import certificate_of
from streamkernel.models.predicting import Predicting
from streamkernel.records import CountedTotals
from streamkernel.reductions.boosting import BoostingStep, CalibratedVotes, Members, Votes, code_dtype
from streamkernel.reductions.predictions import Curves
from streamkernel.selection import Problem
from streamkernel.selection.problem import gather_step, in_double, unfilled_basis
from streamkernel.settings.boosting import SVM, BoostingSettings, check_classes
from streamkernel.solvers import isotonic_curves, platt_curves
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, Float, Unchecked


def fit_boosting(
    table: Table, settings: BoostingSettings, session: Session, *, estimator: str, **options: Unchecked
) -> BoostingModel:
    """Fit members and their vote; options and errors are those of `SupervisedRun`."""
    settings = settings.for_table(table)
    run = SupervisedRun(table, settings, session, plan_boosting, estimator=estimator, **options)
    with run.measured():
        folds = settings.folds(table)
        chosen = choose_basis(run.table, settings, session, run.n, folds=folds)
        rows, functions = settings.rows_of_member(table), settings.functions_of_member(table)
        with session.rows_folder() as place:
            path = BoostingPath(chosen, settings, session, folds, rows, functions, place)
            found = path.filter() if settings.filters else path.resample()
        basis = Basis(chosen.kernel, found.members.points, found.rows)
        chosen = replace(chosen, selection=replace(chosen.selection, basis=basis))
        # A sweep of the fit: the model then finds these rows in the cache.
        chosen.points_of(basis)
        votes, arrays = Votes(found.members, found.weights), _arrays(found)
        predictor: Predicting = votes
        curves = _curves(settings, found.last.values[found.place])
        if curves is not None:
            arrays |= {**curves.to_arrays(), "margin_weights": found.last.values[found.place]}
            predictor = CalibratedVotes(votes, curves)
        held = folds
        check = run.check(
            chosen, predictor, None, None if held is None else lambda block: held.held_out(_keys(block.keys))
        )
    trace = found.last.trace
    return run.model(
        BoostingModel,
        chosen,
        check,
        # No features are computed of the points: all of the trace, which certifies nothing.
        np.full(len(basis) + 1, trace),
        arrays,
        totals=CountedTotals(rows=sum(found.last.rows), trace=trace),
        certificate=certificate_of(trace, trace),
        solution=_solution(settings, found),
    )


def _keys(keys: Unchecked) -> Unchecked:
    assert keys is not None, "folds need a table with keys"
    return keys


def _curves(settings: BoostingSettings, histogram: Float) -> Curves | None:
    """The curves of the votes of held-out rows; None where none are wanted, or there are no such rows."""
    if settings.calibration == "none":
        return None
    if not histogram.any():
        warn_user("no row is held out, and probabilities cannot be calibrated: the model has none; give more rows")
        return None
    return isotonic_curves(histogram) if settings.calibration == "isotonic" else platt_curves(histogram)


def _arrays(found: BoostingFound) -> dict[str, AnyArray]:
    members = found.members
    return {
        "dual_coef": members.coefficients,
        "intercept": members.constants,
        "member_positions": members.positions,
        "member_ends": members.ends,
        "member_weights": found.weights,
        "margin_shares": found.last.margins[found.place],
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _solution(settings: BoostingSettings, found: BoostingFound) -> BoostingSolution:
    return BoostingSolution(
        method=settings.method,
        learner=settings.learner,
        ended=found.ended,
        kept=len(found.weights),
        rows=found.last.rows[0],
        validation_rows=found.last.rows[1],
        functions=len(found.members.positions),
        members=tuple(
            MemberRecord(
                rows=each.rows,
                error=each.error,
                factor=each.factor,
                training_error=_known(each.errors[0]),
                validation_error=_known(each.errors[1]),
                vote_training_error=_known(each.vote_errors[0]),
                vote_validation_error=_known(each.vote_errors[1]),
            )
            for each in found.tried
        ),
    )


def plan_boosting(table: Table, settings: BoostingSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory; parameters are those of `plan_ridge`."""
    settings = settings.for_table(table)
    if table.classes is not None:
        check_classes(settings, len(table.classes))
    n = settings.components(table) if n is None else n
    folds = settings.folds(table)
    problem, steps = steps_of_choice(table, settings, n, folds)
    steps += _member_steps(problem, settings, n, kept=not machine.workers)
    # A row is a point once, of however many members.
    n = min(table.n_rows, settings.most_members * n)
    if problem.table.scaler is not None and not problem.table.scaler.invertible:
        steps.append(in_double(replace(gather_step(problem, n), name="rows of the members"), problem.table))
    disk = sum(step.times * step.state_bytes for step in steps if step.where == "sweep") + points_bytes(problem, n)
    disk += table.n_rows * settings.most_members * code_dtype(max(table.n_targets, 2), soft=settings.soft).itemsize
    steps.append(check_step(problem, n))
    return make_plan(steps, TableShape.of(problem.table), machine, disk_bytes=disk, kernel=problem.kernel)


def _member_steps(problem: Problem, settings: BoostingSettings, each: int, *, kept: bool) -> list[Step]:
    """The first sample, a sweep for each member of so many functions, and one of the vote."""
    table, T, n = problem.table, settings.most_members, min(problem.table.n_rows, settings.most_members * each)
    rows = settings.rows_of_member(table) if settings.learner != SVM else max(each, 2)
    C = max(table.n_targets, 2)
    K = 1 if C == 2 else C
    # The sample as it is drawn, and the members before and after the new one joins.
    held_rows = rows * (3 * table.width * table.dtype.itemsize + 64) + 2 * T * each * (8 * K + 8)
    held_rows += 2 * n * (table.width * table.dtype.itemsize + 8)
    held = learner_bytes(settings, min(rows, table.n_rows), table.width, C)
    searched = (min(sample_rows(table), table.n_rows),) if settings.bounded else ()
    # The rows on which the weights of members are found, their votes, and three copies in a step of the search.
    held_rows += sum(searched) * (table.width * table.dtype.itemsize + 8 * (4 + 4 * C))

    def step(name: str, members: int, draw: str, sizes: tuple[int, ...], counted: tuple[int, ...], times: int) -> Step:
        unfilled, none = _unfilled(problem, members, each, n, C, settings.soft), np.zeros(members)
        work = BoostingStep(
            unfilled, none, none, none, 1.0,
            draw, sizes, 0, 0, np.dtype(table.dtype), settings.bounded, problem.folds, counted,  # type: ignore[arg-type]
            settings.calibration != "none",
        )  # fmt: skip
        columns = len(work.members.points)
        return step_of(
            name,
            work,
            table,
            kernel_columns=columns,
            times=times,
            held_bytes=held if sizes else 0,
            rows_bytes=held_rows,
        )

    first = step("first sample", 0, "all", (rows, *searched), (), 1)
    # Where codes are kept only the newest member is computed; else all before it too, on average half.
    draw, sizes = ("vote", (rows,)) if settings.bounded else ("errors", (rows // 2, rows - rows // 2))
    members = step("members", T, draw, sizes, (), T)
    share = 1.0 / T if kept else (T + 1) / (2 * T)
    members = replace(
        members,
        flops_per_row=members.flops_per_row * share,
        kernel_columns=max(1, round(members.kernel_columns * share)),
    )
    return [first, members, step("vote", T, "none", (), (T, T), 1)]


def _unfilled(problem: Problem, count: int, each: int, n: int, classes: int, soft: bool) -> Members:
    """Members with the shapes of so many, but without their memory."""
    columns, q = 1 if classes == 2 else classes, count * each
    points = unfilled_basis(problem, min(n, q)).points
    return Members(
        problem.kernel,
        points,
        np.broadcast_to(np.zeros((), np.int64), (q,)),
        each * np.arange(1, count + 1),
        np.broadcast_to(np.zeros(()), (q, columns)),
        np.zeros((count, columns)),
        classes,
        soft,
    )
