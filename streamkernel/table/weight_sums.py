"""What is known of row weights after one pass over them, run by run, so that draws need not read all of them again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from streamkernel.table.rows import RowArray
from streamkernel.type_aliases import Float, Int


@dataclass(frozen=True, eq=False)
class WeightSums:
    """Sums of row weights w in k runs of rows: a number of each kind for a run, which is a chunk of the weights.

    Attributes
    ----------
    cuts : (k + 1,) int64, ascending: run b is rows [cuts[b], cuts[b + 1]).
    sums : (k,) ``sum w`` of each run.
    largest, least : (k,) largest weight of each run, and least weight > 0 (infinite where there is none).
    counts : (k,) rows of weight > 0.
    first : number of the first row of weight > 0; the end of the rows where there is none.
    """

    cuts: Int
    sums: Float
    largest: Float
    least: Float
    counts: Int
    first: int

    @classmethod
    def of(cls, cuts: Int, runs: Iterable[Float]) -> WeightSums:
        """The sums of checked weights (b,), run by run."""
        k, first = len(cuts) - 1, int(cuts[-1])
        sums, largest, least, counts = np.zeros(k), np.zeros(k), np.full(k, np.inf), np.zeros(k, np.int64)
        for run, w in enumerate(runs):
            sums[run], largest[run] = w.sum(), w.max(initial=0.0)
            least[run] = np.min(w, where=w > 0.0, initial=np.inf)
            counts[run] = np.count_nonzero(w)
            if counts[run] and first == cuts[-1]:
                first = int(cuts[run] + np.argmax(w > 0.0))
        return cls(cuts, sums, largest, least, counts, first)

    @cached_property
    def total(self) -> float:
        """Sum of all weights; the sums of the runs in their order."""
        return float(sum(self.sums.tolist()))

    @cached_property
    def counted(self) -> int:
        """Number of rows of weight > 0."""
        return int(self.counts.sum())

    @cached_property
    def ones(self) -> bool:
        """Whether every row has weight 1."""
        rows = int(self.cuts[-1] - self.cuts[0])
        return self.counted == rows and bool((self.largest == 1.0).all() and (self.least == 1.0).all())

    def key_reaching(self, wanted: int) -> float:
        """A key below which at least `wanted` rows lie by all likelihood; infinite where so few rows do not.

        The key of a row is ``E / w``, E exponential, so that it is below t with probability ``1 - exp(-w t)``. That is
        concave in w, and of a run with sum S and largest weight M at least ``(S / M) (1 - exp(-M t))`` rows are
        expected. The number of rows has a variance below its mean; eight deviations are added.
        """
        aim = wanted + 8.0 * math.sqrt(wanted) + 16.0
        held = self.largest > 0.0
        M = self.largest[held]
        most = self.sums[held] / M
        if not most.sum() > 1.01 * aim:
            return math.inf
        key = aim / self.total
        while math.isfinite(key):
            with np.errstate(over="ignore"):
                if float(most @ -np.expm1(-M * key)) >= aim:
                    return key
            key *= 1.25
        return key


# Not a field of tables: one that is sent to a worker does not carry them.
_KNOWN: WeakKeyDictionary[RowArray, dict[tuple[int, int], WeightSums]] = WeakKeyDictionary()


def known_sums(weights: RowArray) -> dict[tuple[int, int], WeightSums]:
    """The sums of these weights that are known, by row range; they are kept as long as the weights are."""
    return _KNOWN.setdefault(weights, {})
