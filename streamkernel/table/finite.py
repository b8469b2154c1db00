"""The check of rows in memory for NaN and infinity: unlike scikit-learn's, its error names the row and the column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.table.values import check_finite, unmasked
from streamkernel.type_aliases import Unchecked


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
    array = np.asarray(unmasked(values, name))
    if array.dtype.kind != "f" or array.ndim == 0:
        return
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum(dtype=np.float64)):
            return
    if columns is None:
        columns = (name,) if array.ndim == 1 else [f"{name.lower()}{column}" for column in range(array.shape[1])]
    check_finite(array, 0, columns, lambda row: f"the {name} array", name)
