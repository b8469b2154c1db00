"""Keys of rows by the cells of a grid, which near copies share however many columns there are.

Numbers in units of their columns become k = min(p, 8) sums of columns, with random factors, and each sum is rounded::

    a_j = asinh((x_j - o_j) / u_j)        z_t = sum_{j mod k = t} c_j a_j / sqrt(p / k)        floor(z_t / width + e_t)

Differences of size s in all columns move a sum by about s, too, so that copies lie in two cells with a probability of
about ``k s / width``. Of numbers that are rounded column by column (`row_keys`) it is p in place of k. Where
differences are unlike in a few columns only, rows are as far apart as these columns have them, over sqrt(p / k).

Sums are made column after column, number by number, so that a row has one key in any block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamkernel.atomic import array_digest, text_digest
from streamkernel.pairs import columns_in, values_in
from streamkernel.table.row_keys import Keys, RowRounding, far_origin, row_keys
from streamkernel.table.statistics import ColumnStatistics
from streamkernel.type_aliases import AnyArray, Float

SUMS = 8  # of columns: enough that hardly two distinct rows of many columns have all of them alike
_SEED = 21  # of factors and edges; never change it: keys of different runs are compared


@dataclass(frozen=True, eq=False)
class Cells(RowRounding):
    """The cells of a grid over sums of columns.

    Attributes
    ----------
    unit : (p,) what one of each column is, > 0.
    origin : (p,) what is taken off first; None for 0, and for sparse rows.
    width : width of a cell.
    edges : which of many random sets of edges the grid has.
    """

    unit: Float
    origin: Float | None = None
    width: float = 1.0
    edges: int = 0

    @classmethod
    def of(cls, statistics: ColumnStatistics, *, sparse: bool = False) -> Cells:
        """Cells in units of the deviations of columns; a mean that is far from 0 is taken off.

        Both are rounded, to powers of 2 and to whole units: their last digits depend on the chunks of a table.
        """
        std, mean = statistics.std, statistics.mean
        known = np.isfinite(std) & (std > 0.0)
        unit = np.exp2(np.round(np.log2(np.where(known, std, 1.0))))
        if sparse:
            return cls(unit)
        with np.errstate(over="ignore", invalid="ignore"):
            far = far_origin(mean, std)
            origin = np.round(far / unit) * unit
        return cls(unit, np.where(np.isfinite(origin), origin, 0.0))

    def at(self, width: float, edges: int = 0) -> Cells:
        """The same sums in another grid."""
        return replace(self, width=width, edges=edges)

    @property
    def sums(self) -> int:
        """Number of sums k."""
        return min(len(self.unit), SUMS)

    @property
    def digest(self) -> str:
        origin = np.zeros(0) if self.origin is None else self.origin
        return text_digest(f"cells {self.width} {self.edges} {array_digest(self.unit)} {array_digest(origin)}")

    def sums_of(self, values: AnyArray) -> Float:
        """(b, k) sums of rows (b, p)."""
        factors, k = self._factors, self.sums
        found = np.zeros((len(values), k))
        for first in range(0, len(self.unit), k):
            columns = slice(first, first + k)
            with np.errstate(over="ignore", invalid="ignore"):
                part = values[:, columns].astype(np.float64, order="C")
                if self.origin is not None:
                    part -= self.origin[columns]
                part /= self.unit[columns]
                part = np.arcsinh(part, out=part)
                part *= factors[columns]
                found[:, : part.shape[1]] += part
        return found

    def sums_of_pairs(self, pairs: AnyArray) -> Float:
        """(b, k) sums of sparse rows in pairs (`streamkernel.pairs`): those of the dense rows, as zeros add nothing."""
        factors, k = self._factors, self.sums
        found = np.zeros((len(pairs), k))
        entries, values, rows = columns_in(pairs), values_in(pairs), np.arange(len(pairs))
        for place in range(entries.shape[1]):
            # Padding is column -1 with the value 0.
            columns = entries[:, place].astype(np.int64)
            with np.errstate(over="ignore", invalid="ignore"):
                found[rows, columns % k] += np.arcsinh(values[:, place] / self.unit[columns]) * factors[columns]
        return found

    def keys_of_sums(self, sums: Float) -> Keys:
        """(b,) keys of the cells in which sums (b, k) lie."""
        generator = np.random.Generator(np.random.Philox(key=_SEED + (self.edges << 64)))
        with np.errstate(over="ignore", invalid="ignore"):
            return row_keys(np.floor(sums / self.width + generator.uniform(size=sums.shape[1])))

    def keys(self, values: AnyArray) -> Keys:
        return self.keys_of_sums(self.sums_of(values))

    def sparse_keys(self, pairs: AnyArray, n_columns: int) -> Keys:
        return self.keys_of_sums(self.sums_of_pairs(pairs))

    @property
    def _factors(self) -> Float:
        """(p,) c_j over sqrt(p / k): of any size, as sums of whole numbers would be alike for many distinct rows."""
        p = len(self.unit)
        factors = np.random.Generator(np.random.Philox(_SEED)).uniform(-1.0, 1.0, p)
        return np.asarray((factors + np.copysign(0.5, factors)) / np.sqrt(p / max(self.sums, 1)))
