"""Incomplete Cholesky with greedy diagonal pivots, in few sweeps (Fine & Scheinberg 2001).

One pivot at a time the rule is (ALGORITHMS 3.1)::

    d = diag K;   j = argmax d;   g = (K_j - G G_j^T) / sqrt(d_j);   G <- [G, g];   d <- d - g^2

and each argmax needs the residual d of all rows. But d only decreases. A look brings the B rows of largest residual
and theta, the largest residual of all others: as long as one of the B still exceeds theta it is the largest of all
rows, and the loop above, on these B rows alone, makes the very picks that it would make on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import PIVOT_TOLERANCE, Basis
from streamkernel.engine import Session, Step, outgrown_bytes, step_of
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer
from streamkernel.reductions.largest_residuals import LargestResiduals, ResidualRows
from streamkernel.selection.problem import (
    Problem,
    RoundRecord,
    RowCache,
    Rule,
    Selection,
    gather_step,
    unfilled_basis,
)

__all__ = ["IncompleteCholesky", "largest_pivots"]


def largest_pivots(
    basis: Basis, look: ResidualRows, count: int, share: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Up to `count` pivots among the rows of a look, and the residual of each when it was picked.

    Ends where the largest residual among them is no longer sure to be (`share` times) the largest of all rows.

    Parameters
    ----------
    basis : the functions that the residuals of the look are left by.
    share : 1 for exact pivots; 0 to go on to the last independent row.

    Returns
    -------
    positions : (r,) in `look`, in the order of picking; r >= 1 where the look has a row at all.
    pivots : (r,)
    """
    # Ties go to the lowest position.
    order = np.argsort(look.rows)
    rows = look.rows[order]
    candidates = Basis(basis.kernel, np.ascontiguousarray(look.X[order]), rows)
    n, k = len(basis), len(look)
    count = min(count, k)
    G = np.empty((k, n + count))
    if n:
        G[:, :n] = basis.features(candidates.points)
    d = look.residuals[order].copy()
    diagonal = candidates.kernel.diagonal(candidates.points)
    picked: list[int] = []
    pivots: list[float] = []
    for t in range(n, n + count):
        d[d <= PIVOT_TOLERANCE * diagonal] = -np.inf
        j = int(np.argmax(d))
        if d[j] <= 0.0 or (picked and not _is_sure(float(d[j]), int(rows[j]), look, share)):
            break
        column = candidates.take(np.array([j])).block(candidates.points)[:, 0]
        g = G[:, t]
        # Not BLAS, whose rounding depends on where a row stands: equal rows are to stay equal.
        np.divide(column - np.einsum("ij,j->i", G[:, :t], G[j, :t]), np.sqrt(d[j]), out=g)
        picked.append(j)
        pivots.append(float(d[j]))
        d = np.maximum(d - g**2, 0.0)
        d[j] = 0.0
    return order[np.asarray(picked, np.int64)], np.asarray(pivots)


def _is_sure(pivot: float, row: int, look: ResidualRows, share: float) -> bool:
    """Whether no row left out of the look can come before this one (the first pick, the largest of all, always is)."""
    if share < 1.0:
        return pivot >= share * max(look.next_residual, 0.0)
    if pivot == look.next_residual:
        # Rows left out with this very residual have numbers from next_row on.
        return row < look.next_row
    return pivot > look.next_residual


