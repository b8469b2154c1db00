"""Eigenvalues and eigenvectors of K~, plain or centred, from the sums of one sweep.

With ``K~ = G G^T``, ``H = G^T G = V diag(w) V^T`` (n, n) and the mean row ``g = G^T 1 / m`` of G::

    K~ = U diag(w) U^T,    U = G V diag(w)^-1/2,    scores  U diag(w)^1/2 = G V

and centred, ``C = I - 1 1^T / m``: the same with ``H - m g g^T`` for H and ``G - 1 g^T`` for G, which is kernel PCA
(Schoelkopf, Smola & Mueller 1998) of K~. The best r of the n directions leave a residual trace of
``tr K - w_1 - ... - w_r`` ("Nystroem-PCA"), never less than that of the best r eigenvectors of K (Smola & Schoelkopf
2000, section 5.4; Hussain & Shawe-Taylor, section 2.1; ALGORITHMS 2.3, 2.7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.errors import NumericalError
from streamkernel.kernels.parameters import checked_integer
from streamkernel.linalg import single_threaded_blas, symmetric_eigen
from streamkernel.reductions.sums import Features, FeatureSums, FeatureTimes
from streamkernel.type_aliases import Bool, Float

_RANK_TOLERANCE = 1e-12  # share of the largest eigenvalue below which an eigenvalue counts as rounding


def above_rounding(values: Float, scale: float) -> Bool:
    """Mask of the eigenvalues (n,) of a centred Gram matrix that are more than rounding.

    Centring subtracts two large numbers: the difference has only the absolute accuracy of the larger one. `scale` is
    the trace before centring.
    """
    eps = float(np.finfo(np.float64).eps)
    found: Bool = values > max(_RANK_TOLERANCE * values.max(initial=0.0), len(values) * eps * scale)
    return found


def signs_of(values: Float) -> Float:
    """Sign of each column's entry of largest absolute value, the first of equal ones."""
    largest = np.argmax(np.abs(values), axis=0)
    return np.where(values[largest, np.arange(values.shape[1])] < 0.0, -1.0, 1.0)


@dataclass(frozen=True)
class FactorEigen:
    """Leading eigenvalues and eigenvectors of K~, or of ``C K~ C``.

    Attributes
    ----------
    values : (r,) positive, descending.
    directions : (n, r), the V of the formula; its columns are orthonormal.
    mean : (n,), the g of the formula; zeros if K~ was not centred.
    features : features of the factor.
    unexplained : ``tr K~``, centred or not, minus the sum of the values: the part of the directions left out.
    left_by_basis : ``tr(K - K~)``; None if the sums do not contain it.
    """

    values: Float
    directions: Float
    mean: Float
    features: Features
    unexplained: float
    left_by_basis: float | None

    @classmethod
    def of(
        cls, features: Features, sums: FeatureSums, *, count: int | None = None, centred: bool = False
    ) -> FactorEigen:
        """Compute eigenvalues and eigenvectors.

        The sign of each eigenvector makes its component of largest absolute value among the basis points positive (the
        first of equally large ones; for a stored factor, among the columns of G).

        Parameters
        ----------
        features : features of the factor.
        sums : result of `FeatureRows.gram`.
        count : number of eigenvectors to return; None for all above rounding. There are fewer if the rank is smaller.
        centred : whether to use ``C K~ C``.

        Raises
        ------
        ParameterError
            count is not a whole number > 0.
        NumericalError
            No eigenvalue is left: K~ is zero, or constant and centred.
        """
        count = None if count is None else checked_integer("count", count)
        mean = sums.G1 / sums.count if centred else np.zeros_like(sums.G1)
        scale = float(np.diagonal(sums.H).sum())
        with single_threaded_blas():
            H = sums.H - np.outer(mean, sums.G1) if centred else sums.H
            eigen = symmetric_eigen(0.5 * (H + H.T), "the Gram matrix of the factor")
            values, directions = eigen.values[::-1], eigen.vectors[:, ::-1]
            rank = int(np.count_nonzero(above_rounding(values, scale)))
            if rank == 0:
                raise NumericalError(
                    "the factor has no eigenvalue above rounding"
                    + (": all its rows are equal, and centring leaves nothing" if centred else ": K~ is zero")
                )
            kept = rank if count is None else min(rank, count)
            directions = np.ascontiguousarray(directions[:, :kept])
            at_basis = directions
            if features.basis is not None:
                at_basis = (features.basis.L - mean) @ directions
        directions = directions * signs_of(at_basis)
        total = float(np.diagonal(H).sum())
        return cls(
            values=values[:kept].copy(),
            directions=directions,
            mean=mean,
            features=features,
            unexplained=max(0.0, total - float(values[:kept].sum())),
            left_by_basis=sums.residual_trace,
        )

    @property
    def residual_trace(self) -> float | None:
        """``tr(K - K~)`` plus the part of K~, or of C K~ C, that belongs to the directions left out.

        For K~ this is ``tr K - sum_j w_j``, exactly. For the centred one it is an upper bound of
        ``tr C K C - sum_j w_j``, because centring never increases ``tr(K - K~)``. None for a stored factor.
        """
        return None if self.left_by_basis is None else self.left_by_basis + self.unexplained

    def eigenvectors(self) -> FeatureTimes:
        """U (m, r), orthonormal columns, as a map of rows with the output "eigenvectors"."""
        return self._map(self.directions / np.sqrt(self.values), "eigenvectors")

    def scores(self) -> FeatureTimes:
        """``U diag(w)^1/2`` (m, r), the rows' coordinates along the directions, as a map of rows: "scores"."""
        return self._map(self.directions, "scores")

    def _map(self, A: Float, name: str) -> FeatureTimes:
        with single_threaded_blas():
            offset = -(self.mean @ A)
        return FeatureTimes.of(self.features, A, offset, name)
