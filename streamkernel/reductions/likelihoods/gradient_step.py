"""Sums of one quasi-Newton step: losses and gradient as in `newton`, without the n^2 operations per row of a Hessian.

With the raw kernel values ``F = k(X, Z)``, ``G = F L^-T``::

    f = F (L^-T A) + a        G^T (A'(f) - y) = L^-1 (F^T (A'(f) - y))

A row costs its kernel values and O(n c) operations. The curvature is summed as its mean over the rows only, (c, c).
Its Kronecker product with the Gram matrix of the features replaces the Hessian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions.contract import State
from streamkernel.reductions.likelihoods.likelihood import Likelihood
from streamkernel.reductions.likelihoods.newton import Latent, LikelihoodStep
from streamkernel.reductions.sums.features import Features
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class GradientSums:
    """Losses at several step lengths along a direction, and the gradient and mean curvature at its end.

    Attributes
    ----------
    losses : (T,) loss of each step length.
    gradient : (n + 1, c), ``[G, 1]^T (A'(f) - y)``
    mean_curvature : (c, c), ``sum_i w_i A''(f_i) / sum_i w_i``
    """

    losses: Float
    gradient: Float
    mean_curvature: Float


@dataclass(frozen=True)
class GradientStep(LikelihoodStep[GradientSums]):
    """Accumulate `GradientSums`. `start` and `end` have the coefficients of the raw values F; `of` computes them."""

    @classmethod
    def of(
        cls, features: Features, likelihood: Likelihood, start: Latent, end: Latent, steps: tuple[float, ...] = (1.0,)
    ) -> GradientStep:
        """The reduction for functions that are given in the coordinates of G."""
        with single_threaded_blas():
            first, last = (Latent(features.coefficients(np.ascontiguousarray(f.A)), f.a) for f in (start, end))
        return cls(features, likelihood, first, last, steps)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n, c = self.features.width, self.likelihood.width
        sums = {"losses": (len(self.steps),), "coefficients": (n, c), "constants": (c,), "curvature": (c, c)}
        return {**sums, "weight": (1,)}

    def fold(self, state: State, block: RowBlock) -> State:
        F = self.features.raw(block.X)
        f = self.end.values(F)
        residual = self._add_losses(block, f, self.start.values(F), state["losses"])
        # Sums over raw values are whitened once, at the end: L^-1 commutes with the sum over rows.
        state["coefficients"] += F.T @ residual
        state["constants"] += residual.sum(axis=0)
        weights = np.ones(len(F)) if block.weights is None else block.weights
        state["curvature"] += self.likelihood.total_curvature(f, weights)
        state["weight"] += weights.sum()
        return state

    def finalize(self, state: State) -> GradientSums:
        with single_threaded_blas():
            coefficients = self.features.whitened(state["coefficients"])
        return GradientSums(
            state["losses"],
            np.concatenate([coefficients, state["constants"][None]]),
            state["curvature"] / state["weight"],
        )

    def scratch_bytes(self, rows: int) -> int:
        return self.features.scratch_bytes(rows) + 8 * rows * (8 * self.likelihood.width + 2)

    def flops_per_row(self) -> float:
        n, c = self.features.width, self.likelihood.width
        return self.features.raw_flops() + float(6 * n * c + 2 * c * c + self._loss_flops())
