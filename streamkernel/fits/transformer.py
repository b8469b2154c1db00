"""The fit of Nystroem and KernelPCA: choose a basis without targets, then sum its features in one sweep."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamkernel.bounds import Stop
from streamkernel.engine import PeakMeter, Session
from streamkernel.errors import ParameterError
from streamkernel.factors import FeatureRows
from streamkernel.fits.choose_basis import Chosen, checked_plan, choose_basis
from streamkernel.fits.record import basis_arrays, basis_fields, run_record
from streamkernel.fits.ridge import plan_ridge
from streamkernel.linalg import single_threaded_blas, within_range
from streamkernel.models.certificate import certificate_of, path_of
from streamkernel.records import Run
from streamkernel.reductions.sums import FeatureGram, FeatureSums
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Table

__all__ = ["BasisFit", "fit_basis"]

Solved = TypeVar("Solved")


@dataclass(frozen=True)
class BasisFit(Generic[Solved]):
    """The results of the steps.

    Attributes
    ----------
    chosen : basis, and the selection that found it.
    settings, n : options of the fit, and basis size asked for.
    rows : the table, scaled, with the basis.
    sums : sums of the last sweep.
    solved : result of the algebra on these sums.
    run : record of the run: times, memory, executor.
    stop : result of the rule that cuts the basis; None without such a rule.
    """

    chosen: Chosen
    settings: BasisSettings
    n: int
    rows: FeatureRows
    sums: FeatureSums
    solved: Solved
    run: Run
    stop: Stop | None = None

    @property
    def residual_path(self) -> NDArray[np.float64]:
        """(n + 1,) residual traces left by the first 0 .. n functions."""
        assert self.sums.trace is not None
        return path_of(self.sums.trace, self.sums.squares)

    def fields(self, estimator: str) -> dict[str, Any]:
        """Fields of every transformer."""
        path = self.residual_path
        return {
            "estimator": estimator,
            **basis_fields(self.chosen, self.settings, self.n),
            "columns": tuple(self.chosen.table.columns),
            "named_columns": self.chosen.table.named,
            "sweep_count": len(self.run.sweeps),
            "certificate": certificate_of(float(path[0]), float(path[-1])),
            "run": self.run,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the model that do not depend on `solved`."""
        return basis_arrays(self.chosen, self.residual_path)


def fit_basis(
    table: Table,
    settings: BasisSettings,
    session: Session,
    algebra: Callable[[FeatureRows, FeatureSums], Solved],
    *,
    rounding: float,
    size: str = "n_components",
    at_least: int = 1,
    cut: Callable[[FeatureRows, FeatureSums], Stop] | None = None,
    memory_limit: int | None = None,
    driver_bytes: int = 0,
) -> BasisFit[Solved]:
    """Choose a basis without looking at targets, and sum its features over all rows.

    Parameters
    ----------
    table : rows of the fit.
    settings : options of the fit; those for targets are ignored.
    session : session that runs the sweeps.
    algebra : function of the rows and the sums; its result is `BasisFit.solved`.
    rounding : rounding error allowed in the sums, as a share of m; see `FeatureGram.within`.
    size : the user's name for the basis size, for messages.
    at_least : smallest default of the basis size.
    cut : function that decides from the sums how many functions to keep; the sums of the first t are a part of them.
    memory_limit : bytes of all processes together; None for what the machines have.
    driver_bytes : bytes resident in the driver before the fit.

    Raises
    ------
    ParameterError
        The basis is larger than the table, or the lengthscale is "auto", which needs targets.
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
    plan = checked_plan(
        lambda machine, count: plan_ridge(table, settings, machine, count),
        n,
        table,
        session,
        memory_limit,
        driver_bytes,
    )
    began = time.perf_counter()
    with single_threaded_blas(), within_range(), PeakMeter() as meter:
        chosen = choose_basis(table, settings, session, n)
        rows = FeatureRows(chosen.table, chosen.selection.basis)
        sums = session.sweep(FeatureGram.within(rows.features, rounding), rows.table, "final sweep")
        stop = None if cut is None else cut(rows, sums)
        if stop is not None and stop.size < len(chosen.selection.basis):
            chosen = replace(chosen, selection=chosen.selection.first(stop.size, ended="bound"))
            rows = FeatureRows(chosen.table, chosen.selection.basis)
            sums = _first(sums, stop.size)
        solved = algebra(rows, sums)
    peak = meter.peak + session.executor.peak_bytes()
    run = run_record(session, plan, time.perf_counter() - began, peak)
    return BasisFit(chosen, settings, n, rows, sums, solved, run, stop)


def _first(sums: FeatureSums, size: int) -> FeatureSums:
    """The part of the sums for the first functions: whitening is triangular in the order of picking."""
    H = np.ascontiguousarray(sums.H[:size, :size])
    return FeatureSums(H, sums.G1[:size].copy(), sums.count, sums.trace)
