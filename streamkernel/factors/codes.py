"""Short codes of rows; distances of codes bound the distances in the kernel's feature space from below and above.

``d^2(x, x') = k(x, x) + k(x', x') - 2 k(x, x')``. With the features ``z = L^-1 k(Z, x)`` and the residual
``r = sqrt(k(x, x) - |z|^2)``, the part of x outside the span of the basis::

    |z - z'|^2 + (r - r')^2  <=  d^2(x, x')  <=  |z - z'|^2 + (r + r')^2

(Smola & Schoelkopf 2000, section 6.3, extended by the coordinate r; ALGORITHMS 13.3.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import single_threaded_blas, solve_lower
from streamkernel.type_aliases import AnyArray, Float

_LIFT = 16.0  # twice the largest observed ratio to eps tr S^-1, over bases of up to 60 functions with pivots from 1e-12


def rounding_of(basis: Basis) -> float:
    """Rounding of ``z . z'`` as a share of the diagonal: ``eps tr S^-1``, S being k(Z, Z) scaled to a unit diagonal.

    ``z . z' = k_x^T k(Z, Z)^-1 k_x'``, and the inverse amplifies rounding, to some n eps over the least eigenvalue. If
    that exceeds all distances, the bounds exclude no row: they are then useless, but still true.
    """
    if len(basis) == 0:
        return float(np.finfo(np.float64).eps)
    scaled = basis.L / np.sqrt(basis.kernel.diagonal(basis.points))[:, None]
    with single_threaded_blas():
        inverse = solve_lower(scaled, np.eye(len(basis)))
    return float(_LIFT * np.finfo(np.float64).eps * np.einsum("ij,ij->", inverse, inverse))


@dataclass(frozen=True)
class Codes:
    """Codes of b rows.

    Attributes
    ----------
    z : (b, n) whitened features.
    r : (b,) residuals.
    diagonal : (b,) ``k(x, x)``.
    margin : possible rounding of the features, as a share of the diagonal.
    """

    z: Float
    r: Float
    diagonal: Float
    margin: float

    @classmethod
    def of(cls, basis: Basis, X: AnyArray, margin: float | None = None) -> Codes:
        """Codes of the rows X (b, p); `margin` is `rounding_of(basis)`, computed if it is not given."""
        z = basis.features(X)
        diagonal = basis.kernel.diagonal(X)
        r = np.sqrt(np.maximum(diagonal - np.einsum("ij,ij->i", z, z), 0.0))
        return cls(z, r, diagonal, rounding_of(basis) if margin is None else margin)

    def __getitem__(self, rows: slice) -> Codes:
        return Codes(self.z[rows], self.r[rows], self.diagonal[rows], self.margin)

    def distances(self, other: Codes) -> Float:
        """``|z - z'|^2 + (r - r')^2`` (b, b'): the squared distance of the codes, an estimate of the true one.

        Near 0, rounding can make it negative.
        """
        return self._squares(other, self.r, -other.r, 1.0)

    def lower(self, other: Codes) -> Float:
        """Lower bounds of ``d^2``, (b, b'), which hold in spite of rounding; some may be negative."""
        return self._squares(other, self._radii(), -other._radii(), 1.0 - self.margin)

    def upper(self, other: Codes) -> Float:
        """Upper bounds of ``d^2``, (b, b'), which hold in spite of rounding."""
        return self._squares(other, self._radii(), other._radii(), 1.0 + self.margin)

    def _radii(self) -> Float:
        # A residual is the root of a difference: near 0, its rounding is the root of the features' rounding.
        return np.asarray(np.sqrt(self.r**2 + self.margin * self.diagonal))

    def _squares(self, other: Codes, left: Float, right: Float, share: float) -> Float:
        """``share (k(x, x) + k(x', x')) - 2 z . z' + 2 left right``, as one matrix product.

        Since |z|^2 + r^2 = k(x, x), no squares are computed.
        """
        ones = [np.ones(len(side.r)) for side in (self, other)]
        one = np.column_stack([-2.0 * self.z, 2.0 * left, ones[0], share * self.diagonal])
        two = np.column_stack([other.z, right, share * other.diagonal, ones[1]])
        return np.asarray(one @ two.T)
