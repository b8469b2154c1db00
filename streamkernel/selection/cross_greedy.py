"""Selection of rows for two views at once: matching pursuit for sparse kernel canonical correlations, with pools.

The loop is that of `Greedy`: draw candidates, score them by the cross quotient over all rows in one sweep, take some
picks. The bases of the two views have the same rows (Hussain & Shawe-Taylor, section 4; ALGORITHMS 11.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkernel.basis import PIVOT_TOLERANCE, Basis
from streamkernel.engine import Session, Step, step_of
from streamkernel.kernels import Kernel, filling_bytes, packed_bytes, packing_bytes, workspace_bytes
from streamkernel.records import RoundRecord
from streamkernel.reductions import Sample, View
from streamkernel.reductions.pools import CrossPool, PoolColumns
from streamkernel.selection._cross_picks import cross_picks
from streamkernel.selection._draws import AllRows, Draw, Drawn, UniformDraw
from streamkernel.selection._picks import Picks
from streamkernel.selection.problem import Problem
from streamkernel.selection.rounds import Fixed, Geometric, Rounds, Take
from streamkernel.selection.row_cache import RowCache
from streamkernel.table import Table
from streamkernel.type_aliases import Float, Int

POOLS = ("shared", "split", "all")

_DOUBLE = np.dtype(np.float64)

Bases = tuple[Basis, Basis]


@dataclass(frozen=True)
class CrossProblem:
    """Choose at most n rows of a table as basis functions of both of its views.

    Parameters
    ----------
    table : rows, not scaled; with targets if they are one of the views.
    views : the two views, each with its scaler.
    kernels : kernel of each view.
    widths : number of columns of each view.
    n : largest number of functions of each view.
    regularization : ridge of each view, as a share of the trace of its kernel matrix.
    seed : seed of all draws.
    """

    table: Table
    views: tuple[View, View]
    kernels: tuple[Kernel, Kernel]
    widths: tuple[int, int]
    n: int
    regularization: float = 0.0
    seed: int = 0

    @property
    def draws(self) -> Problem:
        """The problem that a `Draw` of rows is given."""
        return Problem(self.table, self.kernels[0], self.n, 0.0, self.seed)

    def bases(self, sample: Sample) -> Bases:
        """The sampled rows as unwhitened bases, one for each view."""
        first, second = (
            Basis(kernel, view.of(sample.X, sample.Y), sample.rows)
            for kernel, view in zip(self.kernels, self.views, strict=True)
        )
        return first, second

    def unfilled(self, n: int) -> Bases:
        """Bases with the shapes of n functions but without their memory, for plans."""
        first, second = (
            Basis.unfilled(kernel, n, width) for kernel, width in zip(self.kernels, self.widths, strict=True)
        )
        return first, second

    def packed_bytes(self, n: int) -> int:
        """Bytes of n points in both views, packed for the kernels' loops."""
        return sum(packed_bytes(n, p, kernel.formulas) for kernel, p in zip(self.kernels, self.widths, strict=True))

    def filling(self, step: Step) -> Step:
        """A step whose tasks fill blocks of kernel values in either view, which may be wider than the table's rows."""
        more = workspace_bytes(max(self.widths)) - workspace_bytes(self.table.width)
        return replace(step, scratch_bytes=step.scratch_bytes + max(0, more))

    def empty(self) -> Bases:
        first, second = (
            Basis.empty(kernel, width, _DOUBLE) for kernel, width in zip(self.kernels, self.widths, strict=True)
        )
        return first, second


@dataclass(frozen=True)
class CrossSelection:
    """Bases of the same rows in both views, and the record of their selection.

    Attributes
    ----------
    bases : basis of each view, in the order of picking.
    quotients : (n,) cross quotient of each pick when it was picked.
    rounds : one record per round.
    ended : "size" (n reached) or "rank" (no row is independent of the others in both views).
    """

    bases: Bases
    quotients: Float
    rounds: tuple[RoundRecord, ...]
    ended: str


