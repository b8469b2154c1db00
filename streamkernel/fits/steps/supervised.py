"""What the fits to targets share: checks of the targets, weights of their classes, predictions of some rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from streamkernel.engine import Machine, Plan, Session
from streamkernel.errors import ParameterError, SingleClassError
from streamkernel.fits.steps.check_rows import CheckRows, Mask, check_rows
from streamkernel.fits.steps.choose_basis import Chosen
from streamkernel.fits.steps.predicting import PredictingRun
from streamkernel.models.predicting import Predicting, PredictingModel
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Table
from streamkernel.table.class_weights import class_counts, weighted_by_class
from streamkernel.type_aliases import AnyArray, Float, Unchecked
from streamkernel.wording import option

S = TypeVar("S", bound=BasisSettings)
M = TypeVar("M", bound=PredictingModel)


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


class SupervisedRun(PredictingRun):
    """The run of a fit to targets: a `PredictingRun` that checks these before its plan, and weights their classes::

        run = SupervisedRun(table, settings, session, plan_ridge, estimator="ridge", **options)
        with run.measured():
            chosen = choose_basis(run.table, settings, session, run.n)
            ...
            check = run.check(chosen, predictions)
        return run.model(RidgeModel, chosen, check, residual_path, arrays, alpha=alpha, ...)

    Parameters
    ----------
    table : rows of the fit, with targets.
    options : those of `PredictingRun`.

    Attributes
    ----------
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
        **options: Unchecked,
    ) -> None:
        if table.n_targets == 0:
            raise ParameterError(f"the table has no targets; ingest it with {option('target')}, or give y")
        super().__init__(table, settings, session, plan_of, **options)
        if table.classes is not None and len(table.classes) < 2:
            raise SingleClassError(
                f"y holds one class only, {table.classes.tolist()[0]!r}; a classifier needs rows of at least two "
                "classes"
            )
        self._class_weights = settings.class_weights(table)
        self.table = self.weighted(self.table)
        _check_weighted_classes(self.table)

    def weighted(self, table: Table) -> Table:
        """Rows of these classes, with the weights of the classes."""
        return weighted_by_class(table, self._class_weights)

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
        check: CheckRows | None,
        residual_path: Float,
        arrays: dict[str, AnyArray],
        **fields: Any,
    ) -> M:
        """As in the base class, with the weights of the classes."""
        if self._class_weights is not None:
            fields["class_weights"] = self._class_weights
        return super().model(kind, chosen, check, residual_path, arrays, **fields)
