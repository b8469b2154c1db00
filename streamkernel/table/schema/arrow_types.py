"""Types of Arrow's columns: which are text, and how a message names any.

A column of an extension type is what it is stored as; UUIDs are their text. Runs of equal values are their values.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
from pyarrow.compute import run_end_decode

from streamkernel.type_aliases import Untyped

_UUID = "arrow.uuid"


def is_text(kind: Untyped) -> bool:
    """Whether an Arrow type is text, also as a dictionary."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value))


def is_numeric(kind: Untyped) -> bool:
    """Whether an Arrow type is of numbers or truth values, which are 1 and 0 among numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind))


def is_moment(kind: Untyped) -> bool:
    """Whether an Arrow type is of dates, with a time of day or without."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def one_type(kinds: Collection[Untyped]) -> Untyped | None:
    """The Arrow type for a look at values of several types, which Arrow does not merge, as one column.

    Truth values among numbers are numbers, and dates with and without zones or times of day are moments in UTC. All
    else is text, as in a CSV file. None for durations among others: as numbers they are days, and others may not be.
    """
    values = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    values = [kind for kind in values if not pa.types.is_null(kind)]
    if any(map(pa.types.is_duration, values)):
        return None
    if all(map(is_moment, values)):
        return pa.timestamp("us", "UTC")
    return pa.float64() if all(map(is_numeric, values)) else pa.string()


def plain_type(kind: Untyped) -> Untyped:
    """The type of a column without extensions and runs: that of its storage or of its values, or text for UUIDs."""
    if pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if not isinstance(kind, pa.BaseExtensionType):
        return kind
    return pa.string() if kind.extension_name == _UUID else kind.storage_type


def plain_batch(batch: Untyped) -> Untyped:
    """A record batch whose columns have plain types."""
    types = [plain_type(kind) for kind in batch.schema.types]
    if types == batch.schema.types:
        return batch
    columns = [
        column if column.type == kind else _plain(column) for column, kind in zip(batch.columns, types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _plain(column: Untyped) -> Untyped:
    if pa.types.is_run_end_encoded(column.type):
        values = run_end_decode(column)
        return values if values.type == plain_type(values.type) else _plain(values)
    if column.type.extension_name != _UUID:
        return column.storage
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def words_of_type(kind: Untyped) -> str:
    """What values of an Arrow type are, in plain words: names of types change with versions of Arrow."""
    types = pa.types
    if types.is_dictionary(kind):
        return f"categories of {words_of_type(kind.value_type)}"
    if types.is_run_end_encoded(kind):
        return words_of_type(kind.value_type)
    if is_text(kind):
        return "text"
    if types.is_boolean(kind):
        return "truth values"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if is_moment(kind):
        return "dates"
    if types.is_time(kind):
        return "times of day"
    if types.is_duration(kind) or types.is_interval(kind):
        return "durations"
    if types.is_map(kind) or types.is_struct(kind) or types.is_union(kind):
        return "records"
    if types.is_nested(kind):
        return "lists"
    if types.is_null(kind):
        return "no value in any row"
    binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    return "bytes" if binary else f"values of the type {kind}"
