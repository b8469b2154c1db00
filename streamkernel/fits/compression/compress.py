"""A compressed table: table -> scaling and basis -> rows drawn -> clusters, or herding -> few weighted rows."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from streamkernel.blobs import normalised
from streamkernel.byte_counts import parse_bytes
from streamkernel.compression import CompressedTable, Rows
from streamkernel.compression.clustering import cluster_rows
from streamkernel.compression.drawing import Group, groups
from streamkernel.compression.herding import herded_rows
from streamkernel.engine import Plan, Progress, Session, executor_of, resident_bytes
from streamkernel.errors import StoreExistsError
from streamkernel.fits.compression._compression_maps import Maps, needs_statistics, table_of_choice
from streamkernel.fits.compression.compression_plan import DRAWN, moments_of, plan_of_compression
from streamkernel.fits.steps.choose_basis import Chosen, choose_basis
from streamkernel.fits.steps.run import checked_plan, measured, size_of_fit
from streamkernel.outputs import check_target
from streamkernel.reductions import Both, Gather
from streamkernel.settings.compression import SUBSAMPLE, CompressionSettings
from streamkernel.table import Table, TableInfo, open_table
from streamkernel.table.frames import is_rows_frame, names_in
from streamkernel.table.info import stored_weight
from streamkernel.table.ingest import ingest
from streamkernel.table.synthetic import is_synthetic
from streamkernel.table.targets import Targets
from streamkernel.type_aliases import Fields, Unchecked, Untyped


def compress(
    X: Unchecked,
    y: Unchecked = None,
    *,
    size: int | None = None,
    method: str = "squash",
    path: str | os.PathLike[str] | None = None,
    sample_weight: Unchecked = None,
    classify: bool | None = None,
    functions: str = "fitted",
    oversampling: int | None = None,
    sweeps: int = 5,
    representative: str = "mean",
    target_weight: float = 0.0,
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
    y : targets; text labels, and those that are true or false, are classes.
    size : number of rows; None for 2 % of those of weight > 0. Clusters that have no rows at the end are left out.
    method : "subsample", "precluster", "squash" or "thinning"; see `docs/compression.md`.
    path : path or URL of a table to write, as `ingest` writes it; None writes none.
    sample_weight : weights of the rows; None for those of the store, or for ones.
    classify : whether targets that are numbers are labels of classes; None for no.
    functions : functions whose likelihood "squash" keeps: "fitted", "kernel" or "linear".
    oversampling : number of candidates for each row, where rows are picked; None for 30 or what 256 MB hold.
    sweeps : largest number of Lloyd steps over all rows, where rows become clusters.
    representative : row of a cluster: "mean" or "seed".
    target_weight : weight of targets that are numbers in the clusters of "precluster".
    profiles, loss : random functions of likelihood profiles, for "squash" with "kernel" or "linear".
    n_components : number of basis functions of "squash" and "thinning"; None for ``sqrt(m) log m``, at most 1000.
    kernel, lengthscale, gamma, degree, coef0, kernel_params, rule, objective, rule_options, tol : as `KernelRidge`.
    scale, metric, metric_rank, random_state, memory_limit, client, progress : as `KernelRidge`.
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
        check_not_source(X, path)
    labels = _labels(y) if classify is None else classify
    table = open_table(X, y, classify=labels, weights=sample_weight, sparse=True)
    weight = weight_column_of(table, X) if sample_weight is None else "w"
    session = Session(executor_of(client), progress=progress)
    found = make_compressed(table, settings, session, weight_column=weight, memory_limit=limit, driver_bytes=before)
    if path is not None:
        write_compressed(found, path, overwrite=overwrite)
    return found


def _labels(y: Unchecked) -> bool:
    """Whether targets are text, or true and false: the mean of two such is none."""
    if y is None or isinstance(y, (str, os.PathLike)):
        return False
    if is_rows_frame(y) and len(names_in(y)) > 1:  # labels are one column
        return False
    dtype = getattr(y, "dtype", None)
    kind = np.asarray(y).dtype.kind if dtype is None else getattr(dtype, "kind", "O")
    return kind in "UTOb"


def check_not_source(source: Unchecked, path: str | os.PathLike[str]) -> None:
    """Refuse to write a compressed table in place of the rows that it is made of.

    Raises
    ------
    StoreExistsError
        The path or URL is that of the source.
    """
    if not isinstance(source, (str, os.PathLike)) or is_synthetic(source):
        return
    places = [normalised(each) for each in (source, path)]
    if len({os.path.realpath(each) if isinstance(each, Path) else each for each in places}) == 1:
        raise StoreExistsError(
            f"{places[1]} has the rows that are compressed, which would be lost; choose another path"
        )


def weight_column_of(table: Table, source: Unchecked) -> str:
    """Name of the row weights of a table, or of those that it gets."""
    if table.weights is None:
        return "w"
    if table.weight_column is not None:
        return table.weight_column
    return (stored_weight(table, source) if isinstance(source, (str, os.PathLike)) else None) or "w"


def write_compressed(found: CompressedTable, path: str | os.PathLike[str], *, overwrite: bool = False) -> TableInfo:
    """Write a compressed table as `ingest` writes tables: whole, or not at all."""
    table, targets = replace(found.table, weight_column=found.weight_column), found.table.targets
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
    n = size_of_fit(settings, table)
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
            rows, lengthscale = _of_method(table, groups(table, size), settings, session, n)
    return CompressedTable.of(rows, table, weight_column, method=settings.method, lengthscale=lengthscale, run=run())


def _subsample(table: Table, size: int, settings: CompressionSettings, session: Session) -> Rows:
    """Random rows, each with the weight with which it stands for all of them."""
    drawn = Group(-1, table.weight, table.counted, size, table).draw(size, settings.seed).ascending()
    sample = session.sweep(Gather(drawn.rows, table.stored_width, table.n_targets, table.dtype), table, DRAWN)
    return Rows(sample.X, sample.Y, drawn.importance, sample.rows)


def _of_method(
    table: Table, parts: list[Group], settings: CompressionSettings, session: Session, n: int
) -> tuple[Rows, float | tuple[float, ...] | None]:
    candidates = settings.candidates(table) if settings.herds(table) else 1
    draws = [part.draw(candidates * part.size, settings.seed) for part in parts]
    numbers = np.sort(np.concatenate([each.rows for each in draws]))
    gather = Gather(numbers, table.stored_width, table.n_targets, table.dtype)
    if needs_statistics(table, settings):
        # Rows are drawn without a scaler, so that its statistics share the sweep.
        drawn, statistics = session.sweep(Both(gather, moments_of(table)), table, DRAWN)
    else:
        drawn, statistics = session.sweep(gather, table, DRAWN), table.own_statistics
    chosen = choose_basis(replace(table_of_choice(table, settings), statistics=statistics), settings, session, n)
    made = Maps.of(table, settings, chosen, statistics, drawn, session)
    lengthscale = _lengthscale(chosen) if settings.uses_kernel else None
    if settings.herds(table):
        return herded_rows(
            table, made.mean_features(), parts, drawn, [each.rows for each in draws], session
        ), lengthscale
    codes = None if table.classes is None else drawn.Y.argmax(axis=1)
    means = settings.representative == "mean"
    rows = cluster_rows(table, made.space(), drawn, codes, settings.sweeps, session, means_of_rows=means)
    return rows, lengthscale


def _lengthscale(chosen: Chosen) -> float | tuple[float, ...] | None:
    value = chosen.kernel.to_config().get("lengthscale")
    return tuple(value) if isinstance(value, list) else value
