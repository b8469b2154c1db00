"""The steps of a plan that the fits of all kinds share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamkernel.basis import unfilled
from streamkernel.engine import Step, TableShape, driver_step, step_of
from streamkernel.fits.steps._first_sweep import first_rows
from streamkernel.fits.steps.check_rows import check_bytes
from streamkernel.fits.steps.scalers import unit_scaler
from streamkernel.fits.steps.validation import checked_rows
from streamkernel.kernels import filling_bytes, packed_bytes
from streamkernel.metric import MetricScaler
from streamkernel.reductions import Moments, Predictions
from streamkernel.reductions.pools import PoolColumns
from streamkernel.selection import Problem
from streamkernel.selection.greedy import GramForm
from streamkernel.selection.problem import (
    as_first,
    before_map,
    counting,
    distinct_rows,
    gather_step,
    in_double,
    sharing,
    unfilled_basis,
)
from streamkernel.selection.row_cache import STATISTICS
from streamkernel.settings.basis import BasisSettings
from streamkernel.solvers import choice_bytes
from streamkernel.table import Folds, Table
from streamkernel.tuning import metric_steps

TUNING_BYTES = 100 << 20  # resident after a search: the optimiser, compiled loops, buffers of BLAS


def needs_moments(table: Table, settings: BasisSettings) -> bool:
    """Whether the fit needs a sweep for means and deviations of the columns, because the store has none."""
    wanted = settings.scale != "none" or (table.n_targets > 0 and table.classes is None)
    return table.own_statistics is None and wanted


def steps_of_choice(
    table: Table,
    settings: BasisSettings,
    n: int,
    folds: Folds | None = None,
    of_rows: int | None = None,
    looks_at_errors: bool = False,
    later: int = 0,
) -> tuple[Problem, list[Step]]:
    """The steps up to a chosen basis, which all fits have in common; the problem's table has the width of its blocks.

    A metric that is still to be learned has as many columns as the table: fewer are not known before, and where it
    gains nothing there is none.

    Parameters
    ----------
    folds, of_rows, looks_at_errors : as of `choose_basis`.
    later : number of the rows that the fit needs once there is a basis.
    """
    table = settings.kernel_rows(table)
    d, plain = table.n_targets, table
    given = settings.given_metric
    if given is not None or settings.learns_metric:
        width = table.n_features if given is None else given.shape[1]
        table = table.with_scaler(MetricScaler.unfilled(unit_scaler(table.n_features), width))
    kernel = settings.kernel_of(table)
    problem = Problem(
        table, kernel, n, settings.tol, settings.seed, np.zeros(d), np.ones(d), folds, given is not None, of_rows
    )
    rule = settings.rule_for(plain)
    choosing = rule.steps(problem)
    if settings.learns_metric:
        choosing = _as_a_rule(choosing, rule.steps(replace(problem, in_metric=True)))
    sampled = settings.sampled_rows(table, problem.trained_share, of_rows)
    checked = checked_rows(table, folds) if folds is not None and looks_at_errors else 0
    chosen = _with_draws(choosing, problem, (sampled, checked, later), copied=settings.tuning_rows(table))
    doubled = settings.samples_scaling or settings.searches_sample or settings.given_metric is not None
    if doubled:
        chosen = [in_double(step, table) for step in chosen]
    steps = counting(chosen, problem) if d else chosen
    if needs_moments(table, settings):
        steps = _with_statistics(steps, table, plain, doubled=doubled)
    # Once the first rows are there, before any is chosen.
    fetched = next((i for i, step in enumerate(steps) if step.kept_bytes), len(steps) - 1) + 1
    if settings.samples_scaling:
        steps.insert(fetched, scaling_step(settings.scaling_rows(table), table.n_features))
        fetched += 1
    if settings.searches_sample:
        steps[fetched:fetched] = metric_steps(
            problem, settings.searched_rows(table, of_rows), metrics=settings.learns_metric
        )
    elif settings.searches_lengthscale:
        steps.insert(fetched, _lengthscale_step(problem, settings))
    mapped = settings.samples_scaling or settings.learns_metric or settings.given_metric is not None
    if mapped and not rule.fetches_picks:
        # The points as stored, of the rows that were not sampled.
        steps.append(in_double(replace(gather_step(problem, n), name="rows of the basis"), table))
    return problem, steps


def _as_a_rule(steps: list[Step], in_metric: list[Step]) -> list[Step]:
    """The steps of a rule, which are the most, and as they are with a metric, which is found as a rule.

    In a metric fewer candidates and rows may do. Where that makes other rounds, all steps stay the most.
    """
    if len(steps) != len(in_metric):
        return steps
    return [most if most == usual else replace(most, usual=usual) for most, usual in zip(steps, in_metric, strict=True)]


def _with_statistics(steps: list[Step], table: Table, plain: Table, *, doubled: bool) -> list[Step]:
    """The steps, with statistics of the columns in the first sweep; and the first rows that the driver reads before.

    Parameters
    ----------
    doubled : whether the steps count rows as stored already (`in_double`).
    """
    moments = Moments.of(table, 0 if table.classes is not None else table.n_targets)
    work = before_map(step_of(STATISTICS, moments, plain, kernel_columns=0), table)
    shared = sharing(steps, work)
    if len(shared) == len(steps) and not doubled:
        first = next(index for index, step in enumerate(shared) if step.where == "sweep")
        shared[first] = as_first(shared[first], plain)
    if not table.n_targets or table.statistics is not None:
        return shared
    rows, chunk = first_rows(plain), 0 if TableShape.of(plain).in_memory else 3 * TableShape.of(plain).chunk_bytes
    return [driver_step("first rows", 24 * rows * plain.stored_width + chunk), *shared]


def scaling_step(rows: int, p: int) -> Step:
    """Ends or ranks of p columns from sampled rows: their copies in float64, and one column's values in order."""
    return driver_step("scaling", 8 * rows * (3 * p + 16))


