"""Kernel ridge: table -> lengthscale -> basis -> one sweep of sums, or one per iteration -> alpha -> model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.engine import Session
from streamkernel.errors import warn_user
from streamkernel.estimators.choosing import Chosen, choose_basis
from streamkernel.estimators.kept import Fitted, falkon_arrays, falkon_record, solution_arrays, solution_record
from streamkernel.estimators.model import RidgeModel
from streamkernel.estimators.plan import plan_ridge
from streamkernel.estimators.settings import RidgeSettings
from streamkernel.estimators.supervised import check_numbers, fit_supervised
from streamkernel.reductions import NormalEquations
from streamkernel.solvers import FalkonSolution, FalkonSystem, RidgeSystem, sampled_rows
from streamkernel.table import Table

__all__ = ["fit_ridge"]

# Largest root mean square error of fitted values without a warning, in deviations of the target.
_ENOUGH = 1e-3


def fit_ridge(
    table: Table, settings: RidgeSettings, session: Session, *, estimator: str = "ridge", **options: Any
) -> RidgeModel:
    """Fit a kernel ridge model; parameters and errors are those of `fit_supervised`."""
    if estimator == "ridge":
        check_numbers(table, estimator)
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
    """Find the basis, sums, alpha and coefficients."""
    solver = settings.solver_for(table, n)
    chosen = choose_basis(table, settings, session, n)
    if solver == "cg":
        return _fit_by_iterations(chosen, settings, session, n)
    basis, table = chosen.selection.basis, chosen.table
    equations = NormalEquations.of(basis, chosen.centre, table.n_rows, settings.given_alpha)
    sums = session.sweep(equations, table, "final sweep")
    scale = None if table.classes is not None else chosen.scale**2
    system = RidgeSystem(basis, sums, intercept=settings.fit_intercept, scale=scale, independent=chosen.independent)
    alpha = settings.given_alpha
    solution = system.solve(system.choose_alpha() if alpha is None else alpha)
    return Fitted(
        chosen,
        settings,
        n,
        solution,
        system.residual_path,
        solution_arrays(sums, system, solution, scale),
        solution_record(sums, system, solution),
        sweeps=len(session.records),
    )


def _fit_by_iterations(chosen: Chosen, settings: RidgeSettings, session: Session, n: int) -> Fitted:
    """Coefficients for one alpha by conjugate gradients, and the exact certificate from their first sweep."""
    table = chosen.table
    system = FalkonSystem(
        chosen.selection.basis,
        table,
        session,
        centre=chosen.centre,
        intercept=settings.fit_intercept,
        sample=sampled_rows(table, session, settings.preconditioner_rows(table, n), settings.seed),
    )
    solution = system.solve(float(settings.alpha))
    _warn_of_error(system, solution, chosen.scale)
    assert system.residual_path is not None
    return Fitted(
        chosen,
        settings,
        n,
        solution,
        system.residual_path,
        falkon_arrays(solution),
        falkon_record(system, solution),
        sweeps=len(session.records),
    )


def _warn_of_error(system: FalkonSystem, solution: FalkonSolution, scale: NDArray[np.float64]) -> None:
    """Warn where the iterations ended before they reached the solution: by their number, or by rounding."""
    # |f - f*|^2 over the rows is at most the excess of the regularised risk.
    off = np.sqrt(solution.excess / max(system.sums.weight, np.finfo(np.float64).tiny)) / scale
    if solution.converged and (off <= _ENOUGH).all():
        return
    stopped = "by rounding" if solution.converged else "by their number"
    warn_user(
        f"conjugate gradients were ended {stopped} after {solution.iterations} iterations, at a relative residual of "
        f"{solution.residuals[-1].max():.2g}: fitted values may be off by {off.max():.2g} deviations of the target; "
        "give a larger alpha (--alpha), or solve directly (solver='direct', --solver direct)"
    )
