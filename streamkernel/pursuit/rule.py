"""Kernel matching pursuit over sweeps, as a rule that chooses a basis and also fits the model.

A round is one sweep: draw candidates, sum `DictionarySums`, pick several of them in memory. The picks of a round equal
those of a pursuit on the same candidates that reads all rows for each pick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session, Step, outgrown_bytes, step_of
from streamkernel.errors import ParameterError, warn_user
from streamkernel.kernels import packed_bytes
from streamkernel.pursuit._logistic import LogisticState
from streamkernel.pursuit._pursuing import checked_variant, pursue
from streamkernel.pursuit._stage_errors import StageErrors
from streamkernel.pursuit._state import PursuitState
from streamkernel.pursuit.choices import LOSSES
from streamkernel.pursuit.path import PursuitSelection
from streamkernel.pursuit.pools import Pools
from streamkernel.records import RoundRecord
from streamkernel.reductions import Sample
from streamkernel.reductions.pools import (
    DictionaryColumns,
    DictionarySums,
    HeldOut,
    PoolColumns,
    ResidualColumns,
    ResidualReservoir,
)
from streamkernel.selection.problem import Problem, Rule, gather_step, unfilled_basis
from streamkernel.selection.rounds import Rounds
from streamkernel.selection.row_cache import RowCache
from streamkernel.table import Table
from streamkernel.type_aliases import Float, Int
from streamkernel.wording import option

_RESIDUAL = 24  # stream
_DIGITS = 1e-6  # share of a column that sums of squares still resolve (ALGORITHMS 1.3, remedy 1)
_STEPS = 8  # steps of the plan: rounds are grouped into these
_MOST_REFITS = 15  # sweeps at the end of the logistic loss


@dataclass(frozen=True)
class MatchingPursuit(Rule):
    """The rule: draw candidates, sum their inner products in one sweep, pick several of them.

    Parameters
    ----------
    variant, shrinkage : as in `pursue`.
    pools : candidates of each sweep.
    constant : whether to fit a constant, before any function.
    validation : share of the rows that is held out, in [0, 1), 0 for none; "auto" for a share that depends on the
        number of rows, and none where few rows are distinct; or a table of other rows, not scaled, with the columns and
        classes of the fit, which has its own sweeps.
    patience : end after this number of terms without a smaller error on these rows; None for no such end.
    loss : "squared", or "logistic" for classes: each sweep is a step of Newton's method (`pursuit.logistic`).
    by_error : take the size with the fewest wrong held-out rows, not the one with the smallest loss.
    gamma : for every size, count rows whose error is larger than this as wrong; wrong classes are always counted.
    """

    variant: str = "pre-fitting"
    shrinkage: float = 1.0
    pools: Pools = field(default_factory=Pools)
    constant: bool = True
    validation: float | str | Table = 0.0
    patience: int | None = None
    loss: str = "squared"
    by_error: bool = False
    gamma: float | None = None

    def __post_init__(self) -> None:
        checked_variant(self.variant, self.shrinkage)
        if self.loss not in LOSSES:
            raise ParameterError(
                f"{option('loss')} must be one of {', '.join(LOSSES)}, not {self.loss!r}", value=self.loss
            )
        if self.logistic and self.variant == "basic":
            raise ParameterError(
                f"the logistic loss fits all coefficients at every step; give another {option('variant')} than basic"
            )

    @property
    def logistic(self) -> bool:
        return self.loss == "logistic"

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"matching pursuit, {self.variant}"

    @property
    def keyed(self) -> bool:  # type: ignore[override]
        return not isinstance(self.validation, Table) and bool(self.validation)

    @property
    def watch(self) -> StageErrors:
        """The measurements of every size."""
        return StageErrors(self.validation, self.patience, self.by_error, self.gamma)

    def held_out(self, problem: Problem) -> HeldOut | None:
        """The rule for the rows that are held out; None where none are."""
        return self.watch.held_out(problem)

    def prefetch(self, problem: Problem) -> Int:
        rounds = 1 if self.pools.draw == "residual" else self._rounds(problem)
        self.pools.draw_at_once(problem.table, problem.seed, rounds, problem.n, self._share(problem))
        return np.unique(np.concatenate([self._uniform(problem, round_) for round_ in range(rounds)]))

    def _rounds(self, problem: Problem) -> int:
        return math.ceil(problem.n / self.pools.in_sweep(problem.n, problem.table.counted))

    def _uniform(self, problem: Problem, round_: int) -> Int:
        return self.pools.rows(problem.table, problem.seed, round_, problem.n, self._share(problem))

    def _share(self, problem: Problem) -> float:
        held_out = self.held_out(problem)
        return 0.0 if held_out is None else held_out.fraction

    def steps(self, problem: Problem) -> list[Step]:
        table, m, p = problem.table, problem.table.counted, problem.table.width
        size = self.pools.size(problem.n, m)
        c, rounds = self.pools.in_sweep(problem.n, m), self._rounds(problem)
        drawn = self.pools.drawn(problem.n, m, self._share(problem))
        steps = [gather_step(problem, drawn * (1 if self.pools.draw == "residual" else rounds))]
        for first in range(0, rounds, -(-rounds // _STEPS)):
            last = min(first + -(-rounds // _STEPS), rounds) - 1
            # Functions of the basis are candidates only where they may be chosen again.
            k = size if self.variant == "basic" else min(size, m - last * c)
            basis, pool = unfilled_basis(problem, last * c), unfilled_basis(problem, k)
            work = self._reduction(problem, basis, pool, None, 0)
            width = work.columns.width
            # For fitted and held-out rows: the sums, their roots and raw columns, and memory that the allocator keeps
            # of smaller ones; the steps of the path over the rows of both roots.
            parts = 1 if self.held_out(problem) is None else 2
            held = 8 * (6 * (1 + parts) * width**2 + 4 * width * (last + 1) * c)
            name = f"pursue up to {min((last + 1) * c, problem.n)} terms"
            # Columns stand side by side; beside them basis and pool are packed for themselves where they are whitened,
            # and the basis alone, as it grows, where they are not.
            raw = isinstance(work.columns, DictionaryColumns)
            grown = packed_bytes((last + 1) * c, p, problem.kernel.formulas) if raw else 0
            step = step_of(
                name,
                work,
                table,
                kernel_columns=len(basis) + k,
                times=last - first + 1,
                held_bytes=held,
                packings=1 if raw else 2,
                packed_bytes=grown,
                # The points of the basis and of its next size, the pool, and what it was fetched as.
                rows_bytes=p * table.dtype.itemsize * (2 * len(basis) + c + 2 * k),
            )
            # Blocks become wider with every sweep; a single span has no smaller blocks from earlier sweeps.
            kept = 0 if step.spans == 1 else outgrown_bytes(step)
            steps.append(replace(step, rows_bytes=step.rows_bytes + kept))
        if self.logistic:
            work = self._reduction(problem, unfilled_basis(problem, problem.n), unfilled_basis(problem, 0), None, 0)
            width, held = work.columns.width, 8 * 12 * work.columns.width**2
            steps.append(
                step_of("fit again", work, table, kernel_columns=width, times=_MOST_REFITS, held_bytes=held, packings=2)
            )
        # The last roots, with the columns of the model.
        held = 8 * 4 * (problem.n + size) ** 2
        return steps + self.watch.steps(problem, self.coding(problem), self.constant, self.logistic, rounds, held)

    def coding(self, problem: Problem) -> Float | None:
        """(classes, d) codes: two classes are the two signs of one target, more are indicators; None for numbers."""
        classes = problem.table.classes
        if self.logistic and classes is None:
            raise ParameterError(
                f"the logistic loss is of classes, the targets are numbers; leave {option('loss')} out"
            )
        if classes is None:
            return None
        return np.array([[-1.0], [1.0]]) if len(classes) == 2 else np.eye(len(classes))

    def _targets(self, problem: Problem) -> tuple[Float, Float]:
        """Centre and spread (d,) of the fitted targets."""
        coding = self.coding(problem)
        if coding is None:
            return problem.centre, problem.scale
        d = coding.shape[1]
        return (problem.centre @ coding if self.constant and not self.logistic else np.zeros(d)), np.ones(d)

    def _reduction(
        self, problem: Problem, basis: Basis, pool: Basis, model: PursuitState | None, round_: int
    ) -> DictionarySums:
        """The reduction of a round."""
        centre, scale = self._targets(problem)
        # The Gram matrix of a few rows has no Cholesky factor, but for few rows an orthogonal root costs little.
        whitened = problem.kernel.positive_definite and 2 * (len(basis) + len(pool)) <= problem.table.counted
        # A plan (model is None) assumes that an earlier sweep has summed the Gram matrix.
        known = None if model is None else model.known
        columns: PoolColumns | DictionaryColumns
        if not whitened:
            columns = DictionaryColumns(basis, pool, centre, self.constant)
        else:
            summed = len(basis) > 0 and not self.logistic and (model is None or known is not None)
            kind = ResidualColumns if summed else PoolColumns
            columns = kind(basis, pool, centre, np.dtype(np.float64), self.constant)
        draw = None
        if self.pools.draw == "residual":
            size = len(pool) + self.pools.in_sweep(problem.n, problem.table.counted)
            stream = (_RESIDUAL, round_)
            table = problem.table
            chosen = np.zeros(0, np.int64) if self.variant == "basic" else basis.rows
            draw = ResidualReservoir(size, problem.seed, stream, chosen, table.width, table.dtype)
        beta = None
        coding = self.coding(problem)
        if draw is not None or coding is not None:
            beta = np.zeros((columns.projected, len(centre))) if model is None else model.beta(columns)
        return DictionarySums(columns, beta, coding, self.held_out(problem), draw, scale, self.logistic, known)

    def select(self, problem: Problem, session: Session, cache: RowCache) -> PursuitSelection:
        table, coding, watch = problem.table, self.coding(problem), self.watch
        watch.counts(problem)
        if watch.automatic and not watch.may_hold_out(problem, cache.repeats):
            return self._unwatched(problem, session, cache)
        centre, scale = self._targets(problem)
        kind = LogisticState if self.logistic else PursuitState
        model = kind(problem.empty_basis(), self.variant, self.constant, centre, scale, self.patience, self.by_error)
        rounds: list[RoundRecord] = []
        drawn: Sample | None = None
        refused: set[int] = set()
        ended, supply, round_ = "terms", Rounds(self._rounds(problem)), 0
        while model.terms < problem.n:
            picks = min(self.pools.in_sweep(problem.n, table.counted), problem.n - model.terms)
            pool, groups = self._pool(problem, cache, model, drawn, refused, picks, round_)
            work = self._reduction(problem, model.basis, pool, model, round_)
            roots = session.sweep(work, table, f"pursue beyond {model.terms} terms")
            if watch.automatic and not 0.0 < roots.check_rows <= roots.rows:
                return self._unwatched(problem, session, cache)
            if roots.check is not None and min(roots.rows, roots.check_rows) <= 0.0:
                raise ParameterError(
                    f"{option('validation')} = {self.validation} holds out {roots.check_rows:g} of {table.n_rows} "
                    "rows, equal ones together; there must be rows on both sides: give another share, or more rows"
                )
            if not model.accepts(roots):
                continue
            candidates = model.candidates(roots, pool, groups)
            found = pursue(
                candidates.D,
                candidates.Y / scale,
                picks,
                variant=self.variant,
                shrinkage=self.shrinkage,
                norms=candidates.norms,
                groups=candidates.groups,
                stop_at=0.0 if self.logistic else problem.tol * model.first_square(roots),
                digits=_DIGITS if isinstance(work.columns, PoolColumns) else 0.0,
            )
            before = model.terms
            refused |= model.take(roots, pool, candidates, found)
            rounds.append(RoundRecord(before, model.terms, None, len(pool), round(roots.rows)))
            del work, pool, candidates  # packed: of wide rows there is no room for them beside what is looked at next
            session.progress.note(f"{model.terms} of {problem.n} terms")
            drawn, round_ = roots.drawn, round_ + 1
            added = model.terms - before
            if found.ended == "residual":
                ended = "tolerance"
                break
            short = supply.exhausted(added, picks if found.ended == "rank" else 1)
            if short or (added == 0 and self.pools.kind == "full"):
                ended = "rank"
                break
            if self.patience is not None:
                watch.measure(problem, session, model, coding)
            if model.out_of_patience():
                ended = "validation"
                break
        tried = model.terms
        if watch.automatic:
            model.shrink()
        if isinstance(model, LogisticState):
            self._fit_again(problem, session, model)
        elif self.patience is None:
            watch.measure(problem, session, model, coding)
        watch.count(problem, session, model, coding)
        if self.validation and ended in ("terms", "rank") and model.best < tried:
            ended = "validation"
        return model.selection(problem.kernel, tuple(rounds), ended)

    def _unwatched(self, problem: Problem, session: Session, cache: RowCache) -> PursuitSelection:
        """Choose without held-out rows, because the table has too few distinct ones."""
        self.watch.without(problem.table.counted)
        return replace(self, validation=0.0).select(problem, session, cache)

    def _fit_again(self, problem: Problem, session: Session, model: LogisticState) -> None:
        """Fit only the coefficients of the best size by Newton's method, until steps gain nothing."""
        cut = False
        for _ in range(_MOST_REFITS):
            work = replace(self._reduction(problem, model.basis, unfilled_basis(problem, 0), model, 0), draw=None)
            roots = session.sweep(work, problem.table, f"fit {model.terms} terms again")
            del work  # packed, as above
            if not model.accepts(roots):
                continue
            if not cut:
                # The first of these sweeps has measured the last size, so that the best one is known now.
                cut = True
                self.watch.measure(problem, session, model, self.coding(problem))
                if model.cut_to_best():
                    continue
            if model.refit(roots):
                return
        model.rest()
        if len(model.centre) > 1:
            # With more classes steps are small: reaching the limit is normal, without a warning.
            return
        warn_user(
            f"the logistic loss still falls after {_MOST_REFITS} sweeps for the coefficients alone: where the "
            f"{model.terms} functions tell some rows apart for sure, no coefficients are the best; give a "
            f"smaller {option('n_components')}, or {option('loss', 'squared')}"
        )

    def _pool(
        self,
        problem: Problem,
        cache: RowCache,
        model: PursuitState,
        drawn: Sample | None,
        refused: set[int],
        picks: int,
        round_: int,
    ) -> tuple[Basis, Int | None]:
        """Candidates of a round by row number, and the sub-pool of each; for basic they may include chosen rows."""
        m = problem.table.counted
        if drawn is None:
            rows = self._uniform(problem, round_)
            if (held_out := self.held_out(problem)) is not None:
                rows = rows[~held_out.of(cache.get(rows))]
        else:
            rows = drawn.rows[self.pools.shuffled(problem.seed, round_, len(drawn))]
        left_out = np.asarray(sorted(refused), dtype=np.int64)
        if self.variant != "basic":
            left_out = np.concatenate([left_out, model.basis.rows])
        rows = rows[~np.isin(rows, left_out)][
            : self.pools.each(problem.n, m) * picks if self.pools.kind != "full" else m
        ]
        groups = self.pools.groups(len(rows), picks)
        order = np.argsort(rows) if groups is None else np.lexsort((rows, groups))
        rows, groups = rows[order], None if groups is None else groups[order]
        sample = cache.get(rows) if drawn is None else drawn.at(rows)
        return Basis(problem.kernel, np.ascontiguousarray(sample.X), rows), groups
