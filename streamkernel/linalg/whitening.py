"""``K L^-T`` for many rows, at the rate of a matrix product.

The triangle is divided into halves recursively (`in_place`). Blocks on its diagonal that are not well conditioned are
solved by substitution; for a basis in the order of its picks this is at most the first block. Where only the leading
functions are whitened, for sums whose rounding is bounded, they are divided further first: 300 functions are then
whitened at 40 GFLOP/s of a core in place of 28.
"""

from __future__ import annotations

import numpy as np

from streamkernel.linalg._blas import require, require_rows, subtract_product
from streamkernel.linalg.cholesky import solve_lower
from streamkernel.linalg.in_place import LEAST_LEAF, Triangle, leaves
from streamkernel.type_aliases import Float

PANEL_ROWS = 512  # rows whose n columns stay in the second-level cache for n up to some hundreds
_CONDITION = 100.0  # factor by which the rounding of a product with an inverse may exceed that of substitution


def even_panels(rows: int) -> list[slice]:
    """Slices of at most `PANEL_ROWS` rows, nearly equal: a short last one would run a product below its full rate."""
    count = -(-rows // PANEL_ROWS)
    return [slice(rows * i // count, rows * (i + 1) // count) for i in range(count)]


class Whitener(Triangle):
    """Solves with ``L^T`` from the right, in place. Threads may share one object.

    Parameters
    ----------
    L : (n, n) C-contiguous lower triangular factor, float64.
    leading : number of functions t that are whitened, whose part is taken out of the others; None for all. The solve is
        then with L' in place of L, which has the first t columns of L, and ones on the rest of its diagonal.
    """

    def __init__(self, L: Float, leading: int | None = None) -> None:
        require(L, np.dtype(np.float64))
        if L.shape[0] != L.shape[1]:
            raise ValueError(f"the factor has shape {L.shape}; it must be square")
        t = len(L) if leading is None else min(leading, len(L))
        least = () if leading is None else (LEAST_LEAF,)
        super().__init__(L, leaves(0, t, lambda start, stop: _inverse(L[start:stop, start:stop]), *least))
        self._leading = t

    def __call__(self, K: Float) -> None:
        """Overwrite K (b, n), its rows contiguous, by ``K L^-T`` or ``K L'^-T``: kernel values become features."""
        require_rows(K, np.dtype(np.float64))
        n = len(self.L)
        if K.shape[1] != n:
            raise ValueError(f"the factor has shape {self.L.shape}, the block needs {(K.shape[1],) * 2}")
        t = self._leading
        for first in range(0, len(K) if t else 0, PANEL_ROWS):
            panel = K[first : first + PANEL_ROWS]
            self._solve_right(panel, 0, t)
            if t < n:
                subtract_product(panel[:, :t], self.L[t:, :t], into=panel[:, t:])


def _inverse(L: Float) -> Float | None:
    """The inverse of a small triangle, or None if a product with it would lose digits."""
    identity = np.eye(len(L))
    try:
        W = solve_lower(L, identity)
    except np.linalg.LinAlgError:
        return None
    condition = float((np.abs(W) @ np.abs(np.tril(L))).max())
    return np.ascontiguousarray(W) if condition <= _CONDITION else None
