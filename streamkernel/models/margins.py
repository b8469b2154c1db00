"""A fitted support vector machine: configuration and named arrays, in memory as on disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import ClassVar, Self

from streamkernel.models._calibrated import CalibratedModel
from streamkernel.models.predicting import PredictingModel
from streamkernel.records import Count, CountedTotals, ModelRecord, Record, SettingsRecord
from streamkernel.reductions import Predictions
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.predictions import (
    Decisions,
    PairwisePredictions,
    PairwiseProbabilities,
    QuantilePredictions,
    calibrated,
)
from streamkernel.reductions.row_map import ProbabilityMap
from streamkernel.reductions.scores import (
    OneClassScores,
    QuantileScores,
    RegressionScores,
)
from streamkernel.settings.margins import (
    ONE_VS_ONE,
    MarginClassifierSettingsRecord,
    MarginRegressorSettingsRecord,
)
from streamkernel.settings.one_class import OneClassSettingsRecord
from streamkernel.settings.quantile import QuantileSettingsRecord
from streamkernel.table import Table
from streamkernel.type_aliases import Fields


class MarginPath(Record):
    """The solutions for several C on the rows outside a validation fold, and their errors on it.

    An error is the share of wrong classes, or the mean loss of a row for C = 1. `rows` counts the rows of the fold,
    `effective` those of equal weight that would give means of the same variance.
    """

    C: tuple[float, ...]
    errors: tuple[float, ...]
    errors_se: tuple[float, ...]
    gaps: tuple[float, ...]
    rows: Count
    effective: float


class MarginProblem(Record):
    """The solution of one function: `gaps` are the relative duality gaps after each sweep."""

    primal: float
    dual: float
    gaps: tuple[float, ...]


class MarginSolutionRecord(Record):
    """The solution for the chosen C; `gap` is the largest relative duality gap of its functions."""

    method: str
    C: float
    gap: float
    converged: bool
    iterations: Count
    problems: tuple[MarginProblem, ...]


class MarginRecord(ModelRecord):
    """The fields of a support vector machine."""

    settings: SettingsRecord
    totals: CountedTotals
    solution: MarginSolutionRecord
    path: MarginPath | None = None


@dataclass(frozen=True)
class MarginModel(PredictingModel):
    """A fitted support vector machine. The functions of two classes are ``-f / 2`` and ``f / 2``."""

    RECORD: ClassVar[type[MarginRecord]] = MarginRecord
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        **PredictingModel.SHAPES,
        "dual_coef": ("n", "d"),
        "intercept": ("d",),
    }

    record: MarginRecord

    @property
    def full(self) -> bool:
        """Whether the functions are the support vectors of the machine of all rows; else those of a basis."""
        return getattr(self.record.settings, "machine", "reduced") == "full"

    def solution_fields(self) -> Fields:
        solution, path = self.record.solution, self.record.path
        fields: Fields = {
            "C": solution.C,
            "solver": solution.method,
            "gap": solution.gap,
            "iterations": solution.iterations,
            "converged": solution.converged,
        }
        if path is None:
            return fields
        chosen = path.C.index(solution.C)
        held_out = {"validation_error": path.errors[chosen], "validation_error_se": path.errors_se[chosen]}
        return {**fields, **held_out, "validation_rows": path.rows}

    @property
    def functions(self) -> Predictions:
        """The row map of the values of all functions, on rows that are scaled already."""
        return Predictions(self.basis, self.coefficients, self.intercept, flat=self.flat)

    def predictions(self, *, argmax: bool = False) -> Predictions | PairwisePredictions:
        """The row map that predicts, on scaled rows; with `argmax` the position of the largest value."""
        return replace(self.functions, argmax=argmax)


class MarginRegressorRecord(MarginRecord):
    """The fields of a support vector regression."""

    settings: MarginRegressorSettingsRecord


@dataclass(frozen=True)
class MarginRegressorModel(MarginModel):
    """A fitted support vector regression."""

    KIND: ClassVar[str] = "support-vector-regression"
    RECORD: ClassVar[type[MarginRegressorRecord]] = MarginRegressorRecord
    _NOUN: ClassVar[str] = "support vector regression model"

    record: MarginRegressorRecord

    def outputs(self, *, std: bool = False) -> Predictions:
        self.refuse_std(std)
        return self.functions

    def scores(self) -> AnyReduction:
        return RegressionScores(self.functions, self.record.target_scale)


class MarginClassifierRecord(MarginRecord):
    """The fields of a support vector classifier."""

    settings: MarginClassifierSettingsRecord


@dataclass(frozen=True)
class MarginClassifierModel(CalibratedModel, MarginModel):
    """A fitted support vector classifier; with curves it has probabilities."""

    KIND: ClassVar[str] = "support-vector-classifier"
    RECORD: ClassVar[type[MarginClassifierRecord]] = MarginClassifierRecord
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        **MarginModel.OPTIONAL,
        **CalibratedModel.OPTIONAL,
        "margin_edges": ("bins + 1",),
    }
    _NOUN: ClassVar[str] = "support vector classifier model"

    record: MarginClassifierRecord

    @property
    def paired(self) -> bool:
        """Whether there is a function for each pair of classes."""
        labels = self.record.classes or ()
        return self.record.settings.multi_class == ONE_VS_ONE and len(labels) > 2

    @property
    def function_count(self) -> int:
        """Number of functions: one for two classes, else one for each class, or for each pair."""
        C = self.target_count
        return C * (C - 1) // 2 if self.paired else super().function_count

    def checked(self, path: str | PathLike[str]) -> Self:
        super().checked(path)
        functions, columns = self.function_count, int(self.arrays["dual_coef"].shape[1])
        if columns != (2 if self.target_count == 2 else functions):
            self._refuse(path, f"it has {columns} functions for {self.target_count} classes")
        return self

    def predictions(self, *, argmax: bool = False) -> Predictions | PairwisePredictions:
        if self.paired:
            return PairwisePredictions(self.functions, self.target_count, argmax)
        return replace(self.functions, argmax=argmax)

    def checking(self) -> Predictions | PairwisePredictions | ProbabilityMap:
        curves = self.curves
        if self.paired and curves is not None:
            return PairwiseProbabilities(self.functions, curves, self.target_count)
        return self.predictions() if self.paired else calibrated(self.functions, curves)


class QuantileRecord(MarginRecord):
    """The fields of quantiles; `centre` is the mean of the target in the rows of the fit."""

    settings: QuantileSettingsRecord
    centre: float


@dataclass(frozen=True)
class QuantileModel(MarginModel):
    """Fitted quantiles of one target: K functions, whose values are sorted in each row."""

    KIND: ClassVar[str] = "kernel-quantile-regression"
    RECORD: ClassVar[type[QuantileRecord]] = QuantileRecord
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        **MarginModel.OPTIONAL,
        "check_true": ("c of check", "1"),
        "check_predicted": ("c of check", "1"),
        "check_quantiles": ("c of check", "d"),
        "calibration_shift": ("d",),
    }
    _NOUN: ClassVar[str] = "quantile regression model"

    record: QuantileRecord

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels in ascending order."""
        given = self.record.settings.quantile
        return given if isinstance(given, tuple) else (given,)

    @property
    def target_count(self) -> int:
        return 1

    def output_labels(self, width: int) -> list[str]:
        return [f"{level:g}" for level in self.levels]

    def checked(self, path: str | PathLike[str]) -> Self:
        super().checked(path)
        functions = int(self.arrays["dual_coef"].shape[1])
        if functions != len(self.levels):
            self._refuse(path, f"it has {functions} functions for {len(self.levels)} levels")
        return self

    def solution_fields(self) -> Fields:
        return {"quantile": self.record.settings.quantile, **super().solution_fields()}

    def checking(self) -> QuantilePredictions:
        return QuantilePredictions(self.functions, self.levels)

    def outputs(self, *, std: bool = False) -> QuantilePredictions:
        self.refuse_std(std)
        return self.checking()

    def scores(self) -> QuantileScores:
        return QuantileScores(self.checking(), self.record.centre, float(self.record.target_scale[0]))


