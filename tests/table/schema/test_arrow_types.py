"""Types of Arrow in the words of messages."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamkernel.table.schema.arrow_types import is_text, one_type, words_of_type

WORDS = {
    pa.string(): "text",
    pa.large_string(): "text",
    pa.string_view(): "text",
    pa.dictionary(pa.int8(), pa.string()): "categories of text",
    pa.dictionary(pa.int32(), pa.date32()): "categories of dates",
    pa.run_end_encoded(pa.int32(), pa.float64()): "numbers",
    pa.bool_(): "truth values",
    pa.uint8(): "numbers",
    pa.float16(): "numbers",
    pa.decimal128(5, 2): "numbers",
    pa.timestamp("ns", "Europe/Berlin"): "dates",
    pa.date64(): "dates",
    pa.time32("s"): "times of day",
    pa.duration("us"): "durations",
    pa.list_(pa.int8()): "lists",
    pa.large_list(pa.string()): "lists",
    pa.list_(pa.float32(), 3): "lists",
    pa.struct({"a": pa.int8()}): "records",
    pa.map_(pa.string(), pa.int8()): "records",
    pa.null(): "no value in any row",
    pa.binary(): "bytes",
    pa.binary(4): "bytes",
    pa.month_day_nano_interval(): "durations",
}


@pytest.mark.parametrize("kind", WORDS, ids=str)
def test_a_type_has_plain_words(kind: pa.DataType) -> None:
    assert words_of_type(kind) == WORDS[kind]
    assert is_text(kind) == (WORDS[kind] in ("text", "categories of text"))


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        ((pa.date32(), pa.timestamp("s", "UTC"), pa.null()), pa.timestamp("us", "UTC")),
        ((pa.timestamp("ns"), pa.date64()), pa.timestamp("us", "UTC")),
        ((pa.bool_(), pa.int8(), pa.decimal128(5, 2)), pa.float64()),
        ((pa.dictionary(pa.int8(), pa.int64()), pa.float32()), pa.float64()),
        ((pa.date32(), pa.int64()), pa.string()),
        ((pa.string(), pa.bool_()), pa.string()),
        ((pa.duration("s"), pa.int64()), None),
    ],
)
def test_one_type_for_values_of_several(kinds: tuple[Any, ...], found: Any) -> None:
    assert one_type(kinds) == found
