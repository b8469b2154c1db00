"""The frame of every fit to targets: checks, memory limits, times, and the picture on held-out rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from streamkernel.engine import Machine, PeakMeter, Plan, Session
from streamkernel.errors import ParameterError, SingleClassError
from streamkernel.fits.check_rows import Mask, check_rows
from streamkernel.fits.choose_basis import Chosen, checked_plan
from streamkernel.fits.record import run_record
from streamkernel.linalg import single_threaded_blas, within_range
from streamkernel.models.predicting import Predicting
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Table
from streamkernel.wording import option

__all__ = ["FittedParts", "FittedSteps", "Watched", "fit_supervised"]


class FittedSteps(Protocol):
    """The results of a fit's steps."""

    @property
    def chosen(self) -> Chosen: ...

    def predictions(self) -> Predicting:
        """The row map that predicts, on rows that are scaled already."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]: ...

    def record(self, estimator: str, targets_are_2d: bool) -> Any:
        """The fields that depend only on the rows and the settings, and the software."""
        ...


@dataclass(frozen=True)
class FittedParts:
    """Record and arrays of a model."""

    record: Any
    arrays: dict[str, NDArray[Any]]


Watched = tuple[Table | None, Mask | None]


def check_numbers(table: Table, estimator: str) -> None:
    """Raise ParameterError for class labels as targets of a regression."""
    if table.classes is None:
        return
    if estimator == "ridge":
        raise ParameterError("the target holds class labels; use the estimator ridge-classifier")
    raise ParameterError(f"the target holds class labels, {estimator} is a regression; use gp-classifier")


def fit_supervised(
    table: Table,
    settings: BasisSettings,
    session: Session,
    steps: Callable[[int], FittedSteps],
    plan_of: Callable[[Machine, int], Plan],
    *,
    estimator: str,
    whole: Table | None = None,
    memory_limit: int | None = None,
    targets_are_2d: bool = False,
    driver_bytes: int | None = None,
    watched: Callable[[FittedSteps], Watched] | None = None,
) -> FittedParts:
    """Run the steps of a fit under its plan.

    Parameters
    ----------
    table : rows of the fit, with targets.
    settings : options of the fit.
    session : session that runs the sweeps, with its checkpoints.
    steps : function that runs the steps for a basis size.
    plan_of : function that plans them for a machine and a basis size.
    estimator : name of the estimator.
    whole : table that `table` is a slice of; its other rows are used for the held-out picture.
    memory_limit : bytes of all processes together; None for what the machines have (`memory_limits`). A plan beyond
        it is refused before anything is read.
    watched : function that gives the rows that the fit itself has held out, for `check_rows`.
    targets_are_2d : whether predictions of a single target have shape (m, 1); several targets always have columns.

    Raises
    ------
    ParameterError
        The table has no targets, or the basis is larger than the number of rows.
    ResourceLimitError
        The plan exceeds a limit.
    SingleClassError
        A classifier was given one class.
    DataError, StoreError, NumericalError
        See `streamkernel.errors`.
    """
    if table.n_targets == 0:
        raise ParameterError(f"the table has no targets; ingest it with {option('target')}, or give y")
    n = settings.components(table)
    plan = checked_plan(plan_of, n, table, session, memory_limit, driver_bytes)
    if table.classes is not None and len(table.classes) < 2:
        raise SingleClassError(
            f"y holds one class only, {table.classes.tolist()[0]!r}; a classifier needs rows of at least two classes"
        )
    began = time.perf_counter()
    # One BLAS thread on the driver too, held throughout: equal bits on any number of cores.
    with single_threaded_blas(), within_range(), PeakMeter() as meter:
        fitted = steps(n)
        own: Watched = (None, None) if watched is None else watched(fitted)
        check = check_rows(fitted.chosen.table, whole, fitted.chosen.scaler, fitted.predictions(), *own)
    peak = meter.peak + session.executor.peak_bytes()
    record = fitted.record(estimator, targets_are_2d or (table.n_targets > 1 and table.classes is None))
    run = run_record(session, plan, time.perf_counter() - began, peak)
    return FittedParts(record.changed(check=check.record, run=run), {**fitted.arrays(), **check.arrays()})
