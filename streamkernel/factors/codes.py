"""Short codes of rows, whose distances bound those in the kernel's feature space from below and above.

``d^2(x, x') = k(x, x) + k(x', x') - 2 k(x, x')``. With the features ``z = L^-1 k(Z, x)`` and the residual
``r = sqrt(k(x, x) - |z|^2)``, what x has outside the span of the basis::

    |z - z'|^2 + (r - r')^2  <=  d^2(x, x')  <=  |z - z'|^2 + (r + r')^2

(Smola & Schoelkopf 2000, section 6.3, with one coordinate more; ALGORITHMS 13.3.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import Basis
from streamkernel.linalg import single_threaded_blas, solve_lower

__all__ = ["Codes", "rounding_of"]

Float = NDArray[np.float64]

_LIFT = 16.0  # twice the largest share of eps tr S^-1 seen, over bases of up to 60 functions with pivots from 1e-12


def rounding_of(basis: Basis) -> float:
    """Rounding of ``z . z'`` as a share of the diagonal: ``eps tr S^-1``, S being k(Z, Z) scaled to a unit diagonal.

    ``z . z' = k_x^T k(Z, Z)^-1 k_x'`` loses what its inverse lifts, some n eps over the least eigenvalue. Where that is
    more than everything the bounds hold nothing back: they are no longer of use, and still true.
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
    margin : rounding that features may have, as a share of the diagonal.
    """

    z: Float
    r: Float
    diagonal: Float
    margin: float

    @classmethod
    def of(cls, basis: Basis, X: NDArray[Any], margin: float | None = None) -> Codes:
        """Codes of the rows X (b, p); `margin` is that of `rounding_of(basis)`, computed where it is not given."""
        z = basis.features(X)
        diagonal = basis.kernel.diagonal(X)
        r = np.sqrt(np.maximum(diagonal - np.einsum("ij,ij->i", z, z), 0.0))
        return cls(z, r, diagonal, rounding_of(basis) if margin is None else margin)

    def __getitem__(self, rows: slice) -> Codes:
        return Codes(self.z[rows], self.r[rows], self.diagonal[rows], self.margin)

    def distances(self, other: Codes) -> Float:
        """``|z - z'|^2 + (r - r')^2`` (b, b'): the distance of the codes, which stands for the true one.

        Where it vanishes rounding may leave it negative.
        """
        return self._squares(other, self.r, -other.r, 1.0)

    def lower(self, other: Codes) -> Float:
        """Bounds of ``d^2`` from below, (b, b'), that hold in spite of rounding; some may be negative."""
        return self._squares(other, self._radii(), -other._radii(), 1.0 - self.margin)

    def upper(self, other: Codes) -> Float:
        """Bounds of ``d^2`` from above, (b, b'), that hold in spite of rounding."""
        return self._squares(other, self._radii(), other._radii(), 1.0 + self.margin)

    def _radii(self) -> Float:
        # A residual is a difference: where it vanishes, its rounding is the root of that of the features.
        return np.asarray(np.sqrt(self.r**2 + self.margin * self.diagonal))

    def _squares(self, other: Codes, left: Float, right: Float, share: float) -> Float:
        """``share (k(x, x) + k(x', x')) - 2 z . z' + 2 left right``, as one product of matrices.

        |z|^2 + r^2 = k(x, x), so that no square is formed.
        """
        ones = [np.ones(len(side.r)) for side in (self, other)]
        one = np.column_stack([-2.0 * self.z, 2.0 * left, ones[0], share * self.diagonal])
        two = np.column_stack([other.z, right, share * other.diagonal, ones[1]])
        return np.asarray(one @ two.T)
