"""The base class of the models that predict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.models._saturation import Degrees, degrees_of
from streamkernel.models.saved import SavedModel
from streamkernel.records import ModelRecord
from streamkernel.reductions import RowMap
from streamkernel.reductions.contract import AnyReduction
from streamkernel.table import Table
from streamkernel.table.class_weights import weighted_by_class
from streamkernel.type_aliases import AnyArray, Fields, Float
from streamkernel.wording import estimator, option


@dataclass(frozen=True)
class PredictingModel(SavedModel, ABC):
    """Base of the models that predict: targets, or the side of a threshold."""

    RECORD: ClassVar[type[ModelRecord]]
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        **SavedModel.OPTIONAL,
        "check_true": ("c of check", "d of check"),
        "check_predicted": ("c of check", "d of check"),
        "check_weight": ("c of check",),
    }
    SUPERVISED: ClassVar[bool] = True  # whether there are targets to fit to and to compare predictions with

    record: ModelRecord

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

    def intervals(self, level: float, *, std: bool = False) -> RowMap:
        """The row map of predictions with the bounds of intervals that hold a target with probability `level`.

        Raises
        ------
        ParameterError
            The model has no distribution of a target, or the level is not in (0, 1).
        """
        raise ParameterError(
            f"this is a {self.record.estimator} model, which has no intervals; leave {option('interval')} out, or "
            f"fit with {estimator('GaussianProcessRegressor')} or {estimator('KernelQuantileRegressor')}"
        )

    def output_labels(self, width: int) -> list[str]:
        """Labels of the columns of an output (m, width): of the classes or of the targets."""
        labels = self.record.classes if self.record.classes is not None else self.record.target_names
        return [str(label) for label in labels] if len(labels) == width else [str(each) for each in range(width)]

    def refuse_std(self, std: bool) -> None:
        """Raise `ParameterError` where standard deviations are requested of a model that has none."""
        if std:
            raise ParameterError(
                f"this is a {self.record.estimator} model, which has no standard deviations; leave "
                f"{option('return_std')} out, or fit with {estimator('GaussianProcessRegressor')}"
            )

    @abstractmethod
    def scores(self) -> AnyReduction:
        """The reduction of `streamkernel evaluate`; its result is a dict of numbers, or has one as `scalars`."""

    @abstractmethod
    def solution_fields(self) -> Fields:
        """The fields of the solution that `streamkernel fit` prints."""

    @property
    def degrees(self) -> Degrees | None:
        """Degrees of freedom that the fit uses; None for one that does not know them, or whose basis cannot grow."""
        return None

    def _degrees(
        self, used: float | tuple[float, ...] | None, *, chosen: bool, outputs: int = 1, constants: int = 0
    ) -> Degrees | None:
        """The degrees of this basis; arguments are those of `degrees_of`."""
        size, known = self.record.basis_size, {"rule": self.record.rule, "ended": self.record.ended}
        return degrees_of(used, outputs, size, **known, chosen=chosen, constants=constants)

    @property
    def _saturation(self) -> Fields:
        """The field of a saturated basis."""
        return {"saturated": None if self.degrees is None else self.degrees.verdict}

    @property
    def target_count(self) -> int:
        """Columns of the targets d."""
        return int(self.arrays["dual_coef"].shape[1])

    @property
    def coefficients(self) -> Float:
        """(n, d) coefficients of the kernel values."""
        return self.arrays["dual_coef"]

    @property
    def intercept(self) -> Float:
        """(d,) constants."""
        return self.arrays["intercept"]

    @property
    def classes(self) -> AnyArray | None:
        labels = self.record.classes
        return None if labels is None else np.asarray(labels)

    @property
    def flat(self) -> bool:
        """Whether predictions of a single target have no second axis."""
        return not self.record.targets_are_2d

    def checked(self, path: str | PathLike[str]) -> Self:
        whole, labels = super().checked(path), self.record.classes
        if labels is not None and len(labels) != self.target_count:
            raise ModelFormatError(f"{path} has {self.target_count} outputs and not as many classes; {self._AGAIN}")
        return whole

    def prepare_targets(self, table: Table) -> Table:
        """The same table with its targets in the model's classes and, of several, in the model's order, for scoring.

        Raises
        ------
        ShapeMismatchError, DataError
            The table has another number of targets, numbers instead of labels, or labels unknown to the model.
        """
        return table.targets_in_order(self.record.target_names).for_model(self.classes, self.target_count)

    def weighted(self, table: Table) -> Table:
        """Rows whose targets are prepared, with the weights that the fit gave to their classes."""
        return weighted_by_class(table, self.record.class_weights)


def checked_level(level: float) -> float:
    """A probability between 0 and 1.

    Raises
    ------
    ParameterError
        It is none.
    """
    if not 0.0 < level < 1.0:
        raise ParameterError(f"{option('interval')} must be a probability between 0 and 1, such as 0.95, not {level!r}")
    return float(level)


class Predicting(Protocol):
    """A predictor of scaled rows; `check_values` returns arrays (b, ...) by name, one of them "predicted" (b, d)."""

    def check_values(self, X: AnyArray) -> dict[str, Float]: ...
