"""A fitted matching pursuit: configuration and named arrays, which is also how it lies on disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import ParameterError
from streamkernel.estimators.kept_model import PredictingModel
from streamkernel.pursuit import PursuitPath, Stages
from streamkernel.reductions import ClassificationScores, Predictions, Reduction, RegressionScores

__all__ = ["PursuitModel"]


@dataclass(frozen=True)
class PursuitModel(PredictingModel):
    """Parameters
    ----------
    config : everything that is not an array; docs/model.md describes each field.
    arrays : by name; `components` are basis points in scaled units.
    """

    KIND: ClassVar[str] = "matching-pursuit"
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        **PredictingModel.SHAPES,
        "dual_coef": ("n", "d"),
        "intercept": ("d",),
        "directions": ("r", "s"),
        "amounts": ("s", "d"),
        "offset": ("d",),
        "path_rows": ("t",),
        "path_rss": ("t + 1", "e"),
        "path_gains": ("t",),
        "path_weakness": ("t",),
        "path_sizes": ("u",),
        "path_losses": ("u", "2"),
        "path_wrong": ("u", "2"),
    }
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        **PredictingModel.OPTIONAL,
        "path_validation": ("t + 1", "e"),
    }
    _NOUN: ClassVar[str] = "matching pursuit model"

    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @property
    def terms(self) -> int:
        """Steps of the model."""
        return int(self.config["solution"]["terms"])

    @cached_property
    def stages(self) -> Stages:
        """The model step by step; `arrays["offset"]` is to be added."""
        arrays = self.arrays
        return Stages(arrays["directions"], arrays["amounts"], bool(self.config["solution"]["constant"]))

    @property
    def path(self) -> PursuitPath:
        """How it went, beyond the size that was kept too."""
        totals = self.config["totals"]
        return PursuitPath.from_arrays(self.arrays, totals["rows"], totals["validation_rows"])

    @property
    def active_set(self) -> NDArray[np.int64]:
        """(terms,) row number of the function of each step; basic may have one twice."""
        return np.asarray(self.arrays["path_rows"][: self.terms])

    def predictions(self, *, argmax: bool = False, terms: int | None = None) -> Predictions:
        """The row map that predicts, on rows that are scaled already; by the first `terms` steps alone where given."""
        coefficients, intercept = self.arrays["dual_coef"], self.arrays["intercept"]
        if terms is not None:
            stages = self.stages.first(terms, len(coefficients))
            coefficients, intercept = stages.coefficients, stages.intercept + self.arrays["offset"]
        flat = not self.config.get("targets_are_2d", False)
        return Predictions(self.basis, coefficients, intercept, argmax=argmax, flat=flat)

    def outputs(self, *, std: bool = False) -> Predictions:
        if std:
            raise ParameterError(
                f"this is a {self.config['estimator']} model, which has no standard deviations; leave --std out, or "
                "fit with --estimator gp"
            )
        return self.predictions(argmax=self.classes is not None)

    def scores(self) -> Reduction[dict[str, float]]:
        if self.classes is None:
            return RegressionScores(self.predictions())
        return ClassificationScores(self.predictions())

    def told(self) -> dict[str, Any]:
        solution, settings = self.config["solution"], self.config["settings"]
        told = {
            "variant": settings["variant"],
            "terms": solution["terms"],
            "terms_tried": solution["terms_tried"],
            "relative_rss": float(np.mean(solution["relative_rss"])),
            "least_weakness": solution["least_weakness"],
        }
        if solution["validation_rmse"] is not None:
            told["validation_rmse"] = float(np.mean(solution["validation_rmse"]))
        return told
