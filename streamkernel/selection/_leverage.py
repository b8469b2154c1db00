"""Ridge leverage score sampling, by recursion over growing samples of the rows (Musco & Musco 2017).

Each level has twice as many rows as the previous level. n rows drawn by the scores of the previous level estimate the
scores of the rows of this level. The last level is all rows, and its draw is the basis. The first levels are prefixes
of one uniform sample and fit in memory. Each later level is one sweep, which computes only on its share of the rows:
all levels together cost about twice the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy  # its parts are loaded when they are used: this one takes long

from streamkernel.basis import Basis
from streamkernel.engine import Session, Step, outgrown_bytes, step_of
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.records import RoundRecord
from streamkernel.reductions import uniform_rows
from streamkernel.reductions.pools.leverage import LeverageDraw, RidgeLeverage, SampledKernel
from streamkernel.selection.problem import Problem, Rule, Selection, gather_step, unfilled_basis
from streamkernel.selection.row_cache import RowCache
from streamkernel.table import open_table
from streamkernel.type_aliases import Float, Int

_BASE, _LEVELS = (11, 0), 11  # streams of the counter-based generator
_PROBES = 1000  # rows that estimate the sum of the estimated scores
_LEAST_RIDGE = 1e-10  # of the mean of k(x, x): with a smaller ridge the estimates are rounding


def matching_ridge(sample: Basis, probabilities: Float, probes: Float, rows: float, target: float) -> float:
    """The ridge at which the estimated leverage scores of `rows` rows sum to about `target`.

    It satisfies lam = (sum of the residuals of k_ii after the ridged sample) / target. Musco & Musco 2017, Algorithm 3,
    use the tail of the spectrum of the sample, divided by the wanted rank, instead.

    Parameters
    ----------
    sample : rows of the sample, as an unwhitened basis.
    probabilities : (s,) probabilities with which they were drawn.
    probes : (r, p) some of the rows, drawn uniformly.
    rows : number of rows whose scores are summed, or the sum of their weights.
    target : sum of the scores.
    """
    diagonal = sample.kernel.diagonal(probes)
    mean = float(diagonal.mean())
    if mean <= 0.0:
        return 1.0
    # lam tau_i <= k_ii, so that the sum at `high` is at most the target.
    high, low = np.log(rows * mean / target), np.log(_LEAST_RIDGE * mean)

    def excess(log_ridge: float) -> float:
        scores = SampledKernel(sample, probabilities, float(np.exp(log_ridge))).scores(probes)
        return float(np.log(max(rows * scores.mean(), 1e-300) / target))

    if low >= high or excess(low) <= 0.0:
        return float(np.exp(low))
    # To 2 %: the sum of the scores is itself estimated, from 1,000 rows.
    return float(np.exp(scipy.optimize.brentq(excess, low, high, xtol=0.02)))


@dataclass(frozen=True)
class Leverage(Rule):
    """n rows drawn without replacement, with probability ~ their estimated ridge leverage scores.

    Parameters
    ----------
    ridge : lam of the scores ``(K (K + lam I)^-1)_ii``, on the scale of K; None for the ridge at which the estimates
        sum to about n, on each level.
    growth : ratio of the numbers of rows of successive levels; 2 in the paper. A larger ratio needs fewer sweeps.
    in_memory : largest number of rows, per basis function, of a level in memory.

    Notes
    -----
    All n rows are drawn at once; the tolerance is not used. Dependent rows are left out.
    """

    name: str = "leverage"
    ridge: float | None = None
    growth: int = 2
    in_memory: int = 16

    def __post_init__(self) -> None:
        if self.ridge is not None:
            checked_number("ridge", self.ridge)
        checked_integer("in_memory", self.in_memory)
        if checked_integer("growth", self.growth) == 1:
            raise ParameterError("growth = 1 would never reach all rows; give an integer >= 2")

    def _sampled(self, problem: Problem) -> int:
        return min(self.in_memory * problem.n, problem.table.counted)

    def _levels(self, problem: Problem) -> tuple[list[int], list[int]]:
        """Numbers of rows of the levels in memory, and of the levels that take a sweep; the last is all rows."""
        sizes, m = [], problem.table.counted
        size = problem.n * self.growth
        while size < m:
            sizes.append(size)
            size *= self.growth
        sampled = self._sampled(problem)
        return [s for s in sizes if s <= sampled], [*(s for s in sizes if s > sampled), m]

    def prefetch(self, problem: Problem) -> Int:
        """Row numbers of the uniform sample, in random order: every prefix is a uniform sample."""
        return uniform_rows(problem.table, self._sampled(problem), problem.seed, _BASE)

    def steps(self, problem: Problem) -> list[Step]:
        m, n, p = problem.table.counted, problem.n, problem.table.width
        local, swept = self._levels(problem)
        sample = SampledKernel(unfilled_basis(problem, n), np.ones(0), 1.0)
        last = RidgeLeverage(sample, n, problem.seed, (_LEVELS, 0))
        # The sample as it was fetched and as a level; K_SS, its factor, and what their making takes; the probes; and
        # row blocks of earlier levels, of which the allocator keeps some (measured).
        sampled = self._sampled(problem)
        held = 2 * sampled * p * problem.table.dtype.itemsize + 32 * n**2 + 16 * min(_PROBES, sampled) * (n + p)
        steps = [gather_step(problem, sampled)]
        for where, sizes in (("sample", local), ("sweep", swept)):
            for size in sizes:
                work = replace(last, share=size / m) if where == "sweep" else last
                rows = None if where == "sweep" else size
                name = f"leverage scores of {size} rows"
                columns = max(1, round(n * work.share))
                step = step_of(name, work, problem.table, sampled=rows, kernel_columns=columns, points=n, where=where)
                steps.append(replace(step, held_bytes=held + outgrown_bytes(step)))
        return steps

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        m, n = problem.table.counted, problem.n
        base = np.ascontiguousarray(cache.get(self.prefetch(problem)).X)
        X, probabilities = base[:n], np.ones(min(n, len(base)))
        # Rows that are drawn in proportion to their weights count once in the levels in memory.
        weight = problem.table.weight / m
        local, swept = self._levels(problem)
        # Rows outside the first sample: the estimates would be too small for rows of the sample.
        probes = base[n : n + _PROBES] if len(base) > n else base
        rounds: list[RoundRecord] = []
        rows = np.zeros(0, np.int64)
        for level, size in enumerate([*local, *swept], 1):
            sample = Basis(problem.kernel, np.ascontiguousarray(X), np.full(len(X), -1, np.int64))
            in_memory = level <= len(local)
            count = size if in_memory else size * weight
            ridge = self.ridge or matching_ridge(sample, probabilities, probes, count, n)
            kernel = SampledKernel(sample, probabilities, ridge)
            share = 1.0 if in_memory else size / m
            work = RidgeLeverage(kernel, n, problem.seed, (_LEVELS, level), share)
            drawn: LeverageDraw
            if in_memory:
                drawn = session.local(work, open_table(base[:size]))
            else:
                drawn = session.sweep(work, problem.table, f"leverage scores of {size} rows")
            X, probabilities, rows = drawn.X, drawn.probabilities, drawn.rows
            rounds.append(RoundRecord(0, 0, None, drawn.scored, drawn.scored))
        basis, _ = problem.empty_basis().append(X, rows)
        last = RoundRecord(0, len(basis), None, m, m)
        return Selection(basis, np.zeros(0), (*rounds[:-1], last), "size" if len(basis) == n else "rank")
