"""A fitted kernel ridge model: configuration and named arrays, which is also how it lies on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import ParameterError
from streamkernel.estimators.kept import solution_arrays, solution_record
from streamkernel.estimators.kept_model import PredictingModel
from streamkernel.estimators.settings import RidgeSettings
from streamkernel.reductions import (
    ClassificationScores,
    NormalEquations,
    Predictions,
    Reduction,
    RegressionScores,
    RidgeSums,
)
from streamkernel.solvers import RidgeSystem

__all__ = ["RidgeModel"]


@dataclass(frozen=True)
class RidgeModel(PredictingModel):
    """Parameters
    ----------
    config : everything that is not an array; docs/model.md describes each field.
    arrays : by name; `components` are basis points in scaled units.
    """

    KIND: ClassVar[str] = "kernel-ridge"
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        **PredictingModel.SHAPES,
        "dual_coef": ("n", "d"),
        "intercept": ("d",),
        "sum_H": ("n", "n"),
        "sum_g": ("n", "d"),
        "sum_YY": ("d", "d"),
        "sum_G1": ("n",),
        "sum_Y1": ("d",),
        "centre": ("d",),
    }
    _NOUN: ClassVar[str] = "kernel ridge model"

    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @property
    def sums(self) -> RidgeSums:
        """The sums of the final sweep: what appended rows are added to."""
        totals = self.config["totals"]
        return RidgeSums(
            **{name: self.arrays[f"sum_{name}"] for name in ("H", "g", "YY", "G1", "Y1")},
            centre=self.arrays["centre"],
            weight=totals["weight"],
            trace=totals["trace"],
            count=totals["rows"],
        )

    def reduction_of_rows(self, rows: int) -> NormalEquations:
        """The sums of rows that are scaled already; see `Updatable`."""
        return NormalEquations.of(self.basis, self.arrays["centre"], rows)

    def check_choices(self, choices: Mapping[str, Any]) -> None:
        """Refuse what `with_sums` does not take; see `Updatable`."""
        for name, value in choices.items():
            if name != "alpha":
                raise ParameterError(f"a {self.config['estimator']} model has no {name!r} to choose; it has alpha")
            if value != "keep":
                RidgeSettings(alpha=value)

    def with_sums(self, sums: RidgeSums, choices: Mapping[str, Any] | None = None) -> Self:
        """The model of the rows that the sums are of; see `Updatable`.

        Parameters
        ----------
        choices : `alpha` may be "gcv", "keep" or a number; by default it is what the fit was asked for.
        """
        settings = self.config["settings"]
        alpha = (choices or {}).get("alpha")
        scale = None if self.classes is not None else np.asarray(self.config["target_scale"]) ** 2
        system = RidgeSystem(self.basis, sums, intercept=settings["fit_intercept"], scale=scale)
        wanted = settings["alpha"] if alpha is None else self.config["alpha"] if alpha == "keep" else alpha
        solution = system.solve(system.choose_alpha() if wanted == "gcv" else float(wanted))
        arrays = {
            **self.arrays,
            "residual_path": system.residual_path,
            **solution_arrays(sums, system, solution, scale),
        }
        config = {**self.config, **solution_record(sums, system, solution)}
        return self.with_parts(config, arrays).with_basis(self.basis)

    def outputs(self, *, std: bool = False) -> Predictions:
        if std:
            raise ParameterError(
                f"this is a {self.config['estimator']} model, which has no standard deviations; leave --std out, or "
                "fit with --estimator gp"
            )
        return self.predictions(argmax=self.classes is not None)

    def told(self) -> dict[str, Any]:
        solution = self.config["solution"]
        return {"alpha": self.config["alpha"], "gcv": solution["gcv"], "effective_df": solution["effective_df"]}

    def scores(self) -> Reduction[dict[str, float]]:
        if self.classes is None:
            return RegressionScores(self.predictions())
        return ClassificationScores(self.predictions())

    def predictions(self, *, argmax: bool = False) -> Predictions:
        """The row map that predicts, on rows that are scaled already."""
        return Predictions(
            self.basis,
            self.arrays["dual_coef"],
            self.arrays["intercept"],
            argmax=argmax,
            flat=not self.config.get("targets_are_2d", False),
        )
