"""A 64-bit key of a row's content: equal rows have equal keys, for any row number and any cut into blocks.

Numbers may first be rounded to some binary digits. Copies that differ by less then have the same key, except a few at a
rounding edge. The key is the mixed sum of the words times odd random numbers: keys of different rows are practically
uniform and independent (Carter & Wegman 1979), so that the rows with the smallest keys are a random sample of distinct
rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamkernel.pairs import columns_in, values_in
from streamkernel.type_aliases import AnyArray, Float, Int

Keys = NDArray[np.uint64]

EXACT = 52  # binary digits of a double
FEW = 0.9  # share of distinct rows from which on copies are too few to matter
PANEL = 256  # columns in one step
_NUMBERS = 1 << 15  # in one step: they stay in the cache, in which keys take a quarter of the time

_SEED = 20  # of the random numbers; never change it: keys of different runs are compared
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_FAR = 8.0  # deviations from 0: a column there is a constant and what differs from row to row
_ALIKE = 13  # binary digits, 1e-4 of a number: features of rows whose distance says nothing


def far_origin(mean: Float, std: Float) -> Float:
    """(q,) what keys of few digits are to take off each column, as its first digits say nothing of a row.

    The mean, where it is far from 0; a single outlier does not move it so far. 0 elsewhere.
    """
    return np.where(np.abs(mean) > _FAR * std, mean, 0.0)


def row_keys(values: AnyArray, digits: int = EXACT, origin: Float | None = None) -> Keys:
    """(b,) keys of rows (b, q), of so many binary digits of each number less the `origin` (q,) of its column."""
    factors = _factors(values.shape[1])
    keys = np.zeros(len(values), np.uint64)
    height = max(_NUMBERS // max(min(values.shape[1], PANEL), 1), 1)
    for first in range(0, values.shape[1], PANEL):
        panel = slice(first, first + PANEL)
        for start in range(0, len(values), height):
            rows = slice(start, start + height)
            numbers = values[rows, panel].astype(np.float64, order="C")
            if origin is not None:
                numbers -= origin[panel]
            keys[rows] += _words(numbers, digits) @ factors[panel]
    return _mixed(keys)


def sparse_row_keys(pairs: AnyArray, n_columns: int, digits: int = EXACT) -> Keys:
    """(b,) keys of sparse rows in pairs: those of the dense rows (b, n_columns), since a 0 adds nothing to a key."""
    factors = _factors(n_columns)[columns_in(pairs).astype(np.int64)]
    return _mixed((_words(values_in(pairs).copy(), digits) * factors).sum(axis=1, dtype=np.uint64))


def _factors(columns: int) -> Keys:
    """The odd random number of each column."""
    factors = np.random.Generator(np.random.Philox(_SEED)).integers(0, 2**64, columns, np.uint64)
    return factors | np.uint64(1)


def _words(numbers: Float, digits: int) -> Keys:
    """Numbers in so many binary digits, as whole numbers, in their memory; 0 for 0, and for -0."""
    dropped, half = np.uint64(EXACT - digits), np.uint64((1 << (EXACT - digits)) >> 1)
    numbers += 0.0  # -0 becomes 0
    words: Keys = numbers.view(np.uint64)
    words += half
    words >>= dropped
    # Whole numbers and single precision fill only the upper digits, and the lower digits of a product do not depend
    # on these. Fold the upper digits into the lower ones, or many rows would share few keys.
    upper = words >> np.uint64(32)
    upper ^= words >> np.uint64(44)
    words ^= upper
    return words


def joined_keys(first: Keys, second: Keys) -> Keys:
    """Keys of pairs of keys."""
    return _mixed(first * _MIX[0] + second * _MIX[1])


def _mixed(keys: Keys) -> Keys:
    """The finalizer of SplitMix64: a permutation of 64-bit words."""
    for shift, factor in zip((30, 27), _MIX, strict=True):
        keys = (keys ^ (keys >> np.uint64(shift))) * factor
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def first_of_each(keys: Keys) -> Int:
    """Positions of the first row of each key, ascending."""
    return np.sort(np.unique(keys, return_index=True)[1]).astype(np.int64)


def _origin_of(X: AnyArray) -> Float:
    """(p,) `far_origin` of rows in memory, which may be wide: some columns at a time."""
    origin = np.zeros(X.shape[1])
    for first in range(0, X.shape[1], PANEL):
        panel = slice(first, first + PANEL)
        # The difference to the first row has the digits; the mean of large numbers keeps none of them.
        with np.errstate(over="ignore", invalid="ignore"):
            start = X[0, panel].astype(np.float64)
            shifted = X[:, panel] - start
            origin[panel] = far_origin(start + shifted.mean(axis=0), shifted.std(axis=0))
    return origin


def distinct_sparse_rows(pairs: AnyArray, n_columns: int) -> Int:
    """`distinct_rows` of sparse rows in pairs."""
    if not len(pairs):
        return np.zeros(0, np.int64)
    alike = first_of_each(sparse_row_keys(pairs, n_columns, _ALIKE))
    return alike if len(alike) <= FEW * len(pairs) else first_of_each(sparse_row_keys(pairs, n_columns))


def distinct_rows(X: AnyArray) -> Int:
    """Positions of the first of each lot of equal rows, ascending; where many are, of nearly equal ones (to 1e-4)."""
    if not len(X):
        return np.zeros(0, np.int64)
    alike = first_of_each(row_keys(X, _ALIKE, _origin_of(X)))
    return alike if len(alike) <= FEW * len(X) else first_of_each(row_keys(X))
