"""Gradient of the log evidence of a sparse Gaussian process, given the sums of the previous sweep.

Prior ``s k``, noise variance ``noise``, unit whitened features G (m, n), residuals ``r_i = k_ii - |G_i|^2``, scaled
targets Y (m, d), row weights w. With ``Om = noise / w`` for every row (vfe) or ``(noise + s r) / w`` (fitc)::

    B = I + s G^T Om^-1 G,    u = B^-1 G^T Om^-1 Y,    a = Om^-1 (Y - s G u)
    dF / dG = s ( a u^T - d Om^-1 G B^-1 + e o G ),    e_i = d w_i / noise  (vfe)
                                                       e_i = (d (cov Y)^-1_ii - |a_i|^2) / w_i
                                                             + d (w_i - 1) / (noise + s r_i)  (fitc)

The evidence depends on G only through ``G G^T = K_mn k(Z, Z)^-1 K_nm``. Therefore ``dF / dK_mn = (dF / dG) L^-1`` and
``dF / dk(Z, Z) = - L^-T (G^T dF/dG) L^-1 / 2``. The first is contracted here with the slopes of the kernel, block by
block. The second is small algebra on the sums. Titsias 2009, eq. (9); Snelson & Ghahramani 2006, eq. (9).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.basis import Basis
from streamkernel.kernels import LengthscaleGradient, log_lengthscales, prepare_gradient
from streamkernel.linalg import solve_lower_t
from streamkernel.reductions.contract import Reduction, SentAsFields, State
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class EvidenceSlopes:
    """Sums over the rows in the gradient.

    Attributes
    ----------
    lengthscales : (t,) gradient by the log lengthscales, through ``k(X, Z)``.
    E : (n, n) ``G^T diag(e) G``; (0, 0) for vfe, whose e is a constant.
    noise : ``sum_i dF / dv_i`` with ``v_i = noise + s r_i``; 0 for vfe.
    residual : ``sum_i r_i dF / dv_i``; 0 for vfe.
    """

    lengthscales: Float
    E: Float
    noise: float
    residual: float

    def times(self, factor: float) -> EvidenceSlopes:
        """The sums as if every row occurred `factor` times."""
        return EvidenceSlopes(factor * self.lengthscales, factor * self.E, factor * self.noise, factor * self.residual)


@dataclass(frozen=True)
class EvidenceGradient(SentAsFields, Reduction[EvidenceSlopes]):
    """Contract ``dF / dK_bn`` with the slopes of the kernel.

    Parameters
    ----------
    basis : Basis of n functions.
    centre, scale : (d,) targets are ``(Y - centre) / scale``; a target with an infinite scale is left out.
    signal, noise : variances, in the units of the scaled targets.
    inverse : (n, n) ``B^-1``.
    u : (n, d) as in the formula.
    fitc : True if the residuals are part of the noise (FITC), False for VFE.
    """

    basis: Basis
    centre: Float
    scale: Float
    signal: float
    noise: float
    inverse: Float
    u: Float
    fitc: bool = False

    @property
    def targets(self) -> int:
        """Number of targets that are not left out: d in the formulas."""
        return int(np.isfinite(self.scale).sum())

    @cached_property
    def slopes(self) -> LengthscaleGradient:
        """Slopes of the kernel, with the points of the basis packed; no second copy of the points is stored."""
        return prepare_gradient(self.basis.kernel, self.basis.prepared.points)

    def unwhitened(self, A: Float) -> Float:
        """``A L^-1`` for A (r, n)."""
        return np.ascontiguousarray(solve_lower_t(self.basis.L, A.T).T)

    @cached_property
    def targets_part(self) -> Float:
        """``s u^T L^-1``, (d, n)."""
        return self.signal * self.unwhitened(np.ascontiguousarray(self.u.T))

    @cached_property
    def features_part(self) -> Float:
        """Right factor of G, (n, n): ``s d / noise (I - B^-1) L^-1`` for vfe, ``L^-1`` for fitc."""
        identity = np.eye(len(self.basis))
        if self.fitc:
            return self.unwhitened(identity)
        rate = self.signal * self.targets / self.noise
        return rate * self.unwhitened(identity - self.inverse)

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        G = self.basis.features(block.X)
        residual = (block.Y - self.centre) / self.scale - self.signal * (G @ self.u)
        weights = block.row_weights
        if self.fitc:
            W, E, totals = self._fitc(block, G, residual, weights)
        else:
            E, totals = np.zeros((0, 0)), np.zeros(2)
            a = residual * (weights / self.noise)[:, None]
            if block.weights is not None:
                G *= weights[:, None]
            W = G @ self.features_part
            W += a @ self.targets_part
        slopes = self.slopes.of_rows(block.X.astype(np.float64, copy=False), W)
        return {"lengthscales": slopes, "E": E, "totals": totals}

    def _fitc(self, block: RowBlock, G: Float, residual: Float, weights: Float) -> tuple[Float, Float, Float]:
        """``dF / dK_bn`` (b, n), ``G^T diag(e) G``, and the sums of dF / dOm by the noise and by the residuals."""
        d, s = self.targets, self.signal
        r = np.maximum(self.basis.kernel.diagonal(block.X) - np.einsum("ij,ij->i", G, G), 0.0)
        # The formula with weights in the numerator: a row of weight 0 gets precision 0, not a division by 0.
        precision = weights / (self.noise + s * r)
        a = residual * precision[:, None]
        # T and `scaled` are overwritten where they are no longer read: a block has at most four (b, n) arrays.
        T = G @ self.inverse
        share = s * precision * np.einsum("ij,ij->i", T, G)
        if block.weights is None:
            e = d * precision * (1.0 - share) - (a**2).sum(axis=1)
        else:
            per_weight = np.divide(1.0, weights, out=np.zeros_like(weights), where=weights > 0.0)
            e = per_weight * (d * precision * (weights - share) - (a**2).sum(axis=1))
        scaled = G * e[:, None]
        E = G.T @ scaled
        T *= (d * precision)[:, None]
        scaled -= T
        W = scaled @ self.features_part
        W *= s
        W += a @ self.targets_part
        return W, E, -0.5 * np.array([e.sum(), e @ r])

    def finalize(self, state: State) -> EvidenceSlopes:
        noise, residual = (float(value) for value in state["totals"])
        return EvidenceSlopes(state["lengthscales"], state["E"], noise, residual)

    def state_bytes(self) -> int:
        n = len(self.basis)
        # Without `slopes`, which pack the points: a plan has no memory behind its basis.
        return 8 * ((n * n if self.fitc else 0) + len(log_lengthscales(self.basis.kernel)) + 2)

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        return int(8 * rows * ((4 if self.fitc else 2) * n + 2 * p + 4 * len(self.centre) + 4))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float((7 if self.fitc else 3) * n * n + 6 * n * p + 4 * n * len(self.centre))
