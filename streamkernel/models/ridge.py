"""A fitted kernel ridge model: configuration and named arrays, in memory as on disk."""

from __future__ import annotations

import math
from dataclasses import dataclass
from os import PathLike
from typing import ClassVar, Literal, Self

import numpy as np

from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.models._calibrated import CURVES, ModelWithCurves
from streamkernel.models._saturation import Degrees
from streamkernel.models.certificate import certificate_of
from streamkernel.models.updatable import UpdatableModel
from streamkernel.records import Count, CountedTotals, Record, UpdatableRecord, Validation
from streamkernel.reductions import Predictions, RowMap
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.predictions import CalibratedProbabilities, LabelPredictions, calibrated
from streamkernel.reductions.scores import LabelScores
from streamkernel.reductions.sums import NormalEquations, RidgeSums, TargetSums
from streamkernel.settings.ridge import RidgeSettings, RidgeSettingsRecord
from streamkernel.solvers import FalkonSolution, FalkonSystem, RidgeSolution, RidgeSystem
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, Fields, FieldsView, Float
from streamkernel.wording import option

_SUMS = ("H", "g", "YY", "G1", "Y1")  # arrays of `RidgeSums`


class RidgeTotals(CountedTotals):
    """Sums over the rows of the fit."""

    weight: float


class RidgeSolutionRecord(Record):
    """The solution at alpha; the last four fields are those of conjugate gradients."""

    gcv: float | None
    effective_df: float | None
    training_rmse: tuple[float, ...]
    solver: Literal["direct", "cg"] = "direct"
    iterations: Count | None = None
    ended: str | None = None
    relative_residual: tuple[float, ...] = ()
    excess: tuple[float, ...] = ()


class RidgeRecord(UpdatableRecord):
    """The fields of a kernel ridge model."""

    settings: RidgeSettingsRecord
    totals: RidgeTotals
    alpha: float
    solution: RidgeSolutionRecord
    validation: Validation | None = None
    multilabel: bool = False


