"""Raw columns of matching pursuit: values of any function of two rows, which need not be positive definite."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from streamkernel.basis import Basis
from streamkernel.kernels import PreparedKernel
from streamkernel.reductions.contract import SentAsFields
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float


class CandidateColumns(SentAsFields):
    """Base of dataclasses with these fields."""

    basis: Basis
    pool: Basis
    centre: Float
    precision: AnyDType
    constant: bool

    @property
    def projected(self) -> int:
        """Number of columns of the model, which are projected out of the others: the basis, and the constant."""
        return len(self.basis) + int(self.constant)

    @property
    def width(self) -> int:
        """Number of all columns."""
        return self.projected + len(self.pool) + len(self.centre)

    @cached_property
    def _prepared(self) -> PreparedKernel:
        """The kernel with the points of the basis and of the pool packed together: one pass fills both.

        A point more stands at the place of each other column: the block of kernel values then is the columns, and
        needs no copy.
        """
        basis, pool = self.basis.points, self.pool.points
        any_point = pool[:1] if len(pool) else basis[:1] if len(basis) else np.zeros((1, pool.shape[1]), pool.dtype)
        between, after = (np.repeat(any_point, count, axis=0) for count in (int(self.constant), len(self.centre)))
        return self.pool.kernel.prepare(np.concatenate([basis, between, pool, after]).astype(self.precision))

    def raw(self, block: RowBlock, out: AnyArray | None = None) -> AnyArray:
        """``[D_I, 1, D_M, Yc]``, (b, width) in the dtype `precision`: kernel values of basis and pool; in `out`."""
        columns = self._prepared.block(np.ascontiguousarray(block.X, dtype=self.precision), out)
        columns[:, len(self.basis) : self.projected] = 1.0
        if len(self.centre):
            columns[:, self.projected + len(self.pool) :] = self.targets(block)
        return columns

    def targets(self, block: RowBlock) -> Float:
        """``Yc``, (b, d) float64, in new memory."""
        assert block.Y is not None
        return np.asarray(block.Y - self.centre)

    def weigh(self, columns: AnyArray, block: RowBlock) -> AnyArray:
        """The columns, each row multiplied by the root of its weight; they are overwritten."""
        if block.weights is not None:
            columns *= np.sqrt(block.weights).astype(self.precision)[:, None]
        return columns

    def coordinates(self, coefficients: Float) -> Float:
        """Coefficients (n, d) of the first n columns, given those of the kernel functions: the same for raw columns."""
        return coefficients


@dataclass(frozen=True)
class DictionaryColumns(CandidateColumns):
    """Raw columns ``[D_I, 1, D_M, Yc]``.

    `PoolColumns` has the whitened columns ``[G, 1, R, Yc]`` instead, which exist for positive definite kernels only.

    Parameters
    ----------
    basis : the n functions chosen so far; only its points are used.
    pool : the k candidates.
    centre : (d,) subtracted from the targets.
    constant : True for a column of ones after the columns of the basis.
    """

    basis: Basis
    pool: Basis
    centre: Float
    constant: bool = True
    precision: AnyDType = field(default=np.dtype(np.float64), init=False)

    def of(self, block: RowBlock, out: AnyArray | None = None) -> Float:
        """The columns (b, width) float64, each row multiplied by the root of its weight; in `out` where it is given."""
        return self.weigh(self.raw(block, out), block)

    def scratch_bytes(self, rows: int) -> int:
        return int(8 * rows * (self.width + self.pool.points.shape[1]))

    def flops_per_row(self) -> float:
        return float(2 * (len(self.basis) + len(self.pool)) * self.pool.points.shape[1])
