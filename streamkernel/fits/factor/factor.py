"""The low-rank factor of a table's kernel matrix: table -> lengthscale -> basis -> one sweep that writes G."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from streamkernel.blobs import joined
from streamkernel.byte_counts import parse_bytes
from streamkernel.engine import (
    Machine,
    Plan,
    Progress,
    Session,
    TableShape,
    executor_of,
    make_plan,
    resident_bytes,
    step_of,
)
from streamkernel.errors import NumericalError, ParameterError
from streamkernel.factors import BASIS, ROWS, Factor, FeatureRows, checked_folder
from streamkernel.fits.factor.factor_stop import check_stop, stopped
from streamkernel.fits.steps.choose_basis import Chosen, choose_basis
from streamkernel.fits.steps.plan_steps import points_bytes, steps_of_choice
from streamkernel.fits.steps.record import basis_arrays, basis_fields
from streamkernel.fits.steps.run import checked_plan, measured, size_of_fit
from streamkernel.linalg import PANEL_ROWS
from streamkernel.models.certificate import certificate_of, path_of
from streamkernel.records import FactorRecord, StoredColumns
from streamkernel.reductions.pools import ResidualSample
from streamkernel.reductions.sums import FeatureGram, FeatureMap, Features, NormalEquations
from streamkernel.selection.problem import unfilled_basis
from streamkernel.settings.basis import BasisSettings
from streamkernel.store import RowSink, check_target, remove_factor_rows
from streamkernel.table import Table, open_table
from streamkernel.type_aliases import AnyDType, Fields, Float, Unchecked, Untyped
from streamkernel.wording import option

COLUMNS = ("G", "none")

_CHUNK_BYTES = 16 << 20  # of G: large enough for a disk, small beside the block


def factorize(
    X: Unchecked,
    path: str | PathLike[str] | None = None,
    y: Unchecked = None,
    *,
    n_components: int | None = None,
    kernel: Unchecked = "gaussian",
    lengthscale: Unchecked = "median",
    gamma: Unchecked = None,
    degree: Unchecked = None,
    coef0: Unchecked = None,
    kernel_params: Fields | None = None,
    rule: Unchecked = "few-sweep",
    objective: Unchecked = "trace",
    rule_options: Fields | None = None,
    tol: float = 0.0,
    scale: str = "standard",
    metric: Unchecked = "none",
    metric_rank: int | None = None,
    dtype: str = "float32",
    columns: str = "G",
    stop: str = "trace",
    random_state: Unchecked = None,
    memory_limit: Unchecked = None,
    client: Untyped = None,
    progress: Progress | None = None,
    overwrite: bool = False,
    resume: bool = False,
) -> Factor:
    """A factor G (m, n) with ``G G^T = K~ ~ K``, written to `path` row block by row block.

    Parameters
    ----------
    X : rows, of any kind that `open_table` takes.
    path : path or URL of the factor; None keeps only its basis, without columns.
    y : targets, for rules that look at them (csi, few-sweep with an objective other than "trace").
    n_components : basis size n; None for ``sqrt(m) log m``, at most 1000.
    kernel, lengthscale, gamma, degree, coef0, kernel_params : as `KernelRidge`.
    rule, objective, rule_options, tol, scale, metric, metric_rank : as `KernelRidge`; a metric is learned from y.
    dtype : dtype of G on disk, "float32" or "float64"; it is computed in float64.
    columns : "G", or "none" to keep only the basis and its residual path.
    stop : "trace" ends at `tol` or n; "bound" and "gap" keep fewer of the n picks (`fits.factor.factor_stop`), and cost
        one sweep.
    random_state, memory_limit, client, progress : as `KernelRidge`.
    overwrite : replace an existing factor.
    resume : continue an interrupted run after its finished chunks.

    Raises
    ------
    ParameterError, ResourceLimitError, DataError, StoreError
        See `streamkernel.errors`; before any work where that is possible.
    """
    settings = BasisSettings.from_parameters(locals())
    limit = parse_bytes(memory_limit)
    before = resident_bytes()
    return make_factor(
        open_table(X, y, sparse=True),
        settings,
        Session(executor_of(client), progress=progress),
        path,
        dtype=dtype,
        columns=columns if path is not None else "none",
        stop=stop,
        memory_limit=limit,
        driver_bytes=before,
        overwrite=overwrite,
        resume=resume,
    )


def make_factor(
    table: Table,
    settings: BasisSettings,
    session: Session,
    path: str | PathLike[str] | None,
    *,
    dtype: str = "float32",
    columns: str = "G",
    stop: str = "trace",
    memory_limit: int | None = None,
    driver_bytes: int | None = None,
    plan: Plan | None = None,
    overwrite: bool = False,
    resume: bool = False,
) -> Factor:
    """`factorize` for a table and settings, in a session; `plan` is that of `checked_plan`."""
    if columns not in COLUMNS:
        raise ParameterError(f"{option('columns')} must be 'G' or 'none', not {columns!r}", value=columns)
    if str(dtype) not in ("float32", "float64"):
        raise ParameterError(f"{option('dtype')} must be 'float32' or 'float64', not {dtype!r}", value=dtype)
    if table.n_targets == 0 and settings.searches_lengthscale and settings.lengthscale == "auto":
        raise ParameterError(
            f"{option('lengthscale')} 'auto' is searched for by how well targets are predicted; give 'median' here"
        )
    check_stop(stop, table, settings)
    stored = _stored(columns, dtype)
    target = None if path is None else checked_folder(path, overwrite=overwrite, resume=resume)
    if target is not None and stored is None:
        check_target(joined(target, ROWS), overwrite=True, kind="factor rows")
    n = size_of_fit(settings, table)

    plan = checked_plan(
        lambda machine, size: plan_of_factor(table, settings, machine, size, columns=columns, dtype=dtype, stop=stop),
        n,
        table,
        session,
        memory_limit,
        driver_bytes,
        plan,
    )
    with measured(session, plan) as run:
        kept = stopped(choose_basis(table, settings, session, n), stop, settings, session)
        chosen = kept.chosen
        if len(chosen.selection.basis) == 0:
            raise NumericalError(
                f"the {chosen.kernel.to_config()['kernel']} kernel is 0 on all {table.n_rows} rows, so that a factor "
                "would have no columns; take another kernel, or other columns"
            )
        if target is not None and stored is not None:
            squares = _write(chosen, session, target, stored, overwrite, resume)
            trace = _trace(chosen, session)
        else:
            sums = FeatureRows(chosen.table, chosen.selection.basis).gram(session)
            assert sums.trace is not None
            squares, trace = sums.squares, sums.trace
    left = path_of(trace, squares)
    written = None
    if target is not None and stored is not None:
        fingerprint = open_table(joined(target, ROWS, "G")).fingerprint
        written = StoredColumns(dtype=str(stored), fingerprint=fingerprint)
    record = FactorRecord(
        **basis_fields(chosen, settings, n),
        column_names=tuple(chosen.table.columns),
        named_columns=chosen.table.named,
        stop=kept.record,
        columns=written,
        certificate=certificate_of(trace, float(left[-1])),
        run=run(),
    )
    factor = Factor(target, record, basis_arrays(chosen, left))
    if target is not None:
        factor.write(joined(target, BASIS), overwrite=True)
        if stored is None:
            # Of a replaced factor. It would be taken for the columns of this basis.
            remove_factor_rows(joined(target, ROWS))
    return factor


def _stored(columns: str, dtype: str) -> AnyDType | None:
    """The dtype of G on disk; None where G is not written."""
    return np.dtype(dtype) if columns == "G" else None


def _chunk_rows(table: Table, n: int, stored: AnyDType | None) -> int:
    rows = max(1, _CHUNK_BYTES // (n * (8 if stored is None else stored.itemsize)))
    # A multiple of the panels in which rows are whitened.
    rows -= rows % PANEL_ROWS if rows > PANEL_ROWS else 0
    return min(table.n_rows, rows)


def _write(
    chosen: Chosen,
    session: Session,
    target: str | Path,
    dtype: AnyDType,
    overwrite: bool,
    resume: bool,
) -> Float:
    """Write G; returns the squares of its columns, as they are stored."""
    basis = chosen.selection.basis
    work = FeatureMap(Features.of_basis(basis), dtype=dtype)
    sink = RowSink.create(
        joined(target, ROWS),
        chosen.table.n_rows,
        work.columns,
        _chunk_rows(chosen.table, len(basis), dtype),
        attributes={"rows": [chosen.table.start, chosen.table.stop], "kernel": chosen.kernel.to_config()},
        overwrite=overwrite or resume,
        fingerprint=_fingerprint(chosen),
        resume=resume,
    )
    squares: Float = session.write(work, chosen.table, sink, "write the factor")
    return squares


def _fingerprint(chosen: Chosen) -> str:
    """Digest of everything that determines G: rows, scaling, kernel, basis."""
    basis = chosen.selection.basis
    scaler = None if chosen.scaler is None else chosen.scaler.to_config()
    pins = chosen.table.run_pins
    rows = f"{pins['table']}{pins.get('chunk_times', '')}"
    parts = f"{rows} {scaler} {basis.kernel.to_config()}".encode()
    return hashlib.sha256(parts + basis.rows.tobytes() + basis.points.tobytes()).hexdigest()


def _trace(chosen: Chosen, session: Session) -> float:
    """``tr K``; only kernels that are not stationary need a sweep for it."""
    table, basis = chosen.table, chosen.selection.basis
    if chosen.kernel.stationary:
        return table.n_rows * float(chosen.kernel.diagonal(basis.points[:1])[0])
    empty = basis.take(np.zeros(0, np.int64))
    return session.sweep(
        ResidualSample(empty, 0, 0, 0, (0,), 0), replace(table, targets=None, weights=None), "trace of the kernel"
    ).residual_trace


def plan_of_factor(
    table: Table, settings: BasisSettings, machine: Machine, n: int, *, columns: str, dtype: str, stop: str = "trace"
) -> Plan:
    """The plan of a factor of n columns; parameters are those of `factorize`."""
    stored = _stored(columns, dtype)
    problem, steps = steps_of_choice(table, settings, n)
    table = problem.table
    basis = unfilled_basis(problem, n)
    disk = points_bytes(problem, n) + 32 * n
    if stop != "trace":
        work = NormalEquations(basis, problem.centre)
        steps.append(step_of("sums for the stop", work, table, kernel_columns=n, held_bytes=64 * n * n))
    if stored is None:
        gram = FeatureGram(Features.of_basis(basis))
        steps.append(step_of("final sweep", gram, table, kernel_columns=n, held_bytes=16 * n * n))
    else:
        features = FeatureMap(Features.of_basis(basis), dtype=stored)
        # Beside its block a task holds the chunk that it computes, and the one before, which is being written. By
        # measurement the allocator keeps the memory of another one.
        chunk = 3 * stored.itemsize * n * _chunk_rows(table, n, stored)
        step = step_of("write the factor", features, table, kernel_columns=n)
        steps.append(replace(step, scratch_bytes=step.scratch_bytes + chunk))
        disk += stored.itemsize * n * table.n_rows
    return make_plan(steps, TableShape.of(table), machine, disk_bytes=disk, kernel=problem.kernel)