@dataclass(frozen=True)
class RidgeModel(ModelWithCurves, UpdatableModel):
    """A fitted kernel ridge model; of classes it may have curves of probabilities, from rows of its folds."""

    KIND: ClassVar[str] = "kernel-ridge"
    RECORD: ClassVar[type[RidgeRecord]] = RidgeRecord
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        **UpdatableModel.SHAPES,
        "dual_coef": ("n", "d"),
        "intercept": ("d",),
    }
    # Arrays of a direct solve, which must have them all.
    OF_SUMS: ClassVar[dict[str, tuple[str, ...]]] = {
        "sum_H": ("n", "n"),
        "sum_g": ("n", "d"),
        "sum_YY": ("d", "d"),
        "sum_G1": ("n",),
        "sum_Y1": ("d",),
        "centre": ("d",),
    }
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        **UpdatableModel.OPTIONAL,
        **OF_SUMS,
        **dict.fromkeys(("gcv_alphas", "gcv_scores", "gcv_effective_df"), ("points of alpha",)),
        **dict.fromkeys(CURVES, ("k",)),
        "check_probability": ("c of check", "d of check"),
    }
    CHOICE: ClassVar[str] = "alpha"
    _NOUN: ClassVar[str] = "kernel ridge model"

    record: RidgeRecord

    @property
    def multilabel(self) -> bool:
        """Whether each target is a label that a row has (1) or has not (0)."""
        return self.record.multilabel

    def prepare_targets(self, table: Table) -> Table:
        table = super().prepare_targets(table)
        return table.with_indicators() if self.multilabel else table

    @property
    def solver(self) -> str:
        """The solver of its coefficients: "direct", or "cg", which stores no sums."""
        return self.record.solution.solver

    def checked(self, path: str | PathLike[str]) -> Self:
        lost = [name for name in self.OF_SUMS if name not in self.arrays]
        if lost and self.solver == "direct":
            raise ModelFormatError(f"{path} lacks the array {lost[0]}; {self._AGAIN}")
        return super().checked(path)

    @property
    def sums(self) -> RidgeSums:
        """The sums of the final sweep; an update adds appended rows to them.

        Raises
        ------
        ParameterError
            The model was solved by conjugate gradients, which compute no sums.
        """
        self._check_sums()
        totals = self.record.totals
        return RidgeSums(
            **{name: self.arrays[f"sum_{name}"] for name in _SUMS},
            centre=self.arrays["centre"],
            weight=totals.weight,
            trace=totals.trace,
            count=totals.rows,
        )

    def reduction_of_rows(self, rows: int) -> NormalEquations:
        alpha = self.record.settings.alpha
        return NormalEquations.of(self.basis, self.arrays["centre"], rows, None if isinstance(alpha, str) else alpha)

    def check_choices(self, choices: FieldsView) -> None:
        self._check_sums()
        super().check_choices(choices)
        if choices.get("alpha", "keep") == "cv":
            raise ParameterError(
                "the model does not keep its sums by fold, from which alpha is chosen by held-out errors; give "
                f"{option('alpha', 'keep')}, 'gcv' or a number, or fit again to all rows"
            )
        if choices.get("alpha", "keep") != "keep":
            RidgeSettings(alpha=choices["alpha"])

    def note_of_update(self, choices: FieldsView, updated: Self) -> str:
        if self.record.settings.alpha != "cv" or "alpha" in choices:
            return ""
        kept = f"alpha {self.record.alpha:.6g} of the fit is kept: sums by fold are not"
        if self.record.validation is None:
            return kept
        if updated.record.validation is None:
            return f"{kept}; its validation was that of the smaller basis, and is left out"
        return f"{kept}; its validation is that of the fit"

    def _check_sums(self) -> None:
        if self.solver == "cg":
            raise ParameterError(
                "the model was solved for by conjugate gradients and keeps no sums, which other alphas and new rows "
                f"need; fit it again with {option('solver', 'direct')}"
            )

    def with_sums(self, sums: RidgeSums, choices: FieldsView | None = None) -> Self:
        """As in the base class; `alpha` may be "gcv", "keep" or a number.

        An alpha that was chosen by folds ("cv") is kept: it is the variance of the noise over that of the function,
        which further rows of the same kind do not change, and the sums by fold would make the model V times as large.
        """
        record, settings = self.record, self.record.settings
        alpha = (choices or {}).get("alpha")
        scale = None if self.classes is not None else np.asarray(record.target_scale) ** 2
        system = RidgeSystem(
            self.basis,
            sums,
            intercept=settings.fit_intercept,
            scale=scale,
            independent=record.independent,
        )
        wanted = settings.alpha if alpha is None else alpha
        wanted = record.alpha if wanted in ("keep", "cv") else wanted
        solution = system.solve(system.choose_alpha() if wanted == "gcv" else float(wanted))
        arrays = {
            **self.arrays,
            "residual_path": system.residual_path,
            **solution_arrays(sums, system, solution, scale),
        }
        record = record.changed(**solution_record(sums, system, solution))
        if solution.alpha != self.record.alpha:
            # The held-out error was that of another alpha.
            record = record.changed(validation=None)
        if record.validation is None:
            # The curves are of the same left-out rows.
            arrays = {name: values for name, values in arrays.items() if name not in CURVES}
        return self.with_parts(record, arrays).with_basis(self.basis)

    def outputs(self, *, std: bool = False) -> RowMap:
        found = super().outputs(std=std)
        return LabelPredictions(self.predictions()) if self.multilabel else found

    def scores(self) -> AnyReduction:
        return LabelScores(self.predictions()) if self.multilabel else super().scores()

    def checking(self) -> Predictions | CalibratedProbabilities:
        return calibrated(self.predictions(), self.curves)

    def probabilities(self) -> CalibratedProbabilities:
        """The row map of the probabilities of classes, on scaled rows.

        Raises
        ------
        ParameterError
            The model has no curves, as alpha was not chosen by held-out rows.
        """
        found = self.checking()
        if not isinstance(found, CalibratedProbabilities):
            raise ParameterError(
                "the model has no probabilities, which are calibrated on held-out rows; fit it again with "
                f"{option('alpha', 'cv')} to some thousand rows"
            )
        return found

    @property
    def degrees(self) -> Degrees | None:
        settings, found = self.record.settings, self.record.solution.effective_df
        constants = int(settings.fit_intercept)
        used = None if found is None else found - constants
        return self._degrees(used, chosen=isinstance(settings.alpha, str), constants=constants)

    def solution_fields(self) -> Fields:
        solution = self.record.solution
        fields = {"gcv": solution.gcv, "effective_df": solution.effective_df, **self._saturation}
        iterations = {} if solution.iterations is None else {"iterations": solution.iterations}
        return {"alpha": self.record.alpha, "solver": self.solver, **fields, **iterations, **self._validation_fields()}

    def _validation_fields(self) -> Fields:
        """Errors on held-out folds with their standard errors: one number for one target, else one for each."""
        found = self.record.validation
        if found is None:
            return {}
        one = len(found.rmse) == 1
        fields: Fields = {
            "validation_rmse": found.rmse[0] if one else list(found.rmse),
            "validation_rmse_se": found.rmse_se[0] if one else list(found.rmse_se),
        }
        if self.classes is not None:
            fields = {"validation_wrong": found.wrong, "validation_wrong_se": found.wrong_se}
        return {**fields, "validation_rows": found.rows}

    def predictions(self, *, argmax: bool = False) -> Predictions:
        """The row map that predicts, on rows that are scaled already."""
        return Predictions(
            self.basis,
            self.coefficients,
            self.intercept,
            argmax=argmax,
            flat=self.flat,
        )


