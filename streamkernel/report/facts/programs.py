"""The linear programs of a model after each sweep, as arrays in the units of the axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.models.linear import LinearSolutionRecord
from streamkernel.models.margins import MarginModel
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.margins import function_names
from streamkernel.type_aliases import Int


@dataclass(frozen=True)
class ProgramPath:
    """Functions and rows of the programs of K functions, each after its own sweeps.

    Attributes
    ----------
    names : names of the K functions.
    functions, rows : an array for each: coefficients that are not 0, and rows in memory.
    candidates : number of rows that were candidates; None for all.
    """

    names: tuple[str, ...]
    functions: tuple[Int, ...]
    rows: tuple[Int, ...]
    candidates: int | None


def program_path(model: MarginModel) -> ProgramPath | Absent | None:
    """The programs after each sweep; None for machines that are no linear programs."""
    solution = model.record.solution
    if not isinstance(solution, LinearSolutionRecord):
        return None
    functions = tuple(np.asarray(problem.functions, np.int64) for problem in solution.problems)
    rows = tuple(np.asarray(problem.rows, np.int64) for problem in solution.problems)
    if not functions or not all(len(n) and len(n) == len(r) for n, r in zip(functions, rows, strict=True)):
        return Absent("the model keeps no path")
    return ProgramPath(tuple(function_names(model)), functions, rows, solution.candidates)
