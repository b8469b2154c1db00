"""What the fits to targets share: checks and plan before their steps, the frame around these, the record after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from streamkernel.engine import Machine, Plan, Session
from streamkernel.errors import ParameterError, SingleClassError
from streamkernel.fits._choose_basis import Chosen
from streamkernel.fits._record import basis_arrays, fitted_fields
from streamkernel.fits.check_rows import CheckRows, Mask, check_rows
from streamkernel.fits.run import checked_plan, measured
from streamkernel.models.predicting import Predicting, PredictingModel
from streamkernel.records import Run
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Table
from streamkernel.table.class_weights import class_counts, weighted_by_class
from streamkernel.type_aliases import AnyArray, Float
from streamkernel.wording import option

S = TypeVar("S", bound=BasisSettings)
M = TypeVar("M", bound=PredictingModel)


def check_numbers(table: Table, estimator: str) -> None:
    """Raise ParameterError for class labels as targets of a regression."""
    if table.classes is None:
        return
    if estimator == "ridge":
        raise ParameterError("the target holds class labels; use the estimator ridge-classifier")
    raise ParameterError(f"the target holds class labels, {estimator} is a regression; use gp-classifier")


def _check_weighted_classes(table: Table) -> None:
    """Raise SingleClassError where the rows with a weight > 0 are of one class."""
    if table.classes is None or table.weights is None:
        return
    held = class_counts(table) > 0.0
    if np.count_nonzero(held) < 2:
        raise SingleClassError(
            f"the rows with a weight > 0 are of one class only, {table.classes[held].tolist()[0]!r}; a classifier "
            "needs such rows of at least two classes"
        )


class SupervisedRun:
    """The run of a fit to targets. When it is made, rows and plan are checked; then a fit takes its steps::

        run = SupervisedRun(table, settings, session, plan_ridge, estimator="ridge", **options)
        with run.measured():
            chosen = choose_basis(run.table, settings, session, run.n)
            ...
            check = run.check(chosen, predictions)
        return run.model(RidgeModel, chosen, check, residual_path, arrays, alpha=alpha, ...)

    Parameters
    ----------
    table : rows of the fit, with targets.
    settings : options of the fit.
    session : session that runs the sweeps, with its checkpoints.
    plan_of : function that plans the fit for a table, settings, a machine and a basis size.
    estimator : name of the estimator.
    whole : table that `table` is a slice of; its other rows are used for the held-out picture.
    memory_limit : bytes of all processes together; None for what the machines have (`memory_limits`). A plan beyond
        it is refused before anything is read.
    driver_bytes : bytes resident in the driver before the fit.
    targets_are_2d : whether predictions of a single target have shape (m, 1); several targets always have columns.
    plan : plan for the session's machine that the caller has made and checked; `memory_limit` and `driver_bytes` are
        then not used.

    Attributes
    ----------
    n : basis size.
    table : rows of the fit, with the weights of their classes.

    Raises
    ------
    ParameterError
        The table has no targets, or the basis is larger than the number of rows.
    ResourceLimitError
        The plan exceeds a limit.
    SingleClassError
        A classifier was given one class, or rows of one class with a weight > 0.
    """

    def __init__(
        self,
        table: Table,
        settings: S,
        session: Session,
        plan_of: Callable[[Table, S, Machine, int], Plan],
        *,
        estimator: str,
        whole: Table | None = None,
        memory_limit: int | None = None,
        driver_bytes: int | None = None,
        targets_are_2d: bool = False,
        plan: Plan | None = None,
    ) -> None:
        if table.n_targets == 0:
            raise ParameterError(f"the table has no targets; ingest it with {option('target')}, or give y")
        self.n = settings.components(table)
        self._plan = checked_plan(
            lambda machine, n: plan_of(table, settings, machine, n),
            self.n,
            table,
            session,
            memory_limit,
            driver_bytes,
            plan,
        )
        if table.classes is not None and len(table.classes) < 2:
            raise SingleClassError(
                f"y holds one class only, {table.classes.tolist()[0]!r}; a classifier needs rows of at least two "
                "classes"
            )
        self._class_weights = settings.class_weights(table)
        self.table = self.weighted(table)
        _check_weighted_classes(self.table)
        self._settings, self._session, self._whole, self._estimator = settings, session, whole, estimator
        self._targets_are_2d = targets_are_2d or (table.n_targets > 1 and table.classes is None)
        self._record: Callable[[], Run]  # once the steps are taken

    def weighted(self, table: Table) -> Table:
        """Rows of these classes, with the weights of the classes."""
        return weighted_by_class(table, self._class_weights)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """The frame around the steps; see `fits.run.measured`."""
        with measured(self._session, self._plan) as self._record:
            yield

    def check(
        self, chosen: Chosen, predictions: Predicting, watched: Table | None = None, held_out: Mask | None = None
    ) -> CheckRows:
        """Predict the rows of the report's picture.

        Parameters
        ----------
        predictions : row map that predicts, on rows that are scaled already.
        watched, held_out : rows that the fit itself held out.
        """
        return check_rows(chosen.table, self._whole, chosen.scaler, predictions, watched, held_out)

    def model(
        self,
        kind: type[M],
        chosen: Chosen,
        check: CheckRows,
        residual_path: Float,
        arrays: dict[str, AnyArray],
        **fields: Any,
    ) -> M:
        """The model: what all kinds store of a fit to targets, and the arrays and fields of its own.

        Parameters
        ----------
        residual_path : (n + 1,) exact residual traces.
        """
        table = chosen.table
        if self._class_weights is not None:
            fields["class_weights"] = self._class_weights
        record = kind.RECORD(
            **{
                **fitted_fields(self._estimator, chosen, self._settings, self.n, len(self._session.records)),
                "target_names": tuple(table.target_names),
                "classes": None if table.classes is None else tuple(table.classes.tolist()),
                "targets_are_2d": self._targets_are_2d,
                "target_scale": tuple(chosen.scale.tolist()),
                "independent": chosen.independent,
                "dtype": str(table.dtype),
                **fields,
            },
            check=check.record,
            run=self._record(),
        )
        return kind(record, {**basis_arrays(chosen, residual_path), **arrays, **check.arrays()})
