"""Runs of matching pursuit on small tables in memory, for its tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.pursuit import MatchingPursuit, PursuitSelection
from streamkernel.selection.problem import Problem
from streamkernel.selection.row_cache import RowCache
from streamkernel.table import Table, open_table

Float = NDArray[np.float64]


def problem_of(table: Table, n: int, kernel: Kernel | None = None, *, tol: float = 0.0, seed: int = 0) -> Problem:
    """Targets in their own units, not centred."""
    table, d = table.with_keys(), table.n_targets
    return Problem(table, kernel or Gaussian(1.0), n, tol, seed, np.zeros(d), np.ones(d))


def run(
    rule: MatchingPursuit,
    X: Any,
    Y: Any,
    n: int,
    kernel: Kernel | None = None,
    *,
    executor: Any = None,
    classify: bool = False,
    **options: Any,
) -> tuple[PursuitSelection, Session]:
    """The selection, and the session that it took."""
    table = open_table(X, Y, classify=classify)
    session = Session(executor or ThreadExecutor(1))
    problem = problem_of(table, n, kernel, **options)
    cache = RowCache(problem.table, session)
    cache.fetch(rule.prefetch(problem))
    return rule.select(problem, session, cache), session


def pools_of(rule: MatchingPursuit, X: Any, Y: Any, n: int, seed: int = 0) -> list[list[int]]:
    """Candidates of each sweep, in the order of their sub-pools, by the draw alone."""
    problem = problem_of(open_table(X, Y), n, seed=seed)
    return [rule._uniform(problem, round_).tolist() for round_ in range(rule._rounds(problem))]
