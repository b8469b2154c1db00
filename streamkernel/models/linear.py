"""A fitted linear programming machine: a support vector machine whose record has its program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.models.margins import (
    MarginClassifierModel,
    MarginClassifierRecord,
    MarginProblem,
    MarginRegressorModel,
    MarginRegressorRecord,
    MarginSolutionRecord,
)
from streamkernel.records import Count
from streamkernel.settings.linear import LinearClassifierSettingsRecord, LinearRegressorSettingsRecord
from streamkernel.type_aliases import Fields


class LinearProblem(MarginProblem):
    """The program of one function, after each sweep.

    `functions` counts its coefficients, `rows` those in memory, and `prices` are the largest of all candidates: the
    bound is that of the program of all, where a price is 1 at most.
    """

    functions: tuple[Count, ...]
    rows: tuple[Count, ...]
    prices: tuple[float, ...]


class LinearSolutionRecord(MarginSolutionRecord):
    """The solution for the chosen C. `capped` tells whether the largest number of functions ended it."""

    problems: tuple[LinearProblem, ...]
    candidates: Count
    capped: bool


class LinearClassifierRecord(MarginClassifierRecord):
    """The fields of a linear programming classifier."""

    settings: LinearClassifierSettingsRecord  # type: ignore[assignment]
    solution: LinearSolutionRecord


@dataclass(frozen=True)
class LinearClassifierModel(MarginClassifierModel):
    """A fitted linear programming classifier; with curves it has probabilities."""

    KIND: ClassVar[str] = "linear-programming-classifier"
    RECORD: ClassVar[type[LinearClassifierRecord]] = LinearClassifierRecord
    _NOUN: ClassVar[str] = "linear programming classifier model"

    record: LinearClassifierRecord

    @property
    def full(self) -> bool:
        return True

    @property
    def paired(self) -> bool:
        return False

    def solution_fields(self) -> Fields:
        return super().solution_fields() | {"candidates": self.record.solution.candidates}


class LinearRegressorRecord(MarginRegressorRecord):
    """The fields of a linear programming regression."""

    settings: LinearRegressorSettingsRecord  # type: ignore[assignment]
    solution: LinearSolutionRecord


@dataclass(frozen=True)
class LinearRegressorModel(MarginRegressorModel):
    """A fitted linear programming regression."""

    KIND: ClassVar[str] = "linear-programming-regression"
    RECORD: ClassVar[type[LinearRegressorRecord]] = LinearRegressorRecord
    _NOUN: ClassVar[str] = "linear programming regression model"

    record: LinearRegressorRecord

    @property
    def full(self) -> bool:
        return True

    def solution_fields(self) -> Fields:
        return super().solution_fields() | {"candidates": self.record.solution.candidates}


LinearModel = LinearClassifierModel | LinearRegressorModel
