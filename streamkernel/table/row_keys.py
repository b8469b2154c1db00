"""A 64-bit key of a row's content: equal rows have equal keys, for any row number and any cut into blocks.

Numbers may first be rounded to some binary digits. Copies that differ by less then have the same key, except a few at a
rounding edge. The key is the mixed sum of the words times odd random numbers: keys of different rows are practically
uniform and independent (Carter & Wegman 1979), so that the rows with the smallest keys are a random sample of distinct
rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXACT", "FEW", "PANEL", "distinct_rows", "first_of_each", "joined_keys", "row_keys"]

Keys = NDArray[np.uint64]

EXACT = 52  # binary digits of a double
FEW = 0.9  # share of distinct rows from which on copies are too few to matter
PANEL = 256  # columns in one step

_SEED = 20  # of the random numbers; never change it: keys of different runs are compared
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_ALIKE = 13  # binary digits, 1e-4 of a number: rows that agree to these count as copies


def row_keys(values: NDArray[Any], digits: int = EXACT) -> Keys:
    """(b,) keys of rows (b, q), from `digits` binary digits of each number."""
    factors = np.random.Generator(np.random.Philox(_SEED)).integers(0, 2**64, values.shape[1], np.uint64)
    dropped, half = np.uint64(EXACT - digits), np.uint64((1 << (EXACT - digits)) >> 1)
    keys = np.zeros(len(values), np.uint64)
    for first in range(0, values.shape[1], PANEL):
        panel = slice(first, first + PANEL)
        # Adding 0.0 makes -0.0 equal to 0.0.
        numbers = np.ascontiguousarray(values[:, panel], dtype=np.float64) + 0.0
        words = (numbers.view(np.uint64) + half) >> dropped
        # Whole numbers and single precision fill only the upper digits, and the lower digits of a product do not depend
        # on these. Fold the upper digits into the lower ones, or many rows would share few keys.
        words ^= (words >> np.uint64(32)) ^ (words >> np.uint64(44))
        keys += words @ (factors[panel] | np.uint64(1))
    return _mixed(keys)


def joined_keys(first: Keys, second: Keys) -> Keys:
    """Keys of pairs of keys."""
    return _mixed(first * _MIX[0] + second * _MIX[1])


def _mixed(keys: Keys) -> Keys:
    """The finalizer of SplitMix64: a permutation of 64-bit words."""
    for shift, factor in zip((30, 27), _MIX, strict=True):
        keys = (keys ^ (keys >> np.uint64(shift))) * factor
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def first_of_each(keys: Keys) -> NDArray[np.int64]:
    """Positions of the first row of each key, ascending."""
    return np.sort(np.unique(keys, return_index=True)[1]).astype(np.int64)


def distinct_rows(X: NDArray[Any]) -> NDArray[np.int64]:
    """Positions of the first of each group of equal rows, ascending; of nearly equal rows (to 1e-4) where many are."""
    alike = first_of_each(row_keys(X, _ALIKE))
    return alike if len(alike) <= FEW * len(X) else first_of_each(row_keys(X))
