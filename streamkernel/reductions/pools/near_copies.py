"""Lots of copies that differ in their last digits: which sampled rows are copies, and how many rows each lot has.

Numbers are rounded at several random sets of edges, one after the other: another set finds copies that one parts. Where
each sampled row i has a lot of ``L_i`` rows of the table, and was drawn with probability ``p_i``::

    distinct = sum_i 1 / (p_i L_i)

is an unbiased estimate of the number of lots (Horvitz & Thompson 1952), wherever the edges lie. Keys at one set of
edges count a lot once for each part of it: four times, where copies differ by a third of the rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streamkernel.reductions.contract import Reduction, SentAsFields, State
from streamkernel.reductions.gather import Sample
from streamkernel.reductions.pools.distinct_rows import Origins, Repeats
from streamkernel.table import RowBlock
from streamkernel.table.row_keys import FEW, PANEL, Rounding, joined_keys, row_keys, sparse_row_keys, typical_sizes
from streamkernel.type_aliases import AnyArray, Bool, Int

Keys = NDArray[np.uint64]

# Sets of edges at which rows are rounded one after the other: of copies that one set parts with probability 2/3, 1 %
# are left apart.
_EDGES = 12
_LEAST_DIGITS = 3  # of features by which copies are grouped: to an eighth of their size
_PARTED = 0.01  # share of the copies that may be apart from others of their lot


@dataclass(frozen=True)
class Lots:
    """The lots of copies among sampled rows.

    Attributes
    ----------
    of : (s,) position of the first row of the lot that each row is in.
    origins : what was subtracted from numbers before they were rounded, and their typical sizes in the sample.
    digits : binary digits of features and of targets.
    """

    of: Int
    origins: Origins
    digits: tuple[int, int]

    @classmethod
    def among(cls, sample: Sample, repeats: Repeats) -> Lots:
        """The lots of a sample, of a table with these repeated rows; each row is its own lot where there are few."""
        origins, of = repeats.origins.of_sample(sample), np.arange(len(sample))
        left = of
        for edges in range(_EDGES if repeats.share < 1.0 else 0):
            keys = joined_keys(*origins.keys(sample.X[left], sample.Y[left], repeats.digits, edges))
            first, place = np.unique(keys, return_index=True, return_inverse=True)[1:]
            of[left] = left[first][place]
            left = np.sort(left[first])
        while not np.array_equal(of, of[of]):  # the first row of a lot may have joined another one later
            of = of[of]
        return cls(of, origins, repeats.digits)

    @property
    def first(self) -> Bool:
        """Mask (s,) of the first row of each lot."""
        mask: Bool = self.of == np.arange(len(self.of))
        return mask

    def sizes(self, sample: Sample) -> LotSizes:
        """The work of a sweep that counts the rows of these lots."""
        X, Y = sample.X[self.first], sample.Y[self.first]
        keys = [joined_keys(*self.origins.keys(X, Y, self.digits, edges)) for edges in range(_EDGES)]
        return LotSizes(np.stack(keys), self.origins, self.digits, sample.X.shape[1])

    def grouping(self, X: AnyArray, origins: Origins) -> Rounding:
        """Features rounded so that copies have equal keys, and other rows have not: what folds are made by.

        In as many digits as copies agree in by the count, or in fewer: until at most one copy in a hundred is apart
        from the others of its lot, as long as nine of ten distinct rows are apart.

        Parameters
        ----------
        X : (s, p) sampled rows as stored.
        origins : of features as stored.
        """
        of = Origins(origins.X, None, origins.sparse_columns, origins.leading)
        typical = None if of.sparse_columns is not None or not len(X) else typical_sizes(X[:, of.leading :], of.X)
        copies, found = np.flatnonzero(~self.first), Rounding(self.digits[0], of.X, typical=typical)
        keys = _keys_of(X, of, found)
        apart = FEW * len(np.unique(keys[self.first]))
        while found.digits > _LEAST_DIGITS and np.mean(keys[copies] != keys[self.of[copies]]) > _PARTED:
            coarser = replace(found, digits=found.digits - 1)
            keys = _keys_of(X, of, coarser)
            if len(np.unique(keys[self.first])) < apart:
                break
            found = coarser
        return found


def _keys_of(X: AnyArray, origins: Origins, rounding: Rounding) -> Keys:
    if origins.sparse_columns is not None:
        return sparse_row_keys(X, origins.sparse_columns, rounding)
    return row_keys(X[:, origins.leading :], rounding)


@dataclass(frozen=True)
class LotSizes(SentAsFields, Reduction[Int]):
    """Count the rows (r,) of a table, of weight > 0, that are in each of r lots.

    Parameters
    ----------
    keys : (e, r) keys of a row of each lot, at e sets of edges.
    origins, digits : as of `Lots`.
    width : numbers of a row of a block.
    """

    keys: Keys
    origins: Origins
    digits: tuple[int, int]
    width: int

    @cached_property
    def _ascending(self) -> list[tuple[Keys, Int]]:
        """For each set of edges the keys in ascending order, and the lot of each: sorted once, not for each block."""
        orders = np.argsort(self.keys, axis=1)
        return [(keys[order], order) for keys, order in zip(self.keys, orders, strict=True)]

    def empty(self) -> State:
        return {"rows": np.zeros(self.keys.shape[1], np.int64)}

    def fold(self, state: State, block: RowBlock) -> State:
        left = np.arange(len(block)) if block.weights is None else np.flatnonzero(block.weights)
        for edges, (known, lots) in enumerate(self._ascending):
            Y = None if block.Y is None else block.Y[left]
            keys = joined_keys(*self.origins.keys(block.X[left], Y, self.digits, edges))
            place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            held = known[place] == keys
            state["rows"] += np.bincount(lots[place[held]], minlength=len(lots))
            left = left[~held]
        return state

    def finalize(self, state: State) -> Int:
        return state["rows"]

    def state_bytes(self) -> int:
        return int(self.keys[0].nbytes)

    def scratch_bytes(self, rows: int) -> int:
        return 8 * rows * (8 + self.width + 3 * min(self.width, PANEL)) + 16 * self.keys.size

    def flops_per_row(self) -> float:
        return 12.0 * _EDGES * self.width
