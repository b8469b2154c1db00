"""Folds of rows by their features: rows with equal features are in the same fold, whatever their number and targets.

::

    bucket(x) = floor( buckets * h(x) ),    h(x) in [0, 1) a keyed hash of the features as stored, or rounded

The rows of bucket v < count are validation fold v; the rows of all other buckets are only trained on. No order of rows,
no cut into blocks and no target changes the fold of a row, and appended rows change no fold (ALGORITHMS 20). Copies of
a row share a fold, so that no fit is judged by a row that it was trained on.

Folds by a column are parts of the rows (`row_parts`). The keys of a table with parts begin with the number of the part,
and `PartFolds` reads it there, so that all that works with folds by content works with these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.table.row_keys import Keys, joined_keys
from streamkernel.type_aliases import Bool, Int

_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)
_PART_BITS = 7
_OF_CONTENT = np.uint64(64 - _PART_BITS)  # bits of a key that are left to the features
MOST_PARTS = 1 << _PART_BITS


@dataclass(frozen=True)
class Folds:
    """An assignment of rows to folds.

    Parameters
    ----------
    count : number V of validation folds, less than `buckets`.
    buckets : number of equal parts of the rows.
    seed : key of the hash.
    """

    count: int = 2
    buckets: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.count < self.buckets:
            raise ValueError(f"{self.count} of {self.buckets} buckets cannot be validation folds: some must train")

    @property
    def share(self) -> float:
        """Share of the distinct rows that are in validation folds."""
        return self.count / self.buckets

    def of(self, keys: Keys) -> Int:
        """Fold (b,) of rows with these `row_keys`: 0 .. V - 1 for validation folds, V for all other rows."""
        bucket = ((self._mixed(keys) >> _HALF) * np.uint64(self.buckets)) >> _HALF
        return np.minimum(bucket.astype(np.int64), self.count)

    def held_out(self, keys: Keys) -> Bool:
        """Mask (b,) of the rows in validation folds."""
        held: Bool = self.of(keys) < self.count
        return held

    def groups(self, keys: Keys, count: int) -> Int:
        """A random group (b,), 0 .. count - 1, of each distinct row; groups are independent of folds."""
        return (((self._mixed(keys) & _LOWER) * np.uint64(count)) >> _HALF).astype(np.int64)

    def _mixed(self, keys: Keys) -> Keys:
        # As an array: a product of two NumPy scalars would warn of the overflow that is meant.
        return joined_keys(keys, np.array([self.seed % 2**64], dtype=np.uint64))


@dataclass(frozen=True)
class PartFolds(Folds):
    """Folds that are parts of the rows, all but one of `buckets` parts, by keys of a table with parts.

    ::

        fold v = part (first + v) modulo buckets,    v < buckets - 1;    the part left over is beside the folds

    Parameters
    ----------
    count : buckets - 1; or buckets, where a share of the part beside the folds is a fold more, the last one.
    first : number of the part that is fold 0.
    """

    first: int = 0

    def __post_init__(self) -> None:
        if self.count not in (self.buckets - 1, self.buckets):
            raise ValueError(f"{self.count} folds are not those of {self.buckets} parts")

    @property
    def share(self) -> float:
        """Share of the rows that are in folds, where parts are equal."""
        return (self.buckets - 1 + (_WITHIN.share if self.count == self.buckets else 0.0)) / self.buckets

    def of(self, keys: Keys) -> Int:
        fold = ((keys >> _OF_CONTENT).astype(np.int64) - self.first) % self.buckets
        if self.count == self.buckets:
            fold[(fold == self.count - 1) & ~_WITHIN.held_out(keys)] = self.count
        return fold

    def with_one_beside(self) -> PartFolds:
        """These folds, and as the last one a share of the distinct rows of the part beside them."""
        return PartFolds(self.buckets, self.buckets, self.seed, self.first)

    @property
    def beside(self) -> Folds | None:
        """The fold of `with_one_beside` as one of the rows of that part alone; None where there is none."""
        return _WITHIN if self.count == self.buckets else None


_WITHIN = Folds(1, 4, 0xF01D)  # of the part beside the folds: enough rows to choose by, and most are left


def keys_of_parts(keys: Keys, parts: Int) -> Keys:
    """Keys (b,) of rows that begin with their part: rows have equal ones if their features and parts are equal."""
    return (parts.astype(np.uint64) << _OF_CONTENT) | (keys >> np.uint64(_PART_BITS))
