"""The uniform Nystroem method: n random rows. It is the baseline of all other rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.engine import Session, Step
from streamkernel.records import RoundRecord
from streamkernel.reductions import uniform_rows
from streamkernel.selection.problem import Problem, Rule, Selection, gather_step
from streamkernel.selection.row_cache import RowCache
from streamkernel.type_aliases import Int


@dataclass(frozen=True)
class Uniform(Rule):
    """n rows drawn uniformly without replacement (Williams & Seeger 2001); dependent rows are left out."""

    name = "uniform"

    @property
    def fetches_picks(self) -> bool:
        return True

    def prefetch(self, problem: Problem) -> Int:
        return np.sort(uniform_rows(problem.table, problem.n, problem.seed, (4,)))

    def steps(self, problem: Problem) -> list[Step]:
        return [gather_step(problem, problem.n)]

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        sample = cache.get(self.prefetch(problem))
        basis, _ = problem.empty_basis().append(sample.X, sample.rows)
        record = RoundRecord(0, len(basis), None, len(sample), 0)
        ended = "size" if len(basis) == problem.n else "rank"
        return Selection(basis, np.zeros(0), (record,), ended)
