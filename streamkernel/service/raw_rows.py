"""Rows as the table of the fit had them: categories, dates and gaps, which the model's schema makes numbers."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from streamkernel.service.http_errors import Refused, described
from streamkernel.table.schema import Column, Schema
from streamkernel.table.schema.encoder import Encoder
from streamkernel.type_aliases import AnyArray, Fields, Float, Untyped

_VALUES = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class RawRows:
    """The reader of rows that are objects of values by the names of the source.

    Parameters
    ----------
    schema : complete schema of the model, without targets and row weights.
    """

    schema: Schema

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that are used."""
        return tuple(column.name for column in self.schema.columns if column.is_feature)

    def takes(self, names: Set[str]) -> bool:
        """Whether a row of these names is of the source, and not of features."""
        return not self._features <= names

    @cached_property
    def _features(self) -> frozenset[str]:
        return frozenset(self.schema.features)

    @cached_property
    def _encoder(self) -> Encoder:
        # Made once: it looks through all categories.
        return Encoder(self.schema, lambda row: f"row {row}")

    def encoded(self, rows: Sequence[Any]) -> Float:
        """Features (m, p) of rows that are objects; values of other names are left alone.

        Raises
        ------
        Refused
            A row is no object, or a column is missing in it or holds a list or an object.
        DataError
            A value is none of its column's kind, or is missing and must not be; the error names row and column.
        """
        for i, row in enumerate(rows):
            if type(row) is not dict:
                raise Refused(422, f"row {i} is no object of values by name, as the other rows are", "ShapeError")
        columns = [self._column(column, rows) for column in self.schema.columns if column.is_feature]
        batch = pa.RecordBatch.from_arrays(columns, names=list(self.names))
        return self._encoder.rows(batch, 0)

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse columns of a batch that lack one of those that are used.

        Raises
        ------
        Refused
            With the name of the first one.
        """
        missing = [name for name in self.names if name not in names]
        if missing:
            raise Refused(
                422,
                f"column {missing[0]!r} is missing ({len(missing)} in all); give the columns of the table of the fit, "
                "or its features",
                "ShapeError",
            )

    def fill(self, batch: Untyped, start: int, into: AnyArray) -> None:
        """Write the features (b, p) of a record batch, whose first row is row `start`, into an array.

        Raises
        ------
        DataError
            As of `encoded`.
        """
        into[:] = self._encoder.rows(batch, start)

    def _column(self, column: Column, rows: Sequence[Fields]) -> Any:
        values = []
        for i, row in enumerate(rows):
            if column.name not in row:
                gap = "" if column.missing == "refuse" else ", or null"
                raise Refused(422, f"row {i} has no column {column.name!r}; give its value{gap}", "ShapeError")
            value = row[column.name]
            if not isinstance(value, _VALUES):
                raise Refused(422, f"row {i}, column {column.name!r} is {described(value)}, not a value", "DTypeError")
            values.append(value)
        try:
            return _array(values, column.kind)
        except UnicodeEncodeError as error:
            raise Refused(
                422,
                f"row {values.index(error.object)}, column {column.name!r} holds half of a surrogate pair, which is no "
                "text",
                "DTypeError",
            ) from None


def _array(values: list[Any], kind: str) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        # Values of several types: each is what its text is, and true among numbers is 1, as it is alone.
        if kind == "number":
            values = [int(value) if isinstance(value, bool) else value for value in values]
        return pa.array([None if value is None else str(value) for value in values], pa.string())
