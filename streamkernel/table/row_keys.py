"""A 64-bit key of a row's content: equal rows have equal keys, wherever they stand and however blocks are cut.

Numbers may be rounded to some binary digits first, so that copies that differ by less have the same key, but for the
few that lie at an edge. The key is a sum of the words times odd random numbers, mixed: keys of different rows are as
good as uniform and independent (Carter & Wegman 1979), so that the rows of least key are a sample of distinct rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXACT", "FEW", "PANEL", "distinct_rows", "first_of_each", "joined_keys", "row_keys"]

Keys = NDArray[np.uint64]

EXACT = 52  # binary digits of a double
FEW = 0.9  # of rows distinct, from where on copies are too few to mislead anybody
PANEL = 256  # columns that are worked on at once

_SEED = 20  # of the random numbers, which are the same everywhere and for ever: keys may be compared
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_ALIKE = 13  # binary digits, 1e-4 of a number: features of rows whose distance says nothing


def row_keys(values: NDArray[Any], digits: int = EXACT) -> Keys:
    """(b,) keys of rows (b, q), of so many binary digits of each number."""
    factors = np.random.Generator(np.random.Philox(_SEED)).integers(0, 2**64, values.shape[1], np.uint64)
    dropped, half = np.uint64(EXACT - digits), np.uint64((1 << (EXACT - digits)) >> 1)
    keys = np.zeros(len(values), np.uint64)
    for first in range(0, values.shape[1], PANEL):
        panel = slice(first, first + PANEL)
        # -0.0 is 0.0.
        numbers = np.ascontiguousarray(values[:, panel], dtype=np.float64) + 0.0
        words = (numbers.view(np.uint64) + half) >> dropped
        # Whole numbers and single precision fill the upper digits alone, and a product's lower ones know nothing of
        # them: each has them put into its lower digits, or few keys would be left of many rows.
        words ^= (words >> np.uint64(32)) ^ (words >> np.uint64(44))
        keys += words @ (factors[panel] | np.uint64(1))
    return _mixed(keys)


def joined_keys(first: Keys, second: Keys) -> Keys:
    """Keys of pairs."""
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
    """Positions of the first of each lot of equal rows, ascending; where many are, of nearly equal ones (to 1e-4)."""
    alike = first_of_each(row_keys(X, _ALIKE))
    return alike if len(alike) <= FEW * len(X) else first_of_each(row_keys(X))
