"""The main job: table -> lengthscale -> basis -> one sweep of sums -> alpha -> model."""

from __future__ import annotations

import time

from streamkernel.engine import PeakMeter, Session
from streamkernel.errors import ParameterError, SingleClassError
from streamkernel.estimators.check_rows import check_rows
from streamkernel.estimators.choosing import checked_plan, choose_basis
from streamkernel.estimators.kept import Fitted
from streamkernel.estimators.model import RidgeModel
from streamkernel.estimators.plan import plan_ridge
from streamkernel.estimators.record import run_record
from streamkernel.estimators.settings import RidgeSettings
from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import NormalEquations
from streamkernel.solvers import RidgeSystem
from streamkernel.table import Table

__all__ = ["fit_ridge"]


def fit_ridge(
    table: Table,
    settings: RidgeSettings,
    session: Session,
    *,
    whole: Table | None = None,
    memory_limit: int | None = None,
    estimator: str = "ridge",
    targets_are_2d: bool = False,
    driver_bytes: int | None = None,
) -> RidgeModel:
    """Fit a kernel ridge model.

    Parameters
    ----------
    table : rows of the fit, with targets.
    settings : what is asked.
    session : where and with what checkpoints it runs.
    whole : the table that `table` is a slice of; its other rows serve for the held-out picture.
    memory_limit : bytes of all processes together; None for what the machines have (`memory_limits`). A plan beyond
        it is refused before anything is read.

    Raises
    ------
    ResourceLimitError
        The plan exceeds a limit.
    SingleClassError
        A classifier was given one class.
    DataError, StoreError, NumericalError
        See `streamkernel.errors`.
    """
    if table.n_targets == 0:
        raise ParameterError("the table has no targets; ingest it with --target, or give y")
    if estimator == "ridge" and table.classes is not None:
        raise ParameterError("the target holds class labels; use the estimator ridge-classifier")
    n = settings.components(table)
    executor = session.executor
    plan = checked_plan(
        lambda machine, size: plan_ridge(table, settings, machine, size), n, table, session, memory_limit, driver_bytes
    )
    if table.classes is not None and len(table.classes) < 2:
        raise SingleClassError(
            f"y holds one class only, {table.classes.tolist()[0]!r}; a classifier needs rows of at least two classes"
        )
    began = time.perf_counter()
    # One BLAS thread on the driver too, held throughout: equal bits on any number of cores.
    with single_threaded_blas(), PeakMeter() as meter:
        fitted = _fit(table, settings, session, n)
        check = check_rows(fitted.chosen.table, whole, fitted.chosen.scaler, fitted.predictions())
    peak = meter.peak + executor.peak_bytes()
    config = fitted.config(estimator, targets_are_2d)
    config["check"] = {"kind": check.kind, "rows": len(check.true)}
    config["run"] = run_record(session, plan, time.perf_counter() - began, peak)
    return RidgeModel(config, {**fitted.arrays(), "check_true": check.true, "check_predicted": check.predicted})


def _fit(table: Table, settings: RidgeSettings, session: Session, n: int) -> Fitted:
    """Basis, sums, alpha, coefficients."""
    chosen = choose_basis(table, settings, session, n)
    basis, table = chosen.selection.basis, chosen.table
    sums = session.sweep(NormalEquations.of(basis, chosen.centre, table.n_rows), table, "final sweep")
    system = RidgeSystem(
        basis,
        sums,
        intercept=settings.fit_intercept,
        scale=None if table.classes is not None else chosen.scale**2,
    )
    solution = system.solve(system.choose_alpha() if settings.alpha == "gcv" else float(settings.alpha))
    return Fitted(chosen, settings, n, sums, system, solution, sweeps=len(session.records))
