"""Canonical correlations of the whitened features of two views, from the sums of one sweep.

With ``G_v`` (m, n) the features of view v, centred, ``S_vv = G_v^T G_v + r_v I`` and ``S_xy = G_x^T G_y``::

    S_xx^-1/2 S_xy S_yy^-1/2 = U diag(s) V^T        A_x = S_xx^-1/2 U        A_y = S_yy^-1/2 V

The canonical variates are ``G_v A_v``. Among all functions in the span of the bases with ``|f|^2 + r |f|_H^2 = 1`` they
have the largest inner products s, each pair uncorrelated with the pairs before it (Hussain & Shawe-Taylor, section 4;
ALGORITHMS 11.3). The variates are scaled to variance 1 over the rows. Their correlations are computed over the rows;
they equal s only without a ridge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.errors import NumericalError
from streamkernel.factors.eigen import above_rounding, signs_of
from streamkernel.linalg import require_finite, single_threaded_blas, symmetric_eigen
from streamkernel.reductions.sums import CrossFeatureSums, Features, FeatureTimes
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class FactorCCA:
    """Canonical directions of two views.

    Attributes
    ----------
    correlations : (r,) correlations of the variates over the rows.
    singular_values : (r,) the s of the formula, descending; they are the correlations shrunk by the ridge.
    directions : (n, r) each, the A of the formula, scaled so that the variates have variance 1.
    means : (n,) each, the mean rows of G_x and G_y.
    """

    correlations: Float
    singular_values: Float
    directions: tuple[Float, Float]
    means: tuple[Float, Float]

    @classmethod
    def of(
        cls,
        sums: CrossFeatureSums,
        ridges: tuple[float, float],
        count: int | None = None,
        *,
        at_basis: Float | None = None,
    ) -> FactorCCA:
        """Compute the canonical directions.

        Parameters
        ----------
        sums : result of `CrossGram`.
        ridges : r_x and r_y.
        count : number of pairs to return; None for all. There are fewer if the rank of a view is smaller.
        at_basis : (n, n) features of the basis points of view x, which fix the sign of each pair: the largest absolute
            value of its first variate there is positive (of equal ones, the first). Without them, the same for A_x.

        Raises
        ------
        NumericalError
            A view's features are constant.
        """
        n, m = sums.size, sums.count
        require_finite(sums.H, "the Gram matrix of the two views")
        mean = sums.G1 / m
        with single_threaded_blas():
            H = sums.H - np.outer(mean, sums.G1)
            H = 0.5 * (H + H.T)
            blocks = H[:n, :n], H[n:, n:]
            scales = np.diagonal(sums.H)[:n].sum(), np.diagonal(sums.H)[n:].sum()
            roots = [
                _inverse_root(block, ridge, float(scale), name)
                for block, ridge, scale, name in zip(blocks, ridges, scales, ("first", "second"), strict=True)
            ]
            # The roots whiten both views; an SVD keeps small correlations, which an eigenproblem of squares would lose.
            U, s, Vt = np.linalg.svd(roots[0].T @ H[:n, n:] @ roots[1], full_matrices=False)
            kept = len(s) if count is None else min(len(s), count)
            first, second = roots[0] @ U[:, :kept], roots[1] @ Vt[:kept].T
            spreads = [
                np.sqrt(np.einsum("ij,ij->j", A, block @ A)) for A, block in zip((first, second), blocks, strict=True)
            ]
        signs = signs_of(first if at_basis is None else (at_basis - mean[:n]) @ first)
        return cls(
            # At most 1 by the Cauchy-Schwarz inequality, but for rounding.
            correlations=np.minimum(s[:kept] / (spreads[0] * spreads[1]), 1.0),
            singular_values=s[:kept].copy(),
            directions=(
                np.ascontiguousarray(first * (signs * np.sqrt(m) / spreads[0])),
                np.ascontiguousarray(second * (signs * np.sqrt(m) / spreads[1])),
            ),
            means=(mean[:n].copy(), mean[n:].copy()),
        )

    def variates(self, features: tuple[Features, Features]) -> tuple[FeatureTimes, FeatureTimes]:
        """``(G_v - mean) A_v`` (m, r) of either view, as maps of its rows."""
        first, second = (
            FeatureTimes.of(each, A, -(mean @ A), "variates")
            for each, A, mean in zip(features, self.directions, self.means, strict=True)
        )
        return first, second


def _inverse_root(block: Float, ridge: float, scale: float, name: str) -> Float:
    """``V (w + r)^-1/2`` (n, rank) with ``V diag(w) V^T`` the block; directions without variance are left out."""
    eigen = symmetric_eigen(block, f"the Gram matrix of the {name} view")
    kept = above_rounding(eigen.values, scale)
    if not kept.any():
        raise NumericalError(f"the {name} view is constant over the rows, and centring leaves nothing of it")
    root: Float = eigen.vectors[:, kept] / np.sqrt(eigen.values[kept] + ridge)
    return root
