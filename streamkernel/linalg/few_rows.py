"""Products of few rows and a matrix that is read once for all of them.

A greedy pick needs three such products with the same matrix, of some MB, each of one row. BLAS reads the matrix for
each product, at the rate of the memory; with more than one row it copies it first.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numba import types

from streamkernel.compiled_loops import CompiledLoop, source_version
from streamkernel.type_aliases import AnyArray, Float, Untyped

_WIDTH = 512  # columns whose sums, and four rows of the matrix, stay in the first-level cache


def _loop(version: int) -> Untyped:
    width = _WIDTH

    def subtract(coefficients, rows, into):  # type: ignore[no-untyped-def]
        few, count = coefficients.shape
        k = rows.shape[1]
        if version < 0:
            return
        for first in range(0, k, width):
            stop = min(first + width, k)
            t = 0
            while t + 4 <= count:
                r0, r1, r2, r3 = (
                    rows[t, first:stop],
                    rows[t + 1, first:stop],
                    rows[t + 2, first:stop],
                    rows[t + 3, first:stop],
                )
                for q in range(few):
                    c0, c1, c2, c3 = (
                        coefficients[q, t],
                        coefficients[q, t + 1],
                        coefficients[q, t + 2],
                        coefficients[q, t + 3],
                    )
                    target = into[q, first:stop]
                    for c in range(stop - first):
                        target[c] -= (c0 * r0[c] + c1 * r1[c]) + (c2 * r2[c] + c3 * r3[c])
                t += 4
            while t < count:
                row = rows[t, first:stop]
                for q in range(few):
                    factor, target = coefficients[q, t], into[q, first:stop]
                    for c in range(stop - first):
                        target[c] -= factor * row[c]
                t += 1

    return subtract


_doubles = types.float64[:, ::1]
_VERSION = source_version([Path(__file__)])
_SIGNATURES = {
    np.dtype(dtype): types.void(_doubles, kind[:, ::1], _doubles)
    for dtype, kind in ((np.float32, types.float32), (np.float64, types.float64))
}
_SUBTRACT = CompiledLoop(_loop(_VERSION), _SIGNATURES, _VERSION)
FEW_ROWS_LOOPS = (_SUBTRACT,)


def subtract_few(coefficients: Float, rows: AnyArray, into: Float) -> None:
    """``into -= coefficients rows``, in an order of sums that depends on the number of rows alone.

    Parameters
    ----------
    coefficients : (q, t) of few rows q, float64; C-contiguous, as all three are.
    rows : (t, k), float64 or float32; sums are in float64.
    into : (q, k), float64.
    """
    if coefficients.shape != (len(into), len(rows)) or rows.shape[1] != into.shape[1]:
        raise ValueError(f"{coefficients.shape} times {rows.shape} is not {into.shape}")
    _SUBTRACT.of(rows.dtype)(coefficients, rows, into)
