"""Columns of a pool with raw columns of the basis, for sums that already know those of the basis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.linalg import subtract_product
from streamkernel.reductions.pools.dictionary_columns import DictionaryColumns
from streamkernel.reductions.pools.pool import PoolColumns
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class ResidualColumns(PoolColumns):
    """Columns ``[D_I, 1, R, Yc]`` with ``R = D_M - D_I T_M^T``, the same R as in `PoolColumns`.

    The columns of the basis are not whitened, which saves n^2 operations per row. The parameters are those of
    `PoolColumns`.
    """

    @cached_property
    def _raw(self) -> DictionaryColumns:
        return DictionaryColumns(self.basis, self.pool, self.centre, self.constant)

    @cached_property
    def _of_pool(self) -> Float:
        return np.ascontiguousarray(self.coefficients_of_pool())

    def of(self, block: RowBlock) -> Float:
        """``sqrt(w) [D_I, 1, R, Yc]``, (b, n + c + k + d)."""
        n, first, columns = len(self.basis), self.projected, self._raw.of(block)
        subtract_product(columns[:, :n], self._of_pool, into=columns[:, first : first + len(self.pool)])
        return columns

    def coordinates(self, coefficients: Float) -> Float:
        return coefficients

    def scratch_bytes(self, rows: int) -> int:
        return self._raw.scratch_bytes(rows)

    def flops_per_row(self) -> float:
        n, k, p = len(self.basis), len(self.pool), self.pool.points.shape[1]
        return float(2 * n * k + k * (2 * (self.width - k) + k) + 2 * (n + k) * p)
