"""Values of Arrow's columns by the kind that a schema says: numbers with NaN for what is missing, or codes of texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import ConvertOptions

from streamkernel.table.schema.arrow_types import is_moment, is_numeric, is_text, words_of_type
from streamkernel.type_aliases import AnyArray, Bool, Float, Int, Untyped

# Texts that are no value, in any column; pyarrow takes them for missing numbers of CSV, too.
MISSING = frozenset(ConvertOptions().null_values)
_TRUE, _FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
_WHOLE = 2.0**53
_SPACE = " \t\r\n"
# Days since 1970 of the first day of year 1, and of that of year 10000.
_FIRST_DAY, _END = -719_162.0, 2_932_897.0
_YEAR_1000 = -354_285.0
_PER_DAY = {"s": 86_400.0, "ms": 86_400e3, "us": 86_400e6, "ns": 86_400e9}
_LOOK = 100
_UUID = re.compile(r"\{?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\}?", re.ASCII | re.IGNORECASE)


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


def numbers(column: Untyped, missing: Collection[str] = (), decimal: str = ".") -> Float:
    """Numbers (b,), with NaN for a missing one; of durations, days; of text, with this decimal point.

    Raises
    ------
    WrongValueError
        A value is not a number.
    """
    column = _decoded(column)
    if is_text(column.type):
        return _of_text(column, missing, lambda labels: _parsed_numbers(labels, decimal), "is not a number")
    if pa.types.is_duration(column.type):
        return _days(column)
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        if not (is_numeric(column.type) or pa.types.is_null(column.type)):
            raise _wrong_type(column, "a number")
        column = column.cast(pa.float64())
    values = np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.float64, copy=False)
    marks = [float(mark) for mark in missing if is_number(mark)]
    return np.where(np.isin(values, marks), np.nan, values) if marks else values


def is_number(text: str) -> bool:
    """Whether a text is a number in the way of programs, such as -999 or 1e5."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python's own way to write numbers


def is_identifier(text: object) -> bool:
    """Whether a text is a UUID, which tells a row and is neither a number nor a category."""
    return isinstance(text, str) and _UUID.fullmatch(text.strip()) is not None


def booleans(column: Untyped, missing: Collection[str] = ()) -> Float:
    """1 for true, 0 for false, NaN for a missing value (b,).

    Raises
    ------
    WrongValueError
        A value is neither.
    """
    column = _decoded(column)
    if is_text(column.type):
        return _of_text(column, missing, _parsed_booleans, "is neither true nor false (yes/no, t/f, y/n, 1/0)")
    values = numbers(column, missing)
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
        A value is not a date of the years 1 to 9999.
    """
    column = _decoded(column)
    if is_text(column.type):
        how = "of ISO 8601, such as 2020-01-31 or 2020-01-31T12:30" if form is None else f"of the format {form}"
        return _of_text(column, missing, lambda text: _parsed_dates(text, form), f"is not a date {how}")
    if not is_moment(column.type):
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        raise _wrong_type(column, "a date")
    days = _days(column)
    wrong = np.flatnonzero(_no_year(days))
    if wrong.size:
        row = int(wrong[0])
        raise WrongValueError(row, f"{days[row]:.9g} days from 1970", "lies outside of the years 1 to 9999")
    return days


def texts(column: Untyped, missing: Collection[str] = ()) -> tuple[Int, Untyped]:
    """Codes (b,) of the texts of a column (-1: a missing one), and the texts (Arrow), without space around them."""
    codes, labels = _encoded(column)
    return _merged(codes, pc.utf8_trim(labels, _SPACE), missing)


def categories(column: Untyped, missing: Collection[str] = ()) -> tuple[Int, Untyped]:
    """Codes (b,) of the categories of a column (-1: a missing one), and their texts (Arrow), each once.

    A value has one text, however it is stored: see `canonical`.

    Raises
    ------
    WrongValueError
        The column holds lists, records or other values without a text.
    """
    codes, labels = _encoded(column)
    return _merged(codes, canonical(labels), {*missing, *canonical(pa.array([*missing], pa.string())).to_pylist()})


def canonical(labels: Untyped) -> Untyped:
    """Texts (Arrow) of categories in one form.

    There is no space around them, letters with accents are composed (NFC), whole numbers have no point (1.0 is 1), and
    truth values are true and false.
    """
    labels = _composed(pc.utf8_trim(labels, _SPACE))
    labels = pc.replace_substring_regex(labels, pattern=r"^(-?[0-9]{1,15})\.0$", replacement=r"\1")
    low = pc.ascii_lower(labels)
    return pc.if_else(pc.is_in(low, value_set=pa.array(["true", "false"])), low, labels)


def _composed(labels: Untyped) -> Untyped:
    """Text with composed accents (NFC). Python does it: `utf8_normalize` of old versions of Arrow always decomposes."""
    if pc.all(pc.string_is_ascii(labels), min_count=0).as_py():
        return labels
    return pa.array([each and unicodedata.normalize("NFC", each) for each in labels.to_pylist()], labels.type)


def all_dates(labels: Untyped, form: str | None) -> bool:
    """Whether texts (Arrow) are dates, of ISO 8601 or of a format."""
    try:
        for few in (labels.slice(0, _LOOK), labels):  # most texts are no dates from the first ones on
            _parsed_dates(few, form)
    except (pa.ArrowInvalid, ValueError):
        return False
    return True


def _decoded(column: Untyped) -> Untyped:
    """The column without a dictionary of numbers or dates, and without runs."""
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if pa.types.is_dictionary(column.type) and not is_text(column.type):
        column = column.dictionary_decode()
    return column


def _wrong_type(column: Untyped, wanted: str) -> WrongValueError:
    return WrongValueError(0, str(column[0]), f"is not {wanted}: the column holds {words_of_type(column.type)}")


def _encoded(column: Untyped) -> tuple[Int, Untyped]:
    """Codes (b,) of the values of a column (-1: a missing one), and the texts (Arrow) of the values."""
    column = _decoded(column)
    if pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column):
        column = column.dictionary_decode()  # a few rows do not cost a whole dictionary
    if not pa.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except pa.ArrowNotImplementedError:
            raise _wrong_type(column, "a category") from None
    values = column.dictionary
    try:
        labels = _as_text(values)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise _wrong_type(values, "a category") from None
    return dictionary_codes(column), labels


def dictionary_codes(column: Untyped) -> Int:
    """Positions (b,) of the values of a dictionary's column; -1 for a missing one."""
    # polars has unsigned ones, which hold no -1.
    codes: Int = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return codes


