"""Values of Arrow's columns: numbers with NaN for what is missing, and text as codes of labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from streamkernel.errors import SourceFormatError
from streamkernel.table._row_ids import ID_BYTES, as_rows
from streamkernel.table.schema.values import categories
from streamkernel.type_aliases import AnyArray, Int, Untyped

# Whole numbers below it are exact as floats.
_WHOLE = 2.0**53


def floats(column: Untyped) -> AnyArray:
    """Numbers of a column; a missing value becomes NaN, which the finite check then names."""
    if pa.types.is_boolean(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    return values.astype(np.float64) if values.dtype.kind != "f" else values


def text_labels(column: Untyped) -> tuple[Int, list[str]]:
    """Codes (b,) of a column of labels (-1: none), and the labels, in the form of categories (`canonical`)."""
    codes, labels = categories(column)
    return codes, labels.to_pylist()


def id_rows(column: Untyped, start: int, where: Callable[[int], str], name: str) -> AnyArray:
    """Ids (b, 64) of a column of any type, as UTF-8; that of a missing value is empty.

    Raises
    ------
    SourceFormatError
        An id has more than 64 bytes, or ends with a zero.
    """
    found = [_id_text(value).encode() for value in column.to_pylist()]
    wrong = next((row for row, each in enumerate(found) if len(each) > ID_BYTES or each.endswith(b"\0")), None)
    if wrong is not None:
        raise SourceFormatError(
            f"{where(start + wrong)}: the id in column {name!r} has {len(found[wrong])} bytes, and {ID_BYTES} are the "
            "most; leave the column out, or shorten it"
        )
    return as_rows(found)


def _id_text(value: object) -> str:
    """An id as text without space around it; a whole number has no point, and a missing one is empty."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        return str(int(value))
    return str(value).strip()