class Threshold(Record):
    """The threshold rho of one class, ``f = g^T b - rho``.

    `lowered` is how far it was lowered after the solution, so that the share `outliers` of the weight, at most nu, is
    below it; `unit` is the unit of `decision_weights`.
    """

    rho: float
    lowered: float
    outliers: float
    unit: float


class OneClassRecord(MarginRecord):
    """The fields of one class."""

    settings: OneClassSettingsRecord
    threshold: Threshold


@dataclass(frozen=True)
class OneClassModel(MarginModel):
    """A fitted machine of one class: ``f = k(x, Z) dual_coef + intercept`` is below 0 for outliers."""

    KIND: ClassVar[str] = "one-class-support-vector-machine"
    RECORD: ClassVar[type[OneClassRecord]] = OneClassRecord
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {**MarginModel.SHAPES, "decision_weights": ("bins",)}
    SUPERVISED: ClassVar[bool] = False
    _NOUN: ClassVar[str] = "one-class model"

    record: OneClassRecord

    def solution_fields(self) -> Fields:
        fields = super().solution_fields()
        # C follows from nu and the weights.
        del fields["C"]
        return {"nu": self.record.settings.nu, "outliers": self.record.threshold.outliers, **fields}

    def prepare_targets(self, table: Table) -> Table:
        """The table without targets, which one class does not look at."""
        return table.without_targets()

    def outputs(self, *, std: bool = False) -> Decisions:
        self.refuse_std(std)
        return Decisions(self.functions)

    def scores(self) -> AnyReduction:
        return OneClassScores(self.functions)