def _as_text(values: Untyped) -> Untyped:
    kind = values.type
    text = values.cast(pa.string())
    if pa.types.is_floating(kind):
        found = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        whole: Bool = (np.floor(found) == found) & (np.abs(found) < _WHOLE)
        return pc.if_else(
            pa.array(whole), pa.array(np.where(whole, found, 0.0).astype(np.int64)).cast(pa.string()), text
        )
    if pa.types.is_decimal(kind):
        return pc.replace_substring_regex(text, pattern=r"\.0+$|(\.[0-9]*[1-9])0+$", replacement=r"\1")
    if pa.types.is_timestamp(kind):
        return pc.replace_substring_regex(text, pattern=r"\.0+([+Z-].*)?$", replacement=r"\1")
    return text


def _merged(codes: Int, labels: Untyped, missing: Collection[str]) -> tuple[Int, Untyped]:
    """Codes of the different ones of the texts that rows have; -1 for those that are missing."""
    merged = labels.dictionary_encode()
    gaps = pc.is_in(merged.dictionary, value_set=pa.array([*{*MISSING, *missing}], pa.string()))
    codes = np.append(dictionary_codes(merged), -1)[codes]
    kept: Bool = np.append(~gaps.to_numpy(zero_copy_only=False), False)
    used = np.zeros_like(kept)
    used[codes] = True  # a dictionary may have texts that no row has
    kept &= used
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    return place[codes], merged.dictionary.filter(pa.array(kept[:-1]))


def _of_text(column: Untyped, missing: Collection[str], parsed: Callable[[Untyped], Float], why: str) -> Float:
    """Numbers of a column of text: each text is parsed once."""
    codes, labels = texts(column, missing)
    try:
        values = np.append(parsed(labels), np.nan)
    except (pa.ArrowInvalid, ValueError):
        row = _first_wrong(codes, labels, parsed)
        raise WrongValueError(row, labels[int(codes[row])].as_py(), why) from None
    return np.asarray(values[codes], dtype=np.float64)


def _first_wrong(codes: Int, labels: Untyped, parsed: Callable[[Untyped], Float]) -> int:
    """The first row whose text cannot be parsed, where there is one, by halving."""
    used, rows = np.unique(codes, return_index=True)
    rows = np.sort(rows[used >= 0])
    labels = labels.take(pa.array(codes[rows]))
    right, wrong = 0, len(rows)
    while wrong - right > 1:
        middle = (right + wrong) // 2
        try:
            parsed(labels.slice(right, middle - right))
            right = middle
        except (pa.ArrowInvalid, ValueError):
            wrong = middle
    return int(rows[right])


