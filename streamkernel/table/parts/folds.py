"""Folds of rows by their features: rows with equal features are in the same fold, whatever their number and targets.

::

    bucket(x) = floor( buckets * h(x) ),    h(x) in [0, 1) a keyed hash of the features as stored, or rounded

The rows of bucket v < count are validation fold v; the rows of all other buckets are only trained on. No order of rows,
no cut into blocks and no target changes the fold of a row, and appended rows change no fold (ALGORITHMS 20). Copies of
a row share a fold, so that no fit is judged by a row that it was trained on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.table.row_keys import Keys, joined_keys
from streamkernel.type_aliases import Bool, Int

_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)


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
