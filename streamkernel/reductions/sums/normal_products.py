"""Sums of conjugate gradients on the reduced system: the right side, once, and products of the matrix with vectors.

With whitened features ``G = F L^-T`` (m, n), ``F = k(X, Z)``, row weights W and centred targets ``Yc = Y - centre``::

    right side   g = G^T W Yc = L^-1 (F^T W Yc)
    product      H beta = G^T W G beta = L^-1 (F^T W (F (L^-T beta)))

Beyond the kernel values, the product costs 4 n d operations per row; the sum H itself costs n^2 (Rudi, Carratino &
Rosasco 2017; ALGORITHMS 12.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import single_threaded_blas, solve_lower
from streamkernel.reductions.contract import State, Sums
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float

_PANEL_BYTES = 1 << 20  # of kernel values, which stay in the second-level cache between the two products


@dataclass(frozen=True)
class TargetSums:
    """`RidgeSums` without H, float64.

    Attributes
    ----------
    g : (n, d), square : (d,) diagonal of ``Yc^T W Yc``, G1 : (n,) ``G^T w``, Y1 : (d,) ``Yc^T w``
    centre : (d,) constant that was subtracted from the targets
    weight, trace, count : sum of the row weights, weighted trace of K, number of rows
    column_squares : (n,) diagonal of ``G^T W G``; None if the blocks were not whitened
    """

    g: Float
    square: Float
    G1: Float
    Y1: Float
    centre: Float
    weight: float
    trace: float
    count: int
    column_squares: Float | None

    @property
    def residual_path(self) -> Float | None:
        """``tr(K - K~)`` for the first 0, 1, ..., n functions, exact; None if the blocks were not whitened."""
        if self.column_squares is None:
            return None
        return np.maximum(self.trace - np.concatenate([[0.0], np.cumsum(self.column_squares)]), 0.0)

    def merge(self, other: TargetSums) -> TargetSums:
        """The sums over both sets of rows, which are about the same centre."""
        squares = None
        if self.column_squares is not None and other.column_squares is not None:
            squares = self.column_squares + other.column_squares
        return TargetSums(
            self.g + other.g,
            self.square + other.square,
            self.G1 + other.G1,
            self.Y1 + other.Y1,
            self.centre,
            self.weight + other.weight,
            self.trace + other.trace,
            self.count + other.count,
            squares,
        )

    def least_squares(self, intercept: bool) -> tuple[Float, Float]:
        """g (n, d) and the squares of the targets (d,) of a fit with an intercept, or of one without.

        With an intercept, features and targets are centred: the constant that fits best is then 0.
        """
        if intercept:
            g = self.g - np.outer(self.G1, self.Y1) / self.weight
            return g, np.maximum(self.square - self.Y1**2 / self.weight, 0.0)
        # Without an intercept the centre must be added to the targets again.
        g = self.g + np.outer(self.G1, self.centre)
        return g, self.square + 2.0 * self.centre * self.Y1 + self.weight * self.centre**2


@dataclass(frozen=True)
class NormalTargets(Sums[TargetSums]):
    """Accumulate `TargetSums`.

    Parameters
    ----------
    basis : Basis of n functions.
    centre : (d,) constant near the mean of each target.
    whiten : True to whiten every block, which the exact residual trace needs; costs n^2 operations per row, as H would.
    """

    basis: Basis
    centre: Float
    whiten: bool = True

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n, d = len(self.basis), len(self.centre)
        sums: dict[str, tuple[int, ...]] = {"g": (n, d), "YY": (d,), "G1": (n,), "Y1": (d,), "totals": (3,)}
        return sums | ({"squares": (n,)} if self.whiten else {})

    def fold(self, state: State, block: RowBlock) -> State:
        assert block.Y is not None
        weights = block.row_weights
        F = self.basis.features(block.X) if self.whiten else self.basis.block(block.X)
        Y = block.Y - self.centre
        WY = Y * weights[:, None]
        state["g"] += F.T @ WY
        state["YY"] += np.einsum("id,id->d", Y, WY)
        state["G1"] += weights @ F
        state["Y1"] += weights @ Y
        state["totals"] += [len(block), weights.sum(), weights @ self.basis.kernel.diagonal(block.X)]
        if self.whiten:
            state["squares"] += np.einsum("ij,ij,i->j", F, F, weights)
        return state

    def finalize(self, state: State) -> TargetSums:
        g, G1 = state["g"], state["G1"]
        if not self.whiten:
            with single_threaded_blas():
                g, G1 = solve_lower(self.basis.L, g), solve_lower(self.basis.L, G1)
        count, weight, trace = (float(value) for value in state["totals"])
        squares = state.get("squares")
        return TargetSums(g, state["YY"], G1, state["Y1"], self.centre, weight, trace, int(count), squares)

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        return int(8 * rows * (n + p + 2 * len(self.centre) + 2))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float((n * n if self.whiten else 0) + 2 * n * (p + len(self.centre) + 1))


@dataclass(frozen=True)
class NormalProduct(Sums[Float]):
    """``H beta = G^T W G beta`` (n, d).

    Parameters
    ----------
    basis : Basis of n functions.
    coefficients : (n, d), ``L^-T beta``.
    """

    basis: Basis
    coefficients: Float

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"FFC": self.coefficients.shape}

    def fold(self, state: State, block: RowBlock) -> State:
        X = np.ascontiguousarray(block.X, dtype=np.float64)
        n = max(len(self.basis), 1)
        rows = min(max(_PANEL_BYTES // (8 * n), 32), max(len(X), 1))
        scratch = np.empty((rows, len(self.basis)))
        for first in range(0, len(X), rows):
            panel = X[first : first + rows]
            F = self.basis.prepared.block(panel, out=scratch[: len(panel)])
            values = F @ self.coefficients
            if block.weights is not None:
                values *= block.weights[first : first + rows, None]
            state["FFC"] += F.T @ values
        return state

    def finalize(self, state: State) -> Float:
        with single_threaded_blas():
            return np.ascontiguousarray(solve_lower(self.basis.L, state["FFC"]))

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        d = self.coefficients.shape[1]
        panel = max(_PANEL_BYTES, 8 * 32 * n)
        return int(8 * rows * p + panel + 8 * d * (n + panel // (8 * max(n, 1))))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float(2 * n * (p + 2 * self.coefficients.shape[1]))
