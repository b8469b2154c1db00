"""The check of rows in memory for NaN and infinity: unlike scikit-learn's, its error names the row and the column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.errors import NonFiniteDataError
from streamkernel.table._sparse_rows import is_sparse
from streamkernel.table.values import check_finite, not_finite, unmasked
from streamkernel.type_aliases import Unchecked, Untyped


def require_finite(values: Unchecked, name: str, columns: Sequence[str] | None = None) -> None:
    """Refuse NaN and infinity before any work.

    Parameters
    ----------
    values : (m,) or (m, p) array, or an object that NumPy converts to one.
    name : "X" or "y".
    columns : names of the columns; default x0, x1, ...

    Raises
    ------
    NonFiniteDataError
        The message names the first row and column, and the remedy; a ValueError, as scikit-learn's own.
    """
    if is_sparse(values):
        _require_finite_entries(values, columns)
        return
    array = np.asarray(unmasked(values, name))
    if array.dtype.kind != "f" or array.ndim == 0:
        return
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum(dtype=np.float64)):
            return
    if columns is None:
        columns = (name,) if array.ndim == 1 else [f"{name.lower()}{column}" for column in range(array.shape[1])]
    check_finite(array, 0, columns, lambda row: f"the {name} array", name)


def _require_finite_entries(rows: Untyped, columns: Sequence[str] | None) -> None:
    """The same check of the entries of a sparse matrix of SciPy."""
    entries = rows.tocoo()
    bad = np.flatnonzero(~np.isfinite(entries.data)) if entries.data.dtype.kind == "f" else ()
    if len(bad):
        first = bad[np.lexsort((entries.col[bad], entries.row[bad]))[0]]
        row, column, value = int(entries.row[first]), int(entries.col[first]), entries.data[first]
        kind = "NaN" if np.isnan(value) else "infinity"
        name = f"x{column}" if columns is None else columns[column]
        raise NonFiniteDataError(
            f"X contains {kind}: {not_finite(len(bad))}, first in row {row}, column {name!r}, in "
            "the X array; remove those rows or fill them in"
        )
