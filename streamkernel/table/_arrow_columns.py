"""Columns of Arrow as arrays of NumPy, for frames that are opened where they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow.compute import run_end_decode

from streamkernel.errors import DTypeError
from streamkernel.table.schema.arrow_types import is_numeric, plain_type, words_of_type
from streamkernel.type_aliases import AnyArray, Untyped


def column_numbers(column: Untyped, name: str, way: str) -> AnyArray:
    """Numbers (m,) of a column in its own type, NaN where one is missing.

    Raises
    ------
    DTypeError
        The column holds other values; `way` is the way out.
    """
    kind = plain_type(column.type)
    if not is_numeric(kind):
        raise DTypeError(f"column {name!r} holds {words_of_type(kind)}; {way}")
    if pa.types.is_run_end_encoded(column.type):
        column = run_end_decode(column)
    if pa.types.is_decimal(kind) or (pa.types.is_boolean(kind) and column.null_count):
        column = column.cast(pa.float64())
    values: AnyArray = column.to_numpy(zero_copy_only=False)
    return values


def numbers_if_there_are(column: Untyped) -> Untyped:
    """Numbers (m,) of a column as of `column_numbers`; a column of other values as it is."""
    return column_numbers(column, "", "") if is_numeric(plain_type(column.type)) else column


def known_values(column: Untyped) -> AnyArray:
    """Values (m,) of a column: numbers as of `column_numbers`, times of NumPy, or objects with None for a gap."""
    found = numbers_if_there_are(column)
    if isinstance(found, np.ndarray):
        return found
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind):
        times: AnyArray = column.to_numpy(zero_copy_only=False)
        return times
    objects = np.empty(len(column), dtype=object)
    objects[:] = column.to_pylist()
    return objects


def without_dictionaries(table: Untyped) -> Untyped:
    """A table whose columns of equal numbers, stored once each, hold the numbers row by row."""
    for place, kind in enumerate(table.schema.types):
        if pa.types.is_dictionary(kind) and is_numeric(kind.value_type):
            column = table.column(place).cast(kind.value_type)
            table = table.set_column(place, table.field(place).name, column)
    return table
