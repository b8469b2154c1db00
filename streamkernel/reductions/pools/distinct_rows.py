"""Count of the distinct rows of a table, because a score must not count copies as independent rows.

Rows with equal features and equal targets are copies, and their errors are one error. GCV and the evidence count
copies as independent rows. If every row occurs 20 times, they choose an alpha or a noise variance that fits the errors
(ALGORITHMS 20). The number of distinct rows is estimated from the K smallest of the uniform keys of all rows
(Bar-Yossef et al. 2002): if the largest of them is at the share t of the range of keys, there are about ``(K - 1) /
t`` distinct keys, with a relative error of about 1 / sqrt K. The K smallest keys of two tables together are among the K
smallest of each, so that states can be combined in any tree.

The test for copies depends on the targets. If targets rarely agree by chance, features need only agree in few digits,
because few pairs of rows share all digits of a target by chance. Targets with few values agree by chance. Their rows
count as copies only if targets of rows with equal features agree far more often than targets of other pairs. Features
must then agree in many digits: in a single dense column, neighbours agree in few digits and belong to the same class.

Copies may differ in their last digits: one was written with fewer, went through float32, or was measured again. Where
they do (`Repeats.nearly`), whatever must see copies together, such as folds, looks at rounded features too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from streamkernel.matrix_rows import LEADING
from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.gather import Sample
from streamkernel.table import ColumnStatistics, RowBlock, Table, TableStatistics
from streamkernel.table.row_keys import (
    FEW,
    PANEL,
    Rounding,
    far_origin,
    joined_keys,
    row_keys,
    sparse_row_keys,
    typical_sizes,
)
from streamkernel.type_aliases import Bool, Float, Int

Keys = NDArray[np.uint64]

_BY_CHANCE = 0.05  # share of pairs of rows with equal targets from which on targets may agree by chance
_SURE = 2.0  # times this share, of which other origins make no less than it
_CLEARLY = 0.95  # share of distinct rows, above `FEW` by three deviations of an estimate
_AGREEING = 0.9  # least agreement of the targets of equal features beyond chance, from 0 to 1, for copies

# Binary digits of features and of targets in which copies agree: to 1e-3 and 3e-5 of a number, or to 1e-6 for both; and
# where some are known to have been measured again, to 1e-3 and 2e-4.
_ALIKE, _EQUAL, _MEASURED = (10, 15), (20, 20), (10, 12)


@dataclass(frozen=True, eq=False)
class Origins:
    """Origins that are subtracted from features (p,) and targets (d,) before a few digits are compared; None for 0.

    `sparse_columns` is the number of columns of sparse rows in pairs, of which no origin is subtracted; else None.
    `leading` is the number of columns before the features: rows of a kernel matrix have their places there. `typical`
    are the typical sizes of features (p,) and of targets (d,) in a sample of dense rows; None where there is none.
    """

    X: Float | None = None
    Y: Float | None = None
    sparse_columns: int | None = None
    leading: int = 0
    typical: tuple[Float, Float] | None = None

    @classmethod
    def of(cls, X: ColumnStatistics | None, Y: ColumnStatistics | None) -> Origins:
        """Origins of columns with these statistics; None where they are not known or the mean is near 0."""
        features, targets = (None if s is None else far_origin(s.mean, s.std) for s in (X, Y))
        return cls(features, targets)

    @classmethod
    def of_table(cls, table: Table, statistics: TableStatistics | None, *, scaled: bool) -> Origins:
        """Origins of a table with these statistics, or None; `scaled` columns have means of 0."""
        plain = cls()
        if statistics is not None:
            features = None if scaled or table.sparse or table.of_matrix else statistics.X
            plain = cls.of(features, None if table.classes is not None else statistics.y)
        return replace(
            plain,
            sparse_columns=table.n_features if table.sparse else None,
            leading=LEADING if table.of_matrix else 0,
        )

    def near(self, statistics: TableStatistics) -> bool:
        """Whether no column has its mean so far from the origin that its first digits say nothing of a row."""
        dense = self.sparse_columns is None and not self.leading
        pairs = ((self.X, statistics.X if dense else None), (self.Y, statistics.y))
        return not any(
            of is not None and far_origin(of.mean - (0.0 if at is None else at), of.std).any() for at, of in pairs
        )

    def of_sample(self, sample: Sample) -> Origins:
        """The same origins, with the typical sizes of numbers in a sample."""
        if self.sparse_columns is not None or not len(sample):
            return self
        X = sample.X[:, self.leading :]
        return replace(self, typical=(typical_sizes(X, self.X), typical_sizes(sample.Y, self.Y)))

    def keys(
        self, X: NDArray[np.floating], Y: NDArray[np.floating] | None, digits: tuple[int, int], edges: int = 0
    ) -> tuple[Keys, Keys]:
        """Keys of features and of targets, (b,) each; the keys of no targets are 0."""
        of_X, of_Y = self.typical or (None, None)
        if self.sparse_columns is None:
            features = row_keys(X[:, self.leading :], Rounding(digits[0], self.X, edges, of_X))
        else:
            features = sparse_row_keys(X, self.sparse_columns, Rounding(digits[0], edges=edges))
        return features, np.zeros_like(features) if Y is None else row_keys(Y, Rounding(digits[1], self.Y, edges, of_Y))


_ZERO = Origins()
_KEYS = ("alike", "equal", "features", "exact")  # arrays of a state that hold the K smallest keys, ascending


def _first_of_runs(keys: Keys) -> Bool:
    """Mask of the first of each run of equal ones among sorted keys."""
    first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return first


@dataclass(frozen=True)
class Repeats:
    """Numbers of rows and of distinct rows.

    Attributes
    ----------
    rows : sum of the row weights: the number of rows where each counts once.
    stored : number of rows of nonzero weight.
    alike, equal : numbers of distinct rows, with features compared in few digits or in many; estimates for large
        tables.
    features : number of distinct features, likewise.
    agreeing : among the features that occur more than once, share of those whose rows all have the same targets.
    by_chance : share of pairs of rows with different features that have the same targets.
    exact : number of distinct features with all their digits, likewise, of a table with keys; else 0.
    origins : origins that were subtracted before rows were compared.
    """

    rows: float
    stored: int
    alike: float
    equal: float
    features: float
    agreeing: float
    by_chance: float
    exact: float = 0.0
    origins: Origins = field(default=_ZERO, compare=False)

    @property
    def chance(self) -> bool:
        """True if the targets have so few values that they agree by chance."""
        return self.by_chance >= _BY_CHANCE

    @property
    def distinct(self) -> float:
        """Number of rows, each set of copies counted once."""
        if not self.chance:
            return self.alike
        copies = self.agreeing - self.by_chance >= _AGREEING * (1.0 - self.by_chance) > 0.0
        return self.equal if copies else float(self.rows)

    @property
    def copied(self) -> bool:
        """Whether rows of the table repeat others, which a weight does not."""
        return self.share < 1.0 and self.distinct <= FEW * self.stored

    @property
    def share(self) -> float:
        """Share of the rows that count as independent: distinct rows over rows, or 1 if there are few copies."""
        return 1.0 if self.distinct > FEW * self.rows else self.distinct / self.rows

    @property
    def digits(self) -> tuple[int, int]:
        """Binary digits of features and of targets in which copies agree.

        Where copies are known to differ, targets in fewer: hardly two distinct rows of a sample agree in these either.
        """
        return _EQUAL if self.chance else _MEASURED if self.uneven else _ALIKE

    @property
    def nearly(self) -> bool:
        """Whether copies differ in their last digits, so that not all are found by keys of all digits."""
        return self.share < 1.0 and self.distinct <= FEW * self.exact

    @property
    def uneven(self) -> bool:
        """Whether copies differ in digits that the count rounds away: it then has a lot once for each part of it."""
        return self.share < 1.0 and self.distinct <= FEW * max(self.equal, self.exact)

    def clear(self, of_rows: float = 0.0) -> bool:
        """Whether hardly any row repeats another, so that other origins would give a share of 1 as well.

        Parameters
        ----------
        of_rows : number of rows m that these s were drawn from; 0 where these are all. Of a row that is drawn, the
            copy is, too, with probability s / m.
        """
        few = (1.0 - _CLEARLY) * self.rows * min(1.0, self.rows / max(of_rows, 1.0))
        # Targets that agree by chance do not have rows compared in few digits (`distinct`).
        counts = [self.equal, self.features, *([self.alike] if self.by_chance < _SURE * _BY_CHANCE else [])]
        return self.rows - min(counts) <= few

    def with_distinct(self, distinct: float) -> Repeats:
        """The same counts, with another number of distinct rows."""
        return replace(self, equal=distinct) if self.chance else replace(self, alike=distinct)


@dataclass(frozen=True)
class CountRepeats(Reduction[Repeats]):
    """Accumulate `Repeats`.

    Parameters
    ----------
    n_features, n_targets : numbers of features and targets of the table.
    kept : number K of the smallest keys of each kind that the state holds.
    origins : origins that are subtracted before rows are compared.
    """

    n_features: int
    n_targets: int
    kept: int = 4096
    origins: Origins = field(default=_ZERO, compare=False)

    def map_block(self, block: RowBlock) -> State:
        return self._of_block(block, {})

    def fold(self, state: State, block: RowBlock) -> State:
        # After n rows a share K / n of the keys is small enough to be kept: the others need not be sorted.
        largest = {name: state[name][-1] for name in _KEYS if name in state and len(state[name]) == self.kept}
        return self.combine(state, self._of_block(block, largest))

    def _of_block(self, block: RowBlock, largest: dict[str, np.uint64]) -> State:
        """State of a block; of each kind of keys only those up to the `largest` one that is kept so far."""
        some = slice(None) if block.weights is None else np.flatnonzero(block.weights)
        # Keys of all rows, and then those of some: a copy of these rows may have no room.
        alike, equal = (
            tuple(keys[some] for keys in self.origins.keys(block.X, block.Y, digits)) for digits in (_ALIKE, _EQUAL)
        )
        times = np.ones(len(block), np.int64) if block.weights is None else block.weights[some]
        counts = {} if block.weights is None else {"weight": np.array([times.sum()])}

        def small(name: str, keys: Keys) -> Bool | slice:
            return keys <= largest[name] if name in largest else slice(None)

        exact = {} if block.keys is None else {"exact": block.keys[some]}
        rows, wholly = small("features", equal[0]), joined_keys(*equal)
        features, targets, in_few = equal[0][rows], equal[1][rows], joined_keys(*alike)
        return {
            "rows": np.array([len(times)]),
            **counts,
            "alike": self._least(in_few[small("alike", in_few)]),
            "equal": self._least(wholly[small("equal", wholly)]),
            **{name: self._least(keys[small(name, keys)]) for name, keys in exact.items()},
            **self._features(features, times[rows], targets, np.ones(len(features), bool)),
        }

    def combine(self, left: State, right: State) -> State:
        both = {name: np.concatenate([left[name], right[name]]) for name in left}
        return {
            **{name: left[name] + right[name] for name in ("rows", "weight") if name in left},
            "alike": self._least(both["alike"]),
            "equal": self._least(both["equal"]),
            **({"exact": self._least(both["exact"])} if "exact" in both else {}),
            **self._features(both["features"], both["times"], both["targets"], both["agree"]),
        }

    def _least(self, keys: Keys) -> Keys:
        # Not `np.unique`, which hashes: two sorted runs, as here of two states, are merged in a tenth of the time.
        keys = np.sort(keys, kind="stable")
        return keys[_first_of_runs(keys)][: self.kept]

    def _features(self, keys: Keys, times: Int | Float, targets: Keys, agree: Bool) -> State:
        """The K smallest keys of features: their counts, their first targets, and if all their targets are equal."""
        order = np.argsort(keys, kind="stable")
        keys, times, targets, agree = keys[order], times[order], targets[order], agree[order]
        new = _first_of_runs(keys)
        first, run = np.flatnonzero(new)[: self.kept], np.cumsum(new) - 1
        size = len(first)
        inside = run < size
        run = run[inside]
        differ = ~agree[inside] | (targets[inside] != targets[first][run])
        return {
            "features": keys[first],
            "times": np.bincount(run, times[inside], size).astype(times.dtype),
            "targets": targets[first],
            "agree": np.bincount(run, differ, size) == 0,
        }

    def finalize(self, state: State) -> Repeats:
        stored, times = int(state["rows"][0]), state["times"]
        rows = float(state["weight"][0]) if "weight" in state else stored
        repeated = times > 1
        agreeing = float(state["agree"][repeated].mean()) if repeated.any() else 0.0
        _, same = np.unique(state["targets"], return_counts=True)
        pairs = len(times) * (len(times) - 1.0)
        by_chance = float((same * (same - 1.0)).sum()) / pairs if pairs > 0.0 else 1.0
        alike, equal = (min(self._distinct(state[name]), float(rows)) for name in ("alike", "equal"))
        features = min(self._distinct(state["features"]), float(stored))
        exact = min(self._distinct(state["exact"]), float(stored)) if "exact" in state else 0.0
        return Repeats(rows, stored, alike, equal, features, agreeing, by_chance, exact, self.origins)

    def _distinct(self, keys: Keys) -> float:
        """Estimated number of distinct keys, given the smallest ones."""
        if len(keys) < self.kept:
            return float(len(keys))
        return (self.kept - 1) / (float(keys[-1]) / 2.0**64)

    def state_bytes(self) -> int:
        return 49 * self.kept + 16

    def scratch_bytes(self, rows: int) -> int:
        # Keys are made in panels of fewer rows, and wide rows are counted with 13 MB at most that are not taken. The
        # blocks follow from this number: with less, those of wide rows would be four times as large.
        return 8 * rows * (16 + 3 * min(max(self.n_features, self.n_targets), PANEL))

    def flops_per_row(self) -> float:
        return 16.0 * (self.n_features + self.n_targets) + 300.0
