"""Checks of a kernel matrix: of some rows before and with the basis, and of all rows in the last sweep."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamkernel.basis import Basis
from streamkernel.errors import ParameterError, warn_user
from streamkernel.matrix_rows import kernel_values_in, own_in
from streamkernel.reductions import Both, Sample
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.least_residual import LeastResidual, Shortfall
from streamkernel.table import Table
from streamkernel.table.symmetry import check_symmetry, rounding_of
from streamkernel.type_aliases import AnyArray, Int

_MOST_ROWS, _LEAST_ROWS, _MOST_BYTES = 1024, 8, 32 << 20  # of each end of the rows
_SEEN_ROWS, _RUNS = 1024, 8  # rows that a basis or a search is seen with, and runs of them
_BELOW = 1e-3  # of the largest k(x, x): a residual that is so far below 0 is not rounding


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
    count, start, stop = _at_most(table, _MOST_ROWS), table.start, table.stop
    runs = [(start, min(start + count, stop)), (max(start + count, stop - count), stop)]
    runs = [(first, last) for first, last in runs if first < last]
    numbers = np.concatenate([np.arange(first, last) for first, last in runs])
    blocks = [kernel_values_in(table.read(first, last).X)[:, numbers] for first, last in runs]
    _check(np.concatenate(blocks), numbers)


def check_sample(sample: Sample) -> None:
    """The same for sampled rows of a matrix, each once; of many the first."""
    numbers = sample.rows[:_SEEN_ROWS]
    if len(numbers):
        _check(kernel_values_in(sample.X[:_SEEN_ROWS])[:, numbers], numbers)


def _check(K: AnyArray, numbers: Int) -> None:
    values = K.astype(np.float64, copy=False)
    rounding = rounding_of(K.dtype, float(np.abs(values).max(initial=0.0)))
    check_symmetry(values, values.T, numbers, numbers, rounding)
    try:
        # Rows that are 0 are allowed: the second term gives them a pivot.
        np.linalg.cholesky(values + (rounding * len(values) or 1.0) * np.eye(len(values)))
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(values)[0])
        raise ParameterError(
            f"the kernel matrix is not positive semidefinite: that of {len(values)} of its rows has the eigenvalue "
            f"{least:.6g}; give one that is, such as K + c I with c above {-least:.3g}"
        ) from None


def told_of_matrix(table: Table, basis: Basis) -> str:
    """Text of a warning, or none: runs of rows all over the table are seen with the basis, which is of any rows.

    For a positive semidefinite matrix ``k(x, x) >= |L^-1 k(Z, x)|^2``. A fit cannot tell a row of which less is left
    than nothing from one that the basis explains: such rows are left out of the choice without an error.

    Parameters
    ----------
    table : the rows of the fit.
    basis : rows of that table.

    Raises
    ------
    ParameterError
        The matrix is not symmetric there.
    """
    if _seen(table):
        return ""
    count = _at_most(table, _SEEN_ROWS) // _RUNS
    firsts = np.unique(np.linspace(table.start, max(table.start, table.stop - count), _RUNS).astype(np.int64))
    columns = kernel_values_in(basis.points)
    rounding = rounding_of(table.dtype, float(np.abs(columns).max(initial=0.0)))
    check_symmetry(columns[:, basis.rows], columns[:, basis.rows].T, basis.rows, basis.rows, rounding)
    least, row, own_of_row, largest = 0.0, -1, 0.0, 0.0
    for first in firsts.tolist():
        last = min(first + count, table.stop)
        X = table.read(first, last).X
        numbers = np.arange(first, last)
        check_symmetry(basis.block(X), columns[:, numbers].T.astype(np.float64), numbers, basis.rows, rounding)
        G, own = basis.features(X), own_in(X).astype(np.float64)
        left = own - np.einsum("ij,ij->i", G, G)
        largest = max(largest, float(own.max()))
        if left.min() < least:
            least, row = float(left.min()), int(numbers[left.argmin()])
            own_of_row = float(own[left.argmin()])
    return _told_of(Shortfall(least, row, own_of_row, largest), table)


def final_work(work: AnyReduction, table: Table, basis: Basis) -> AnyReduction:
    """The sums of a last sweep; of rows of a kernel matrix that nothing has seen, with the least residual of all rows.

    Other kernels are functions that are known to be positive semidefinite, or known not to be.
    """
    return Both(work, LeastResidual(basis)) if table.of_matrix and not _seen(table) else work


def final_sums(found: Any, table: Table, *, told: bool) -> Any:
    """The sums in the result of `final_work`, after a warning of a matrix that it shows to be indefinite.

    Parameters
    ----------
    told : whether the user has been warned of that.
    """
    if not table.of_matrix or _seen(table):
        return found
    sums, shortfall = found
    text = "" if told else _told_of(shortfall, table)
    if text:
        warn_user(text)
    return sums


def _told_of(found: Shortfall, table: Table) -> str:
    """Text of a warning of a row of which the basis explains more than there is; empty where that is rounding."""
    if not found.below(_BELOW):
        return ""
    digits = ", in float64" if table.dtype == np.float32 else ""
    return (
        f"the kernel matrix is not positive semidefinite: k(x, x) of row {found.row} is {found.own:.6g}, and the basis "
        f"explains {found.own - found.least:.6g} of it; no function is chosen among such rows, and the certificate "
        f"does not hold; give one that is, such as K + c I{digits}"
    )


def _seen(table: Table) -> bool:
    """Whether `check_matrix` has seen all of a matrix."""
    return table.n_rows <= 2 * _at_most(table, _MOST_ROWS)


def _at_most(table: Table, rows: int) -> int:
    """So many rows, or as many as memory has room for."""
    return max(_LEAST_ROWS, min(rows, _MOST_BYTES // (table.width * table.dtype.itemsize)))