@dataclass(frozen=True)
class CrossGreedy:
    """The rule: draw candidates, score them, take picks.

    Parameters
    ----------
    draw : Draw of the candidates, which are scored on all rows.
    take : number of picks before the next sweep.
    """

    draw: Draw
    take: Take

    def prefetch(self, problem: CrossProblem) -> Int:
        """Numbers of all rows that will be candidates."""
        return self.draw.prefetch(problem.draws, self.take)

    def steps(self, problem: CrossProblem) -> list[Step]:
        """Costs of the selection, for the plan; they do not depend on the lengthscales of the kernels."""
        steps = self.draw.steps(problem.draws, self.take)
        # Rounds with the same numbers of picks and candidates cost about the same: the last of them, with the largest
        # bases, stands for all.
        kinds: dict[tuple[int, int], tuple[int, int]] = {}
        for have, picks in self.take.schedule(problem.n):
            size = self.draw.pool_size(problem.draws, picks, have)
            kind = picks, min(size, problem.table.counted - have)  # rows of the bases are no candidates
            kinds[kind] = have, kinds.get(kind, (0, 0))[1] + 1
        return steps + [self._step(problem, *kind, *rounds) for kind, rounds in kinds.items()]

    def _step(self, problem: CrossProblem, picks: int, pool: int, have: int, times: int) -> Step:
        """Costs of rounds with so many picks and candidates, beyond bases of `have` functions."""
        table, row = problem.table, 8 * sum(problem.widths)
        before, of_pool, both, after = map(problem.packed_bytes, (have, pool, have + pool, have + picks))
        # Columns of bases and pool stand side by side; for themselves are packed the bases before the sweep, the pool
        # after it. In place of the columns then come the bases that have grown: in one view their points, joined, stay
        # beside those that are independent.
        grown = after + (row + 8 * max(problem.widths)) * (have + picks)
        packed = before + of_pool + max(both, grown) + filling_bytes(max(problem.widths))
        # The factor and the deflated copies of its halves; both S and their products; the whitening.
        algebra = 8 * (3 * (2 * pool) ** 2 + 4 * pool**2 + 6 * (have + picks) ** 2)
        step = step_of(
            f"score {pool} candidates in two views",
            self._work(problem, problem.unfilled(have), problem.unfilled(pool)),
            table,
            kernel_columns=2 * (have + pool),
            points=0,  # which are of either view, and not of the table's width
            times=times,
            held_bytes=packed + algebra,
            packed_bytes=before + both + packing_bytes(max(problem.widths)),
            # The points of both bases and of the pool, in float64; the pool as rows of the table.
            rows_bytes=row * (have + pool) + 8 * table.n_features * pool,
        )
        return problem.filling(step)

    def select(self, problem: CrossProblem, session: Session, cache: RowCache) -> CrossSelection:
        bases, ended = problem.empty(), "size"
        quotients: list[float] = []
        rounds: list[RoundRecord] = []
        supply = Rounds.of(self.take, problem.n)
        while len(bases[0]) < problem.n:
            start = len(bases[0])
            picks = self.take.count(start, problem.n)
            drawn = self.draw.draw(problem.draws, session, cache, bases[0], picks, len(rounds))
            if len(drawn.pool) == 0:
                ended = "rank"
                break
            found, pool = self._score(problem, session, cache, bases, drawn, picks)
            bases, kept = _append_both(bases, pool, found.order)
            del pool  # packed: of wide rows there is no room for it beside the next
            quotients += found.gains[kept].tolist()
            rounds.append(RoundRecord(start, len(bases[0]), None, len(drawn.pool), problem.table.n_rows))
            session.progress.note(f"{len(bases[0])} of {problem.n} basis functions")
            everything = len(drawn.pool) + start >= problem.table.counted
            if supply.exhausted(len(bases[0]) - start, picks) or (len(bases[0]) < start + picks and everything):
                ended = "rank"
                break
        return CrossSelection(bases, np.asarray(quotients), tuple(rounds), ended)

    def _score(
        self, problem: CrossProblem, session: Session, cache: RowCache, bases: Bases, drawn: Drawn, picks: int
    ) -> tuple[Picks, Bases]:
        pool = problem.bases(cache.get(drawn.pool.rows))
        work = self._work(problem, bases, pool)
        sums = session.sweep(work, problem.table, f"score candidates beyond {len(bases[0])} functions")
        ridges = problem.regularization * sums.traces
        found = cross_picks(
            sums,
            picks,
            ridges=(float(ridges[0]), float(ridges[1])),
            diagonals=(pool[0].kernel.diagonal(pool[0].points), pool[1].kernel.diagonal(pool[1].points)),
            pivot_tolerance=PIVOT_TOLERANCE,
            groups=drawn.groups,
        )
        return found, pool

    @staticmethod
    def _work(problem: CrossProblem, bases: Bases, pool: Bases) -> CrossPool:
        first, second = (
            PoolColumns(basis, candidates, np.zeros(0), _DOUBLE) for basis, candidates in zip(bases, pool, strict=True)
        )
        return CrossPool((first, second), problem.views)


def _append_both(bases: Bases, pool: Bases, order: Int) -> tuple[Bases, Int]:
    """Both bases with the candidates at the positions `order`, without those that are dependent in either view.

    Returns
    -------
    The bases, and the positions in `order` of the candidates that were appended.
    """
    kept = np.arange(len(order))
    while True:
        found: list[Any] = [
            basis.append(each.points[order[kept]], each.rows[order[kept]])
            for basis, each in zip(bases, pool, strict=True)
        ]
        both = np.intersect1d(found[0][1], found[1][1])
        if len(both) == len(kept):
            return (found[0][0], found[1][0]), kept
        kept = kept[both]


def cross_rule(pool: str, picks: int, candidates: int | None, level: tuple[float, float]) -> CrossGreedy:
    """The rule with these options.

    Parameters
    ----------
    pool : "shared": all candidates of a sweep compete at every pick; "split": each pick has its own candidates; "all":
        every row is a candidate of every pick, and one sweep is enough.
    picks : number of picks per sweep.
    candidates : number of candidates per pick; None for the number that `level` = (eps, quantile) needs.
    """
    if pool == "all":
        return CrossGreedy(AllRows(), Geometric(1))
    draw = UniformDraw(candidates, all_rows=True, split=pool == "split", level=None if candidates else level)
    return CrossGreedy(draw, Fixed(picks))
