"""A compressed table: table -> scaling and basis -> rows drawn -> clusters, or herding -> few weighted rows."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from streamkernel.basis import unfilled
from streamkernel.compression import CompressedTable, Rows
from streamkernel.compression.clustering import MEANS, STEP, cluster_rows, clusters_of
from streamkernel.compression.drawing import Group, Seeds, drawn_seeds, groups
from streamkernel.compression.herding import CANDIDATES, PART, SUMS, herded_rows
from streamkernel.engine import (
    Machine,
    Plan,
    Progress,
    Session,
    Step,
    TableShape,
    executor_of,
    make_plan,
    resident_bytes,
    step_of,
)
from streamkernel.engine.limits import parse_bytes
from streamkernel.fits._choose_basis import Chosen, choose_basis
from streamkernel.fits._plan_steps import steps_of_choice
from streamkernel.fits.run import checked_plan, measured
from streamkernel.outputs import check_target
from streamkernel.reductions import Gather, Moments, Sample, stream_generator
from streamkernel.reductions.cluster_means import ClusterMeans
from streamkernel.reductions.row_spaces import InSpace, Joint, LikelihoodProfiles, RowSpace
from streamkernel.reductions.scaling import Scaling
from streamkernel.reductions.sums import Features, FeatureTargetSums, FeatureTimes, TargetFunctions
from streamkernel.selection.problem import unfilled_basis
from streamkernel.settings.compression import PRECLUSTER, SUBSAMPLE, THINNING, CompressionSettings
from streamkernel.table import Table, TableInfo, TableStatistics, open_table
from streamkernel.table.info import stored_weight
from streamkernel.table.ingest import ingest
from streamkernel.table.targets import Targets
from streamkernel.type_aliases import Fields, Float, Int, Unchecked, Untyped

_FUNCTIONS = (31,)  # stream of the counter-based generator
_STATISTICS, _DRAWN = "column statistics", "rows drawn"


def compress(
    X: Unchecked,
    y: Unchecked = None,
    *,
    size: int | None = None,
    method: str = "squash",
    path: str | os.PathLike[str] | None = None,
    sample_weight: Unchecked = None,
    classify: bool | None = None,
    sweeps: int = 5,
    functions: str = "kernel",
    profiles: int = 100,
    loss: str = "logistic",
    n_components: int | None = None,
    kernel: Unchecked = "gaussian",
    lengthscale: Unchecked = "median",
    gamma: Unchecked = None,
    degree: Unchecked = None,
    coef0: Unchecked = None,
    kernel_params: Fields | None = None,
    rule: Unchecked = "uniform",
    objective: Unchecked = "trace",
    rule_options: Fields | None = None,
    tol: float = 0.0,
    scale: str = "standard",
    metric: Unchecked = "none",
    metric_rank: int | None = None,
    random_state: Unchecked = None,
    memory_limit: Unchecked = None,
    client: Untyped = None,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> CompressedTable:
    """A small weighted table that stands for the rows, for any estimator that takes row weights.

    Parameters
    ----------
    X : rows, of any kind that `open_table` takes; a store has its targets and weights.
    y : targets; text labels are classes.
    size : number of rows; None for 2 % of those of weight > 0. Clusters that have no rows at the end are left out.
    method : "subsample", "precluster", "squash" or "thinning"; see `docs/compression.md`.
    path : path or URL of a table to write, as `ingest` writes it; None writes none.
    sample_weight : weights of the rows; None for those of the store, or for ones.
    classify : whether targets that are numbers are labels of classes; None for no.
    sweeps : largest number of Lloyd steps over all rows, for "precluster" and "squash".
    functions, profiles, loss : random functions of likelihood profiles, for "squash".
    n_components : number of basis functions of "squash" and "thinning"; None for ``sqrt(m) log m``, at most 300.
    kernel, lengthscale, gamma, degree, coef0, kernel_params, rule, objective, rule_options, tol, scale, metric,
        metric_rank, random_state, memory_limit, client, progress : as `KernelRidge`.
    overwrite : replace an existing table at `path`.

    Raises
    ------
    ParameterError, ResourceLimitError, DataError, StoreError
        See `streamkernel.errors`; before any work where that is possible.
    """
    settings = CompressionSettings.from_parameters(locals())
    limit = parse_bytes(memory_limit)
    before = resident_bytes()
    if path is not None:
        check_target(path, overwrite=overwrite, kind="table")
    table = open_table(X, y, classify=_labels(y) if classify is None else classify, weights=sample_weight)
    weight = weight_column_of(table, X) if sample_weight is None else "w"
    session = Session(executor_of(client), progress=progress)
    found = make_compressed(table, settings, session, weight_column=weight, memory_limit=limit, driver_bytes=before)
    if path is not None:
        write_compressed(found, path, overwrite=overwrite)
    return found


def _labels(y: Unchecked) -> bool:
    """Whether targets are text."""
    if y is None or isinstance(y, (str, os.PathLike)):
        return False
    dtype = getattr(y, "dtype", None)
    kind = np.asarray(y).dtype.kind if dtype is None else getattr(dtype, "kind", "O")
    return kind in "UTO"


def weight_column_of(table: Table, source: Unchecked) -> str:
    """Name of the row weights of a table, or of those that it gets."""
    if table.weights is None:
        return "w"
    if table.weight_column is not None:
        return table.weight_column
    return (stored_weight(table, source) if isinstance(source, (str, os.PathLike)) else None) or "w"


def write_compressed(found: CompressedTable, path: str | os.PathLike[str], *, overwrite: bool = False) -> TableInfo:
    """Write a compressed table as `ingest` writes tables: whole, or not at all."""
    table, targets = found.table, found.table.targets
    if targets is not None and not targets.coded:
        # Labels that are numbers are stored as numbers.
        table = replace(table, targets=Targets(targets.rows, targets.names))
    return ingest(table, path, dtype="keep", overwrite=overwrite)


def make_compressed(
    table: Table,
    settings: CompressionSettings,
    session: Session,
    *,
    weight_column: str = "w",
    memory_limit: int | None = None,
    driver_bytes: int | None = None,
    plan: Plan | None = None,
) -> CompressedTable:
    """`compress` for a table and settings, in a session; `plan` is that of `checked_plan`."""
    table.check_weights()
    size = settings.rows_of(table)
    n = settings.components(table)
    parts = [] if settings.method == SUBSAMPLE else groups(table, size)
    plan = checked_plan(
        lambda machine, n: plan_of_compression(table, settings, machine, n),
        n,
        table,
        session,
        memory_limit,
        driver_bytes,
        plan,
    )
    with measured(session, plan) as run:
        if settings.method == SUBSAMPLE:
            rows, lengthscale = _subsample(table, size, settings, session), None
        else:
            rows, lengthscale = _of_method(table, parts, settings, session, n)
    return CompressedTable.of(rows, table, weight_column, method=settings.method, lengthscale=lengthscale, run=run())


def _gathered(table: Table, numbers: Int, session: Session) -> Sample:
    """These rows, as stored."""
    return session.sweep(Gather(numbers, table.n_features, table.n_targets, table.dtype), table, _DRAWN)


def _subsample(table: Table, size: int, settings: CompressionSettings, session: Session) -> Rows:
    """Random rows, each with the weight with which it stands for all of them."""
    drawn = Group(-1, table.weight, table.counted, size, table).draw(size, settings.seed).ascending()
    sample = _gathered(table, drawn.rows, session)
    return Rows(sample.X, sample.Y, drawn.importance, sample.rows)


def _of_method(
    table: Table, parts: list[Group], settings: CompressionSettings, session: Session, n: int
) -> tuple[Rows, float | tuple[float, ...] | None]:
    statistics = table.own_statistics
    if _needs_statistics(table, settings):
        d = 0 if table.classes is not None else table.n_targets
        plain = table.without_targets() if d == 0 else table
        statistics = session.sweep(Moments(table.n_features, d), plain, _STATISTICS)
    known = replace(_table_of_choice(table, settings), statistics=statistics)
    chosen = choose_basis(known, settings, session, n)
    scaling = Scaling(chosen.scaler, table.dtype, chosen.table.width)
    centre, spread = _units(table, statistics)
    drawn: list[Int] = []
    if settings.method == THINNING:
        draws = [part.draw(CANDIDATES * part.size, settings.seed) for part in parts]
        drawn = [each.rows for each in draws]
        numbers = np.sort(np.concatenate(drawn))
        candidates = _gathered(table, numbers, session)
        classes = 0 if table.classes is None else len(table.classes)
        features = Features.of_basis(chosen.selection.basis)
        targets = TargetFunctions(centre, spread, classes)
        rows = herded_rows(table, scaling, features, targets, parts, candidates, drawn, session)
    else:
        seeds: Seeds = drawn_seeds(parts, settings.seed)
        space = space_of(settings, scaling, chosen, centre, spread)
        codes = None if table.classes is None else seeds.codes
        rows = cluster_rows(table, space, _gathered(table, seeds.rows, session), codes, settings.sweeps, session)
    return rows, _lengthscale(chosen) if settings.uses_kernel else None


def _lengthscale(chosen: Chosen) -> float | tuple[float, ...] | None:
    value = chosen.kernel.to_config().get("lengthscale")
    return tuple(value) if isinstance(value, list) else value


def _needs_statistics(table: Table, settings: CompressionSettings) -> bool:
    """Whether a sweep must find means and deviations of the columns, or of the targets."""
    wanted = settings.scale != "none" or (table.n_targets > 0 and table.classes is None)
    return settings.method != SUBSAMPLE and table.own_statistics is None and wanted


def _table_of_choice(table: Table, settings: CompressionSettings) -> Table:
    """The table that scaling, kernel and basis are chosen from."""
    return table.without_targets() if settings.without_targets(table) else table


def _units(table: Table, statistics: TableStatistics | None) -> tuple[Float, Float]:
    """Mean and spread (d,) of targets that are numbers; of length 0 for others."""
    if table.classes is not None or table.n_targets == 0:
        return np.zeros(0), np.ones(0)
    assert statistics is not None
    assert statistics.y is not None
    return statistics.y.mean.copy(), np.where(statistics.y.std > 0.0, statistics.y.std, 1.0)


def space_of(
    settings: CompressionSettings, scaling: Scaling, chosen: Chosen | None, centre: Float, spread: Float
) -> RowSpace:
    """The space in which rows are compared; without a choice one with its shapes, for plans."""
    if settings.method == PRECLUSTER:
        return Joint(scaling, centre, np.sqrt(scaling.width) / spread)
    generator = stream_generator(settings.seed, _FUNCTIONS)
    d = max(1, len(spread))
    loss = "gaussian" if len(spread) else settings.loss
    if settings.functions == "linear":
        features = Features(None, scaling.width)
        A = generator.standard_normal((scaling.width, settings.profiles * d)) / np.sqrt(scaling.width)
        offset = generator.standard_normal(settings.profiles * d)
        return LikelihoodProfiles(scaling, FeatureTimes.of(features, A, offset), loss, centre, spread)
    assert chosen is not None
    features = Features.of_basis(chosen.selection.basis)
    A = generator.standard_normal((features.width, settings.profiles * d))
    return LikelihoodProfiles(scaling, FeatureTimes.of(features, A), loss, centre, spread)


def plan_of_compression(table: Table, settings: CompressionSettings, machine: Machine, n: int) -> Plan:
    """The plan of a compressed table whose method uses n functions."""
    size, p, d = settings.rows_of(table), table.n_features, table.n_targets
    disk = size * (p * table.dtype.itemsize + 8 * (d + 1))
    shape = TableShape.of(table)
    drawn = size * CANDIDATES if settings.method == THINNING else size
    numbers = unfilled(min(drawn, table.n_rows), dtype=np.dtype(np.int64))
    gather = step_of(_DRAWN, Gather(numbers, p, d, table.dtype), table, kernel_columns=0)
    gather = replace(gather, held_bytes=gather.state_bytes + 48 * len(numbers), kept_bytes=2 * gather.state_bytes)
    if settings.method == SUBSAMPLE:
        return make_plan([gather], shape, machine, disk_bytes=disk)
    steps: list[Step] = []
    if _needs_statistics(table, settings):
        moments = Moments(p, 0 if table.classes is not None else d)
        steps.append(step_of(_STATISTICS, moments, table, kernel_columns=0))
    problem, chosen = steps_of_choice(_table_of_choice(table, settings), settings, n)
    # Their step is planned already, with that of the targets.
    steps += [*(step for step in chosen if step.name != _STATISTICS), gather]
    width = problem.table.width
    scaling = Scaling(None, table.dtype, width)
    numeric = 0 if table.classes is not None else d
    units = np.zeros(numeric), np.ones(numeric)
    features = Features.of_basis(unfilled_basis(problem, n))
    if settings.method == THINNING:
        classes = 0 if table.classes is None else len(table.classes)
        targets = TargetFunctions(*units, classes)
        q = n * (1 if classes else targets.width)
        part = 8 * CANDIDATES * PART * (2 * q + 4)
        work = FeatureTargetSums(scaling, features, targets)
        steps.append(step_of(SUMS, work, table, kernel_columns=n, held_bytes=part + 4 * gather.state_bytes))
    else:
        space = _unfilled_space(settings, scaling, features, *units)
        clusters = replace(clusters_of(unfilled(size, space.width), None), weights=np.ones(space.width))
        step = step_of(STEP, InSpace(space, clusters), table, kernel_columns=n, times=settings.sweeps)
        means = ClusterMeans(space, clusters, unfilled(size, p), unfilled(size, d))
        centres = 6 * 8 * size * space.width
        steps += [replace(step, held_bytes=centres)] * bool(settings.sweeps)
        steps.append(step_of(MEANS, means, table, kernel_columns=n, held_bytes=centres + 32 * size * (p + d + 1)))
    return make_plan(steps, shape, machine, disk_bytes=disk, kernel=problem.kernel)


def _unfilled_space(
    settings: CompressionSettings, scaling: Scaling, features: Features, centre: Float, spread: Float
) -> RowSpace:
    """The space with its shapes, for plans."""
    if settings.method == PRECLUSTER:
        return Joint(scaling, centre, spread)
    if settings.functions == "linear":
        features = Features(None, scaling.width)
    q = settings.profiles * max(1, len(spread))
    work = FeatureTimes(features, unfilled(features.width, q), np.zeros(q))
    return LikelihoodProfiles(scaling, work, "gaussian" if len(spread) else settings.loss, centre, spread)
