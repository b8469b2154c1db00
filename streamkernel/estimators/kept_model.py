"""The base class of the models that predict targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import DataError, ShapeMismatchError
from streamkernel.estimators.saved import SavedModel
from streamkernel.reductions import Reduction, RowMap
from streamkernel.table import Table

__all__ = ["PredictingModel", "with_targets_of"]


class PredictingModel(SavedModel, ABC):
    """Base of `RidgeModel`, `GaussianModel` and `GeneralisedModel`."""

    @abstractmethod
    def predictions(self) -> RowMap:
        """The row map of values (b, d) that predicts, on rows that are scaled already."""

    @property
    def has_probabilities(self) -> bool:
        """Whether `outputs` has a column of class probabilities."""
        return False

    def checking(self) -> Any:
        """The row map whose `check_values` are compared with true targets."""
        return self.predictions()

    @abstractmethod
    def outputs(self, *, std: bool = False) -> RowMap:
        """The row map that `streamkernel predict` writes.

        Raises
        ------
        ParameterError
            Standard deviations are requested, and the model has none.
        """

    @abstractmethod
    def scores(self) -> Reduction[Any]:
        """The reduction of `streamkernel evaluate`; its result is a dict of numbers, or has one as `scalars`."""

    @abstractmethod
    def told(self) -> dict[str, Any]:
        """The fields of the solution that `streamkernel fit` prints."""

    def fit_summary(self, path: str, seconds: float) -> dict[str, Any]:
        """The fields that ``streamkernel fit --json`` prints about the model written to `path`."""
        config = self.config
        run = config["run"]
        return {
            "model": path,
            "estimator": config["estimator"],
            "basis_size": config["basis_size"],
            "rule": config["rule"],
            "ended": config["ended"],
            "sweeps": config["sweep_count"],
            **config["certificate"],
            "lengthscale": config["lengthscale"],
            **self.told(),
            "rows": config["rows"]["count"],
            "seconds": seconds,
            "peak_memory_bytes": run["peak_memory_bytes"],
            "planned_memory_bytes": run["planned_memory_bytes"],
            "resumed_sweeps": sum(record["resumed"] for record in run["sweeps"]),
            "digest": self.digest,
        }

    @property
    def target_count(self) -> int:
        """Columns of the targets d."""
        return int(self.arrays["dual_coef"].shape[1])

    @property
    def classes(self) -> NDArray[Any] | None:
        labels = self.config["classes"]
        return None if labels is None else np.asarray(labels)

    def prepare_targets(self, table: Table) -> Table:
        """The same table with its targets in the model's classes, for scoring.

        Raises
        ------
        ShapeMismatchError, DataError
            The table has another number of targets, numbers instead of labels, or labels unknown to the model.
        """
        return with_targets_of(table, self.classes, self.target_count)


def with_targets_of(table: Table, labels: NDArray[Any] | None, d: int) -> Table:
    """A table with its targets coded by a model's classes `labels`; for None, after a check that it has d targets.

    Raises
    ------
    ShapeMismatchError, DataError
        See `PredictingModel.prepare_targets`.
    """
    targets = table.targets
    assert targets is not None
    if labels is None:
        if table.classes is not None:
            raise DataError(
                "the table's targets are class labels, the model is a regression; give targets that are numbers, "
                "or a classifier"
            )
        if table.n_targets != d:
            raise ShapeMismatchError(f"the table has {table.n_targets} targets, the model {d}; give equal ones")
        return table
    if targets.coded:
        assert targets.classes is not None
        if list(targets.classes) != list(labels):
            # Fewer rows may lack a class.
            return replace(table, targets=targets.recoded(labels))
        return table
    if labels.dtype.kind not in "biuf" and targets.rows.dtype.kind in "biuf":
        raise DataError(
            f"the table's targets are numbers, the model's classes are text ({', '.join(map(str, labels[:5]))}"
            f"{', ...' if len(labels) > 5 else ''}); give targets with these labels"
        )
    return replace(table, targets=targets.of_classes(labels))
