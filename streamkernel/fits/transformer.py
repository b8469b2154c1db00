"""The fits of Nystroem and KernelPCA: choose a basis without targets, then sum its features in one sweep."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamkernel.basis import Basis, unfilled
from streamkernel.bounds import BoundStop, Stop, stop_at
from streamkernel.engine import Machine, Plan, Session, Step, step_of
from streamkernel.errors import ParameterError, warn_user
from streamkernel.factors import FactorEigen, FeatureRows
from streamkernel.fits.ridge.ridge import plan_ridge
from streamkernel.fits.steps.choose_basis import Chosen, choose_basis
from streamkernel.fits.steps.kernel_matrix import final_sums, final_work
from streamkernel.fits.steps.record import basis_arrays, basis_of_model, fitted_fields
from streamkernel.fits.steps.run import checked_plan, measured, size_of_fit
from streamkernel.linalg import solve_lower
from streamkernel.models.certificate import certificate_of, path_of
from streamkernel.models.transformers import InverseMap, KernelPCAModel, NystroemModel
from streamkernel.records import FittedRecord, Run, StopRecord
from streamkernel.reductions.sums import Features, FeatureSums, FeatureTimes, NormalEquations, PreImages, RidgeSums
from streamkernel.selection import Problem
from streamkernel.selection.problem import unfilled_basis
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.transformers import KernelPCASettings, TransformerSettings
from streamkernel.solvers import RidgeSystem
from streamkernel.table import RowBlock, Table
from streamkernel.type_aliases import AnyArray, Fields
from streamkernel.wording import option


def fit_nystroem(
    table: Table,
    settings: TransformerSettings,
    session: Session,
    *,
    memory_limit: int | None = None,
    driver_bytes: int | None = None,
    plan: Plan | None = None,
) -> NystroemModel:
    """Whitened features of a basis; parameters and errors are those of `_planned`."""
    table = table.without_targets()
    n, plan = _planned(table, settings, session, memory_limit, driver_bytes, plan)
    with measured(session, plan) as run:
        chosen = choose_basis(settings.kernel_rows(table), settings, session, n)
        basis, sums = chosen.selection.basis, _sums(chosen, session)
        inverse = np.ascontiguousarray(solve_lower(basis.L, np.eye(len(basis))))
    fields, arrays = _parts(NystroemModel.KIND, chosen, settings, n, sums, run())
    model = NystroemModel(FittedRecord(**fields), {**arrays, "normalization": inverse})
    return model.with_basis(basis_of_model(chosen))


def fit_kernel_pca(
    table: Table,
    settings: KernelPCASettings,
    session: Session,
    *,
    memory_limit: int | None = None,
    driver_bytes: int | None = None,
    plan: Plan | None = None,
) -> KernelPCAModel:
    """Principal components of the features of a basis; parameters and errors are those of `_planned`."""
    table, wanted = table.without_targets(), settings.component_count
    n, plan = _planned(table, settings, session, memory_limit, driver_bytes, plan)
    stop = None
    with measured(session, plan) as run:
        chosen = choose_basis(settings.kernel_rows(table), settings, session, n)
        rows = FeatureRows(chosen.table, chosen.selection.basis)
        # As for an alpha of 0: the least eigenvalues are to have the digits that sums of whitened blocks have.
        sums = _sums(chosen, session, alpha=0.0)
        if settings.cuts_at_bound:
            stop = _least_bound(rows, sums, wanted or 1)
            if stop.size < len(chosen.selection.basis):
                chosen = replace(chosen, selection=chosen.selection.first(stop.size, ended="bound"))
                rows = FeatureRows(chosen.table, chosen.selection.basis)
                sums = _first(sums, stop.size)
        eigen = FactorEigen.of(rows.features, sums, count=wanted, centred=True)
        inverse = _inverse(chosen, eigen, settings.inverse_alpha, session) if settings.fit_inverse_transform else None
    if wanted is not None and len(eigen.values) < wanted:
        warn_user(
            f"only {len(eigen.values)} of {wanted} components have an eigenvalue above rounding; the others were left "
            "out"
        )
    fields, arrays = _parts(KernelPCAModel.KIND, chosen, settings, n, sums, run())
    cut = None
    if stop is not None:
        cut = StopRecord(rule="bound", looked=stop.looked, reached=stop.reached, value=stop.value)
    if inverse is not None:
        fields, arrays = {**fields, "inverse": inverse.record}, {**arrays, **inverse.arrays}
    model = KernelPCAModel.of(eigen, {**fields, "stop": cut}, arrays, wanted)
    return model.with_basis(basis_of_model(chosen))


def _sums(chosen: Chosen, session: Session, alpha: float | None = None) -> FeatureSums:
    table, basis = chosen.table, chosen.selection.basis
    work = NormalEquations.of(basis, np.zeros(0), table.counted, alpha)
    found = session.sweep(final_work(work, table, basis), table, "final sweep")
    sums: RidgeSums = final_sums(found, table, told=chosen.indefinite)
    return FeatureSums(sums.H, sums.G1, sums.weight, sums.trace)


def plan_transformer(table: Table, settings: TransformerSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory; parameters are those of `plan_ridge`."""
    # A ridge fit without targets takes the same steps: a last sweep of sums, their eigenvectors.
    inverts = isinstance(settings, KernelPCASettings) and settings.fit_inverse_transform
    return plan_ridge(table.without_targets(), settings, machine, n, _inverse_steps if inverts else None)


