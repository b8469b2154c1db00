"""scikit-learn's check of rows, which names the column of a frame that is no number, and the way out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from streamkernel.errors import DataError, DTypeError, EmptyDataError
from streamkernel.table.frames import first_time, is_rows_frame, names_in
from streamkernel.type_aliases import Unchecked, Untyped
from streamkernel.wording import estimator as named


def validated(estimator: Untyped, X: Unchecked, y: Unchecked, **options: Unchecked) -> Any:
    """As `validate_data` of scikit-learn, which says "could not convert string to float" of a frame with text.

    Raises
    ------
    DTypeError
        A column of a frame holds text, dates or other values that are no numbers; or y of numbers holds such values.
    DataError
        X or y holds complex numbers, or structured values; or a frame has no columns.
    """
    if is_rows_frame(X) and not len(names_in(X)):
        raise EmptyDataError(f"X has 0 feature(s), shape {np.shape(X)}; give at least one column")
    for name, values in (("X", X), ("y", y)):
        if _is_complex(values):
            # scikit-learn prints them all, and NumPy warns of what a cast of a frame leaves out.
            raise DataError(f"Complex data not supported: {name} holds complex numbers; give real ones")
        fields = getattr(getattr(values, "dtype", None), "names", None)
        if isinstance(fields, tuple):
            raise DTypeError(
                f"{name} holds structured values ({', '.join(fields)}); give a frame, pandas.DataFrame({name})"
            )
    try:
        found = validate_data(estimator, X, y, **options)
        rows = found[0] if isinstance(found, tuple) else found
        if rows.dtype != np.dtype(object):
            return found
        error = None
    except (ValueError, TypeError) as caught:
        error = caught
    other = _first_other(X)
    if other is not None:
        raise _refused(estimator, "X", *other) from error
    other = _first_other(y)
    if other is not None and not isinstance(other[1], str):
        raise _refused(estimator, "y", *other) from error
    value = None if isinstance(y, str) or y is None else _first_odd(y)
    if value is not None:
        for_labels = f", or for class labels {named('KernelRidgeClassifier')} or another classifier"
        raise DTypeError(
            f"y holds {_kind(value)}, such as {str(value)[:60]!r}; give numbers"
            f"{for_labels if isinstance(value, str) else ''}"
        ) from error
    if error is not None:
        raise error
    # scikit-learn 1.6 leaves pandas' columns of text objects, also where the text is numbers.
    numbers = rows.astype(np.float64)
    return (numbers, *found[1:]) if isinstance(found, tuple) else numbers


def refuse_times(estimator: Untyped, values: Unchecked, rows: str) -> None:
    """Refuse a frame with dates, times or durations, which some libraries convert to numbers of microseconds.

    Raises
    ------
    DTypeError
        The frame, which `rows` names, has such a column.
    """
    time = first_time(values)
    if time is not None:
        raise _refused(estimator, rows, *time)


def _refused(estimator: Untyped, rows: str, name: object, value: object) -> DTypeError:
    way = (
        f"encode it by make_pipeline(TableEncoder(), {type(estimator).__name__}(...)), or leave it out"
        if rows == "X"
        else "leave it out, or give numbers"
    )
    # A column of times without any value has none to show.
    shown = "dates or times" if value is None else f"{_kind(value)}, such as {str(value)[:60]!r}"
    return DTypeError(f"{rows}: column {name!r} holds {shown}, and numbers are needed; {way}")


def _is_complex(values: Unchecked) -> bool:
    """Whether an array, or a column of a frame, has a complex dtype."""
    if hasattr(values, "dtype"):
        return getattr(values.dtype, "kind", "") == "c"
    dtypes = getattr(values, "dtypes", ())  # of polars a list
    return any(getattr(dtype, "kind", "") == "c" for dtype in dtypes)


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    return "dates" if hasattr(value, "year") else f"values of {type(value).__name__}"


def _first_other(X: Unchecked) -> tuple[Any, Any] | None:
    """Name and value of the first column of a frame that is no number."""
    if not (hasattr(X, "columns") and (hasattr(X, "dtypes") or hasattr(X, "column_names"))):
        return None
    for place, name in enumerate(names_in(X)):
        # By position: names may be there twice, and are refused elsewhere.
        column = X.iloc[:, place] if hasattr(X, "iloc") else X.column(place) if hasattr(X, "column_names") else X[name]
        column = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
        for value in () if _are_numbers(column) else column:
            if not _is_number(value):
                return name, value
    return None


def _first_odd(y: Unchecked) -> Any | None:
    """The first value of an array, a column or a list that is no number; text before others."""
    values = np.asarray(y, dtype=object).ravel()
    odd = [value for value in values if not _is_number(value)]
    return next((value for value in odd if isinstance(value, str)), odd[0] if odd else None)


def _are_numbers(column: Untyped) -> bool:
    try:
        values = np.asarray(column)
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return values.ndim == 1 and values.dtype.kind not in "mM"  # lists of one length are a matrix


def _is_number(value: Any) -> bool:
    if str(value) in ("None", "nan", "NaT", "<NA>"):  # a gap, which is named by its place
        return True
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
