"""Draws of candidates, and of the rows that score them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session, Step, step_of
from streamkernel.reductions import DrawnRows, Sample, draw_at_once, draw_rows, uniform_rows
from streamkernel.reductions.pools import ResidualSample, ResidualSampleResult
from streamkernel.selection.candidates import candidates_needed
from streamkernel.selection.problem import Problem, distinct_rows, gather_step, unfilled_basis
from streamkernel.selection.rounds import Fixed, Take
from streamkernel.selection.row_cache import RowCache
from streamkernel.table import Table, open_table
from streamkernel.table.values import LEAST_WEIGHT
from streamkernel.type_aliases import Float, Int

# Streams of the counter-based generator, one for each kind of draw, so that the draws are independent.
_POOL, _SCORING, _LOOK = 1, 2, 3

# Up to so many rows sweeps are short, and the scores would take most of the time of a fit: half of the rows score, and
# fewer candidates. On kin40k the error is then 4 % larger, at 1,000 functions, in .77 of the time; on protein-casp,
# pendigits and ringnorm no larger.
_FEW_ROWS = 1 << 16
# In a metric up to so many: on 200,000 rows of the smooth target of `bench fit` the selection then takes .7 s in place
# of 1.5 s, for an error 1 % larger; without a metric it is 30 % larger.
_FEW_ROWS_IN_METRIC = 1 << 19
_EVEN_SCORING = 8192  # large numbers of scoring rows are multiples of this: two threads then get equal numbers of spans


@dataclass(frozen=True)
class Drawn:
    """Candidates of one round, and the rows that score them.

    Attributes
    ----------
    pool : the candidates, as an unwhitened basis.
    scoring : scoring rows in memory with their weights, or None for all rows of the table.
    groups : (k,) number of the sub-pool of each candidate, ascending; None if all candidates compete at every pick.
    residual_trace : exact residual trace, if the draw read all rows; else None.
    """

    pool: Basis
    scoring: Table | None
    groups: Int | None = None
    residual_trace: float | None = None

    def scoring_rows(self, problem: Problem) -> int:
        """Number of rows that score the candidates."""
        return problem.table.n_rows if self.scoring is None else self.scoring.n_rows

    def without(self, chosen: Int) -> Drawn:
        """The draw without the rows `chosen`, and without the sub-pools up to theirs, which are used up."""
        taken = np.isin(self.pool.rows, chosen)
        rest = np.flatnonzero(~taken if self.groups is None else self.groups > self.groups[taken].max(initial=-1))
        return replace(self, pool=self.pool.take(rest), groups=None if self.groups is None else self.groups[rest])


class Draw(ABC):
    """A draw of candidates, and of the rows that score them."""

    fetches_pool = False  # True if candidates are fetched by their numbers, so that the cache has them
    reads_all_rows = False  # True if a draw is a sweep over all rows, which also gives the exact residual trace

    @abstractmethod
    def steps(self, problem: Problem, take: Take) -> list[Step]:
        """Costs of the draws, for the plan."""

    @abstractmethod
    def scoring_rows(self, problem: Problem, size: int) -> int | None:
        """Number of scoring rows of a round that ends at `size` functions; None for a sweep over all rows."""

    @abstractmethod
    def pool_size(self, problem: Problem, picks: int, have: int) -> int:
        """Number of candidates for `picks` picks beyond `have` functions."""

    @abstractmethod
    def prefetch(self, problem: Problem, take: Take) -> Int:
        """Numbers of the rows that will be drawn, as far as they are known before the first sweep."""

    @abstractmethod
    def draw(self, problem: Problem, session: Session, cache: RowCache, basis: Basis, picks: int, round_: int) -> Drawn:
        """Candidates for `picks` picks beyond `basis`."""


def sample_table(sample: Sample, weights: Float) -> Table:
    """A sample, which is already scaled, as a table in memory."""
    Y = sample.Y if sample.Y.shape[1] else None
    largest = float(weights.max(initial=0.0))
    if 0.0 < largest < LEAST_WEIGHT:
        # A table refuses such weights. Here they are no error: the rows with larger weights are in the basis already.
        weights = weights / largest * LEAST_WEIGHT
    return open_table(np.ascontiguousarray(sample.X), Y, weights=weights)


def _pool_of(problem: Problem, sample: Sample) -> Basis:
    return Basis(problem.kernel, np.ascontiguousarray(sample.X), sample.rows)


def kinds_of_rounds(draw: Draw, take: Take, problem: Problem) -> dict[tuple[int, int], tuple[int, int]]:
    """The numbers (picks, candidates) of rounds, each with the largest basis before such a round, and their number.

    Rounds with the same numbers cost about the same: the largest basis stands for all of them.
    """
    kinds: dict[tuple[int, int], tuple[int, int]] = {}
    for have, picks in take.schedule(problem.n):
        kind = picks, draw.pool_size(problem, picks, have)
        kinds[kind] = have, kinds.get(kind, (0, 0))[1] + 1
    return kinds


def _few(problem: Problem) -> bool:
    rows = problem.table.counted if problem.of_rows is None else problem.of_rows
    return rows <= (_FEW_ROWS_IN_METRIC if problem.in_metric else _FEW_ROWS)


@dataclass(frozen=True)
class UniformDraw(Draw):
    """Candidates drawn uniformly from the rows not in the basis, without replacement.

    Parameters
    ----------
    per_pick : number of candidates per pick; None for 3 to 16, more for small n, where candidates are cheap.
    scoring_per_function : number of uniform scoring rows per basis function at the end of the round, each of weight m /
        s (`DrawnRows.importance` where rows have weights); None for 8 to 66, more for small n. Rows in validation folds
        are no scoring rows; others take their places.
    least_scoring : smallest number of scoring rows.
    all_rows : True to score on all rows of the table, by a sweep.
    split : True to give each pick its own sub-pool (Smola & Schoelkopf 2000, Algorithm 2, several picks per sweep).
    level : (eps, quantile) from which `candidates_needed` computes the candidates per pick, if `per_pick` is None.
    least_first : smallest number of candidates in the first round, so that a few good functions are among them.
    """

    fetches_pool = True

    per_pick: int | None = None
    scoring_per_function: int | None = None
    least_scoring: int = 2000
    all_rows: bool = False
    split: bool = False
    level: tuple[float, float] | None = None
    least_first: int = 0

    def scoring_rows(self, problem: Problem, size: int) -> int | None:
        if self.all_rows:
            return None
        few = _few(problem)
        each = self.scoring_per_function or min(max((9_000 if few else 18_000) // problem.n, 8 if few else 16), 66)
        wanted = max(self.least_scoring, each * size)
        if wanted > _EVEN_SCORING:
            wanted = round(wanted / _EVEN_SCORING) * _EVEN_SCORING
        return min(wanted, problem.table.counted)

    def _per_pick(self, problem: Problem) -> int:
        if self.per_pick:
            return self.per_pick
        if self.level:
            return candidates_needed(*self.level, problem.table.counted)
        few = _few(problem)
        return min(max((3_600 if few else 4_800) // problem.n, 3 if few else 4), 16)

    def pool_size(self, problem: Problem, picks: int, have: int) -> int:
        return min(self._candidates(problem, picks, have), problem.table.counted)

    def _candidates(self, problem: Problem, picks: int, have: int) -> int:
        return max(self._per_pick(problem) * picks, 0 if have else self.least_first)

    def steps(self, problem: Problem, take: Take) -> list[Step]:
        m, draws = problem.table.counted, []
        for have, picks in take.schedule(problem.n):
            draws += [self._pool_drawn(problem, picks, have), self._scoring_drawn(problem, have + picks) or 0]
        # The steps of the scores count the copies of candidates and of scoring rows.
        return [gather_step(problem, distinct_rows(draws, m), copied=0)]

    def _drawn_scoring(self, problem: Problem, size: int) -> int | None:
        """Number of rows from which the scoring rows are taken: those in validation folds are left out."""
        wanted = self.scoring_rows(problem, size)
        if wanted is None or problem.folds is None:
            return wanted
        # Three deviations more than the mean: the number of rows that are left is then known before they are fetched.
        return min(int((wanted + 3.0 * np.sqrt(wanted)) / problem.trained_share) + 1, problem.table.counted)

    def _pool_drawn(self, problem: Problem, picks: int, chosen: int) -> int:
        # They are fetched before it is known whether there is a metric, and a smaller draw has other rows.
        problem = replace(problem, in_metric=False)
        # More rows than wanted, because rows of the basis among them are left out.
        return self._candidates(problem, picks, chosen) + min(chosen, 8 + picks // 8)

    def _pool_rows(self, problem: Problem, round_: int, picks: int, chosen: int) -> Int:
        return uniform_rows(problem.table, self._pool_drawn(problem, picks, chosen), problem.seed, (_POOL, round_))

    def _scoring_drawn(self, problem: Problem, size: int) -> int | None:
        """Number of rows from which the scoring rows are taken; None for a sweep over all rows."""
        drawn = self._drawn_scoring(replace(problem, in_metric=False), size)
        if drawn is not None and self.scoring_rows(problem, size) == problem.table.counted:
            return problem.table.counted
        return drawn

    def _scoring_numbers(self, problem: Problem, round_: int, size: int) -> DrawnRows | None:
        """The rows from which the scoring rows are taken, in random order unless they are all rows."""
        drawn = self._scoring_drawn(problem, size)
        if drawn is None:
            return None
        if self.scoring_rows(problem, size) == problem.table.counted and problem.table.weights is None:
            return DrawnRows(problem.rows, float(problem.table.n_rows))
        return draw_rows(problem.table, drawn, problem.seed, (_SCORING, round_))

    def _scoring(self, problem: Problem, cache: RowCache, drawn: DrawnRows, size: int) -> tuple[Sample, Float]:
        """The scoring rows, in the order of their numbers, and the weights with which they stand for all rows."""
        wanted = self.scoring_rows(problem, size)
        if problem.folds is not None:
            drawn = drawn.where(np.isin(drawn.rows, problem.trained_on(cache.without_features(drawn.rows)).rows))
        drawn = drawn.first(len(drawn) if wanted is None else wanted).ascending()
        return cache.get(drawn.rows), problem.times * drawn.importance

    def prefetch(self, problem: Problem, take: Take) -> Int:
        parts, rounds = [], list(take.schedule(problem.n))
        pools = [(self._pool_drawn(problem, picks, have), (_POOL, i)) for i, (have, picks) in enumerate(rounds)]
        scored = [(self._scoring_drawn(problem, have + picks), (_SCORING, i)) for i, (have, picks) in enumerate(rounds)]
        draw_at_once(problem.table, problem.seed, pools + [(size, stream) for size, stream in scored if size])
        for round_, (have, picks) in enumerate(rounds):
            parts.append(self._pool_rows(problem, round_, picks, have))
            scoring = self._scoring_numbers(problem, round_, have + picks)
            if scoring is not None:
                parts.append(scoring.rows)
        return np.unique(np.concatenate(parts))

    def draw(self, problem: Problem, session: Session, cache: RowCache, basis: Basis, picks: int, round_: int) -> Drawn:
        rows = self._pool_rows(problem, round_, picks, len(basis))
        rows = rows[~np.isin(rows, basis.rows)][: self._candidates(problem, picks, len(basis))]
        # With too few rows the sub-pools are smaller, but there is still one for each pick.
        groups = np.arange(len(rows)) * min(picks, len(rows)) // max(len(rows), 1) if self.split else None
        if groups is None:
            # Ties go to the lowest position: in the order of row numbers they do not depend on the order of the draw.
            rows = np.sort(rows)
        pool = _pool_of(problem, cache.get(rows))
        numbers = self._scoring_numbers(problem, round_, len(basis) + picks)
        if numbers is None:
            return Drawn(pool, None, groups)
        scoring, weights = self._scoring(problem, cache, numbers, len(basis) + picks)
        return Drawn(pool, sample_table(scoring, weights), groups)


@dataclass(frozen=True)
class AllRows(Draw):
    """Every row is a candidate and a scoring row: for tables whose rows and (m, m) sums fit in memory."""

    fetches_pool = True

    def scoring_rows(self, problem: Problem, size: int) -> int | None:
        return None

    def pool_size(self, problem: Problem, picks: int, have: int) -> int:
        return problem.table.n_rows

    def prefetch(self, problem: Problem, take: Take) -> Int:
        return problem.rows

    def steps(self, problem: Problem, take: Take) -> list[Step]:
        return [gather_step(problem, problem.table.n_rows)]

    def draw(self, problem: Problem, session: Session, cache: RowCache, basis: Basis, picks: int, round_: int) -> Drawn:
        rows = np.setdiff1d(problem.rows, basis.rows)
        return Drawn(_pool_of(problem, cache.get(rows)), None)


@dataclass(frozen=True)
class ResidualDraw(Draw):
    """Candidates and scoring rows drawn with probability ~ the residual, in one sweep over all rows (ALGORITHMS 1.8).

    Parameters
    ----------
    per_pick : number of candidates per pick; None for 4 to 8, more for small n, where candidates are cheap.
    extra : number of candidates beyond those of the picks.
    scoring_per_function : number of scoring rows per basis function at the end of the round; None for 4 to 8; 0 for no
        scoring rows.
    least_scoring : smallest number of scoring rows.
    """

    per_pick: int | None = None
    extra: int = 10
    scoring_per_function: int | None = None
    least_scoring: int = 2000

    reads_all_rows = True

    def scoring_rows(self, problem: Problem, size: int) -> int | None:
        return self._first(problem).scoring_rows(problem, size)

    def pool_size(self, problem: Problem, picks: int, have: int) -> int:
        return min(self._per_pick(problem) * picks + self.extra, problem.table.counted)

    @staticmethod
    def _each(problem: Problem) -> int:
        return min(max(2_400 // problem.n, 4), 8)

    def _per_pick(self, problem: Problem) -> int:
        return self.per_pick or self._each(problem)

    def _scoring_per_function(self, problem: Problem) -> int:
        return self._each(problem) if self.scoring_per_function is None else self.scoring_per_function

    def steps(self, problem: Problem, take: Take) -> list[Step]:
        steps = []
        for have, picks in take.schedule(problem.n):
            sample = self.reduction(problem, unfilled_basis(problem, have), picks, 0)
            if have == 0 and problem.kernel.stationary:
                steps.append(gather_step(problem, sample.n_candidates + sample.n_scoring, copied=0))
            else:
                name = f"look at the residual of {have} functions"
                held = 3 * sample.state_bytes() + 24 * have**2
                steps.append(step_of(name, sample, problem.table, kernel_columns=have, held_bytes=held))
        return steps

    def _first(self, problem: Problem) -> UniformDraw:
        # With an empty basis the residual is the diagonal of the kernel. If that is constant, a uniform draw is exact.
        return UniformDraw(self._per_pick(problem), self._scoring_per_function(problem), self.least_scoring)

    def prefetch(self, problem: Problem, take: Take) -> Int:
        if not problem.kernel.stationary:
            return np.zeros(0, np.int64)
        picks = take.count(0, problem.n)
        return self._first(problem).prefetch(replace(problem, n=picks), Fixed(picks))

    def draw(self, problem: Problem, session: Session, cache: RowCache, basis: Basis, picks: int, round_: int) -> Drawn:
        if round_ == 0 and len(basis) == 0 and problem.kernel.stationary:
            drawn = self._first(problem).draw(problem, session, cache, basis, picks, round_)
            trace = float(problem.kernel.diagonal(drawn.pool.points[:1])[0]) * problem.table.weight
            return Drawn(drawn.pool, drawn.scoring, None, trace)
        sample = self.sample(problem, session, basis, picks, round_)
        order = np.argsort(sample.candidates.rows)
        pool = _pool_of(problem, sample.candidates.at_positions(order))
        scoring = sample_table(sample.scoring, sample.scoring.weights) if len(sample.scoring) else None
        return Drawn(pool, scoring, None, sample.residual_trace)

    def sample(self, problem: Problem, session: Session, basis: Basis, picks: int, round_: int) -> ResidualSampleResult:
        reduction = self.reduction(problem, basis, picks, round_)
        return session.sweep(reduction, problem.table, f"look at the residual of {len(basis)} functions")

    def reduction(self, problem: Problem, basis: Basis, picks: int, round_: int) -> ResidualSample:
        """The reduction of the sweep."""
        m, each = problem.table.counted, self._scoring_per_function(problem)
        return ResidualSample(
            basis,
            n_candidates=self.pool_size(problem, picks, len(basis)),
            n_scoring=min(max(self.least_scoring, each * (len(basis) + picks)), m) if each else 0,
            seed=problem.seed,
            stream=(_LOOK, round_),
            n_targets=problem.table.n_targets,
            folds=problem.folds,
        )
