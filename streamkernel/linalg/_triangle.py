"""Triangular solves in place, at the rate of a matrix product.

The triangular solve of BLAS runs at half that rate, because its innermost blocks are substitutions. Here the triangle
is divided into halves recursively. The part off the diagonal is a matrix product. A small block on the diagonal is
inverted once, and the solve multiplies by the inverse. This is as stable as substitution if the block is well
conditioned (Du Croz & Higham 1992). Other blocks are solved by substitution.
"""

from __future__ import annotations

from streamkernel.linalg._blas import (
    multiply_triangle,
    multiply_triangle_left,
    solve_triangle,
    solve_triangle_left,
    subtract_product,
    subtract_product_left,
)
from streamkernel.type_aliases import Float

_LEAF = 128  # columns of a block on the diagonal


def leaves(start: int, stop: int) -> list[tuple[int, int]]:
    """The blocks on the diagonal that are not divided further, as pairs (start, stop)."""
    if is_leaf(start, stop):
        return [(start, stop)] if stop > start else []
    middle = halfway(start, stop)
    return leaves(start, middle) + leaves(middle, stop)


def is_leaf(start: int, stop: int) -> bool:
    return stop - start <= _LEAF


def halfway(start: int, stop: int) -> int:
    """The middle, a multiple of 32 rows from `start`, because matrix products are faster with such sizes."""
    return start + -(-(stop - start) // _LEAF) * _LEAF // 2 // 32 * 32


class Triangle:
    """A lower triangle L and the inverses of its leaves.

    Parameters
    ----------
    L : (n, n) C-contiguous, float64; the part above the diagonal is not read.
    inverses : inverse of each leaf, by its first row; None for a leaf that is solved by substitution.
    """

    def __init__(self, L: Float, inverses: dict[int, Float | None]) -> None:
        self.L = L
        self._inverses = inverses

    def _solve_right(self, K: Float, start: int, stop: int) -> None:
        """``K <- K L^-T`` with the diagonal block of L from row `start` to `stop`, and the same columns of K (b, n)."""
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
        """``B <- L^-1 B`` with the diagonal block of L from row `start` to `stop`, and the same rows of B (n, q)."""
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
