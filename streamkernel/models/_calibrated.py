"""The base classes of the models whose values become probabilities of classes by curves of held-out rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from os import PathLike
from typing import ClassVar, Self

import numpy as np

from streamkernel.models.predicting import PredictingModel
from streamkernel.reductions import RowMap
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.predictions import Curves, curves_of
from streamkernel.reductions.row_map import ProbabilityMap
from streamkernel.reductions.scores import ClassificationScores, ProbabilityScores, RegressionScores

CURVES = ("calibration_slope", "calibration_offset")  # arrays of Platt's curves
_HALVES = (CURVES, ("calibration_knots", "calibration_values"))


@dataclass(frozen=True)
class ModelWithCurves(PredictingModel, ABC):
    """Base of models that may have curves, of one function for two classes, else of several.

    Where there are curves, what is predicted, written and scored are probabilities; the predicted class stays
    that of the values.
    """

    @property
    def function_count(self) -> int:
        """Number of functions: one for two classes, else one for each class."""
        C = len(self.record.classes or ())
        return 1 if C == 2 else C

    @property
    def curves(self) -> Curves | None:
        """The curves from values to probabilities; None without them."""
        return curves_of({name: np.ascontiguousarray(values) for name, values in self.arrays.items()})

    @property
    def has_probabilities(self) -> bool:
        return any(first in self.arrays for first, _ in _HALVES)

    @abstractmethod
    def predictions(self, *, argmax: bool = False) -> RowMap:
        """The row map that predicts, on scaled rows; with `argmax` the position of the predicted class."""

    def outputs(self, *, std: bool = False) -> RowMap:
        self.refuse_std(std)
        found = self.checking()
        if isinstance(found, ProbabilityMap):
            return found
        return self.predictions(argmax=self.record.classes is not None)

    def scores(self) -> AnyReduction:
        found = self.checking()
        if isinstance(found, ProbabilityMap):
            return ProbabilityScores(found)
        if self.record.classes is not None:
            return ClassificationScores(found)
        return RegressionScores(found, self.record.target_scale)

    def checked(self, path: str | PathLike[str]) -> Self:
        super().checked(path)
        for halves in _HALVES:
            there = [name for name in halves if name in self.arrays]
            if len(there) == 1:
                self._refuse(path, f"it has one of the arrays {halves[0]!r} and {halves[1]!r}, and lacks the other")
            for name in there:
                curves = self.arrays[name]
                if len(curves) != self.function_count or not curves.size:
                    self._refuse(path, f"{name!r} has the shape {curves.shape} for {self.function_count} functions")
        return self


@dataclass(frozen=True)
class CalibratedModel(ModelWithCurves, ABC):
    """Base of classifiers with one function for two classes, else several; with curves they have probabilities."""

    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        **PredictingModel.OPTIONAL,
        "calibration_slope": ("k",),
        "calibration_offset": ("k",),
        "calibration_knots": ("k", "knots"),
        "calibration_values": ("k", "knots"),
        "margin_weights": ("k", "2", "bins"),
        "check_probability": ("c of check", "d of check"),
    }

    @property
    def target_count(self) -> int:
        return len(self.record.classes or ())
