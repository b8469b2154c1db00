"""Types of Arrow's columns: which are text, and how a message names any."""

from __future__ import annotations

import pyarrow as pa

from streamkernel.type_aliases import Untyped


def is_text(kind: Untyped) -> bool:
    """Whether an Arrow type is text, also as a dictionary."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value))


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
    if types.is_timestamp(kind) or types.is_date(kind):
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
