"""Columns of Arrow as arrays of NumPy, for frames that are opened where they are."""

from __future__ import annotations

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
    values: AnyArray = column.to_numpy()
    return values
