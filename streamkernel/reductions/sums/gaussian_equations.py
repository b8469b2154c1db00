"""Sums of a sparse Gaussian process, for every choice of Om = cov(y | f at the basis).

With unit whitened features ``G = k(X, Z) L^-T`` (m, n), targets ``Yc = Y - centre`` (m, d), and the covariance Om of
the rows given f at the basis (`row_noise`)::

    H = G^T Om^-1 G      g = G^T Om^-1 Yc      YY = Yc^T Om^-1 Yc      log det Om
    G1 = G^T 1           Y1 = Yc^T 1           trace = sum_i k_ii      residual_trace = sum_i r_i,  r_i = k_ii - |G_i|^2

`solvers.GaussianSystem` computes coefficients, variances and the evidence from them (Tresp 2001, eqs. (8) to (11);
ALGORITHMS 6.1, 10). `GaussianSums.merge` adds the sums of appended rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import block_array, mirror_upper, syrk
from streamkernel.reductions._mergeable import MergeableSums
from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.sums.row_noise import RowNoise
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class GaussianSums(MergeableSums):
    """Sufficient statistics of a sparse Gaussian process, float64.

    Attributes
    ----------
    H : (n, n), g : (n, d), YY : (d, d), with Om^-1 in them; `ConstantNoise` has the row weights in its place, and the
        solver divides by the noise variance.
    G1 : (n,), Y1 : (d,) column sums without Om^-1, with the row weights.
    squares : (n,) ``diag G^T G`` without Om^-1, with the row weights: the decrease of the residual trace by each
        function.
    centre : (d,) prior mean, which was subtracted from the targets.
    log_det : log det Om, of rows that stand as often as their weights say.
    trace, residual_trace : traces of K and of K - K~, with the row weights.
    count : number of rows of nonzero weight.
    weight : sum of the row weights.
    """

    H: Float
    g: Float
    YY: Float
    G1: Float
    Y1: Float
    squares: Float
    centre: Float
    log_det: float
    trace: float
    residual_trace: float
    count: int
    weight: float

    def times(self, factor: float) -> GaussianSums:
        """The sums as if every row occurred `factor` times."""
        scaled = {field.name: getattr(self, field.name) * factor for field in fields(self)}
        # Of whole rows a whole number remains, but for rounding.
        weight = self.weight * factor
        weight = float(round(weight)) if self.weight.is_integer() else weight
        return GaussianSums(**scaled | {"centre": self.centre, "count": self.count, "weight": weight})


@dataclass(frozen=True)
class GaussianEquations(Sums[GaussianSums]):
    """Accumulate `GaussianSums` over the rows of a table.

    Every block is whitened before the sum, although for a constant noise it would take half the operations to whiten
    the sums. With whitened blocks, merged sums of appended rows agree to the last bits with the sums over all rows, and
    the sums are accurate for every noise variance.

    Parameters
    ----------
    basis : Basis of n functions.
    centre : (d,) prior mean of each target; d = 0 without targets.
    row_noise : model of Om.
    """

    basis: Basis
    centre: Float
    row_noise: RowNoise

    @property
    def row_multiple(self) -> int:
        return self.row_noise.row_multiple

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n, d = len(self.basis), len(self.centre)
        sums = {"H": (n, n), "g": (n, d), "YY": (d, d), "G1": (n,), "Y1": (d,), "squares": (n,)}
        return {**sums, "totals": (3,), "noise": (2,)}

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"H"})

    def fold(self, state: State, block: RowBlock) -> State:
        for members in self.row_noise.members(block.X, self.basis.kernel):
            X = np.ascontiguousarray(block.X[members.rows], np.float64)
            w = np.ones(len(X)) if block.weights is None else block.weights[members.rows]
            Y = np.zeros((len(X), 0)) if block.Y is None else block.Y[members.rows] - self.centre
            diagonal = self.basis.kernel.diagonal(X)
            G = self.basis.features(X, block_array("features", (len(X), len(self.basis))))
            residual = np.maximum(diagonal - np.einsum("ij,ij->i", G, G), 0.0)
            state["G1"] += w @ G
            state["Y1"] += w @ Y
            state["squares"] += np.einsum("ij,ij->j", G, G if block.weights is None else w[:, None] * G)
            log_det = self.row_noise.whiten(block, members, self.basis.kernel, residual, G, Y)
            syrk(G, into=state["H"])
            state["g"] += G.T @ Y
            state["YY"] += Y.T @ Y
            # totals: rows, weight and trace; noise: log det Om, residual trace.
            state["totals"] += [np.count_nonzero(w), w.sum(), w @ diagonal]
            state["noise"] += [log_det, w @ residual]
            del X, Y, G, residual  # before those of the next members are made: the plan counts one set
        return state

    def finalize(self, state: State) -> GaussianSums:
        log_det, residual_trace = (float(value) for value in state["noise"])
        count, weight, trace = (float(value) for value in state["totals"])
        return GaussianSums(
            H=mirror_upper(state["H"]),
            **{name: state[name] for name in ("g", "YY", "G1", "Y1", "squares")},
            centre=self.centre,
            log_det=log_det,
            trace=trace,
            residual_trace=residual_trace,
            count=int(count),
            weight=weight,
        )

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        held, own = self.row_noise.held_rows(rows), self.row_noise.scratch_bytes(rows, p, self.basis.kernel.formulas)
        return int(8 * held * (n + p + 2 * len(self.centre) + 5)) + own

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        own = self.row_noise.flops_per_row(n, p)
        return float(2 * n * n + 2 * n * (p + len(self.centre))) + own