@dataclass(frozen=True)
class IncompleteCholesky(Rule):
    """Pivot on the largest residual diagonal.

    Parameters
    ----------
    block : rows that a look brings; None takes 4 n, at least 256. With all rows one look is enough.
    share : each pivot is at least `share` times the largest residual of all rows when it is picked. 1 is the exact
        rule; less is the weak greedy algorithm (DeVore, Petrova & Wojtaszczyk 2013), in fewer looks; 0 takes every
        independent row of the block.

    Notes
    -----
    The residual trace is known at the looks, and there, from the squares of the factor's columns, after each pick
    since the last one: with a tolerance the picks beyond the first at which it holds are given back, so that the
    basis is the shortest that holds it, as one pivot at a time would have found it.
    """

    name: str = "incomplete-cholesky"
    block: int | None = None
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.block is not None:
            checked_integer("block", self.block)
        if not 0.0 <= self.share <= 1.0:
            raise ParameterError(f"share = {self.share!r} is out of range; give a number in [0, 1]")

    def _wanted(self, problem: Problem) -> int:
        return min(self.block or max(256, 4 * problem.n), problem.table.n_rows)

    def prefetch(self, problem: Problem) -> NDArray[np.int64]:
        # Before anything is chosen all residuals of a stationary kernel are equal: the first pivot is the first row.
        first = [problem.table.start] if problem.kernel.stationary and problem.n else []
        return np.asarray(first, np.int64)

    def steps(self, problem: Problem) -> list[Step]:
        """At most a look a pick; how many it will be is the data's secret: as few as one, where B is all rows."""
        n, B, m = problem.n, self._wanted(problem), problem.table.n_rows
        steps = [gather_step(problem, 1)] if problem.kernel.stationary else []
        times = (1 if m <= B else n - len(steps)) + int(problem.tol > 0.0)
        if times <= 0:
            return steps
        look = LargestResiduals(unfilled_basis(problem, n), B)
        # The block's features and its factor, which they are copied into; the basis's factor. Row blocks widen with
        # every look, and the allocator keeps some of those that were outgrown (measured).
        held = 8 * B * (2 * n + problem.table.n_features + 8) + 24 * n**2
        name = "look for the largest residuals"
        step = step_of(name, look, problem.table, kernel_columns=n // 2, points=n, times=times)
        return [*steps, replace(step, held_bytes=held + outgrown_bytes(step))]

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        basis, pivots = self._first(problem, cache)
        rounds = [RoundRecord(0, len(basis), float(pivots.sum()) * problem.table.n_rows, 1, 0)] if len(basis) else []
        ended = "size"
        done = len(basis) >= problem.n
        while not done or problem.tol > 0.0:
            reduction = LargestResiduals(basis, 0 if done else self._wanted(problem))
            look = session.sweep(reduction, problem.table, f"look for the largest residuals of {len(basis)} functions")
            holds = look.path <= problem.tol * look.trace
            if problem.tol > 0.0 and holds.any():
                basis, rounds = _shortened(basis, rounds, int(np.argmax(holds)) + 1)
                ended = "tolerance"
                break
            if done:
                break
            grown, gained = self._extend(basis, look, problem.n - len(basis))
            if len(grown) == len(basis):
                ended = "rank"
                break
            rounds.append(RoundRecord(len(basis), len(grown), look.residual_trace, len(look), 0))
            basis, pivots = grown, np.concatenate([pivots, gained])
            session.progress.note(f"{len(basis)} of {problem.n} basis functions")
            done = len(basis) >= problem.n
            if not done and look.next_row < 0:
                # No row was left out, and none of those looked at is independent any more.
                ended, done = "rank", True
        return Selection(basis, pivots[: len(basis)], tuple(rounds), ended)

    def _first(self, problem: Problem, cache: RowCache) -> tuple[Basis, NDArray[np.float64]]:
        first = cache.get(self.prefetch(problem))
        basis, _ = problem.empty_basis().append(first.X, first.rows)
        return basis, problem.kernel.diagonal(basis.points)

    def _extend(self, basis: Basis, look: ResidualRows, count: int) -> tuple[Basis, NDArray[np.float64]]:
        order, pivots = largest_pivots(basis, look, count, self.share)
        grown, kept = basis.append(look.X[order], look.rows[order])
        return grown, pivots[kept]


def _shortened(basis: Basis, rounds: list[RoundRecord], size: int) -> tuple[Basis, list[RoundRecord]]:
    """The first `size` functions, and the rounds that picked them."""
    kept = [record for record in rounds if record.start < size]
    last = kept[-1]
    kept[-1] = RoundRecord(last.start, min(last.stop, size), last.residual_trace, last.candidates, last.scoring_rows)
    return basis.take(np.arange(size)), kept
