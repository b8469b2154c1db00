"""No rows before the solution, whose support vectors become the basis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.engine import Session, Step
from streamkernel.selection.problem import Problem, Rule, Selection
from streamkernel.selection.row_cache import RowCache
from streamkernel.type_aliases import Int


@dataclass(frozen=True)
class SupportVectors(Rule):
    """The rule of the full machine: the solution chooses the rows, so that nothing is read and none is chosen before.

    It is no rule that a user gives: the settings take it (`MachineSettings`).
    """

    name = "support-vectors"

    @property
    def fetches_picks(self) -> bool:
        return True

    def prefetch(self, problem: Problem) -> Int:
        return np.zeros(0, np.int64)

    def steps(self, problem: Problem) -> list[Step]:
        return []

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        return Selection(problem.empty_basis(), np.zeros(0), (), "solution")
