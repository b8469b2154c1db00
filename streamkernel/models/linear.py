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
    """The solution for the chosen C.

    `candidates` is None where all rows were candidates for functions, else the number of those that were drawn;
    `capped` tells whether the largest number of functions ended it.
    """

    problems: tuple[LinearProblem, ...]
    candidates: Count | None
    capped: bool


def program_fields(solution: LinearSolutionRecord) -> Fields:
    """What the command line and the service tell of the program, beside what they tell of every machine."""
    return {
        "objective": sum(problem.primal for problem in solution.problems),
        "bound": sum(problem.dual for problem in solution.problems),
        "candidates": solution.candidates,
        "capped": solution.capped,
    }


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
        return super().solution_fields() | program_fields(self.record.solution)


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
        return super().solution_fields() | program_fields(self.record.solution)


LinearModel = LinearClassifierModel | LinearRegressorModel
