"""The columns of a pool without whitening those of the basis, for sums that know these already."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streamkernel.reductions.pool import PoolColumns
from streamkernel.table import RowBlock

__all__ = ["ResidualColumns"]

Float = NDArray[np.float64]


@dataclass(frozen=True)
class ResidualColumns(PoolColumns):
    """``[D_I, 1, R, Yc]`` with ``R = D_M - D_I T_M^T``, which is that of `PoolColumns`; parameters as there."""

    @cached_property
    def _of_pool(self) -> Float:
        return np.ascontiguousarray(self.coefficients_of_pool().T)

    def of(self, block: RowBlock) -> Float:
        """``sqrt(w) [D_I, 1, R, Yc]``, (b, n + c + k + d)."""
        n, k, first = len(self.basis), len(self.pool), self.projected
        columns = np.ones((len(block), self.width))
        K = self.prepared.block(np.ascontiguousarray(block.X, dtype=np.float64))
        columns[:, :n] = K[:, :n]
        residual = columns[:, first : first + k]
        np.matmul(K[:, :n], self._of_pool, out=residual)
        np.subtract(K[:, n:], residual, out=residual)
        assert block.Y is not None
        columns[:, first + k :] = block.Y - self.centre
        if block.weights is not None:
            columns *= np.sqrt(block.weights)[:, None]
        return columns

    def coordinates(self, coefficients: Float) -> Float:
        return coefficients

    def scratch_bytes(self, rows: int) -> int:
        return int(8 * rows * (2 * self.width + self.pool.points.shape[1]))

    def flops_per_row(self) -> float:
        n, k, p = len(self.basis), len(self.pool), self.pool.points.shape[1]
        return float(2 * n * k + k * (2 * (self.width - k) + k) + 2 * (n + k) * p)
