"""A schema from a look at the first rows of a source: what a person would say of each column.

=============================================================  =========================================================
values in the look                                             suggestion
=============================================================  =========================================================
numbers, without leading zeros; durations, in days             number
numbers, and words for no value such as "?" or "n.a.", or      number; that text is a missing value
one other text in at most a twentieth of the rows
true and false, yes and no, t and f, y and n                   boolean
dates and times, of ISO 8601 or of one format only; 20200131;  date
months, such as 2020-01, 2020/01, 01.2020 and Jan 2020
text with at most 32 different values                          category, one-hot
text with more values, each of which stands twice on average   category, target-mean where there is a target
other text                                                     left out
whole numbers or text, all different, in a column named id,    the id of the row
..._id, index, uuid, key, nr or name, in capitals or not
=============================================================  =========================================================

Missing values and unknown categories are filled and counted as none: later rows may have them where the look has not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streamkernel.errors import SourceFormatError, warn_user
from streamkernel.table.schema._column import MAX_CATEGORIES, Column
from streamkernel.table.schema.arrow_types import is_moment, is_text
from streamkernel.table.schema.fit import MOST_ONE_HOT
from streamkernel.table.schema.schema import Schema
from streamkernel.table.schema.values import all_dates, categories, dates, texts
from streamkernel.type_aliases import Int, Untyped
from streamkernel.wording import option

MOST_ROWS, MOST_BYTES = 100_000, 1 << 26
# An unambiguous date has a day above 12; those of both orders are tried, and one must fail.
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y")
_FORMATS = (
    *_DAYS,
    *(f"{day} {time}" for day in _DAYS for time in ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")),
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%Y/%m",
    "%m/%Y",
    "%m.%Y",
    "%b %Y",
    "%B %Y",
)
_COMPACT, _MONTH = "%Y%m%d", "%m.%Y"
# "paid" is none.
_ID = re.compile(r"(?i:(.*[_\W])?(id|index|uuid|key|nr|name)|row_?(number|id)?)|.*[a-z](Id|ID|Nr)", re.ASCII)
_BOOLEAN = {frozenset(pair) for pair in (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"))}
_ODD_SHARE = 0.05
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)\Z", re.IGNORECASE | re.ASCII)
_LONGEST_CATEGORY = 80
# Words that people write for no value, beside those that CSV has for it.
_NO_VALUE = {"?", "-", "--", "---", ".", "none", "nil", "(null)", "n.a.", "n/a", "n/k", "n.d.", "k.a.", "missing"}
_NO_VALUE |= {"unknown", "nan", "na", "null", "#value!", "#div/0!", "#ref!"}
# Numbers with signs of currencies, shares and thousands.
_SIGNED = re.compile(r"[(+\u2212-]?\s*[$€£¥]?\s*[+\u2212-]?\d[\d.,'’\u00a0 ]*\s*[%$€£¥]?\s*\)?")
_SIGNS = frozenset("(+\u2212$€£¥%,'’\u00a0 ")
# 1,000 may be one thousand, or 1 with three decimals.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_DATE_OF_DIGITS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])", re.ASCII)
_MONTH_OF_DIGITS = re.compile(r"(0[1-9]|1[0-2])\.(19|20)\d\d", re.ASCII)


@dataclass(frozen=True)
class _Source:
    """What holds for all columns; the fields are arguments of `suggested`."""

    place: str
    with_target: bool
    decimal: str
    separator: str | None
    whole: bool


def suggested(
    look: Untyped,
    place: str,
    *,
    targets: Sequence[str],
    id_name: str | None = None,
    decimal: str = ".",
    separator: str | None = None,
    whole: bool = False,
) -> Schema:
    """The schema that a look at the rows suggests.

    Parameters
    ----------
    look : Arrow table of the first rows, text as it stands in the source.
    place : the name of the source, for messages.
    targets : names of the targets.
    id_name : name of the column that is the id; by default the first one that looks like it. Others that look like it
        are left out.
    decimal : the decimal point of numbers in text.
    separator : the letter between fields of CSV, for the way out; None in a source of another kind.
    whole : whether the look has all rows: a column of numbers without any is left out.

    Raises
    ------
    SourceFormatError
        A column holds numbers with another decimal point.
    """
    columns = []
    source = _Source(place, bool(targets), decimal, separator, whole)
    for name in look.column_names:
        values = look.column(name).combine_chunks()
        if name in targets:
            columns.append(
                Column(
                    name, "category" if is_text(values.type) and not _numeric(values, decimal) else "number", "target"
                )
            )
        else:
            column = _column(name, values, source)
            if column.role == "id":
                id_name = name if id_name is None else id_name
                column = column if name == id_name else Column(name, "text")
            columns.append(column)
    return Schema(tuple(columns))


def _column(name: str, values: Untyped, source: _Source) -> Column:
    kind = values.type
    if source.whole and _are_missing(values):
        return Column(name, "text")
    if is_moment(kind):
        return Column(name, "date", missing="indicator")
    if pa.types.is_boolean(kind):
        return Column(name, "boolean", missing="indicator")
    categorical = pa.types.is_dictionary(kind)
    if not is_text(kind) and not categorical:
        known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_duration)
        if not any(each(kind) for each in known):
            return Column(name, "text")  # lists, maps, times of a day, nothing at all
        if pa.types.is_integer(kind) and _ID.fullmatch(name) and len(values.unique()) == len(values) > 1:
            return Column(name, "number", "id")
        return Column(name, "number", missing="indicator")
    codes, found = categories(values) if categorical else texts(values)
    labels = found.to_pylist()
    commas = [label for label in labels if "," in label]
    points = [label.replace(".", "") for label in labels]  # which separate thousands there
    # In 1,234.5 the comma separates thousands.
    decimal_commas = source.decimal == "." and not any("." in label.rpartition(",")[2] for label in commas)
    if decimal_commas and len(commas) > len(labels) / 2 and all(_is_number(label, ",") for label in points):
        # 1,000 says less than 1,5.
        told = min(commas, key=lambda label: _THOUSANDS.fullmatch(label.strip()) is not None)
        raise SourceFormatError(f"{source.place}: {told!r} in column {name!r} is {with_comma(told, source.separator)}")
    return _of_text(name, codes, labels, source, categorical=categorical)


def _are_missing(values: Untyped) -> bool:
    """Whether no row has a value. pandas reads such a column of a CSV file as NaN."""
    if pa.types.is_floating(values.type):
        return bool(np.isnan(values.to_numpy(zero_copy_only=False)).all())
    return bool(values.null_count == len(values))


def _of_text(name: str, codes: Int, labels: list[str], source: _Source, *, categorical: bool) -> Column:
    decimal, with_target = source.decimal, source.with_target
    there = codes[codes >= 0]
    if not labels or not there.size:
        return Column(name, "text")
    known = Column(name, missing="indicator")
    if not categorical:
        odd = [code for code, label in enumerate(labels) if not _is_number(label, decimal)]
        whole = all(label.lstrip("+-").isdigit() for code, label in enumerate(labels) if code not in odd)
        # Most numbers are no dates from the first one on: fifty formats are tried of the others.
        digits = not odd and len(labels) > 2 and all(map(_DATE_OF_DIGITS.fullmatch, labels))
        if digits and date_formats(pa.array(labels, pa.string())) == (_COMPACT,):
            return replace(known, kind="date", format=_COMPACT)
        # No number is written 01.2020, and 10.2020 alone may be one.
        if not odd and any(label[0] == "0" for label in labels) and all(map(_MONTH_OF_DIGITS.fullmatch, labels)):
            return replace(known, kind="date", format=_MONTH)
        if _are_no_values(name, codes, labels, odd, source.place):
            if whole and not odd and _ID.fullmatch(name) and len(labels) == there.size > 1:
                return Column(name, "number", "id")
            # 00501 is a code, not the number 501.
            if not any(label.isdigit() and label[0] == "0" and len(label) > 1 for label in labels):
                return replace(known, missing_values=tuple(labels[code] for code in odd))
        if frozenset(label.lower() for label in labels) in _BOOLEAN:
            return replace(known, kind="boolean")
        forms = date_formats(pa.array(labels, pa.string()))
        if len(forms) == 1:
            return replace(known, kind="date", format=forms[0])
        if forms:
            warn_user(f"{source.place}: {both_orders(name, labels[0], forms)}; it is not read as a date")
        elif have_signs(labels, 0.0) or (decimal == "," and all(_is_number(label, ".") for label in labels)):
            warn_user(
                f"{source.place}: column {name!r} holds numbers with other signs, such as {labels[0]!r}, and is not "
                f"read as numbers; write numbers alone, such as 1234{decimal}5"
            )
    known = replace(known, kind="category", unknown="ignore")
    if len(labels) <= MOST_ONE_HOT and (categorical or len(labels) < there.size or there.size < 3):
        # Later rows may have more: with a target, the pass over all rows decides.
        return known if with_target else replace(known, encoding="one-hot")
    short = np.mean([len(label) <= _LONGEST_CATEGORY for label in labels]) > 0.5
    if with_target and len(labels) <= min(MAX_CATEGORIES, there.size / 2) and short:
        return replace(known, encoding="target-mean")
    if _ID.fullmatch(name) and len(labels) == there.size:
        return Column(name, "text", "id")
    return Column(name, "text")


def _numeric(values: Untyped, decimal: str) -> bool:
    return all(_is_number(label, decimal) for label in texts(values)[1].to_pylist())


def _is_number(label: str, decimal: str) -> bool:
    if decimal == ",":
        label = label.replace(".", "/").replace(",", ".")  # 31.12.2020 is a date
    return _NUMBER.match(label) is not None


def _are_no_values(name: str, codes: Int, labels: list[str], odd: list[int], place: str) -> bool:
    """Whether the texts of a column that are no numbers stand for missing ones: well-known words, or a rare text."""
    words = [labels[code] for code in odd]
    if 2 * len(odd) < len(labels) and all(word.lower() in _NO_VALUE for word in words):
        return True
    there = codes[codes >= 0]
    rare = len(odd) == 1 and len(labels) > 2 and float((there == odd[0]).mean()) <= _ODD_SHARE
    if rare:
        warn_user(
            f"{place}: {words[0]!r} among the numbers of column {name!r} is taken for a missing value; where it is "
            f"none, correct it, or name the column among {option('categories')}"
        )
    return rare


def have_signs(labels: Sequence[str], share: float = 0.5) -> bool:
    """Whether texts are numbers, more than a share of them with signs that numbers have not: 5%, $3.50, 1,234."""
    signed = sum(not _SIGNS.isdisjoint(label) for label in labels)
    return signed > share * len(labels) and all(map(_SIGNED.fullmatch, labels))


def with_comma(number: str, separator: str | None) -> str:
    """What a number with a comma may be, and the way out.

    Parameters
    ----------
    separator : the letter between fields of CSV; None in a source of another kind.
    """
    if separator is None:
        return "text, a number with a comma; make numbers of such columns in the source"
    # Between fields there is then another separator, unless the user names it.
    way_out = f"give {option('decimal', ',')}" + (f" and {option('separator', ',')}" if separator == "," else "")
    if _THOUSANDS.fullmatch(number.strip()):
        return f"a number with a comma; where it separates thousands, leave it out, and where it is decimal, {way_out}"
    return f"a number with a decimal comma; {way_out}"


def date_formats(labels: Untyped) -> tuple[str | None, ...]:
    """The formats of texts (Arrow) that are dates, None for ISO 8601; several where these read them as other days."""
    if all_dates(labels, None):
        return (None,)
    fitting = [form for form in _FORMATS if all_dates(labels, form)]
    found: list[str] = []
    for form in fitting:
        days = dates(labels, form)
        if not any(np.array_equal(days, dates(labels, other)) for other in found):
            found.append(form)
    if not found and len(labels) and all(map(_DATE_OF_DIGITS.fullmatch, labels.to_pylist())):
        return (_COMPACT,) if all_dates(labels, _COMPACT) else ()
    return tuple(found)


def both_orders(name: str, label: str, forms: Sequence[str | None]) -> str:
    """A message: nothing shows the order of day and month, and what to do."""
    return (
        f"column {name!r} holds dates such as {label!r}, which {' and '.join(map(str, forms))} both read; give its "
        "format in the schema"
    )