@dataclass(frozen=True)
class _Inverse:
    """The parts of a map from components to rows."""

    record: InverseMap
    arrays: dict[str, AnyArray]


def _inverse(chosen: Chosen, eigen: FactorEigen, alpha: float, session: Session) -> _Inverse:
    """A ridge regression from the components to the rows, on the components of the basis points; one sweep."""
    table, basis, scores = chosen.table, chosen.selection.basis, eigen.scores()
    points = scores.map_block(RowBlock(0, basis.points, None))[scores.name]
    ours, _ = Basis.empty(basis.kernel, points.shape[1], points.dtype).append(points, np.arange(len(points)))
    offset = np.zeros(table.n_features) if chosen.scaler is None else np.asarray(chosen.scaler.mean)
    equations = NormalEquations.of(ours, np.zeros(len(offset)), table.counted, alpha)
    raw = table.with_scaler(None)
    sums = session.sweep(PreImages(chosen.scaler, scores, equations, offset), raw, "inverse map")
    solution = RidgeSystem(ours, sums, intercept=False).solve(alpha)
    rmse = np.sqrt(solution.residual_square / (sums.weight or 1.0))
    return _Inverse(
        InverseMap(alpha=alpha, functions=len(ours), rmse=tuple(rmse.tolist())),
        {"inverse_points": ours.points, "inverse_coef": solution.coefficients, "inverse_offset": offset},
    )


def _inverse_steps(problem: Problem, n: int) -> list[Step]:
    """The sweep of `_inverse`, for as many components as functions."""
    table, basis = problem.table, unfilled_basis(problem, n)
    p = table.n_features
    scores = FeatureTimes(Features.of_basis(basis), unfilled(n, n), unfilled(n))
    equations = NormalEquations(Basis.unfilled(basis.kernel, n, n), unfilled(p))
    work = PreImages(table.scaler, scores, equations, unfilled(p))
    # The sums, their eigenvectors with LAPACK's workspace, and the coefficients.
    held = 8 * n * (8 * n + 4 * p)
    return [step_of("inverse map", work, table, kernel_columns=2 * n, held_bytes=held, packings=2)]


def _planned(
    table: Table,
    settings: TransformerSettings,
    session: Session,
    memory_limit: int | None,
    driver_bytes: int | None,
    plan: Plan | None,
) -> tuple[int, Plan]:
    """Basis size and plan of a fit without targets, checked before anything is read.

    Parameters
    ----------
    table : rows of the fit.
    settings : options of the fit.
    session : session that runs the sweeps.
    memory_limit : bytes of all processes together; None for what the machines have.
    driver_bytes : bytes resident in the driver before the fit.
    plan : plan for the session's machine that the caller has made and checked; None to make one.

    Raises
    ------
    ParameterError
        As of `BasisSettings.components`.
    ResourceLimitError
        The plan exceeds a limit.
    """
    n = size_of_fit(settings, table)
    plan = checked_plan(
        lambda machine, count: plan_transformer(table, settings, machine, count),
        n,
        table,
        session,
        memory_limit,
        driver_bytes,
        plan,
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
    try:
        found = stop_at(left, BoundStop(round(sums.count), largest=largest, patience=None))
    except ParameterError as error:
        raise ParameterError(
            f"{option('sparse', 'bound')} takes weights as numbers of equal rows, and these are none ({error}); divide "
            "the weights by the least that is above 0, or give a number of basis functions"
        ) from error
    return replace(found, size=min(max(found.size, at_least), len(left)))


def _first(sums: FeatureSums, size: int) -> FeatureSums:
    """The part of the sums for the first functions: whitening is triangular in the order of picking."""
    H = np.ascontiguousarray(sums.H[:size, :size])
    return FeatureSums(H, sums.G1[:size].copy(), sums.count, sums.trace)
