"""Checks of a kernel matrix on some of its rows, before a basis is chosen from them."""

from __future__ import annotations

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.matrix_rows import kernel_values_in
from streamkernel.table import Table
from streamkernel.type_aliases import Float, Int

_MOST_ROWS, _LEAST_ROWS, _MOST_BYTES = 1024, 8, 32 << 20  # of each end of the rows
_ROUNDING = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-8}  # as a share of the largest value


def check_matrix(table: Table) -> None:
    """Refuse a matrix that is not symmetric, or has a negative eigenvalue, among the first and the last of its rows.

    These are all rows of a small matrix.

    Raises
    ------
    ParameterError
        It is not symmetric, or not positive semidefinite.
    DataError
        As of `Table.read`.
    """
    numbers, K = _ends(table)
    values = K.astype(np.float64, copy=False)
    rounding = _ROUNDING[table.dtype] * float(np.abs(values).max(initial=0.0))
    apart = np.abs(values - values.T)
    if apart.max() > rounding:
        a, b = np.unravel_index(int(apart.argmax()), apart.shape)
        i, j = numbers[a], numbers[b]
        raise ParameterError(
            f"the kernel matrix is not symmetric: {values[a, b]:.6g} in row {i}, column {j}, and {values[b, a]:.6g} in "
            f"row {j}, column {i}; give K(rows, rows) with rows and columns in one order (a store is ingested without "
            "shuffle)"
        )
    try:
        np.linalg.cholesky(values + rounding * len(values) * np.eye(len(values)))
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(values)[0])
        raise ParameterError(
            f"the kernel matrix is not positive semidefinite: that of {len(values)} of its rows has the eigenvalue "
            f"{least:.6g}; give one that is, such as K + c I with c above {-least:.3g}"
        ) from None


def _ends(table: Table) -> tuple[Int, Float]:
    """Numbers of the first and the last rows (s,), and their kernel matrix (s, s)."""
    count = max(_LEAST_ROWS, min(_MOST_ROWS, _MOST_BYTES // (table.width * table.dtype.itemsize)))
    start, stop = table.start, table.stop
    runs = [(start, min(start + count, stop)), (max(start + count, stop - count), stop)]
    runs = [(first, last) for first, last in runs if first < last]
    numbers = np.concatenate([np.arange(first, last) for first, last in runs])
    blocks = [kernel_values_in(table.read(first, last).X)[:, numbers] for first, last in runs]
    return numbers, np.concatenate(blocks)
