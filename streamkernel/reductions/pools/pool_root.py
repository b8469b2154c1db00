"""THE PASS in square-root form: the triangular factor of ``[G, R, Y]`` instead of its Gram matrix.

The Gram form squares the condition number: it loses the score of a candidate whose residual has fallen to 1e-8 of its
value at the start of the sweep. A streaming QR (TSQR, Demmel et al. 2012) retains the digits, for twice the operations
(ALGORITHMS 1.3, remedy 2)::

    U <- qr_R( [U; [G_b, R_b, Y_b]] )        U^T U = [G, R, Y]^T [G, R, Y]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.contract import Reduction, Result, State
from streamkernel.reductions.pools.pool import PoolColumns
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float

_CONSTANT = 1e-24  # of |Y|^2: a smaller sum of squares about the mean is rounding, and the target is constant


def triangular_factor(A: Float) -> Float:
    """Upper triangular (or trapezoidal) U with ``U^T U = A^T A``."""
    U: Float = np.linalg.qr(A, mode="r")  # type: ignore[assignment]
    return U


class TriangularFactors(Reduction[Result]):
    """Base of reductions whose state is a triangular factor of columns, "root", and sums over the rows, "totals"."""

    def combine(self, left: State, right: State) -> State:
        stacked = np.concatenate([left["root"], right["root"]])
        return {"root": triangular_factor(stacked), "totals": left["totals"] + right["totals"]}


@dataclass(frozen=True)
class RootSums:
    """Blocks of the triangular factor, and the residual kernel within the pool.

    Attributes
    ----------
    G_R : (n, k) and R_R : (r, k), R_Y : (r, d), with
        ``C = G_R^T G_R + R_R^T R_R``; from R_R and R_Y the span of the basis, and of the constant if there is one, is
        projected out.
    YY : (d, d) ``Y^T Y`` of the targets; about their mean if there is a constant
    S : (k, k) residual kernel within the pool, which needs no rows
    """

    G_R: Float
    R_R: Float
    R_Y: Float
    YY: Float
    S: Float
    weight: float
    trace: float


@dataclass(frozen=True)
class PoolRoot(TriangularFactors[RootSums]):
    """Accumulate the triangular factor of ``[G, R, Yc]``."""

    columns: PoolColumns

    def map_block(self, block: RowBlock) -> State:
        wide = self.columns.of(block).astype(np.float64, copy=False)
        return {"root": triangular_factor(wide), "totals": self.columns.totals(block)}

    def finalize(self, state: State) -> RootSums:
        n, k = self.columns.projected, len(self.columns.pool)
        root = state["root"]
        targets = root[:, n + k :]
        if self.columns.constant:
            one = root[:, n - 1]
            about_mean = targets - np.outer(one, one @ targets) / (float(one @ one) or 1.0)
            constant = (about_mean**2).sum(axis=0) <= _CONSTANT * (targets**2).sum(axis=0)
            targets = np.where(constant, 0.0, about_mean)
        return RootSums(
            G_R=root[:n, n : n + k].copy(),
            R_R=root[n:, n : n + k].copy(),
            R_Y=root[n:, n + k :].copy(),
            YY=targets.T @ targets,
            S=self.columns.pool_residual(),
            weight=float(state["totals"][0]),
            trace=float(state["totals"][1]),
        )

    def state_bytes(self) -> int:
        return 8 * self.columns.width**2 + 16

    def scratch_bytes(self, rows: int) -> int:
        return self.columns.scratch_bytes(rows) + 16 * (rows + 2 * self.columns.width) * self.columns.width

    def flops_per_row(self) -> float:
        return self.columns.flops_per_row() + float(self.columns.width**2)
