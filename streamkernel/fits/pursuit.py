"""Matching pursuit: lengthscale -> functions picked over sweeps -> model from the sums of the last sweep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamkernel.engine import Machine, Plan, Session, TableShape, make_plan
from streamkernel.errors import warn_user
from streamkernel.fits.steps.check_rows import Mask
from streamkernel.fits.steps.choose_basis import Chosen, choose_basis
from streamkernel.fits.steps.plan_steps import check_step, points_bytes, steps_of_choice
from streamkernel.fits.steps.supervised import SupervisedRun
from streamkernel.models.certificate import certificate_of, path_of
from streamkernel.models.pursuit import PursuitModel, PursuitSolution, PursuitTotals
from streamkernel.pursuit import PursuitSelection, Stages
from streamkernel.reductions import Predictions
from streamkernel.reductions.predictions import OddsProbabilities
from streamkernel.selection import Problem
from streamkernel.settings.pursuit import PursuitSettings
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, Float, Unchecked


def fit_pursuit(
    table: Table, settings: PursuitSettings, session: Session, *, estimator: str = "kmp", **options: Unchecked
) -> PursuitModel:
    """Fit by matching pursuit; labels give a classifier. Options and errors are those of `SupervisedRun`."""
    if table.classes is not None:
        estimator = "kmp-classifier"
    settings = settings.watching(table)
    run = SupervisedRun(table, settings, session, plan_pursuit, estimator=estimator, **options)
    with run.measured():
        watching = settings
        if isinstance(settings.validation, Table):
            watching = replace(settings, validation=run.weighted(settings.validation))
        chosen = choose_basis(run.table, watching, session, run.n)
        selection = chosen.selection  # its path has the coefficients, too
        assert isinstance(selection, PursuitSelection)
        path, terms = selection.path, selection.stages.terms
        settings = settings.held_out(path.validation_rows, table.counted)
        stages, offset = _stages(selection, chosen.table.classes)
        values = Predictions(selection.basis, stages.coefficients, stages.intercept + offset)
        logistic = settings.loss == "logistic"
        check = run.check(chosen, OddsProbabilities(values) if logistic else values, *_watched(chosen, settings))
    trail = _residual_path(selection)
    model = run.model(
        PursuitModel,
        chosen,
        check,
        trail,
        {
            "dual_coef": values.coefficients,
            "intercept": values.intercept,
            "directions": stages.directions,
            "amounts": stages.amounts,
            "offset": offset,
            **path.to_arrays(),
        },
        settings=settings.to_record(),
        totals=PursuitTotals(
            rows=path.fitted_rows,
            validation_rows=path.validation_rows,
            counted_rows=path.counted,
            trace=selection.trace,
        ),
        certificate=certificate_of(float(trail[0]), float(trail[-1])),
        solution=PursuitSolution(
            terms=terms,
            terms_tried=path.terms,
            constant=selection.stages.constant,
            ridge=selection.ridge,
            training_rmse=_root(path.rss[terms], max(path.fitted_rows, 1.0)),
            relative_rss=_share(path.rss, terms),
            validation_rmse=None if path.validation is None else _root(path.validation[terms], path.validation_rows),
            training_error=path.error_rate(terms, held_out=False),
            validation_error=path.error_rate(terms, held_out=True),
            least_weakness=float(path.weakness.min(initial=1.0)),
        ),
    )
    if model.path.terms == 0 and not model.path.rss.any():
        warn_user("all rows of the fit have the same targets: the model is that constant, and has no functions")
    return model


def _root(rss: Float, rows: float) -> tuple[float, ...]:
    """Root mean squares of each target."""
    return tuple(np.sqrt(rss / rows).tolist())


def _share(rss: Float, terms: int) -> tuple[float, ...]:
    """Residual squares of each target as a share of those of a constant; 0 for a constant target."""
    first = np.where(rss[0] > 0.0, rss[0], 1.0)
    return tuple((rss[terms] / first).tolist())


def _stages(selection: PursuitSelection, classes: AnyArray | None) -> tuple[Stages, Float]:
    """The stages of the predictions, and the offset (d,) to add; two classes have one column each.

    For two classes the target is f = -1 or 1, and the indicators are ``(1 - f) / 2, (1 + f) / 2``.
    """
    stages, offset = selection.stages, selection.offset
    if classes is None or len(classes) > 2:
        return stages, offset
    halves = np.array([[-0.5, 0.5]])
    return Stages(stages.directions, stages.amounts @ halves, stages.constant), (offset @ halves) + 0.5


def _residual_path(selection: PursuitSelection) -> Float:
    """(n + 1,) residual traces; all of the trace for kernels without whitened features, which certifies nothing."""
    if selection.squares is None:
        return np.full(len(selection.basis) + 1, max(selection.trace, 0.0))
    return path_of(selection.trace, selection.squares)


def _watched(chosen: Chosen, settings: PursuitSettings) -> tuple[Table | None, Mask | None]:
    """The rows that chose the size; the report's picture uses them where the table has no other rows."""
    problem = Problem(chosen.table, chosen.kernel, len(chosen.selection.basis), seed=settings.seed)
    watch = settings.selection_rule(has_targets=True).watch
    held_out = watch.held_out(problem)
    return watch.table(problem), None if held_out is None else held_out.of


def plan_pursuit(table: Table, settings: PursuitSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory; parameters are those of `plan_ridge`."""
    n, settings = settings.components(table) if n is None else n, settings.watching(table)
    problem, steps = steps_of_choice(table, settings, n)
    steps.append(check_step(problem, n))
    # The state of every sweep is kept until the model is there, and so is a square of directions.
    disk = sum(step.times * step.state_bytes for step in steps if step.where == "sweep")
    disk += points_bytes(problem, n) + 8 * n * (n + 4)
    shape = TableShape.of(problem.table)
    if isinstance(settings.validation, Table):
        # All sweeps are planned with one shape: that of the larger chunks. A table in memory has no chunks.
        other = TableShape.of(settings.validation)
        if other.in_memory < shape.in_memory or other.chunk_bytes > shape.chunk_bytes:
            shape = replace(shape, chunk_rows=other.chunk_rows, in_memory=other.in_memory and shape.in_memory)
    return make_plan(steps, shape, machine, disk_bytes=disk, kernel=problem.kernel)
