"""Matching pursuit: lengthscale -> functions picked over sweeps -> model from the sums of the last sweep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamkernel.engine import Machine, Plan, Session, TableShape, make_plan
from streamkernel.errors import warn_user
from streamkernel.estimators.choosing import choose_basis
from streamkernel.estimators.plan import check_step, steps_of_choice
from streamkernel.estimators.pursuit_fitted import PursuitFitted
from streamkernel.estimators.pursuit_model import PursuitModel
from streamkernel.estimators.pursuit_settings import PursuitSettings
from streamkernel.estimators.supervised import FittedSteps, Watched, fit_supervised
from streamkernel.pursuit import PursuitSelection
from streamkernel.selection import Problem
from streamkernel.table import Table

__all__ = ["fit_pursuit", "plan_pursuit"]


def fit_pursuit(
    table: Table, settings: PursuitSettings, session: Session, *, estimator: str = "kmp", **options: Any
) -> PursuitModel:
    """Fit by matching pursuit; labels give a classifier. Parameters and errors are those of `fit_supervised`."""
    if table.classes is not None:
        estimator = "kmp-classifier"
    settings = settings.watching(table)
    parts = fit_supervised(
        table,
        settings,
        session,
        lambda n: _fit(table, settings, session, n),
        lambda machine, n: plan_pursuit(table, settings, machine, n),
        estimator=estimator,
        watched=_watched,
        **options,
    )
    model = PursuitModel(parts.config, parts.arrays)
    if model.path.terms == 0 and not model.path.rss.any():
        warn_user("all rows of the fit have the same targets: the model is that constant, and has no functions")
    return model


def _fit(table: Table, settings: PursuitSettings, session: Session, n: int) -> PursuitFitted:
    """Choose the functions; the selection contains the coefficients too."""
    chosen = choose_basis(table, settings, session, n)
    selection = chosen.selection
    assert isinstance(selection, PursuitSelection)
    settings = settings.held_out(selection.path.validation_rows, table.n_rows)
    return PursuitFitted(chosen, settings, n, sweeps=len(session.records))


def _watched(fitted: FittedSteps) -> Watched:
    """The rows that chose the size; the report's picture uses them where the table has no other rows."""
    assert isinstance(fitted, PursuitFitted)
    chosen, settings = fitted.chosen, fitted.settings
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
    disk += 8 * n * (n + table.n_features + 4)
    shape = TableShape.of(table)
    if isinstance(settings.validation, Table):
        # All sweeps are planned with one shape: that of the larger chunks. A table in memory has no chunks.
        other = TableShape.of(settings.validation)
        if other.in_memory < shape.in_memory or other.chunk_bytes > shape.chunk_bytes:
            shape = replace(shape, chunk_rows=other.chunk_rows, in_memory=other.in_memory and shape.in_memory)
    return make_plan(steps, shape, machine, disk_bytes=disk, kernel=problem.kernel)