def check_step(problem: Problem, n: int) -> Step:
    """The picture on some rows, which a fit of n functions ends with: the driver reads them, with the basis packed."""
    table, shape = problem.table, TableShape.of(problem.table)
    held = check_bytes(table) + packed_bytes(n, table.width, problem.kernel.formulas) + filling_bytes(table.width)
    held += shape.map_bytes
    held += 0 if shape.in_memory else 3 * shape.chunk_bytes
    return driver_step("check", held)


def fold_scores_step(problem: Problem, n: int, count: int) -> Step:
    """The sweep that scores `count` models of n functions, each on a fold; each packs its points."""
    predictions = Predictions(unfilled_basis(problem, n), unfilled(n, problem.table.n_targets), problem.centre)
    return step_of("scores", predictions, problem.table, kernel_columns=n, packings=count)


def points_bytes(problem: Problem, n: int) -> int:
    """Bytes on disk of n points: mapped; and with a metric, of which this is the size, in the units of the columns."""
    p, r = problem.table.n_features, problem.table.width
    mapped = isinstance(problem.table.scaler, MetricScaler)
    return 8 * (n * r + (p * (n + r) if mapped else 0))


def _lengthscale_step(problem: Problem, settings: BasisSettings) -> Step:
    """Distances of sampled rows, and the fits to them where a lengthscale is searched for."""
    table, kernel = problem.table, problem.kernel
    held = choice_bytes(
        settings.tuning_rows(table),
        table.width,
        table.dtype.itemsize,
        formulas=kernel.formulas,
        search=settings.lengthscale == "auto",
    )
    return driver_step("lengthscale", held)


def _with_draws(steps: list[Step], problem: Problem, draws: tuple[int, ...], *, copied: int) -> list[Step]:
    """The rule's steps, with rows of further draws in its first sweep for rows by number, or in a sweep of their own.

    Parameters
    ----------
    draws : number of rows of each.
    copied : number of these rows of which the fit keeps a copy, beside the rows that it holds.
    """
    if not any(draws):
        return steps
    m, of_row = problem.table.counted, gather_step(problem, 1).state_bytes
    further = gather_step(problem, distinct_rows(draws, m), copied=copied)
    for index, step in enumerate(steps):
        if step.name == further.name:
            # Rows that several draws want are fetched once.
            both = gather_step(problem, distinct_rows((step.state_bytes // of_row, *draws), m), copied=copied)
            kept = both.kept_bytes + step.kept_bytes - step.state_bytes  # with the rule's own copies
            return [*steps[:index], replace(both, kept_bytes=kept), *steps[index + 1 :]]
    return [further, *steps]


def points_step(problem: Problem, n: int, rows: int, *, times: int) -> Step:
    """What it costs to choose n of so many sampled rows as points (`tuning._sample_basis`)."""
    p, item = problem.table.width, problem.table.dtype.itemsize
    half = n // 2
    size = min(4 * (n - half), rows - half)  # no more candidates than there are rows that are no points yet
    pool = PoolColumns(unfilled_basis(problem, half), unfilled_basis(problem, size), np.zeros(0), np.dtype(np.float32))
    return step_of(
        "points of the sample",
        GramForm().reduction(pool),
        problem.table,
        sampled=rows,
        kernel_columns=half + size,
        where="sample",
        times=times,
        packings=2,
        # The points before and after, the candidates, and these in float64 while their features are computed.
        rows_bytes=p * (item * (half + n + size) + 8 * size),
        # Residuals of all rows at once: in float64, and their features.
        held_bytes=8 * rows * (p + n) + packed_bytes(n, p, problem.kernel.formulas) + filling_bytes(p),
    )
