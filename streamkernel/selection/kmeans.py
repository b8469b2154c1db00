"""k-means centres as basis points (Zhang, Tsang & Kwok 2008): their quantisation error bounds the Nystroem error.

Seeds are drawn from a uniform sample with probability ~ their squared distance to the previous seeds (k-means++, Arthur
& Vassilvitskii 2007). Lloyd steps then move the centres: first over the sample, in memory, then a few over all rows.
Distances are Euclidean in the units of the kernel: each feature is divided by its lengthscale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import unfilled
from streamkernel.engine import Session, Step, outgrown_bytes, step_of
from streamkernel.kernels.parameters import checked_integer
from streamkernel.records import RoundRecord
from streamkernel.reductions import DrawnRows, draw_rows, stream_generator
from streamkernel.reductions.clusters import Clusters, LloydStep, feature_weights
from streamkernel.selection.problem import Problem, Rule, Selection, gather_step
from streamkernel.selection.row_cache import RowCache
from streamkernel.table import Table, open_table
from streamkernel.type_aliases import Float, Int

_SAMPLE, _SEEDS = (12, 0), (12, 1)  # streams of the counter-based generator
_LEAST_SAMPLE, _SAMPLE_PER_CENTRE = 2000, 10
_LOCAL_STEPS = 10
_STILL = 1e-6  # of the spread of the centres: a smaller move ends the Lloyd steps


def plus_plus(U: Float, n: int, generator: np.random.Generator, counted: Float | None = None) -> Int:
    """Positions of up to n rows of U (m, p), each drawn with probability ~ its squared distance to the previous ones.

    There are fewer if U has fewer distinct rows. With row weights (m,) `counted` the probability is ~ their product.
    """
    chosen: list[int] = []
    distances = np.ones(len(U))
    for variate in generator.random(n):
        cumulative = np.cumsum(distances if counted is None else counted * distances)
        if cumulative[-1] <= 0.0:
            break
        # Rounding may put the variate at the end of the sums, beyond the last row.
        j = min(int(np.searchsorted(cumulative, variate * cumulative[-1], side="right")), len(U) - 1)
        apart = U - U[j]
        squares = np.einsum("ij,ij->i", apart, apart)
        distances = np.minimum(distances, squares) if chosen else squares
        chosen.append(j)
    return np.asarray(chosen, np.int64)


@dataclass(frozen=True)
class KMeans(Rule):
    """The rule k-means: n cluster centres, or the rows nearest to them.

    Parameters
    ----------
    sweeps : largest number of Lloyd steps over all rows; fewer if the centres stop moving. 0 for the centres of the
        sample.
    nearest : True to take the row nearest to each centre among the rows of its cluster, with one more sweep. False
        takes the centres themselves, as in the paper. Their residual is a few per cent smaller, but they are not rows
        of the table, and their row numbers are -1.

    Notes
    -----
    Centres without rows move to the rows farthest from their centres. Centres that have no rows at the end are left out
    of the basis, and so are dependent ones. All n are chosen at once; the tolerance is not used.
    """

    name = "kmeans"

    sweeps: int = 3
    nearest: bool = True

    def __post_init__(self) -> None:
        checked_integer("sweeps", self.sweeps, least=0)

    def _sampled(self, problem: Problem) -> int:
        return min(max(_LEAST_SAMPLE, _SAMPLE_PER_CENTRE * problem.n), problem.table.counted)

    def prefetch(self, problem: Problem) -> Int:
        return self._drawn(problem).rows

    def _drawn(self, problem: Problem) -> DrawnRows:
        return draw_rows(problem.table, self._sampled(problem), problem.seed, _SAMPLE).ascending()

    def steps(self, problem: Problem) -> list[Step]:
        table, sampled = problem.table, self._sampled(problem)
        p = table.width
        work = Clusters(unfilled(problem.n, p), np.zeros(p), table.dtype)
        # The sample as fetched and as a table, with its distances during the draw of seeds; the factor of the basis;
        # row blocks that the allocator does not return (measured).
        held = sampled * (2 * p * table.dtype.itemsize + 24 * p + 40) + 24 * problem.n * (problem.n + 2 * p)
        steps = [gather_step(problem, sampled)]
        for name, where, rows, times in (
            ("k-means over the sample", "sample", sampled, _LOCAL_STEPS),
            ("k-means", "sweep", None, self.sweeps + int(self.nearest)),
        ):
            if times:
                step = step_of(name, work, table, sampled=rows, kernel_columns=0, where=where, times=times)
                steps.append(replace(step, held_bytes=held + outgrown_bytes(step)))
        return steps

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        table, n = problem.table, problem.n
        weights = feature_weights(problem.kernel, table.width)
        drawn = self._drawn(problem)
        sample = np.ascontiguousarray(cache.get(drawn.rows).X)
        counted = None if drawn.weights is None else drawn.importance
        centres = self._start(problem, sample, counted, weights, session)
        rounds = [RoundRecord(0, 0, None, len(sample), len(sample))]
        for _ in range(self.sweeps):
            step = session.sweep(self._work(table, centres, weights), table, "k-means")
            centres = step.centres
            rounds.append(RoundRecord(0, 0, None, n, table.n_rows))
            session.progress.note(f"k-means: mean squared distance {step.square / table.weight:.6g}")
            if step.shift <= _STILL:
                break
        points, rows = centres / weights, np.full(n, -1, np.int64)
        if self.nearest:
            step = session.sweep(self._work(table, centres, weights), table, "rows nearest to the centres")
            points, rows = step.X[step.rows >= 0], step.rows[step.rows >= 0]
            rounds.append(RoundRecord(0, 0, None, n, table.n_rows))
        basis, _ = problem.empty_basis().append(points, rows)
        rounds[-1] = rounds[-1].changed(stop=len(basis))
        return Selection(basis, np.zeros(0), tuple(rounds), "size" if len(basis) == n else "rank")

    @staticmethod
    def _work(table: Table, centres: Float, weights: Float) -> Clusters:
        return Clusters(centres, weights, table.dtype)

    def _start(
        self,
        problem: Problem,
        sample: NDArray[np.floating],
        counted: Float | None,
        weights: Float,
        session: Session,
    ) -> Float:
        """n centres of the sample.

        If the sample has fewer distinct rows, the first centre is repeated. Ties go to the lowest number, so that the
        copies have no rows and move to the farthest rows.
        """
        U = sample * weights
        seeds = plus_plus(U, problem.n, stream_generator(problem.seed, _SEEDS), counted)
        centres: Float = U[np.concatenate([seeds, np.full(problem.n - len(seeds), seeds[0])])]
        table = open_table(sample, weights=counted)
        for _ in range(_LOCAL_STEPS):
            step: LloydStep = session.local(self._work(table, centres, weights), table)
            centres = step.centres
            if step.shift <= _STILL:
                break
        return centres
