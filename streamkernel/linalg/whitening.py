"""``K L^-T`` for many rows, at the rate of a matrix product.

The library's triangular solve runs at half that rate: its innermost blocks are substitutions. Here the triangle is
cut in halves, again and again; what is off the diagonal is a product, and a small block on the diagonal is inverted
once and multiplied by: as stable as substitution where the block is well conditioned (Du Croz & Higham 1992). Where it
is not, which of a basis in the order of its picks is the first block at most, it is solved by substitution.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from streamkernel.linalg._blas import multiply_triangle, require, solve_triangle, subtract_product

__all__ = ["PANEL_ROWS", "Whitener"]

Float = NDArray[np.float64]

_LEAF = 128  # columns of a block on the diagonal
PANEL_ROWS = 512  # whose n columns stay in the second cache for n up to some hundreds
_CONDITION = 100.0  # by which the rounding of a product with an inverse may exceed that of substitution


class Whitener:
    """Solves with ``L^T`` from the right, in place. Threads may share one.

    Parameters
    ----------
    L : (n, n) C-contiguous lower triangular factor, float64.
    """

    def __init__(self, L: Float) -> None:
        require(L, np.dtype(np.float64))
        if L.shape[0] != L.shape[1]:
            raise ValueError(f"the factor has shape {L.shape}; it must be square")
        self.L = L
        self._inverses = {start: _inverse(L[start:stop, start:stop]) for start, stop in _leaves(0, len(L))}

    def __call__(self, K: Float) -> None:
        """Overwrite the rows of K (b, n), C-contiguous, by ``K L^-T``: kernel values become whitened features."""
        require(K, np.dtype(np.float64))
        n = len(self.L)
        if K.shape[1] != n:
            raise ValueError(f"the factor has shape {self.L.shape}, the block needs {(K.shape[1],) * 2}")
        for first in range(0, len(K) if n else 0, PANEL_ROWS):
            self._solve(K[first : first + PANEL_ROWS], 0, n)

    def _solve(self, K: Float, start: int, stop: int) -> None:
        if stop - start <= _LEAF:
            block, inverse = K[:, start:stop], self._inverses[start]
            if inverse is None:
                solve_triangle(self.L[start:stop, start:stop], block)
            else:
                multiply_triangle(inverse, block)
            return
        middle = _middle(start, stop)
        self._solve(K, start, middle)
        subtract_product(K[:, start:middle], self.L[middle:stop, start:middle], into=K[:, middle:stop])
        self._solve(K, middle, stop)


def _middle(start: int, stop: int) -> int:
    """Half way, rounded up to what products like."""
    return start + -(-(stop - start) // _LEAF) * _LEAF // 2 // 32 * 32


def _leaves(start: int, stop: int) -> list[tuple[int, int]]:
    if stop - start <= _LEAF:
        return [(start, stop)] if stop > start else []
    middle = _middle(start, stop)
    return _leaves(start, middle) + _leaves(middle, stop)


def _inverse(L: Float) -> Float | None:
    """The inverse of a small triangle, or None where a product with it would lose digits."""
    identity = np.eye(len(L))
    try:
        W = scipy.linalg.solve_triangular(L, identity, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    condition = float((np.abs(W) @ np.abs(np.tril(L))).max())
    return np.ascontiguousarray(W) if condition <= _CONDITION else None
