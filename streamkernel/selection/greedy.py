"""The loop of all greedy rules: draw candidates, score them, take picks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from streamkernel.basis import PIVOT_TOLERANCE, Basis
from streamkernel.engine import Session, Step, factor_flops, step_of, tridiagonal_flops, worth_dividing, worth_sending
from streamkernel.records import RoundRecord
from streamkernel.reductions import Reduction, Reweighted, WithoutHeldOut
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.pools import (
    PoolBlocks,
    PoolColumns,
    PoolGram,
    PoolRoot,
    PoolSums,
    ResidualSample,
    RootSums,
)
from streamkernel.selection._draws import Draw, Drawn, kinds_of_rounds
from streamkernel.selection._picks import BLOCK, Picks, Run, lazy_picks, one_by_one
from streamkernel.selection._root_picks import root_picks
from streamkernel.selection.problem import Problem, Rule, Selection, unfilled_basis
from streamkernel.selection.rounds import Rounds, Take
from streamkernel.selection.row_cache import RowCache
from streamkernel.selection.scores import Score
from streamkernel.type_aliases import Int, Unchecked

_DIGITS = 1e-6  # share of its first value that a sum of squares still resolves (ALGORITHMS 1.3, remedy 1)


class Form(Protocol):
    """A form of the sums of a pool: the Gram matrix, or its root, which costs twice and loses no digits."""

    def reduction(self, columns: PoolColumns, sampled: int | None = None, flops: float = 0.0) -> AnyReduction:
        """The reduction over the scoring rows.

        Parameters
        ----------
        sampled : number of the rows if they are a sample in memory, else None.
        flops : operations of the sums over all rows of the table, which follow the selection.
        """

    def picks(self, sums: Any, score: Score, count: int, **options: Unchecked) -> Picks:
        """Picks from the sums; `options` are parameters of `lazy_picks`."""

    def picking_bytes(self, score: Score, have: int, picks: int, pool: int, itemsize: int) -> int:
        """Bytes that `picks` needs beside the sums and S, for `pool` candidates beyond `have` functions."""


@dataclass(frozen=True)
class GramForm:
    """``[G, R, Y]^T [G, R, Y]``. If sums of a candidate fall to a share of 1e-6, all are computed again."""

    def reduction(self, columns: PoolColumns, sampled: int | None = None, flops: float = 0.0) -> Reduction[PoolSums]:
        # By the amount of work only: the bits must not depend on the cluster.
        shared = sampled is not None and worth_sending(sampled * columns.flops_per_row()) and worth_dividing(flops)
        return PoolBlocks(columns) if shared else PoolGram(columns)

    def picks(self, sums: PoolSums, score: Score, count: int, **options: Unchecked) -> Picks:
        return lazy_picks(sums, score, count, digits=_DIGITS, **options)

    def picking_bytes(self, score: Score, have: int, picks: int, pool: int, itemsize: int) -> int:
        # B, and the features in it or of it; the vectors of a block, as they are and as the factors of its products.
        projected = itemsize * pool * (pool + have) if score.needs_projection else 0
        return projected + 96 * min(picks, BLOCK) * pool


@dataclass(frozen=True)
class RootForm:
    """The triangular factor of ``[G, R, Y]``; for least squares projections (rho = 0) only."""

    def reduction(self, columns: PoolColumns, sampled: int | None = None, flops: float = 0.0) -> Reduction[RootSums]:
        return PoolRoot(columns)

    def picks(
        self,
        sums: RootSums,
        score: Score,
        count: int,
        overwrite: bool = False,
        run: Run = one_by_one,
        **limits: Unchecked,
    ) -> Picks:
        # Each pick changes all of a copy: nothing is overwritten, and there are no blocks to run.
        return root_picks(sums, score, count, **limits)

    def picking_bytes(self, score: Score, have: int, picks: int, pool: int, itemsize: int) -> int:
        return 8 * pool * (pool + have + 4 * picks)  # U_R, which is copied, U_G, and products of a pick


_DOUBLE = np.dtype(np.float64)

_GRAM = GramForm()

_CUT_SHORT = 2  # rounds that an estimate of the tolerance may shorten; each one costs one more certificate


def _in_turns(draws: list[Step], scores: list[Step]) -> list[Step]:
    """The steps in the order in which they run: each draw before the scores of its candidates.

    A draw of all rounds at once stands before all scores.
    """
    if len(draws) != len(scores):
        return draws + scores
    return [step for both in zip(draws, scores, strict=True) for step in both]


@dataclass(frozen=True)
class Greedy(Rule):
    """A rule defined by its draw, its score and its take.

    Parameters
    ----------
    name : name of the rule.
    draw : Draw of candidates and scoring rows.
    score : Score that the picks maximise.
    take : number of picks per round.
    form : form of the sums.
    precision : dtype of the scoring columns.
    centred : True to project the constant out of the columns too; in square-root form only.
    """

    name: str
    draw: Draw
    score: Score
    take: Take
    form: Form = _GRAM
    precision: np.dtype[np.generic] = _DOUBLE
    centred: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.form, GramForm) and (self.centred or self.score.needs_cross):
            raise ValueError("centring, and scores of whole columns, need the square-root form")
        if not isinstance(self.form, GramForm) and self.score.needs_projection and self.score.rho != 0.0:
            raise ValueError("a ridge-projected score needs the Gram form")

    @property
    def fetches_picks(self) -> bool:
        return self.draw.fetches_pool

    def prefetch(self, problem: Problem) -> Int:
        return self.draw.prefetch(problem, self.take)

    def scoring_rows(self, problem: Problem) -> int:
        rows = self.draw.scoring_rows(problem, problem.n)
        return problem.table.counted if rows is None else rows

    def steps(self, problem: Problem) -> list[Step]:
        steps, kinds = self.draw.steps(problem, self.take), kinds_of_rounds(self.draw, self.take, problem)
        # A tolerance costs one certificate per shortened round, and one per round if the draw does not compute it.
        cut_short = _CUT_SHORT if problem.tol > 0.0 and max(kinds)[0] > 1 else 0
        scores: list[Step] = []
        for kind, (have, times) in kinds.items():
            scores.append(self._score_step(problem, have, *kind, times, cut_short if kind == max(kinds) else 0))
        steps = _in_turns(steps, scores)
        rounds = sum(times for _, times in kinds.values())
        certificates = cut_short + (0 if self.draw.reads_all_rows else rounds - int(problem.kernel.stationary))
        if problem.tol > 0.0 and certificates:
            steps.append(self._certificate_step(problem, certificates))
        return steps

    @staticmethod
    def _certificate_step(problem: Problem, times: int) -> Step:
        work = ResidualSample(unfilled_basis(problem, problem.n), 0, 0, problem.seed, (0,), problem.table.n_targets)
        columns = problem.n // 2
        name = "residual trace for the tolerance"
        return step_of(name, work, problem.table, kernel_columns=columns, points=problem.n, times=times)

    def _score_step(self, problem: Problem, have: int, picks: int, size: int, times: int, again: int) -> Step:
        pool = min(size, problem.table.counted - have)  # rows of the basis are no candidates
        columns = self._columns(problem, unfilled_basis(problem, have), unfilled_basis(problem, pool))
        rows = self.draw.scoring_rows(problem, have + picks)
        work = self.form.reduction(columns, rows, problem.sum_flops)
        number = self.precision.itemsize
        # S and its product, or a copy; the whitening; what the picks need.
        held = 16 * pool**2 + 24 * (have + picks) ** 2 + self.form.picking_bytes(self.score, have, picks, pool, number)
        if number < 8:
            held += 8 * columns.width * (columns.width - pool)  # the sums of the basis and the targets, in float64
        p, item = problem.table.width, problem.table.dtype.itemsize
        return step_of(
            f"score {pool} candidates",
            work,
            problem.table,
            sampled=rows,
            kernel_columns=have + pool,
            where="sweep" if rows is None else "shared",
            times=times + again if rows is None else times,
            held_bytes=held,
            algebra=self._algebra(have, picks, pool),
            packings=2,  # for the columns, which stand side by side, and by basis and pool for themselves
            # The points of the basis and of its next size, the pool, the rows that score it; and the pool once more in
            # float64, while its features are computed.
            rows_bytes=p * (item * (2 * have + picks + pool + (rows or 0)) + (8 * pool if have else 0)),
        )

    def _algebra(self, have: int, picks: int, pool: int) -> float:
        """Operations of a round on the driver, in units of an eigendecomposition.

        The residual kernel of the pool, and the basis projected out of its columns: a triangular solve and a product
        each. Then picks: products of their blocks, and per pick the vectors of half a block, which are read from the
        caches. The factors 1.2 and 7,000 are fitted to 500 picks of 2,000 candidates and 2,000 of 8,000.
        """
        products = float(have * pool * (have + pool))
        projected = products + tridiagonal_flops(have) + factor_flops(have) if self.score.needs_projection else 0.0
        return products + projected + (1.2 * pool + 7_000.0) * pool * picks

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        basis = problem.empty_basis()
        picked: list[Picks] = []
        rounds: list[RoundRecord] = []
        trace = 0.0
        draws = cut_short = 0
        ended, supply = "size", Rounds.of(self.take, problem.n)
        drawn: Drawn | None = None
        while len(basis) < problem.n:
            picks = self.take.count(len(basis), problem.n)
            if drawn is None:
                drawn = self.draw.draw(problem, session, cache, basis, picks, draws)
                draws += 1
            residual = self._certificate(problem, session, basis, drawn)
            if len(basis) == 0 and residual is not None:
                trace = residual
            if residual is not None and problem.tol > 0.0 and residual <= problem.tol * trace and len(basis):
                ended = "tolerance"
                break
            still = np.inf
            if residual is not None and problem.tol > 0.0 and cut_short < _CUT_SHORT:
                # The round stops at this estimated decrease. If the certificate refutes the estimate, the remaining
                # decrease is small, and the next round may take twice as much.
                still = 2**cut_short * max(residual - problem.tol * trace, 0.0)
            grown, found = self._round(problem, session, basis, drawn, picks, still)
            scoring = drawn.scoring_rows(problem)
            rounds.append(RoundRecord(len(basis), len(grown), residual, len(drawn.pool), scoring))
            added = len(grown) - len(basis)
            short = bool(np.isfinite(still)) and 0 < added < picks
            cut_short += int(short)
            basis = grown
            picked += found
            session.progress.note(f"{len(basis)} of {problem.n} basis functions")
            # A round counts as short if it ran out of rank, not if it ran out of digits or was cut by the estimate.
            requested = 1 if short or (found and found[-1].ended == "digits") else picks
            if supply.exhausted(added, requested) or (added == 0 and len(drawn.pool) == 0):
                ended = "rank"
                break
            # A draw that took no sweep and was cut short is used again: its rows are in memory, and as good as others.
            drawn = drawn.without(basis.rows) if short and not self.draw.reads_all_rows else None
            if drawn is not None and not len(drawn.pool):
                drawn = None
        gains = np.concatenate([np.zeros(0), *(some.gains for some in picked)])
        parts = [some.parts for some in picked if some.parts.size]
        return Selection(basis, gains, tuple(rounds), ended, np.concatenate(parts) if parts else None)

    def extend(
        self, problem: Problem, session: Session, cache: RowCache, basis: Basis, picks: int
    ) -> tuple[Basis, RoundRecord]:
        """The basis with `picks` more functions, chosen in one round; fewer if no independent candidate is left."""
        drawn = self.draw.draw(problem, session, cache, basis, picks, 0)
        grown, _ = self._round(problem, session, basis, drawn, picks, np.inf)
        scoring = drawn.scoring_rows(problem)
        return grown, RoundRecord(len(basis), len(grown), drawn.residual_trace, len(drawn.pool), scoring)

    def _certificate(self, problem: Problem, session: Session, basis: Basis, drawn: Drawn) -> float | None:
        """The exact residual trace: from the draw, or from a sweep if there is a tolerance to check; else None."""
        if drawn.residual_trace is not None or problem.tol <= 0.0:
            return drawn.residual_trace
        if len(basis) == 0 and problem.kernel.stationary:
            # With an empty basis the residual is the diagonal of the kernel, here a constant.
            return float(problem.kernel.diagonal(drawn.pool.points[:1])[0]) * problem.table.weight
        work = ResidualSample(basis, 0, 0, problem.seed, (0,), problem.table.n_targets)
        return session.sweep(work, problem.table, f"residual trace of {len(basis)} functions").residual_trace

    def _round(
        self, problem: Problem, session: Session, basis: Basis, drawn: Drawn, picks: int, stop_after: float
    ) -> tuple[Basis, list[Picks]]:
        """Picks of one round. Sums without digits are computed again if the scoring rows are in memory."""
        pool, goal = drawn.pool, len(basis) + picks
        picked = []
        while len(basis) < goal and len(pool):
            columns = self._columns(problem, basis, pool)
            sampled = None if drawn.scoring is None else drawn.scoring.n_rows
            sums = self._sums(
                self.form.reduction(columns, sampled, problem.sum_flops), problem, session, drawn, len(basis)
            )
            found = self._picks(
                problem, columns, sums, drawn.groups, goal - len(basis),
                stop_after=stop_after, overwrite=True, run=session.side_by_side,
            )  # fmt: skip
            # Their points are packed: where rows are wide there is no room for them beside those of the grown basis.
            del columns, sums
            basis, kept = basis.append(pool.points[found.order], pool.rows[found.order])
            picked.append(found.take(kept))
            stop_after -= float(np.nansum(found.trace_gains))
            if found.ended != "digits" or drawn.scoring is None or not len(kept):
                break
            pool = pool.take(np.setdiff1d(np.arange(len(pool)), found.order))
        return basis, picked

    def _picks(
        self,
        problem: Problem,
        columns: PoolColumns,
        sums: Any,
        groups: Int | None,
        count: int,
        **limits: Unchecked,
    ) -> Picks:
        """Picks from the sums of these columns; `limits` are further parameters of `lazy_picks`."""
        return self.form.picks(
            sums,
            self.score,
            count,
            scale=problem.scale[: len(columns.centre)] / columns.units,
            diagonal=problem.kernel.diagonal(columns.pool.points),
            pivot_tolerance=PIVOT_TOLERANCE,
            groups=groups,
            coefficients=columns.coefficients_of_pool() if self.score.needs_coefficients else None,
            **limits,
        )

    def _columns(self, problem: Problem, basis: Basis, pool: Basis) -> PoolColumns:
        d = len(problem.centre) if self.score.needs_projection else 0
        units = 1.0 if self.precision == _DOUBLE else np.ldexp(1.0, np.frexp(problem.scale[:d])[1])
        return PoolColumns(basis, pool, problem.centre[:d], self.precision, self.centred, units)

    def _sums(self, reduction: AnyReduction, problem: Problem, session: Session, drawn: Drawn, size: int) -> Any:
        """The sums over the scoring rows: over a sample in memory, or by a sweep over all rows."""
        if drawn.scoring is not None:
            return session.shared(reduction, drawn.scoring)
        if problem.folds is not None and self.score.needs_projection:
            reduction = WithoutHeldOut(reduction, problem.folds)
        if problem.times != 1.0:
            reduction = Reweighted(reduction, problem.times)
        return session.sweep(reduction, problem.table, f"score candidates beyond {size} functions")
