"""Whether values of a kernel matrix are those of a symmetric one, but for rounding."""

from __future__ import annotations

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.type_aliases import AnyArray, AnyDType, Int

_ROUNDING = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-8}


def rounding_of(dtype: AnyDType, largest: float) -> float:
    """What values of this type may differ by, of which the largest is known."""
    return _ROUNDING[dtype] * largest


def is_symmetric(values: AnyArray) -> bool:
    """Whether a square block (b, b) is symmetric."""
    with np.errstate(all="ignore"):  # values that are not finite are refused elsewhere
        return bool(np.abs(values - values.T).max(initial=0.0) <= rounding_of(values.dtype, _largest(values)))


def check_symmetry(values: AnyArray, mirrored: AnyArray, rows: Int, columns: Int, rounding: float) -> None:
    """Refuse values (a, b) in these rows and columns that differ from those in these columns and rows.

    Raises
    ------
    ParameterError
        They do.
    """
    apart = np.abs(values - mirrored)
    if apart.max(initial=0.0) <= rounding:
        return
    a, b = np.unravel_index(int(apart.argmax()), apart.shape)
    i, j = rows[a], columns[b]
    raise ParameterError(
        f"the kernel matrix is not symmetric: {values[a, b]:.6g} in row {i}, column {j}, and {mirrored[a, b]:.6g} in "
        f"row {j}, column {i}; give K(rows, rows) with rows and columns in one order (a store is ingested without "
        "shuffle)"
    )


def check_symmetric(values: AnyArray, start: int) -> None:
    """Refuse a block (b, b) on the diagonal that is not symmetric, of which `start` is the first row and column."""
    if not is_symmetric(values):
        numbers = np.arange(start, start + len(values))
        check_symmetry(values, values.T, numbers, numbers, rounding_of(values.dtype, _largest(values)))


def _largest(values: AnyArray) -> float:
    return float(np.abs(values).max(initial=0.0))
