"""The main job: table -> lengthscale -> basis -> one sweep of sums -> alpha -> model."""

from __future__ import annotations

from typing import Any

from streamkernel.engine import Session
from streamkernel.errors import ParameterError
from streamkernel.estimators.choosing import choose_basis
from streamkernel.estimators.kept import Fitted
from streamkernel.estimators.model import RidgeModel
from streamkernel.estimators.plan import plan_ridge
from streamkernel.estimators.settings import RidgeSettings
from streamkernel.estimators.supervised import fit_supervised
from streamkernel.reductions import NormalEquations
from streamkernel.solvers import RidgeSystem
from streamkernel.table import Table

__all__ = ["fit_ridge"]


def fit_ridge(
    table: Table, settings: RidgeSettings, session: Session, *, estimator: str = "ridge", **options: Any
) -> RidgeModel:
    """Fit a kernel ridge model; parameters and errors are those of `fit_supervised`."""
    if estimator == "ridge" and table.classes is not None:
        raise ParameterError("the target holds class labels; use the estimator ridge-classifier")
    parts = fit_supervised(
        table,
        settings,
        session,
        lambda n: _fit(table, settings, session, n),
        lambda machine, n: plan_ridge(table, settings, machine, n),
        estimator=estimator,
        **options,
    )
    return RidgeModel(parts.config, parts.arrays)


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
