"""The input and the result of a selection rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from streamkernel.basis import Basis, unfilled
from streamkernel.engine import Session, Step, step_of
from streamkernel.kernels import Kernel
from streamkernel.linalg import DualityPath
from streamkernel.records import RoundRecord
from streamkernel.reductions import Both, Gather, Sample
from streamkernel.reductions.pools import CountRepeats, Origins, Repeats
from streamkernel.table import Table
from streamkernel.type_aliases import Float, Int

_GATHER, _COUNT = "gather sampled rows", "count of repeated rows"  # sweeps


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
    """

    table: Table
    kernel: Kernel
    n: int
    tol: float = 0.0
    seed: int = 0
    centre: Float = field(default_factory=lambda: np.zeros(0))
    scale: Float = field(default_factory=lambda: np.ones(0))

    @property
    def rows(self) -> Int:
        """Numbers of all rows of the table."""
        return np.arange(self.table.start, self.table.stop, dtype=np.int64)

    def empty_basis(self) -> Basis:
        return Basis.empty(self.kernel, self.table.n_features, self.table.dtype)


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


class RowCache:
    """Cache of rows by number. A sweep fetches only the rows that are not in the cache."""

    def __init__(self, table: Table, session: Session) -> None:
        self._table = table
        self._session = session
        self._sample: Sample | None = None
        self.repeats: Repeats | None = None  # None until they are counted

    def fetch(self, rows: Int) -> None:
        """Fetch the missing ones of these rows, in one sweep over the blocks that hold them."""
        missing = np.unique(rows)
        if self._sample is not None:
            missing = np.setdiff1d(missing, self._sample.rows, assume_unique=True)
        if len(missing):
            self._add(self._session.sweep(self._gather(missing), self._table, _GATHER))

    def count_repeats(self, rows: Int, origins: Origins) -> Repeats:
        """Fetch these rows, and count the repeated rows of the table in the same sweep, the first."""
        table, missing = self._table, np.unique(rows)
        count = CountRepeats(table.n_features, table.n_targets, origins=origins)
        if len(missing) == 0:
            self.repeats = self._session.sweep(count, table, _COUNT)
            return self.repeats
        fresh, self.repeats = self._session.sweep(Both(self._gather(missing), count), table, _GATHER)
        self._add(fresh)
        assert self.repeats is not None
        return self.repeats

    def _gather(self, rows: Int) -> Gather:
        table = self._table
        return Gather(rows, table.n_features, table.n_targets, table.dtype)

    def _add(self, fresh: Sample) -> None:
        self._sample = fresh if self._sample is None else self._sample.merged(fresh)

    def get(self, rows: Int) -> Sample:
        """The rows with these numbers, in the order of `rows`."""
        self.fetch(rows)
        table = self._table
        if self._sample is None:
            none = np.zeros(0, np.int64)
            return Sample(
                none, np.zeros((0, table.n_features), table.dtype), np.zeros((0, table.n_targets)), np.zeros(0)
            )
        return self._sample.at(rows)


class Rule(ABC):
    """A rule that selects a basis."""

    name: str
    keyed = False  # True if the rule needs keys of the features of rows

    @abstractmethod
    def prefetch(self, problem: Problem) -> Int:
        """Numbers of the rows that the rule will need, as far as they are known before it starts (uniform draws)."""

    @abstractmethod
    def steps(self, problem: Problem) -> list[Step]:
        """Costs of the selection, for the plan; they do not depend on the lengthscale of `problem.kernel`."""

    @abstractmethod
    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        """Select a basis."""


def unfilled_basis(problem: Problem, n: int) -> Basis:
    """A basis with the shapes of n functions but without their memory, for plans."""
    return Basis.unfilled(problem.kernel, n, problem.table.n_features, problem.table.dtype)


def gather_step(problem: Problem, rows: int) -> Step:
    """Costs of the sweep that fetches `rows` rows by number."""
    table = problem.table
    rows = min(rows, table.n_rows)
    numbers = unfilled(rows, dtype=np.dtype(np.int64))
    gather = Gather(numbers, table.n_features, table.n_targets, np.dtype(table.dtype))
    step = step_of(_GATHER, gather, table, kernel_columns=0, held_bytes=2 * gather.state_bytes())
    return replace(step, kept_bytes=2 * gather.state_bytes())  # the cached rows, and the sample of them


def counting(steps: list[Step], problem: Problem) -> list[Step]:
    """The steps, with the count of repeated rows added to the first step that fetches rows, or as a step of its own."""
    table = problem.table
    count = step_of(_COUNT, CountRepeats(table.n_features, table.n_targets), table, kernel_columns=0)
    for index, step in enumerate(steps):
        if step.name == _GATHER:
            both = replace(
                step,
                flops_per_row=step.flops_per_row + count.flops_per_row,
                scratch_bytes=step.scratch_bytes + count.scratch_bytes,
                state_bytes=step.state_bytes + count.state_bytes,
                held_bytes=step.held_bytes + count.state_bytes,
            )
            return [*steps[:index], both, *steps[index + 1 :]]
    return [count, *steps]
