"""The fits of Nystroem and KernelPCA: choose a basis without targets, then sum its features in one sweep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamkernel.bounds import BoundStop, Stop, stop_at
from streamkernel.engine import Plan, Session
from streamkernel.errors import ParameterError
from streamkernel.factors import FactorEigen, FeatureRows
from streamkernel.fits._choose_basis import Chosen, choose_basis
from streamkernel.fits._record import basis_arrays, fitted_fields
from streamkernel.fits.ridge import plan_ridge
from streamkernel.fits.run import checked_plan, measured
from streamkernel.linalg import solve_lower
from streamkernel.models.certificate import certificate_of, path_of
from streamkernel.models.transformers import KernelPCAModel, NystroemModel
from streamkernel.records import FittedRecord, Run, StopRecord
from streamkernel.reductions.sums import FeatureGram, FeatureSums
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, Fields

_ROUNDING = 1e-9  # error of the certificate of Nystroem, as a share of the trace


def fit_nystroem(
    table: Table,
    settings: BasisSettings,
    session: Session,
    *,
    memory_limit: int | None = None,
    driver_bytes: int | None = None,
) -> NystroemModel:
    """Whitened features of a basis; parameters and errors are those of `_planned`."""
    table = table.without_targets()
    n, plan = _planned(table, settings, session, memory_limit, driver_bytes)
    with measured(session, plan) as run:
        chosen = choose_basis(table, settings, session, n)
        basis, rows = chosen.selection.basis, FeatureRows(chosen.table, chosen.selection.basis)
        sums = session.sweep(FeatureGram.within(rows.features, _ROUNDING), chosen.table, "final sweep")
        inverse = np.ascontiguousarray(solve_lower(basis.L, np.eye(len(basis))))
    fields, arrays = _parts(NystroemModel.KIND, chosen, settings, n, sums, run())
    return NystroemModel(FittedRecord(**fields), {**arrays, "normalization": inverse}).with_basis(basis)


def fit_kernel_pca(
    table: Table,
    settings: BasisSettings,
    session: Session,
    *,
    components: int | None,
    size: str,
    at_bound: bool,
    memory_limit: int | None = None,
    driver_bytes: int | None = None,
) -> KernelPCAModel:
    """Principal components of the features of a basis.

    Parameters
    ----------
    components : number of components; None for all.
    size : the user's name for the basis size, for messages.
    at_bound : whether the basis is cut where the compression bound is smallest.

    Others, and errors, are those of `_planned`.
    """
    table = table.without_targets()
    at_least = components or 1
    n, plan = _planned(table, settings, session, memory_limit, driver_bytes, size=size, at_least=at_least)
    stop = None
    with measured(session, plan) as run:
        chosen = choose_basis(table, settings, session, n)
        rows = FeatureRows(chosen.table, chosen.selection.basis)
        sums = session.sweep(FeatureGram.within(rows.features, 0.0), chosen.table, "final sweep")
        if at_bound:
            stop = _least_bound(rows, sums, at_least)
            if stop.size < len(chosen.selection.basis):
                chosen = replace(chosen, selection=chosen.selection.first(stop.size, ended="bound"))
                rows = FeatureRows(chosen.table, chosen.selection.basis)
                sums = _first(sums, stop.size)
        eigen = FactorEigen.of(rows.features, sums, count=components, centred=True)
    fields, arrays = _parts(KernelPCAModel.KIND, chosen, settings, n, sums, run())
    cut = None
    if stop is not None:
        cut = StopRecord(rule="bound", looked=stop.looked, reached=stop.reached, value=stop.value)
    model = KernelPCAModel.of(eigen, {**fields, "stop": cut}, arrays, components)
    return model.with_basis(chosen.selection.basis)


def _planned(
    table: Table,
    settings: BasisSettings,
    session: Session,
    memory_limit: int | None,
    driver_bytes: int | None,
    *,
    size: str = "n_components",
    at_least: int = 1,
) -> tuple[int, Plan]:
    """Basis size and plan of a fit without targets, checked before anything is read.

    Parameters
    ----------
    table : rows of the fit.
    settings : options of the fit; those for targets are ignored.
    session : session that runs the sweeps.
    memory_limit : bytes of all processes together; None for what the machines have.
    driver_bytes : bytes resident in the driver before the fit.
    size : the user's name for the basis size, for messages.
    at_least : smallest default of the basis size.

    Raises
    ------
    ParameterError
        The basis is larger than the table, or the lengthscale, the kernel or the metric is to be found from targets.
    ResourceLimitError
        The plan exceeds a limit.
    """
    settings.check_without_targets()
    if settings.n_components is not None and settings.n_components > table.n_rows:
        raise ParameterError(
            f"{size} is {settings.n_components}, more than the {table.n_rows} rows; give at most {table.n_rows}"
        )
    n = settings.components(table)
    if settings.n_components is None and not settings.takes_columns(table):
        n = max(n, min(at_least, table.counted))
    # A ridge fit without targets takes the same steps: a last sweep of sums, their eigenvectors.
    plan = checked_plan(
        lambda machine, count: plan_ridge(table, settings, machine, count),
        n,
        table,
        session,
        memory_limit,
        driver_bytes,
    )
    return n, plan


def _parts(
    kind: str, chosen: Chosen, settings: BasisSettings, n: int, sums: FeatureSums, run: Run
) -> tuple[Fields, dict[str, AnyArray]]:
    """Fields and arrays that the models of both kinds have; n is the basis size that was asked for."""
    assert sums.trace is not None
    path = path_of(sums.trace, sums.squares)
    fields = {
        **fitted_fields(kind, chosen, settings, n, len(run.sweeps)),
        "certificate": certificate_of(float(path[0]), float(path[-1])),
        "run": run,
    }
    return fields, basis_arrays(chosen, path)


def _least_bound(rows: FeatureRows, sums: FeatureSums, at_least: int) -> Stop:
    """Stop at the smallest compression bound along the picks, but keep at least `at_least` functions."""
    assert rows.basis is not None
    assert sums.trace is not None
    left = np.maximum(sums.trace - np.cumsum(sums.squares), 0.0)
    largest = float(rows.basis.kernel.diagonal(rows.basis.points[:1])[0])
    found = stop_at(left, BoundStop(round(sums.count), largest=largest, patience=None))
    return replace(found, size=min(max(found.size, at_least), len(left)))


def _first(sums: FeatureSums, size: int) -> FeatureSums:
    """The part of the sums for the first functions: whitening is triangular in the order of picking."""
    H = np.ascontiguousarray(sums.H[:size, :size])
    return FeatureSums(H, sums.G1[:size].copy(), sums.count, sums.trace)
