"""A schema from a look at the first rows of a source: what a person would say of each column.

=============================================================  =========================================================
values in the look                                             suggestion
=============================================================  =========================================================
numbers, without leading zeros; durations, in days             number
numbers, and one other text in at most a twentieth of the      number; that text is a missing value
rows, such as "?"
true and false, yes and no, t and f, y and n                   boolean
dates and times, of ISO 8601 or of one format only             date
text with at most 32 different values                          category, one-hot
text with more values, each of which stands twice on average   category, target-mean where there is a target
other text                                                     left out
whole numbers or text, all different, in a column named id,    the id of the row
..._id, index, uuid, key or name
=============================================================  =========================================================

Missing values and unknown categories are filled and counted as none: later rows may have them where the look has not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamkernel.errors import SourceFormatError
from streamkernel.table.schema._column import MAX_CATEGORIES, Column
from streamkernel.table.schema.fit import MOST_ONE_HOT
from streamkernel.table.schema.schema import Schema
from streamkernel.table.schema.values import all_dates, categories, is_text, texts
from streamkernel.type_aliases import Int, Untyped
from streamkernel.wording import option

MOST_ROWS, MOST_BYTES = 100_000, 1 << 26
# An unambiguous date has a day above 12; those of both orders are tried, and one must fail.
_FORMATS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M")
_ID = re.compile(r"(.*[_\W])?(id|index|uuid|key|name)|.*[a-z](Id|ID)|row_?(number|id)?", re.ASCII)
_BOOLEAN = {frozenset(pair) for pair in (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"))}
_ODD_SHARE = 0.05
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)\Z", re.IGNORECASE | re.ASCII)
_LONGEST_CATEGORY = 80


def suggested(look: Untyped, *, targets: Sequence[str], decimal: str = ".") -> Schema:
    """The schema that a look at the rows suggests.

    Parameters
    ----------
    look : Arrow table of the first rows, text as it stands in the source.
    targets : names of the targets.
    decimal : the decimal point of numbers in text.

    Raises
    ------
    SourceFormatError
        A column holds numbers with another decimal point.
    """
    columns = []
    for name in look.column_names:
        values = look.column(name).combine_chunks()
        if name in targets:
            columns.append(
                Column(
                    name, "category" if is_text(values.type) and not _numeric(values, decimal) else "number", "target"
                )
            )
        else:
            columns.append(_column(name, values, bool(targets), decimal))
    return Schema(tuple(columns))


def _column(name: str, values: Untyped, with_target: bool, decimal: str) -> Column:
    kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
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
    if decimal == "." and len(commas) > len(labels) / 2 and all(_is_number(label, ",") for label in labels):
        raise SourceFormatError(
            f"column {name!r} holds numbers with a comma, such as {commas[0]!r}; give {option('decimal', ',')} where "
            "it is the decimal point, and write numbers without separators of thousands"
        )
    return _of_text(name, codes, labels, with_target, decimal, categorical=categorical)


def _of_text(name: str, codes: Int, labels: list[str], with_target: bool, decimal: str, *, categorical: bool) -> Column:
    there = codes[codes >= 0]
    if not labels or not there.size:
        return Column(name, "text")
    known = Column(name, missing="indicator")
    if not categorical:
        odd = [code for code, label in enumerate(labels) if not _is_number(label, decimal)]
        if not odd or (len(odd) == 1 and len(labels) > 2 and (there == odd[0]).mean() <= _ODD_SHARE):
            whole = all(label.lstrip("+-").isdigit() for code, label in enumerate(labels) if code not in odd)
            if whole and not odd and _ID.fullmatch(name) and len(labels) == there.size > 1:
                return Column(name, "number", "id")
            # 00501 is a code, not the number 501.
            if not any(label.isdigit() and label[0] == "0" and len(label) > 1 for label in labels):
                return replace(known, missing_values=tuple(labels[code] for code in odd))
        if frozenset(label.lower() for label in labels) in _BOOLEAN:
            return replace(known, kind="boolean")
        found, form = date_format(pa.array(labels, pa.string()))
        if found:
            return replace(known, kind="date", format=form)
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
        label = label.replace(".", "").replace(",", ".")
    return _NUMBER.match(label) is not None


def date_format(labels: Untyped) -> tuple[bool, str | None]:
    """Whether texts (Arrow) are dates, and their format (None for ISO 8601)."""
    if all_dates(labels, None):
        return True, None
    fitting = [form for form in _FORMATS if all_dates(labels, form)]
    return (True, fitting[0]) if len(fitting) == 1 else (False, None)
