"""One sweep over pairs of views for sparse kernel canonical correlation analysis, in square-root form.

Both views have the same candidates M, with residual columns ``R^v = k_v(X_v, M) - G_v G_v,M^T``, v = x, y. One sweep
computes the triangular factor U of ``[R^x, R^y]`` (m, 2k). The inner products of its columns are all that the rule
needs::

    P = (R^x)^T R^y = U_x^T U_y      C^v = (R^v)^T R^v = U_v^T U_v      S^v = R^v[M, M], which needs no rows

(Hussain & Shawe-Taylor, section 4; ALGORITHMS 11.3). In Gram form, small residuals lose their digits, and their
quotient is noise that looks like correlation. The factor does not lose these digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.contract import State
from streamkernel.reductions.pools.pool import PoolColumns
from streamkernel.reductions.pools.pool_root import TriangularFactors, triangular_factor
from streamkernel.reductions.views import View
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class CrossSums:
    """Statistics of one round of picks.

    Attributes
    ----------
    roots : (r, k) each, U_x and U_y.
    residuals : (k, k) each, S^x and S^y.
    traces : (2,) sum over the rows of ``k_v(x, x)``.
    rows : number of rows m.
    """

    roots: tuple[Float, Float]
    residuals: tuple[Float, Float]
    traces: Float
    rows: int


@dataclass(frozen=True)
class CrossPool(TriangularFactors[CrossSums]):
    """Accumulate the triangular factor of ``[R^x, R^y]``.

    Parameters
    ----------
    columns : PoolColumns of each view: its basis, and the pool of candidates, the same rows in both views.
    views : the two views.
    """

    columns: tuple[PoolColumns, PoolColumns]
    views: tuple[View, View]

    @property
    def width(self) -> int:
        """Number of columns 2k."""
        return sum(len(each.pool) for each in self.columns)

    def map_block(self, block: RowBlock) -> State:
        # Both views write into one array: to join two arrays would need a copy of all columns.
        wide, at, totals = np.empty((len(block), self.width)), 0, []
        for columns, view in zip(self.columns, self.views, strict=True):
            seen = view.block(block)
            wide[:, at : at + len(columns.pool)] = columns.of(seen)[:, columns.projected :]
            at += len(columns.pool)
            totals.append(columns.totals(seen)[1])
        return {"root": triangular_factor(wide), "totals": np.array([*totals, len(block)])}

    def finalize(self, state: State) -> CrossSums:
        k, root, totals = len(self.columns[0].pool), state["root"], state["totals"]
        first, second = self.columns
        return CrossSums(
            roots=(np.ascontiguousarray(root[:, :k]), np.ascontiguousarray(root[:, k:])),
            residuals=(first.pool_residual(), second.pool_residual()),
            traces=totals[:2].copy(),
            rows=int(totals[2]),
        )

    def state_bytes(self) -> int:
        return 8 * self.width**2 + 24

    def scratch_bytes(self, rows: int) -> int:
        width = self.width
        views = 0
        for columns, view in zip(self.columns, self.views, strict=True):
            numbers = columns.pool.points.shape[1]
            views += 8 * rows * numbers + view.scratch_bytes(rows, numbers)
        # The views are computed one after the other; then there are two copies of all columns, one of them LAPACK's.
        kernels = max(each.scratch_bytes(rows) for each in self.columns)
        return int(kernels + views + 16 * (rows + 2 * width) * width)

    def flops_per_row(self) -> float:
        return sum(each.flops_per_row() for each in self.columns) + 2.0 * self.width**2
