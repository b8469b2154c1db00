"""Incomplete Cholesky decomposition with greedy diagonal pivots, in few sweeps (Fine & Scheinberg 2001).

With one pivot at a time the rule is (ALGORITHMS 3.1)::

    d = diag K;   j = argmax d;   g = (K_j - G G_j^T) / sqrt(d_j);   G <- [G, g];   d <- d - g^2

Each argmax needs the residual d of all rows. But d only decreases. One sweep returns the B rows with the largest
residuals, and theta, the largest residual of all other rows. While the largest residual of the B rows exceeds theta, it
is the largest of all rows. Until then the loop on these B rows alone makes the same picks as on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamkernel.basis import PIVOT_TOLERANCE, Basis
from streamkernel.engine import Session, Step, outgrown_bytes, step_of
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer
from streamkernel.records import RoundRecord
from streamkernel.reductions.pools.largest_residuals import LargestResiduals, ResidualRows
from streamkernel.selection.problem import Problem, Rule, Selection, gather_step, unfilled_basis
from streamkernel.selection.row_cache import RowCache
from streamkernel.type_aliases import Float, Int


def largest_pivots(basis: Basis, largest: ResidualRows, count: int, share: float) -> tuple[Int, Float]:
    """Up to `count` pivots among the rows of `largest`, and the residual of each when it was picked.

    The picks end when the largest residual among these rows may be less than `share` times the largest of all rows.

    Parameters
    ----------
    basis : the functions at which the residuals of `largest` were computed.
    largest : rows with the largest residuals.
    count : largest number of pivots.
    share : 1 for exact pivots; 0 to continue to the last independent row.

    Returns
    -------
    positions : (r,) positions in `largest`, in the order of picking; r >= 1 if `largest` has rows.
    pivots : (r,) residuals when they were picked.
    """
    # Ties go to the lowest position.
    order = np.argsort(largest.rows)
    rows = largest.rows[order]
    candidates = Basis(basis.kernel, np.ascontiguousarray(largest.X[order]), rows)
    n, k = len(basis), len(largest)
    count = min(count, k)
    G = np.empty((k, n + count))
    if n:
        G[:, :n] = basis.features(candidates.points)
    d = largest.residuals[order].copy()
    diagonal = candidates.kernel.diagonal(candidates.points)
    picked: list[int] = []
    pivots: list[float] = []
    for t in range(n, n + count):
        d[d <= PIVOT_TOLERANCE * diagonal] = -np.inf
        j = int(np.argmax(d))
        if d[j] <= 0.0 or (picked and not _is_sure(float(d[j]), int(rows[j]), largest, share)):
            break
        column = candidates.take(np.array([j])).block(candidates.points)[:, 0]
        g = G[:, t]
        # Not BLAS, whose rounding depends on the position of a row: equal rows must stay equal.
        np.divide(column - np.einsum("ij,j->i", G[:, :t], G[j, :t]), np.sqrt(d[j]), out=g)
        picked.append(j)
        pivots.append(float(d[j]))
        d = np.maximum(d - g**2, 0.0)
        d[j] = 0.0
    return order[np.asarray(picked, np.int64)], np.asarray(pivots)


def _is_sure(pivot: float, row: int, largest: ResidualRows, share: float) -> bool:
    """True if no row outside the look can precede this pivot (the first pick always has the largest residual)."""
    if share < 1.0:
        return pivot >= share * max(largest.next_residual, 0.0)
    if pivot == largest.next_residual:
        # Rows outside the look with the same residual have numbers from next_row on.
        return row < largest.next_row
    return pivot > largest.next_residual


@dataclass(frozen=True)
class IncompleteCholesky(Rule):
    """Pivots on the largest residual diagonal.

    Parameters
    ----------
    block : number of rows B per sweep; None for 4 n, at least 256. With B = m one sweep is enough.
    share : each pivot is at least `share` times the largest residual of all rows when it is picked. 1 is the exact
        rule; less is the weak greedy algorithm (DeVore, Petrova & Wojtaszczyk 2013), in fewer sweeps; 0 takes every
        independent row of the block.

    Notes
    -----
    Each sweep computes the residual trace. The squares of the columns of the factor then give the trace after each
    earlier pick. With a tolerance, picks after the first one that satisfies it are removed. The basis is then the
    shortest that satisfies the tolerance, as with one pivot at a time.
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
        return min(self.block or max(256, 4 * problem.n), problem.table.counted)

    def prefetch(self, problem: Problem) -> Int:
        # With an empty basis all residuals of a stationary kernel are equal: the first pivot is the first row that
        # counts.
        first = [problem.table.first_counted] if problem.kernel.stationary and problem.n else []
        return np.asarray(first, np.int64)

    def steps(self, problem: Problem) -> list[Step]:
        """At most one sweep per pick. The data decide on the number; it is 1 if B is all rows."""
        n, B, m = problem.n, self._wanted(problem), problem.table.counted
        steps = [gather_step(problem, 1)] if problem.kernel.stationary else []
        times = (1 if m <= B else n - len(steps)) + int(problem.tol > 0.0)
        if times <= 0:
            return steps
        largest = LargestResiduals(unfilled_basis(problem, n), B)
        # The features of the B rows, and their copy in the factor; the factor of the basis. Row blocks grow with every
        # sweep, and the allocator does not return some of the smaller ones (measured).
        held = 8 * B * (2 * n + problem.table.width + 8) + 24 * n**2
        name = "look for the largest residuals"
        step = step_of(name, largest, problem.table, kernel_columns=n // 2, points=n, times=times)
        return [*steps, replace(step, held_bytes=held + outgrown_bytes(step))]

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        first = cache.get(self.prefetch(problem))
        basis, _ = problem.empty_basis().append(first.X, first.rows)
        pivots = problem.kernel.diagonal(basis.points)
        rounds = [RoundRecord(0, len(basis), float(pivots.sum()) * problem.table.weight, 1, 0)] if len(basis) else []
        ended = "size"
        done = len(basis) >= problem.n
        while not done or problem.tol > 0.0:
            reduction = LargestResiduals(basis, 0 if done else self._wanted(problem))
            largest = session.sweep(
                reduction, problem.table, f"look for the largest residuals of {len(basis)} functions"
            )
            holds = largest.path <= problem.tol * largest.trace
            if problem.tol > 0.0 and holds.any():
                basis, rounds = _shortened(basis, rounds, int(np.argmax(holds)) + 1)
                ended = "tolerance"
                break
            if done:
                break
            order, found = largest_pivots(basis, largest, problem.n - len(basis), self.share)
            grown, kept = basis.append(largest.X[order], largest.rows[order])
            if len(grown) == len(basis):
                ended = "rank"
                break
            rounds.append(RoundRecord(len(basis), len(grown), largest.residual_trace, len(largest), 0))
            basis, pivots = grown, np.concatenate([pivots, found[kept]])
            session.progress.note(f"{len(basis)} of {problem.n} basis functions")
            done = len(basis) >= problem.n
            if not done and largest.next_row < 0:
                # The sweep returned all independent rows, and none of them is independent any more.
                ended, done = "rank", True
        return Selection(basis, pivots[: len(basis)], tuple(rounds), ended)


def _shortened(basis: Basis, rounds: list[RoundRecord], size: int) -> tuple[Basis, list[RoundRecord]]:
    """The first `size` functions, and the rounds that picked them."""
    kept = [record for record in rounds if record.start < size]
    kept[-1] = kept[-1].changed(stop=min(kept[-1].stop, size))
    return basis.take(np.arange(size)), kept
