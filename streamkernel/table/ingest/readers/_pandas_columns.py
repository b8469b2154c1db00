"""Columns of pandas as columns of Arrow, with the values that a CSV file of the frame would have.

==============================================  ===================================================
values                                          column of Arrow
==============================================  ===================================================
intervals (`pandas.cut`), categories of them    their text, such as ``(0, 10]``
and of periods
periods                                         the moment at which each begins
text mixed with numbers, truth values or UUIDs  text, of which a look or the schema makes its kind
numbers in another byte order, long double      numbers in this machine's, float64
sparse columns                                  all their values
all else                                        as Arrow has it
==============================================  ===================================================
"""

from __future__ import annotations

import decimal
import numbers
import uuid
from itertools import repeat

import numpy as np
import pyarrow as pa

from streamkernel.errors import DTypeError
from streamkernel.table.values import native_type
from streamkernel.type_aliases import Untyped

_REFUSED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError, OverflowError)


def pandas_as_arrow(frame: Untyped, place: str) -> Untyped:
    """A frame of pandas, whose columns have different texts as names, as a table of Arrow without its index.

    Raises
    ------
    DTypeError
        A column has values that Arrow has no type for, or of several types that are not text, numbers or truth values.
    """
    odd = {name: _spelled(frame[name]) for name in frame.columns if _has_no_type(frame[name].dtype)}
    frame = frame.assign(**odd) if odd else frame
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except _REFUSED:
        columns = [_column(frame[name], name, place) for name in frame.columns]
    return pa.table(columns, names=list(frame.columns))


def _has_no_type(kind: Untyped) -> bool:
    """Whether a type is one of NumPy that Arrow lacks, or of pandas: sparse, intervals, periods, categories of them."""
    if isinstance(kind, np.dtype):
        return kind != native_type(kind)
    values = getattr(getattr(kind, "categories", None), "dtype", kind)
    return str(values).startswith(("interval[", "period[", "Sparse["))


def _spelled(column: Untyped) -> Untyped:
    """Intervals and categories as text, periods as the moments at which they begin, numbers and sparse ones alike."""
    kind = column.dtype
    if isinstance(kind, np.dtype):
        return column.astype(native_type(kind))
    if hasattr(kind, "categories"):
        return column.cat.rename_categories([str(each) for each in column.cat.categories])
    if str(kind).startswith("Sparse["):
        return column.sparse.to_dense()
    if str(kind).startswith("period["):
        return column.dt.to_timestamp()
    return column.astype(str).where(column.notna(), None)


def _column(column: Untyped, name: str, place: str) -> Untyped:
    try:
        return pa.array(column, from_pandas=True)
    except _REFUSED as error:
        # Of structured and other raw values pandas cannot say which are missing.
        gaps = repeat(False, len(column)) if column.dtype.kind == "V" else column.isna()
        values = [None if missing else value for value, missing in zip(column, gaps, strict=True)]
        odd = next((value for value in values if not _is_plain(value)), None)
        if column.dtype.kind != "O" or odd is not None:
            shown = next((value for value in values if value is not None), None) if odd is None else odd
            raise DTypeError(
                f"{place}: column {name!r} holds values of the type {type(shown).__name__}, such as {shown!r:.60}; "
                "give each column one type, of numbers, text or dates, or leave it out"
            ) from error
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def is_array_with_names(frame: Untyped) -> bool:
    """Whether all columns of a frame of pandas are numbers without gaps."""
    return all(
        getattr(kind, "kind", "O") in "fiub" and not frame.iloc[:, position].isna().any()
        for position, kind in enumerate(frame.dtypes)
    )


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, uuid.UUID, numbers.Real, decimal.Decimal))
