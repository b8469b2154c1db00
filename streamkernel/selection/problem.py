"""The input and the result of a selection rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from streamkernel.basis import Basis, unfilled
from streamkernel.engine import Session, Step, step_of
from streamkernel.kernels import Kernel
from streamkernel.linalg import DualityPath
from streamkernel.metric import MetricScaler
from streamkernel.records import RoundRecord
from streamkernel.reductions import Both, DrawnRows, Gather, Sample, counted_rows
from streamkernel.reductions.pools import CountRepeats, Lots, Origins, Repeats
from streamkernel.table import Folds, RowScaler, Table
from streamkernel.table.row_keys import RowRounding
from streamkernel.type_aliases import AnyArray, AnyDType, Float, Int

_GATHER, _COUNT, _LOTS = "gather sampled rows", "count of repeated rows", "rows of each lot of copies"  # sweeps


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


class RowCache:
    """Cache of rows by number. A sweep fetches only the rows that are not in the cache.

    Rows are held as the table's blocks have them. Where the fit finds the map of its rows from a sample of them, they
    are held in float64 as they are before that map (`before_metric`, `as_stored`); `get` maps them, to the bits of a
    block.

    Parameters
    ----------
    table : table of the rows as they are held.
    scaler : scaler of the rows. Of rows that are held with their columns scaled it maps by its metric; None for no map.
    dtype : dtype of the mapped rows.
    """

    def __init__(
        self, table: Table, session: Session, scaler: RowScaler | None = None, dtype: AnyDType | None = None
    ) -> None:
        self._table = table
        self._session = session
        self._scaler, self._dtype = scaler, table.dtype if dtype is None else dtype
        self._sample: Sample | None = None
        self.repeats: Repeats | None = None  # None until they are counted

    @classmethod
    def of(cls, table: Table, session: Session) -> RowCache:
        """The cache of a table; its scaler may be of any kind."""
        if table.scaler is None or table.scaler.invertible:
            return cls(table, session)
        return cls(as_stored(table), session, table.scaler, table.dtype)

    def mapped_by(self, scaler: RowScaler | None, dtype: AnyDType) -> RowCache:
        """A cache with the same rows in another dtype, which maps them by a scaler if there is one."""
        cache = RowCache(self._table, self._session, scaler, dtype)
        cache._sample, cache.repeats = self._sample, self.repeats
        return cache

    def take_keys(self, rounding: RowRounding) -> None:
        """Give the rows other keys of their features, in one sweep for all rows that are held.

        Keys are of features as stored, which a cache of scaled rows does not have.
        """
        held, self._sample = self._sample, None
        self._table = self._table.with_keys(rounding)
        if held is not None:
            rows = held.rows
            del held  # two copies of the rows are not in the plan
            self.fetch(rows)

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
        count = CountRepeats(table.width, table.n_targets, origins=origins)
        if len(missing) == 0:
            self.repeats = self._session.sweep(count, table, _COUNT)
            return self.repeats
        fresh, self.repeats = self._session.sweep(Both(self._gather(missing), count), table, _GATHER)
        self._add(fresh)
        assert self.repeats is not None
        return self.repeats

    def count_lots(self, drawn: DrawnRows, lots: Lots) -> Repeats:
        """Count the distinct rows of the table by the lots among drawn rows: exactly where these are all rows.

        Else one sweep counts the rows of each lot.
        """
        assert self.repeats is not None
        distinct = float(np.count_nonzero(lots.first))
        if len(drawn) < self._table.counted:
            sample, number = self.held(drawn.rows), np.cumsum(lots.first) - 1
            sizes = self._session.sweep(lots.sizes(sample), self._table, _LOTS)
            weights = np.ones(len(drawn)) if drawn.weights is None else drawn.weights
            distinct = float((drawn.importance / weights / sizes[number[lots.of]]).sum())
        self.repeats = self.repeats.with_distinct(min(distinct, self.repeats.rows))
        return self.repeats

    def _gather(self, rows: Int) -> Gather:
        table = self._table
        return Gather(rows, table.width, table.n_targets, table.dtype)

    def _add(self, fresh: Sample) -> None:
        self._sample = fresh if self._sample is None else self._sample.merged(fresh)

    def get(self, rows: Int) -> Sample:
        """The rows with these numbers, in the order of `rows`."""
        found, scaler = self.held(rows), self._scaler
        if scaler is None:
            # No copy where the dtype is the table's; else the rounding of a scaler that computes in float64.
            return replace(found, X=found.X.astype(self._dtype, copy=False))
        if self._table.scaler is None:
            return replace(found, X=scaler.apply(found.X, self._dtype))
        assert isinstance(scaler, MetricScaler), "rows whose columns are scaled are only mapped by a metric"
        return replace(found, X=scaler.project(found.X, self._dtype))

    def held(self, rows: Int) -> Sample:
        """The rows with these numbers, as they are held, in the order of `rows`."""
        self.fetch(rows)
        table = self._table
        if self._sample is None:
            none = np.zeros(0, np.int64)
            return Sample(none, np.zeros((0, table.width), table.dtype), np.zeros((0, table.n_targets)), np.zeros(0))
        return self._sample.at(rows)

    def points(self, basis: Basis) -> AnyArray | None:
        """(n, p) points of a basis in the units of the columns; None where the scaler computes them from the basis.

        A point that is no row, such as a centre of k-means, gets one with its image: with a metric the shortest one
        (before means are added), in a column that has ends one between them.
        """
        scaler = self._scaler
        if scaler is None or scaler.invertible:
            return None
        is_row, before = basis.rows >= 0, self._table.scaler
        points = np.empty((len(basis), scaler.n_features))
        X = self.held(basis.rows[is_row]).X
        points[is_row] = X if before is None else before.unscaled(X)
        if not is_row.all():
            Z = basis.points[~is_row].astype(np.float64)
            if isinstance(scaler, MetricScaler):
                Z = Z @ np.linalg.pinv(scaler.metric)
            points[~is_row] = scaler.unscaled(Z)
        return points.astype(basis.points.dtype)


def before_metric(table: Table, columns: RowScaler) -> Table:
    """The rows of a table as a metric takes them: its columns scaled, in float64."""
    return replace(table, scaler=columns, dtype=np.dtype(np.float64))


def as_stored(table: Table) -> Table:
    """The rows of a table in the units of its columns, in float64."""
    return replace(table, scaler=None, dtype=np.dtype(np.float64))


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


def gather_step(problem: Problem, rows: int) -> Step:
    """Costs of the sweep that fetches `rows` rows by number, as they are before a metric maps them."""
    table = problem.table
    numbers = unfilled(min(rows, table.n_rows), dtype=np.dtype(np.int64))
    gather, mapped = (
        Gather(numbers, width, table.n_targets, np.dtype(table.dtype)) for width in (table.stored_width, table.width)
    )
    kept = gather.state_bytes() + mapped.state_bytes()  # the cached rows, and the sample of them
    step = step_of(_GATHER, gather, table, kernel_columns=0, held_bytes=max(kept, 2 * gather.state_bytes()))
    return replace(step, kept_bytes=kept)


def in_double(step: Step, table: Table) -> Step:
    """A step that keeps rows which it fetches: in float64 and before they are mapped (`RowCache`)."""
    if not step.kept_bytes:
        return step
    more, names = 8 // table.dtype.itemsize, ("state_bytes", "held_bytes", "kept_bytes")
    return before_map(replace(step, **{name: more * getattr(step, name) for name in names}), table, 8)


def before_map(step: Step, table: Table, itemsize: int | None = None) -> Step:
    """A step whose blocks have the rows before a metric maps them, where these are wider than the mapped ones."""
    before = table.stored_width * (table.dtype.itemsize if itemsize is None else itemsize)
    more = max(0, before - table.width * table.dtype.itemsize)
    return replace(step, scratch_bytes=step.scratch_bytes + step.block_rows * more)


def counting(steps: list[Step], problem: Problem) -> list[Step]:
    """The steps, with the count of repeated rows added to the first step that fetches rows, or as a step of its own."""
    table = problem.table
    count = step_of(_COUNT, CountRepeats(table.width, table.n_targets), table, kernel_columns=0)
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
