"""The base class of the models that predict targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamkernel.models.saved import SavedModel
from streamkernel.reductions import Reduction, RowMap
from streamkernel.table import Table
from streamkernel.table.model_targets import with_targets_of

__all__ = ["Predicting", "PredictingModel"]


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


class Predicting(Protocol):
    """A predictor of scaled rows; `check_values` returns arrays (b, ...) by name, one of them "predicted" (b, d)."""

    def check_values(self, X: NDArray[Any]) -> dict[str, NDArray[np.float64]]: ...
