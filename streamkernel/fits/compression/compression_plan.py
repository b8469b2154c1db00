"""The plan of a compressed table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamkernel.basis import unfilled
from streamkernel.compression.clustering import MEANS, STEP, clusters_of
from streamkernel.compression.herding import PART, SUMS
from streamkernel.compression.pilot import FIT
from streamkernel.engine import Machine, Plan, Step, TableShape, driver_step, make_plan, step_of
from streamkernel.fits.compression._compression_maps import Maps, needs_statistics, table_of_choice
from streamkernel.fits.steps.plan_steps import steps_of_choice
from streamkernel.reductions import Gather, Moments
from streamkernel.reductions.cluster_means import ClusterMeans
from streamkernel.reductions.mean_features import MeanFeatureSums
from streamkernel.reductions.row_spaces import InSpace
from streamkernel.reductions.sums import NormalEquations
from streamkernel.selection import Problem
from streamkernel.selection.problem import both_steps, unfilled_basis
from streamkernel.settings.compression import SUBSAMPLE, CompressionSettings
from streamkernel.table import ColumnStatistics, Table, TableStatistics

DRAWN = "rows drawn"


def moments_of(table: Table) -> Moments:
    """The reduction that finds statistics of the columns, and of targets that are numbers."""
    return Moments.of(table, 0 if table.classes is not None else table.n_targets)


def plan_of_compression(table: Table, settings: CompressionSettings, machine: Machine, n: int) -> Plan:
    """The plan of a compressed table whose method uses n functions."""
    settings.check_sparse(table)
    size, p, d = settings.rows_of(table), table.stored_width, table.n_targets
    disk, shape = size * (p * table.dtype.itemsize + 8 * (d + 1)), TableShape.of(table)
    herds = settings.herds(table)
    numbers = unfilled(min(size * (settings.candidates(table) if herds else 1), table.n_rows), dtype=np.dtype(np.int64))
    gather = step_of(DRAWN, Gather(numbers, p, d, table.dtype), table, kernel_columns=0)
    kept = gather.state_bytes * (2 if herds else 1) + 64 * len(numbers)
    gather = replace(gather, held_bytes=gather.state_bytes + kept, kept_bytes=kept)
    # The rows in float64, as they are and as they are written.
    made = driver_step("compressed table", 3 * size * (8 * p + 8 * d + 24))
    if settings.method == SUBSAMPLE:
        return make_plan([gather, made], shape, machine, disk_bytes=disk)
    known = table
    if needs_statistics(table, settings):
        gather = both_steps(gather, step_of(DRAWN, moments_of(table), table, kernel_columns=0))
        known = _with_statistics(table)
    problem, chosen = steps_of_choice(table_of_choice(known, settings), settings, n)
    steps = [gather, *chosen]
    steps += _steps_of_method(table, settings, problem, n, size)
    return make_plan([*steps, made], shape, machine, disk_bytes=disk, kernel=problem.kernel)


def _with_statistics(table: Table) -> Table:
    """The table with the shapes of statistics, which a sweep finds before the choice."""
    weight = None if table.weights is None else 1.0
    X, y = (ColumnStatistics(1, *4 * (unfilled(columns),), weight) for columns in (table.n_features, table.n_targets))
    return replace(table, statistics=TableStatistics(X, y))


def _steps_of_method(table: Table, settings: CompressionSettings, problem: Problem, n: int, size: int) -> list[Step]:
    p, d = table.stored_width if settings.representative == "mean" else 0, table.n_targets
    maps = Maps.unfilled(table, settings, unfilled_basis(problem, n), problem.table.width)
    steps: list[Step] = []
    if settings.fits:
        work = NormalEquations(unfilled_basis(problem, n), np.zeros(d))
        rows = replace(problem.table, targets=table.targets)
        steps.append(step_of(FIT, work, rows, kernel_columns=n, held_bytes=8 * n * (8 * n + 4 * d)))
    if settings.herds(table):
        features = maps.mean_features()
        # phi of a part of the candidates, and what it is made of: rows as stored and scaled, kernel values, features.
        made = 2 * (n + max(problem.table.width, table.stored_width)) + 4
        part = 8 * settings.candidates(table) * min(PART, size) * (features.numbers_of_row + made)
        means = MeanFeatureSums(features)
        return [*steps, step_of(SUMS, means, table, kernel_columns=n, held_bytes=part + 2 * means.state_bytes())]
    space = maps.space(planned=True)
    clusters = clusters_of(unfilled(size, space.width), None)
    columns = n if settings.uses_kernel else 0
    # Random functions of sparse rows have as many coefficients as the rows have columns.
    coefficients = 2 * 8 * table.n_features * space.width if table.sparse and settings.functions == "linear" else 0
    centres = 6 * 8 * size * space.width + coefficients
    if settings.sweeps:
        step = step_of(STEP, InSpace(space, clusters), table, kernel_columns=columns, times=settings.sweeps)
        steps.append(replace(step, held_bytes=centres))
    last = ClusterMeans(space, clusters, unfilled(size, p), unfilled(size, d))
    return [*steps, step_of(MEANS, last, table, kernel_columns=columns, held_bytes=centres + 32 * size * (p + d + 1))]
