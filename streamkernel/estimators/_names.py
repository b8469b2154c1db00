"""Names of columns, as in scikit-learn: those of a DataFrame, and `feature_names_in_` of a fitted estimator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamkernel.errors import warn_user
from streamkernel.table import KnownColumns, Table
from streamkernel.table.columns import frame_names
from streamkernel.type_aliases import Unchecked, Untyped


def names_of(estimator: Untyped) -> list[str] | None:
    """Column names of the DataFrame that scikit-learn's checks have just converted; None for an array."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def tell_names(estimator: Untyped, known: KnownColumns) -> None:
    """Set `feature_names_in_` where the rows of the fit have names, else remove it."""
    if known.named:
        estimator.feature_names_in_ = np.array(known.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def in_order(X: Unchecked, known: KnownColumns, what: str = "X") -> Unchecked:
    """A DataFrame with its columns in the order of the fit; scikit-learn's checks take rows without names.

    Raises
    ------
    ShapeError
        The names are not those of the fit.
    """
    names = frame_names(X, what)
    if names is None:
        return X
    order = replace(known, what=what).order_in(names, named=True)
    if order is None:
        return X
    # If the fit had no names and these are x0, x1, ..., scikit-learn's checks warn that it had none.
    return X.select(list(known.names)) if hasattr(X, "column_names") else X[list(known.names)]


def warn_of_names(estimator: Untyped, known: KnownColumns, table: Table) -> Table:
    """Warn, as scikit-learn does for rows in memory, where only the table or only the fit has names."""
    kind = type(estimator).__name__
    if table.named and not known.named:
        warn_user(f"X has feature names, but {kind} was fitted without feature names")
    elif known.named and not table.named:
        warn_user(f"X does not have valid feature names, but {kind} was fitted with feature names")
    return table
