"""What Nystroem and KernelPCA share: a basis chosen without targets, and one sweep of its sums."""

from __future__ import annotations

from dataclasses import dataclass

from streamkernel.engine import Session
from streamkernel.errors import ParameterError
from streamkernel.estimators.choosing import Chosen, checked_plan, choose_basis
from streamkernel.estimators.plan import plan_ridge
from streamkernel.estimators.settings import RidgeSettings
from streamkernel.factors import FeatureRows
from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import FeatureGram, FeatureSums
from streamkernel.table import Table

__all__ = ["BasisFit", "fit_basis"]


@dataclass(frozen=True)
class BasisFit:
    """The results of the steps.

    Attributes
    ----------
    chosen : the basis, and how it came about.
    rows : the table, scaled, with the basis.
    sums : of the last sweep.
    sweeps : passes over the rows.
    """

    chosen: Chosen
    rows: FeatureRows
    sums: FeatureSums
    sweeps: int


def fit_basis(
    table: Table,
    settings: RidgeSettings,
    session: Session,
    *,
    rounding: float,
    size: str = "n_components",
    at_least: int = 1,
    memory_limit: int | None = None,
    driver_bytes: int = 0,
) -> BasisFit:
    """Choose a basis without looking at targets, and sum its features over all rows.

    Parameters
    ----------
    table : rows of the fit.
    settings : what is asked; what concerns targets is not looked at.
    session : where it runs.
    rounding : what the sums may lose, as a share of m; see `FeatureGram.within`.
    size : what the user calls the size of the basis.
    at_least : size of the basis where its default would be smaller.
    memory_limit : bytes of all processes together; None for what the machines have.
    driver_bytes : resident before the fit.

    Raises
    ------
    ParameterError
        The basis is larger than the table, or the lengthscale is "auto", which takes targets.
    ResourceLimitError
        The plan exceeds a limit.
    DataError, StoreError, NumericalError
        See `streamkernel.errors`.
    """
    table = table.without_targets()
    if settings.searches_lengthscale and settings.lengthscale != "median":
        raise ParameterError("lengthscale 'auto' is searched for by how well targets are predicted; give 'median' here")
    if settings.n_components is not None and settings.n_components > table.n_rows:
        raise ParameterError(
            f"{size} is {settings.n_components}, more than the {table.n_rows} rows; give at most {table.n_rows}"
        )
    n = settings.components(table)
    if settings.n_components is None:
        n = max(n, min(at_least, table.n_rows))
    # A ridge fit without targets takes the same steps: a last sweep of sums, their eigenvectors.
    checked_plan(
        lambda machine, count: plan_ridge(table, settings, machine, count),
        n,
        table,
        session,
        memory_limit,
        driver_bytes,
    )
    with single_threaded_blas():
        chosen = choose_basis(table, settings, session, n)
        rows = FeatureRows(chosen.table, chosen.selection.basis)
        sums = session.sweep(FeatureGram.within(rows.features, rounding), rows.table, "final sweep")
    return BasisFit(chosen, rows, sums, len(session.records))
