"""Values of Arrow's columns by the kind that a schema says: numbers with NaN for what is missing, or codes of texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import ConvertOptions

from streamkernel.type_aliases import AnyArray, Bool, Float, Int, Untyped

# Texts that are no value, in any column; pyarrow takes them for missing numbers of CSV, too.
MISSING = frozenset(ConvertOptions().null_values)
_TRUE, _FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
_WHOLE = 2.0**53
_SPACE = " \t\r\n"


class WrongValueError(Exception):
    """A value that is none of its column's kind.

    Attributes
    ----------
    row : position in the batch.
    value : the value, for the message.
    why : what it is not, as "is not a number".
    """

    def __init__(self, row: int, value: object, why: str) -> None:
        super().__init__(why)
        self.row, self.value, self.why = row, value, why


def numbers(column: Untyped, missing: Collection[str] = ()) -> Float:
    """Numbers (b,), with NaN for a missing one.

    Raises
    ------
    WrongValueError
        A value is not a number.
    """
    if is_text(column.type):
        return _of_text(column, missing, _parsed_numbers, "is not a number")
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        if not (pa.types.is_boolean(column.type) or pa.types.is_decimal(column.type) or pa.types.is_null(column.type)):
            raise WrongValueError(0, column[0].as_py(), f"is of type {column.type}, not a number")
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.float64, copy=False)


def booleans(column: Untyped, missing: Collection[str] = ()) -> Float:
    """1 for true, 0 for false, NaN for a missing value (b,).

    Raises
    ------
    WrongValueError
        A value is neither.
    """
    if is_text(column.type):
        return _of_text(column, missing, _parsed_booleans, "is neither true nor false (yes/no, t/f, y/n, 1/0)")
    values = numbers(column)
    wrong = np.flatnonzero(~np.isnan(values) & (values != 0.0) & (values != 1.0))
    if wrong.size:
        raise WrongValueError(
            int(wrong[0]), float(values[wrong[0]]), "is neither true nor false (yes/no, t/f, y/n, 1/0)"
        )
    return values


def dates(column: Untyped, form: str | None, missing: Collection[str] = ()) -> Float:
    """Days since 1970-01-01 (b,), in UTC where a time zone is given; NaN for a missing date.

    Raises
    ------
    WrongValueError
        A value is not a date.
    """
    if is_text(column.type):
        how = "of ISO 8601, such as 2020-01-31 or 2020-01-31T12:30" if form is None else f"of the format {form}"
        return _of_text(column, missing, lambda text: _parsed_dates(text, form), f"is not a date {how}")
    if not (pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)):
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        raise WrongValueError(0, column[0].as_py(), f"is of type {column.type}, not a date")
    return _days(column)


def texts(column: Untyped, missing: Collection[str] = ()) -> tuple[Int, list[str]]:
    """Codes (b,) of the texts of a column (-1: a missing one), and the texts, without space around them.

    Whole numbers are written without a point, however they are stored, so that 1, 1.0 and "1" are one category.
    """
    if pa.types.is_dictionary(column.type):
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        labels = [plain_text(value) for value in column.dictionary.to_pylist()]
    else:
        encoded = column.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        labels = [plain_text(value) for value in encoded.dictionary.to_pylist()]
    position: dict[str, int] = {}
    place = np.full(len(labels) + 1, -1, dtype=np.int64)  # the last one is for -1
    for code, label in enumerate(labels):
        if label not in MISSING and label not in missing:
            place[code] = position.setdefault(label, len(position))
    return place[codes], list(position)


def is_text(kind: Untyped) -> bool:
    """Whether an Arrow type is text, also as a dictionary."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value))


def plain_text(value: object) -> str:
    """A value as text without space around it; a whole number has no point, and a missing value is empty."""
    if value is None:
        return ""
    if isinstance(value, float):
        if value != value:
            return ""
        return str(int(value)) if value == int(value) and abs(value) < _WHOLE else repr(value)
    return str(value).strip(_SPACE)


def _of_text(column: Untyped, missing: Collection[str], parsed: Callable[[Sequence[str]], Float], why: str) -> Float:
    """Numbers of a column of text: each text is parsed once."""
    codes, labels = texts(column, missing)
    try:
        values = np.append(parsed(labels), np.nan)
    except (pa.ArrowInvalid, ValueError):
        # One by one, for the first row that is wrong.
        values = np.append(np.array([_or_infinity(parsed, label) for label in labels], dtype=np.float64), np.nan)
        wrong = np.flatnonzero(np.isinf(values[codes]))
        raise WrongValueError(int(wrong[0]), labels[codes[wrong[0]]], why) from None
    return np.asarray(values[codes], dtype=np.float64)


def _or_infinity(parsed: Callable[[Sequence[str]], Float], label: str) -> float:
    try:
        return float(parsed([label])[0])
    except (pa.ArrowInvalid, ValueError):
        return np.inf


def _parsed_numbers(labels: Sequence[str]) -> Float:
    found = np.array([float(label) for label in labels], dtype=np.float64)
    if any("_" in label for label in labels):  # Python's own way to write numbers
        raise ValueError
    return found


def _parsed_booleans(labels: Sequence[str]) -> Float:
    words = {word: float(word in _TRUE) for word in (*_TRUE, *_FALSE)}
    try:
        return np.array([words[label.lower()] for label in labels], dtype=np.float64)
    except KeyError:
        raise ValueError from None


def _parsed_dates(labels: Sequence[str], form: str | None) -> Float:
    text = pa.array(labels, pa.string())
    if form is not None:
        return _days(pc.strptime(text, format=form, unit="us"))
    zoned = [bool(_has_zone(label)) for label in labels]
    if not any(zoned):
        return _days(text.cast(pa.timestamp("us")))
    found = np.empty(len(labels))
    mask: Bool = np.array(zoned)
    for part, kind in ((mask, pa.timestamp("us", "UTC")), (~mask, pa.timestamp("us"))):
        if part.any():
            found[part] = _days(text.filter(pa.array(part)).cast(kind))
    return found


def _has_zone(label: str) -> bool:
    _, _, time = label.replace("T", " ").partition(" ")
    return time.endswith(("Z", "z")) or "+" in time or "-" in time


def _days(column: Untyped) -> Float:
    moments = column.cast(
        pa.timestamp("us", column.type.tz if pa.types.is_timestamp(column.type) else None), safe=False
    )
    microseconds = moments.cast(pa.int64())
    values: AnyArray = microseconds.to_numpy(zero_copy_only=False).astype(np.float64)
    return np.asarray(values / 86_400e6, dtype=np.float64)