def _parsed_numbers(labels: Untyped, decimal: str = ".") -> Float:
    if decimal == ",":
        if pc.any(pc.match_substring(labels, ".")).as_py():
            raise ValueError
        labels = pc.replace_substring(labels, ",", ".")
    with suppress(pa.ArrowInvalid):
        return np.asarray(labels.cast(pa.float64()).to_numpy(zero_copy_only=False))
    found = labels.to_pylist()
    if not all(map(is_number, found)):
        raise ValueError
    return np.array([float(label) for label in found], dtype=np.float64)


def _parsed_booleans(labels: Untyped) -> Float:
    words = {word: float(word in _TRUE) for word in (*_TRUE, *_FALSE)}
    try:
        return np.array([words[label.lower()] for label in labels.to_pylist()], dtype=np.float64)
    except KeyError:
        raise ValueError from None


def _parsed_dates(labels: Untyped, form: str | None) -> Float:
    days = _iso_dates(labels) if form is None else _dates_of_format(labels, form)
    if _no_year(days).any():
        raise ValueError
    return days


def _iso_dates(labels: Untyped) -> Float:
    # pandas writes nanoseconds; a day is read to microseconds.
    text = pc.replace_substring_regex(labels, pattern=r"(\.[0-9]{6})[0-9]{1,3}", replacement=r"\1")
    # Databases and programs write a zone after a space, or that of Greenwich by its name.
    text = pc.replace_substring_regex(text, pattern=r"(:[0-9.]+) ?(UTC|GMT)$", replacement=r"\1Z")
    text = pc.replace_substring_regex(text, pattern=r"(:[0-9.]+) ([+-][0-9]{2}(:?[0-9]{2})?)$", replacement=r"\1\2")
    # A month is its first day.
    text = pc.replace_substring_regex(text, pattern=r"^([0-9]{4}-[0-9]{2})$", replacement=r"\1-01")
    zoned = pc.match_substring_regex(text, r"[T ].*([Zz]|[+-][0-9:]+)$")
    mask: Bool = zoned.to_numpy(zero_copy_only=False)
    found = np.empty(len(text))
    for part, kind in ((mask, pa.timestamp("us", "UTC")), (~mask, pa.timestamp("us"))):
        if part.any():
            found[part] = _days(text.filter(pa.array(part)).cast(kind))
    return found


def _dates_of_format(labels: Untyped, form: str) -> Float:
    if "%f" in form:  # which Arrow has not
        return np.array([_days_by_python(label, form) for label in labels.to_pylist()], dtype=np.float64)
    moments = pc.strptime(labels, format=form, unit="us")
    days = _days(moments)
    if "%Y" in form and (days < _YEAR_1000).any():
        raise ValueError  # Arrow reads 21 as the year 21
    # Arrow reads the 31st of February as the second of March: a first day of a month is read again, where Python has
    # the format.
    doubtful = np.flatnonzero(pc.day(moments).to_numpy(zero_copy_only=False) <= 3)
    if doubtful.size and _is_of_python(form):
        for label in labels.take(pa.array(doubtful)).to_pylist():
            datetime.strptime(label, form)
    return days


def _is_of_python(form: str) -> bool:
    sample = datetime(2020, 10, 25, 13, 14, 15)
    try:
        datetime.strptime(sample.strftime(form), form)
    except (ValueError, re.error):
        return False
    return True


def _days_by_python(label: str, form: str) -> float:
    return days_since_1970(datetime.strptime(label, form))


def days_since_1970(moment: datetime) -> float:
    """Days from 1970-01-01 to a moment, which is of UTC where it has no time zone."""
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86_400.0


def _no_year(days: Float) -> Bool:
    """Where dates lie outside of the years 1 to 9999."""
    return np.asarray((days < _FIRST_DAY) | (days >= _END))


def _days(column: Untyped) -> Float:
    kind = column.type
    if pa.types.is_date32(kind):
        per_day, stored = 1.0, column.cast(pa.int32())
    else:
        per_day, stored = _PER_DAY["ms" if pa.types.is_date64(kind) else kind.unit], column.cast(pa.int64())
    values: AnyArray = stored.to_numpy(zero_copy_only=False).astype(np.float64)
    return np.asarray(values / per_day, dtype=np.float64)
