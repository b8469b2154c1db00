"""Solves with a large triangle, in place, at the rate of a matrix product.

The library's triangular solve runs at half that rate: its innermost blocks are substitutions. Here the triangle is
cut in halves, again and again; what is off the diagonal is a product, and a small block on the diagonal is inverted
once and multiplied by: as stable as substitution where the block is well conditioned (Du Croz & Higham 1992). Where it
is not, it is solved by substitution.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamkernel.linalg._blas import (
    multiply_triangle,
    multiply_triangle_left,
    solve_triangle,
    solve_triangle_left,
    subtract_product,
    subtract_product_left,
)

__all__ = ["Triangle", "leaves"]

Float = NDArray[np.float64]

_LEAF = 128  # columns of a block on the diagonal


def leaves(start: int, stop: int) -> list[tuple[int, int]]:
    """The blocks on the diagonal that are not cut any further."""
    if is_leaf(start, stop):
        return [(start, stop)] if stop > start else []
    middle = halfway(start, stop)
    return leaves(start, middle) + leaves(middle, stop)


def is_leaf(start: int, stop: int) -> bool:
    return stop - start <= _LEAF


def halfway(start: int, stop: int) -> int:
    """Half way, rounded up to what products like."""
    return start + -(-(stop - start) // _LEAF) * _LEAF // 2 // 32 * 32


class Triangle:
    """A lower triangle L and the inverses of its leaves.

    Parameters
    ----------
    L : (n, n) C-contiguous, float64; what is above the diagonal is not read.
    inverses : of the leaves, by the first row of each; None for one that is solved by substitution.
    """

    def __init__(self, L: Float, inverses: dict[int, Float | None]) -> None:
        self.L = L
        self._inverses = inverses

    def _solve_right(self, K: Float, start: int, stop: int) -> None:
        """``K <- K L^-T`` with the part of L between two rows, and columns of K (b, n) in the same place."""
        if is_leaf(start, stop):
            block, inverse = K[:, start:stop], self._inverses[start]
            if inverse is None:
                solve_triangle(self.L[start:stop, start:stop], block)
            else:
                multiply_triangle(inverse, block)
            return
        middle = halfway(start, stop)
        self._solve_right(K, start, middle)
        subtract_product(K[:, start:middle], self.L[middle:stop, start:middle], into=K[:, middle:stop])
        self._solve_right(K, middle, stop)

    def _solve_left(self, B: Float, start: int, stop: int) -> None:
        """``B <- L^-1 B`` with the part of L between two rows, and the same rows of B (n, q)."""
        if is_leaf(start, stop):
            inverse = self._inverses[start]
            if inverse is None:
                solve_triangle_left(self.L[start:stop, start:stop], B[start:stop])
            else:
                multiply_triangle_left(inverse, B[start:stop])
            return
        middle = halfway(start, stop)
        self._solve_left(B, start, middle)
        subtract_product_left(self.L[middle:stop, start:middle], B[start:middle], into=B[middle:stop])
        self._solve_left(B, middle, stop)
