"""Rows of a source into the numbers of a complete schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamkernel.errors import DataError, NonFiniteDataError, SourceFormatError
from streamkernel.table.schema._column import Column
from streamkernel.table.schema.schema import Schema
from streamkernel.table.schema.values import (
    WrongValueError,
    booleans,
    canonical,
    categories,
    dates,
    days_since_1970,
    is_identifier,
    numbers,
)
from streamkernel.type_aliases import Bool, Float, Int, Untyped
from streamkernel.wording import option

# What a message calls a place: a row of the source as "file:line".
Where = Callable[[int], str]
_OTHER_KIND = "or give the column another kind or format in the schema"


@dataclass
class UnknownCategories:
    """Categories of a column that the fit has not seen, in the rows so far.

    Attributes
    ----------
    rows, first, place
        Number of rows; the first category, and its place.
    """

    rows: int
    first: str
    place: str


class Encoder:
    """The features of rows.

    Parameters
    ----------
    schema
        A complete one.
    where
        The place of a row, for messages.
    of_others
        For the rows of the fit, by column of target means: the means (folds, categories + 2, outputs) of the rows of
        all other folds; the last two are that of the missing category, and that of all. See `SchemaFit`.
    fold
        Folds (b,) of rows by their numbers.
    """

    def __init__(
        self,
        schema: Schema,
        where: Where,
        of_others: Mapping[str, Float] | None = None,
        fold: Callable[[Int], Int] | None = None,
    ) -> None:
        self._schema, self._where = schema, where
        self._of_others, self._fold = of_others or {}, fold
        self.columns = [column for column in schema.columns if column.is_feature]
        self._places: dict[str, int] = {}
        position = 0
        for column in self.columns:
            self._places[column.name] = position
            position += len(column.features)
        self.width = position
        self._known = {
            column.name: canonical(pa.array(column.categories or (), pa.string()))
            for column in self.columns
            if column.kind == "category"
        }
        self.unknown: dict[str, UnknownCategories] = {}

    def rows(self, batch: Untyped, start: int) -> Float:
        """Features (b, p) of a record batch whose first row is row `start`.

        Raises
        ------
        SourceFormatError, NonFiniteDataError, DataError
            A value is none of its kind, is missing, or is an unknown category; the error names its place.
        """
        X = np.zeros((batch.num_rows, self.width))
        for column in self.columns:
            first = self._places[column.name]
            into = X[:, first : first + len(column.features)]
            values = batch.column(column.name)
            if column.kind == "category":
                self._encode_category(column, values, start, into)
            else:
                self._encode_numbers(column, values, start, into)
        return X

    def _encode_numbers(self, column: Column, values: Untyped, start: int, into: Float) -> None:
        found = read_numbers(column, values, start, self._where)
        missing = np.isnan(found)
        if missing.any():
            self._check_missing(column, missing, start)
            if column.has_indicator:
                into[missing, -1] = 1.0
        if column.kind != "date":
            if missing.any():
                found = np.where(missing, column.fill or 0.0, found)
            into[:, 0] = found / column.unit if column.kind == "number" else found
            return
        origin = days_of(column.origin)
        # A date that is missing has no place in the year: sine and cosine are 0, their mean over it.
        moments = np.where(missing, origin + (column.fill or 0.0), found)
        position = 0
        for part in column.parts or ():
            if part == "elapsed":
                into[:, position] = (moments - origin) / column.unit
                position += 1
                continue
            angle = 2.0 * np.pi * _PARTS[part](moments)
            into[:, position] = np.where(missing, 0.0, np.sin(angle))
            into[:, position + 1] = np.where(missing, 0.0, np.cos(angle))
            position += 2

    def _encode_category(self, column: Column, values: Untyped, start: int, into: Float) -> None:
        found, labels = read_categories(column, values, start, self._where)
        missing = found < 0
        if missing.any():
            self._check_missing(column, missing, start)
        codes = np.append(codes_of(labels, self._known[column.name]), -1)[found]
        unknown = (codes < 0) & ~missing
        if unknown.any():
            self._note_unknown(column, unknown, found, labels, start)
        rows = np.flatnonzero(codes >= 0)
        if column.encoding != "target-mean":
            into[rows, codes[rows]] = 1.0
            if column.has_indicator:
                into[missing, -1] = 1.0
            return
        into[:] = column.overall
        others = self._of_others.get(column.name)
        if others is not None and self._fold is not None:
            # No row's own target is in its feature.
            folds = self._fold(np.arange(start, start + len(codes)))
            into[:] = others[folds, np.where(missing, -2, codes)]  # an unknown one is the last one
            return
        into[rows] = np.asarray(column.means)[codes[rows]]
        if column.mean_of_gaps is not None:
            into[missing] = column.mean_of_gaps

    def _check_missing(self, column: Column, missing: Bool, start: int) -> None:
        """Refuse missing values that the schema does not fill."""
        can = column.missing != "refuse" and (column.kind == "category" or column.fill is not None)
        if can:
            return
        row = start + int(np.flatnonzero(missing)[0])
        raise NonFiniteDataError(
            f"{self._where(row)}: {column} has no value in row {row}; fill missing values by "
            f"{option('missing', 'mean')} (or median, or indicator), or remove those rows"
        )

    def _note_unknown(self, column: Column, unknown: Bool, found: Int, labels: Untyped, start: int) -> None:
        row = int(np.flatnonzero(unknown)[0])
        label, place = labels[int(found[row])].as_py(), self._where(start + row)
        if column.unknown == "refuse":
            raise DataError(
                f"{place}: {label!r} of {column} is none of its {len(column.categories or ())} categories; correct it, "
                f"or let {option('unknown', 'ignore')} count it as none of them"
            )
        note = self.unknown.setdefault(column.name, UnknownCategories(0, label, place))
        note.rows += int(unknown.sum())


def read_numbers(column: Column, values: Untyped, start: int, where: Where) -> Float:
    """Numbers of a column that is no category (b,), dates in days since 1970; NaN where one is missing.

    Raises
    ------
    SourceFormatError
        A value is none of the column's kind, or infinite.
    """
    try:
        if column.kind == "boolean":
            found = booleans(values, column.missing_values)
        elif column.kind == "date":
            found = dates(values, column.format, column.missing_values)
        else:
            found = numbers(values, column.missing_values)
        infinite = np.flatnonzero(np.isinf(found))
        if infinite.size:
            raise WrongValueError(int(infinite[0]), float(found[infinite[0]]), "is not finite")
    except WrongValueError as error:
        kinds = (
            f"name the column among {option('categories')} or {option('dates')}, or give it another kind in the schema"
        )
        other = kinds if column.kind == "number" and isinstance(error.value, str) else _OTHER_KIND
        if is_identifier(error.value):
            raise SourceFormatError(
                f"{where(start + error.row)}: {error.value!r} of {column} {error.why}, but an identifier; "
                f"{of_identifiers(column.name)}"
            ) from None
        raise SourceFormatError(
            f"{where(start + error.row)}: {error.value!r:.60} of {column} {error.why}; correct it, {other}"
        ) from None
    return found


def read_categories(column: Column, values: Untyped, start: int, where: Where) -> tuple[Int, Untyped]:
    """Codes (b,) and texts of a category, as of `categories`.

    Raises
    ------
    SourceFormatError
        The column holds values without a text.
    """
    try:
        return categories(values, column.missing_values)
    except WrongValueError as error:
        raise SourceFormatError(
            f"{where(start + error.row)}: {error.value!s:.60} of {column} {error.why}; write it as text, or leave it "
            f"out by {option('drop')}"
        ) from None


def of_identifiers(name: str) -> str:
    """What to do with a column of identifiers."""
    left_out = option("drop", [name])
    return f"name the column by {option('id', name)} if it tells which row it is, or leave it out by {left_out}"


def codes_of(labels: Untyped, known: Untyped) -> Int:
    """Positions of texts (Arrow) among known ones; -1 for others."""
    found: Int = pc.index_in(labels, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def days_of(moment: str | None) -> float:
    """Days from 1970-01-01 to a date of ISO 8601."""
    return 0.0 if moment is None else days_since_1970(datetime.fromisoformat(moment))


def _part_of_year(days: Float) -> Float:
    """Position in [0, 1) within the year, 365 or 366 days long."""
    moments = (days * 86_400e6).astype("datetime64[us]")
    years = moments.astype("datetime64[Y]")
    begin, end = years.astype("datetime64[us]"), (years + np.timedelta64(1, "Y")).astype("datetime64[us]")
    return np.asarray((moments - begin) / (end - begin), dtype=np.float64)


# 1970-01-01 was a Thursday: weeks begin on Mondays.
_PARTS: dict[str, Callable[[Float], Float]] = {
    "year": _part_of_year,
    "week": lambda days: np.mod(days + 3.0, 7.0) / 7.0,
    "day": lambda days: np.mod(days, 1.0),
}
