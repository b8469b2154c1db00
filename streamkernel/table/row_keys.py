"""A 64-bit key of a row's content: equal rows have equal keys, for any row number and any cut into blocks.

Numbers may first be rounded to some binary digits. Copies that differ by less then have the same key, except a few at a
rounding edge; at other edges these are others. The key is the mixed sum of the words times odd random numbers: keys of
different rows are practically uniform and independent (Carter & Wegman 1979), so that the rows with the smallest keys
are a random sample of distinct rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.atomic import array_digest, text_digest
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
_BEYOND = 1536.0  # added to logarithms, all below 710 in size: of nearly all sums the last digits have one size
_ALIKE = 13  # binary digits, 1e-4 of a number: features of rows whose distance says nothing


def far_origin(mean: Float, std: Float) -> Float:
    """(q,) what keys of few digits are to take off each column, as its first digits say nothing of a row.

    The mean, where it is far from 0; a single outlier does not move it so far. 0 elsewhere.
    """
    return np.where(np.abs(mean) > _FAR * std, mean, 0.0)


class RowRounding(ABC):
    """How rows are rounded before their keys are taken."""

    @abstractmethod
    def keys(self, values: AnyArray) -> Keys:
        """(b,) keys of rows (b, p)."""

    @abstractmethod
    def sparse_keys(self, pairs: AnyArray, n_columns: int) -> Keys:
        """(b,) keys of sparse rows in pairs: those of the dense rows (b, n_columns)."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """Text that differs for another rounding."""


@dataclass(frozen=True, eq=False)
class Rounding(RowRounding):
    """How numbers are rounded before the key of their row is taken.

    Attributes
    ----------
    digits : binary digits of each number that are kept.
    origin : (q,) what is taken off each column first; None for 0, and for sparse rows.
    edges : which of many random sets of edges numbers are rounded at, one edge a column; 0 for the halves.
    typical : (q,) typical size of the numbers of each column, less its origin: numbers below it are rounded as those of
        this size are, to so many digits of it; None to round each to digits of its own.
    """

    digits: int = EXACT
    origin: Float | None = None
    edges: int = 0
    typical: Float | None = None

    @property
    def kept(self) -> int:
        """Binary digits of the number that is rounded."""
        return self.digits if self.typical is None else min(EXACT, self.digits + 10)

    def keys(self, values: AnyArray) -> Keys:
        return row_keys(values, self)

    def sparse_keys(self, pairs: AnyArray, n_columns: int) -> Keys:
        return sparse_row_keys(pairs, n_columns, self)

    @property
    def digest(self) -> str:
        numbers = (np.zeros(0) if values is None else values for values in (self.origin, self.typical))
        return text_digest(f"{self.digits} {self.edges} {[array_digest(values) for values in numbers]}")


NO_ROUNDING = Rounding()


def row_keys(values: AnyArray, rounding: Rounding = NO_ROUNDING) -> Keys:
    """(b,) keys of rows (b, q)."""
    factors, origin = _factors(values.shape[1]), rounding.origin
    edges = _edges(values.shape[1], rounding)
    keys = np.zeros(len(values), np.uint64)
    for rows, panel in _panels(*values.shape):
        numbers = values[rows, panel].astype(np.float64, order="C")
        if origin is not None:
            numbers -= origin[panel]
        if rounding.typical is not None:
            with np.errstate(over="ignore"):
                np.arcsinh(numbers / rounding.typical[panel], out=numbers)
            numbers += _BEYOND
        keys[rows] += _words(numbers, rounding.kept, edges[panel]) @ factors[panel]
    return _mixed(keys)


def sparse_row_keys(pairs: AnyArray, n_columns: int, rounding: Rounding = NO_ROUNDING) -> Keys:
    """(b,) keys of sparse rows in pairs: those of the dense rows (b, n_columns), since a 0 adds nothing to a key."""
    entries, values = columns_in(pairs), values_in(pairs)
    factors, edges = _factors(n_columns), _edges(n_columns, rounding)
    keys = np.zeros(len(pairs), np.uint64)
    for rows, panel in _panels(*entries.shape):
        columns = entries[rows, panel].astype(np.int64)
        # Halves are the same in all columns.
        words = _words(values[rows, panel].copy(), rounding.kept, edges[columns] if rounding.edges else edges[:1])
        words *= factors[columns]
        keys[rows] += words.sum(axis=1, dtype=np.uint64)
    return _mixed(keys)


def _panels(rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the numbers of each step: blocks of wide rows have no room for keys of all numbers."""
    height = max(_NUMBERS // max(min(columns, PANEL), 1), 1)
    for first in range(0, columns, PANEL):
        for start in range(0, rows, height):
            yield slice(start, start + height), slice(first, first + PANEL)


def _factors(columns: int) -> Keys:
    """The odd random number of each column."""
    factors = np.random.Generator(np.random.Philox(_SEED)).integers(0, 2**64, columns, np.uint64)
    return factors | np.uint64(1)


def _edges(columns: int, rounding: Rounding) -> Keys:
    """What is added to the words of each column before their last digits are dropped: half, or a random share."""
    dropped = EXACT - rounding.kept
    if not rounding.edges:
        return np.broadcast_to(np.uint64((1 << dropped) >> 1), (columns,))
    key = _SEED + (rounding.edges << 64)
    return np.random.Generator(np.random.Philox(key=key)).integers(0, 1 << dropped, columns, np.uint64)


def _words(numbers: Float, digits: int, edges: Keys) -> Keys:
    """Numbers in so many binary digits, as whole numbers, in their memory; 0 for 0, and for -0."""
    numbers += 0.0  # -0 becomes 0
    words: Keys = numbers.view(np.uint64)
    words += edges
    words >>= np.uint64(EXACT - digits)
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


def typical_sizes(X: AnyArray, origin: Float | None) -> Float:
    """(q,) medians of the sizes of numbers other than 0, less the origins (q,), of rows X (s, q) in memory; else 1."""
    typical = np.ones(X.shape[1])
    for first in range(0, X.shape[1], PANEL):
        panel = slice(first, first + PANEL)
        sizes = np.abs(X[:, panel].astype(np.float64) - (0.0 if origin is None else origin[panel]))
        sizes.sort(axis=0)
        zeros = (sizes == 0.0).sum(axis=0)
        middle = np.minimum((zeros + len(X)) // 2, len(X) - 1)
        found = sizes[middle, np.arange(sizes.shape[1])]
        typical[panel] = np.where(zeros < len(X), found, 1.0)
    return typical


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
    alike = first_of_each(sparse_row_keys(pairs, n_columns, Rounding(_ALIKE)))
    return alike if len(alike) <= FEW * len(pairs) else first_of_each(sparse_row_keys(pairs, n_columns))


def distinct_rows(X: AnyArray) -> Int:
    """Positions of the first of each lot of equal rows, ascending; where many are, of nearly equal ones (to 1e-4)."""
    if not len(X):
        return np.zeros(0, np.int64)
    alike = first_of_each(row_keys(X, Rounding(_ALIKE, _origin_of(X))))
    return alike if len(alike) <= FEW * len(X) else first_of_each(row_keys(X))
