"""Names of columns as scikit-learn has them: of a DataFrame, and `feature_names_in_` of what was fitted to names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streamkernel.errors import warn_user
from streamkernel.table import KnownColumns, Table
from streamkernel.table.columns import check_distinct

__all__ = ["frame_names", "in_order", "names_of", "tell_names", "warn_of_names"]


def names_of(estimator: Any) -> list[str] | None:
    """Names of the columns of the DataFrame that scikit-learn's checks have just made an array of."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def tell_names(estimator: Any, known: KnownColumns) -> None:
    """Set or remove `feature_names_in_`: there are such of rows with names only, wherever these lay."""
    if known.named:
        estimator.feature_names_in_ = np.array(known.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def frame_names(X: Any, what: str = "X") -> list[str] | None:
    """Names of the columns of rows in memory; None of an array, or where some are not text.

    Raises
    ------
    ShapeError
        Two are equal.
    """
    names = getattr(X, "column_names", None)  # pyarrow
    if names is None:
        names = getattr(X, "columns", None)
    if names is None or callable(names) or getattr(X, "ndim", 2) != 2:
        return None
    found = list(names)
    check_distinct([str(name) for name in found], what)
    return found if found and all(isinstance(name, str) for name in found) else None


def in_order(X: Any, known: KnownColumns, what: str = "X") -> Any:
    """A DataFrame with its columns in the order of the fit; what has no names is left to scikit-learn's checks.

    Raises
    ------
    ShapeError
        It has names, and they are not those of the fit.
    """
    names = frame_names(X, what)
    if names is None:
        return X
    order = replace(known, what=what).order_in(names, named=True)
    if order is None:
        return X
    # A fit without names, and these are called x0, x1, ...: scikit-learn's checks say that it had none.
    return X.select(list(known.names)) if hasattr(X, "column_names") else X[list(known.names)]


def warn_of_names(estimator: Any, known: KnownColumns, table: Table) -> Table:
    """Say of a table what scikit-learn's checks say of rows in memory: only it, or only the fit, has names."""
    kind = type(estimator).__name__
    if table.named and not known.named:
        warn_user(f"X has feature names, but {kind} was fitted without feature names")
    elif known.named and not table.named:
        warn_user(f"X does not have valid feature names, but {kind} was fitted with feature names")
    return table