def solution_arrays(
    sums: RidgeSums, system: RidgeSystem, solution: RidgeSolution, scale: Float | None
) -> dict[str, AnyArray]:
    """The sums and what follows from them.

    Parameters
    ----------
    scale : (d,) squared units in which GCV adds the errors of several targets; None for common units.
    """
    path = system.path
    alphas = path.grid()
    return {
        "dual_coef": solution.coefficients,
        "intercept": solution.intercept,
        **{f"sum_{name}": getattr(sums, name) for name in _SUMS},
        "centre": sums.centre,
        "gcv_alphas": alphas,
        "gcv_scores": path.gcv_scores(alphas, scale),
        "gcv_effective_df": path.effective_dfs(alphas),
    }


def solution_record(sums: RidgeSums, system: RidgeSystem, solution: RidgeSolution) -> Fields:
    """The fields of the sums and of the solution that are not arrays."""
    return {
        "alpha": solution.alpha,
        **_of_rows(sums, system.residual_trace),
        "solution": RidgeSolutionRecord(
            solver="direct",
            # Infinite where all degrees of freedom are used; JSON has no infinity.
            gcv=solution.gcv if math.isfinite(solution.gcv) else None,
            effective_df=solution.effective_df,
            training_rmse=_rmse(solution, sums.weight),
        ),
    }


def falkon_arrays(solution: FalkonSolution) -> dict[str, AnyArray]:
    """The coefficients only: there are no n x n sums, from which other values of alpha could be solved."""
    return {"dual_coef": solution.coefficients, "intercept": solution.intercept}


def falkon_record(system: FalkonSystem, solution: FalkonSolution) -> Fields:
    """The fields of `solution_record`, and the record of the iterations."""
    assert system.residual_trace is not None
    return {
        "alpha": solution.alpha,
        **_of_rows(system.sums, system.residual_trace),
        "solution": RidgeSolutionRecord(
            solver="cg",
            gcv=None,
            effective_df=None,
            training_rmse=_rmse(solution, system.sums.weight),
            iterations=solution.iterations,
            ended=solution.ended,
            relative_residual=tuple(solution.residuals[-1].tolist()),
            excess=tuple(solution.excess.tolist()),
        ),
    }


def _of_rows(sums: RidgeSums | TargetSums, residual_trace: float) -> Fields:
    return {
        "totals": RidgeTotals(rows=sums.count, weight=sums.weight, trace=sums.trace),
        "certificate": certificate_of(sums.trace, residual_trace),
    }


def _rmse(solution: RidgeSolution | FalkonSolution, weight: float) -> tuple[float, ...]:
    return tuple(np.sqrt(solution.residual_square / (weight or 1.0)).tolist())
