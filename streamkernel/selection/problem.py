"""The input and the result of a selection rule."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from streamkernel.basis import Basis, unfilled
from streamkernel.engine import Session, Step, step_of
from streamkernel.kernels import Kernel
from streamkernel.linalg import DualityPath
from streamkernel.records import RoundRecord
from streamkernel.reductions import Gather, Sample, counted_rows
from streamkernel.reductions.pools import CountRepeats
from streamkernel.selection.row_cache import COUNT, GATHER, RowCache
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import Float, Int


@dataclass(frozen=True)
class Problem:
    """Choose at most n rows of a table as basis functions.

    Parameters
    ----------
    table : rows (scaled) and targets.
    kernel : Kernel with its lengthscale.
    n : largest number of functions.
    tol : stop when the residual trace is at most ``tol * trace``; 0 to continue to n.
    seed : seed of all draws.
    centre, scale : (d,) mean and spread of the targets; d = 0 without targets.
    folds : folds of the rows, whose table has keys, or None. A rule does not use the targets of rows in validation
        folds: it may choose them as points, but they score none.
    in_metric : whether distances are measured in a metric, in which few directions matter.
    of_rows : number of rows that the table stands for, where it is a part of more: a rule that scores by targets looks
        at as many rows of it as it would of these, and gives them the weight of these.
    """

    table: Table
    kernel: Kernel
    n: int
    tol: float = 0.0
    seed: int = 0
    centre: Float = field(default_factory=lambda: np.zeros(0))
    scale: Float = field(default_factory=lambda: np.ones(0))
    folds: Folds | None = None
    in_metric: bool = False
    of_rows: int | None = None

    @property
    def rows(self) -> Int:
        """Numbers of all rows of the table; of those of weight > 0."""
        return counted_rows(self.table)

    @property
    def times(self) -> float:
        """How many rows each row of the table stands for."""
        return 1.0 if self.of_rows is None else self.of_rows / self.table.counted

    @property
    def sum_flops(self) -> float:
        """Operations of the sums over all rows of the table that follow a selection, ``m n^2``."""
        return float(self.table.counted) * self.n**2

    @property
    def trained_share(self) -> float:
        """Share of the distinct rows that are not in validation folds."""
        return 1.0 if self.folds is None else 1.0 - self.folds.share

    def training_weights(self, sample: Sample) -> Float:
        """Row weights (s,) of a sample, 0 for rows in validation folds."""
        if self.folds is None:
            return sample.weights
        assert sample.keys is not None, "folds need a table with keys"
        return np.where(self.folds.held_out(sample.keys), 0.0, sample.weights)

    def trained_on(self, sample: Sample) -> Sample:
        """The rows of a sample that are not in validation folds; all, if no two of them are left that differ.

        So few distinct rows have no folds whose errors could be trusted either (`LEAST_ROWS` of `solvers`).
        """
        if self.folds is None:
            return sample
        assert sample.keys is not None, "folds need a table with keys"
        kept = np.flatnonzero(~self.folds.held_out(sample.keys))
        return sample.at_positions(kept) if len(np.unique(sample.keys[kept])) > 1 else sample

    def empty_basis(self) -> Basis:
        return Basis.empty(self.kernel, self.table.width, self.table.dtype)


@dataclass(frozen=True)
class Selection:
    """A basis, and the record of its selection.

    Attributes
    ----------
    basis : Basis, at most n functions, in the order of picking.
    gains : (n,) score of each pick when it was picked; empty for rules without scores.
    rounds : one record per round.
    ended : "size" (n reached), "tolerance" (the certificate satisfies it, or no pick gains enough) or "rank" (no
        independent row was left, or too many rounds added too few functions; see `Rounds`).
    gain_parts : (n, 2) gains of the trace and of the targets in each gain, for rules that weight the two.
    predicted_gains : (n, 2) the same parts as predicted before each pick, for rules with look-ahead.
    traces : (n + 1,) exact residual traces before each pick and after the last one, for rules that compute them; with
        the row weights if the rule uses these.
    gaps : bounds on the gap between a ridge regression on the picks so far and one on all rows, for rules that compute
        them.
    """

    basis: Basis
    gains: Float
    rounds: tuple[RoundRecord, ...]
    ended: str
    gain_parts: Float | None = None
    predicted_gains: Float | None = None
    traces: Float | None = None
    gaps: DualityPath | None = None

    def left(self, basis: Basis, positions: Int) -> Selection:
        """The selection without picks that have become dependent; `basis` has the picks at these positions."""
        gains, parts, predicted = (
            None if values is None or not len(values) else values[positions]
            for values in (self.gains, self.gain_parts, self.predicted_gains)
        )
        # Traces and gaps from pick to pick belong to all picks, so they are left out.
        return Selection(basis, np.zeros(0) if gains is None else gains, self.rounds, "rank", parts, predicted)

    def first(self, size: int, ended: str) -> Selection:
        """The selection of the first `size` picks, with the reason for the end."""
        return Selection(
            basis=self.basis.take(np.arange(size)),
            gains=self.gains[:size],
            rounds=tuple(each.changed(stop=min(each.stop, size)) for each in self.rounds if each.start < size),
            ended=ended,
            gain_parts=None if self.gain_parts is None else self.gain_parts[:size],
            predicted_gains=None if self.predicted_gains is None else self.predicted_gains[:size],
            traces=None if self.traces is None else self.traces[: size + 1],
            gaps=None if self.gaps is None else self.gaps.part(slice(size)),
        )

    def joined(self, basis: Basis) -> Selection:
        """The selection with other points appended, which have gain 0; `basis` has them at its end."""
        more = len(basis) - len(self.basis)
        gains = np.concatenate([self.gains, np.zeros(more)]) if len(self.gains) else self.gains
        return Selection(basis, gains, self.rounds, self.ended)


class Rule(ABC):
    """A rule that selects a basis."""

    name: str
    keyed = False  # True if the rule needs keys of the features of rows

    @property
    def fetches_picks(self) -> bool:
        """Whether the rule takes all candidates from the cache, which then has the rows of the basis."""
        return False

    @abstractmethod
    def prefetch(self, problem: Problem) -> Int:
        """Numbers of the rows that the rule will need, as far as they are known before it starts (uniform draws)."""

    def scoring_rows(self, problem: Problem) -> int:
        """Number of rows that score candidates for the last function; 0 for a rule that scores none."""
        return 0

    @abstractmethod
    def steps(self, problem: Problem) -> list[Step]:
        """Costs of the selection, for the plan; they do not depend on the lengthscale of `problem.kernel`."""

    @abstractmethod
    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        """Select a basis."""


def unfilled_basis(problem: Problem, n: int) -> Basis:
    """A basis with the shapes of n functions but without their memory, for plans."""
    return Basis.unfilled(problem.kernel, n, problem.table.width, problem.table.dtype)


def distinct_rows(draws: Sequence[int], of: int) -> int:
    """Number of rows of independent uniform draws from `of` rows together, each once: six deviations above its mean.

    Draws in proportion to row weights have no more: rows of large weight are in several of them.
    """
    left = float(np.prod([1.0 - min(rows, of) / max(of, 1) for rows in draws]))
    mean = of * (1.0 - left)
    return min(sum(draws), of, math.ceil(mean + 6.0 * math.sqrt(mean * left)))


def gather_step(problem: Problem, rows: int, *, copied: int | None = None) -> Step:
    """Costs of the sweep that fetches `rows` rows by number, as they are before a metric maps them.

    Parameters
    ----------
    copied : number of these rows of which there is a mapped copy to the end of the fit; None for all.
    """
    table = problem.table
    gather, mapped = (
        Gather(
            unfilled(min(count, table.n_rows), dtype=np.dtype(np.int64)), width, table.n_targets, np.dtype(table.dtype)
        )
        for count, width in ((rows, table.stored_width), (rows if copied is None else copied, table.width))
    )
    kept = gather.state_bytes() + mapped.state_bytes()  # the cached rows, and the sample of them
    # The cached rows are the state of the sweep: beside it a copy of them.
    step = step_of(GATHER, gather, table, kernel_columns=0, held_bytes=gather.state_bytes())
    return replace(step, kept_bytes=kept)


def in_double(step: Step, table: Table) -> Step:
    """A step that keeps rows which it fetches, before they are mapped, from blocks in float64 (`RowCache`).

    It keeps them as stored if that takes less, with a copy of them in float64 when they are asked for.
    """
    if not step.kept_bytes:
        return step
    item, double = table.dtype.itemsize, np.dtype(np.float64).itemsize
    more = max(1, min(double, table.features.dtype.itemsize) // item)
    fetched = replace(
        step,
        state_bytes=more * step.state_bytes,
        held_bytes=double // item * step.held_bytes,
        kept_bytes=more * step.kept_bytes,
        # The rows of a block as stored are there until all of it is copied.
        scratch_bytes=step.scratch_bytes + step.block_rows * table.stored_width * table.features.dtype.itemsize,
    )
    return before_map(fetched, table, double)


def before_map(step: Step, table: Table, itemsize: int | None = None) -> Step:
    """A step whose blocks have the rows before a metric maps them, where these are wider than the mapped ones."""
    before = table.stored_width * (table.dtype.itemsize if itemsize is None else itemsize)
    more = max(0, before - table.width * table.dtype.itemsize)
    return replace(step, scratch_bytes=step.scratch_bytes + step.block_rows * more)


def counting(steps: list[Step], problem: Problem) -> list[Step]:
    """The steps, with the count of repeated rows (`sharing`)."""
    table = problem.table
    return sharing(steps, step_of(COUNT, CountRepeats(table.width, table.n_targets), table, kernel_columns=0))


def sharing(steps: list[Step], work: Step) -> list[Step]:
    """The steps, with a work that shares the first sweep where that fetches rows, or counts; else in one of its own."""
    first = next((index for index, step in enumerate(steps) if step.where == "sweep"), 0)
    if not steps or steps[first].name not in (GATHER, COUNT):
        return [work, *steps]
    return [*steps[:first], both_steps(steps[first], work), *steps[first + 1 :]]


def both_steps(step: Step, work: Step) -> Step:
    """The step that runs the work of another one in the same sweep."""
    return replace(
        step,
        flops_per_row=step.flops_per_row + work.flops_per_row,
        scratch_bytes=step.scratch_bytes + work.scratch_bytes,
        state_bytes=step.state_bytes + work.state_bytes,
        lower_bytes=step.lower_bytes + work.lower_bytes,
        held_bytes=step.held_bytes + work.state_bytes,
        fixed_bytes=step.fixed_bytes + (work.state_bytes if step.grows else 0),
    )


def as_first(step: Step, table: Table) -> Step:
    """A step that fetches rows as stored, in the sweep that finds their scaler (`RowCache.of_blocks`)."""
    more = max(1.0, table.features.dtype.itemsize / table.dtype.itemsize)
    return replace(
        step,
        # As stored, and beside them as they are scaled.
        state_bytes=int(more * step.state_bytes),
        held_bytes=int(more * step.held_bytes),
        scratch_bytes=step.scratch_bytes + step.block_rows * table.stored_width * table.features.dtype.itemsize,
    )
