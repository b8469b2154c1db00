"""Rows as JSON, ``{"row": [...]}`` or ``{"rows": [[...], ...]}``, and the answer to a single row.

A row is a list of numbers, in the model's order of columns or in that of ``"columns": [names]`` in the body, or an
object of numbers by name. Rows for a model that was fitted to a table as it came, with categories, dates and gaps, may
also be objects of the table's own values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.atomic import RepeatedNameError, parsed_json
from streamkernel.errors import ShapeError
from streamkernel.service.http_errors import Refused, described
from streamkernel.service.loaded_model import Field
from streamkernel.service.raw_rows import RawRows
from streamkernel.service.settings import Limits
from streamkernel.table import KnownColumns
from streamkernel.type_aliases import Fields, Float, Unchecked

_NUMBERS = frozenset({int, float})


@dataclass(frozen=True)
class JsonRows:
    """X (m, p) float64, finite; `single` if the body has one row, not a list of rows."""

    X: Float
    single: bool


def json_of(body: bytes) -> Unchecked:
    """The value of a body.

    Raises
    ------
    Refused
        The body is no JSON, or has a name twice.
    """
    try:
        return parsed_json(body)
    except json.JSONDecodeError as error:
        raise Refused(400, f"the body is not JSON at character {error.pos}: {error.msg}") from None
    except UnicodeDecodeError:
        raise Refused(400, "the body is not JSON: it is not UTF-8") from None
    except RecursionError:
        raise Refused(400, "the body cannot be read: its JSON is nested too deeply") from None
    except RepeatedNameError as error:
        raise Refused(400, f"the body is ambiguous: {error}") from None
    except ValueError:
        raise Refused(400, "the body cannot be read: a number in its JSON has too many digits") from None


def parse(body: bytes, columns: Sequence[str], limits: Limits, raw: RawRows | None = None) -> JsonRows:
    """The rows of a body, in the order of the model's columns.

    Parameters
    ----------
    raw : the reader of rows as the table of the fit had them; None for a model of numbers.

    Raises
    ------
    Refused
        The body is not as above; the message names row and column.
    """
    value = json_of(body)
    rows, single = rows_of(value)
    check_number(len(rows), len(columns), limits)
    if raw is not None and type(rows[0]) is dict and raw.takes(rows[0].keys()):
        return JsonRows(raw.encoded(rows), single)
    given = value.get("columns", columns)
    return JsonRows(_matrix(rows, columns, given, _order(given, columns)), single)


def rows_of(value: Unchecked) -> tuple[list[Any], bool]:
    """The rows in a body, unchecked, at least one; and whether it is one row, not a list of rows.

    Raises
    ------
    Refused
        The body holds neither.
    """
    kinds = value.keys() - {"columns"} if isinstance(value, dict) else set()
    if len(kinds) != 1 or not kinds <= {"row", "rows"}:
        raise Refused(422, 'the body must be {"row": [numbers]} or {"rows": [[numbers], ...]}', "ShapeError")
    if "row" in value:
        return [value["row"]], True
    rows = value["rows"]
    if not isinstance(rows, list):
        raise Refused(422, '"rows" must be a list of rows', "ShapeError")
    if not rows:
        raise Refused(422, '"rows" is empty; give at least one row', "EmptyDataError")
    return rows, False


def check_number(rows: int, columns: int, limits: Limits) -> None:
    """Refuse more rows, or numbers in them, than are taken at a time."""
    if rows > limits.rows or rows * columns > limits.elements:
        raise Refused(413, f"{rows:,} rows exceed the limits; send fewer at a time")


def _order(given: Unchecked, columns: Sequence[str]) -> list[int] | None:
    """The positions of the model's columns among those that the body names; None if they are in the model's order."""
    if given is columns:
        return None
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise Refused(422, '"columns" must be a list of names', "ShapeError")
    return _positions(given, columns, "the body")


def _positions(given: Sequence[str], columns: Sequence[str], what: str) -> list[int] | None:
    known = KnownColumns(tuple(columns), True, "the model has", "give each of the model's columns", what)
    try:
        order = known.order_in(given, named=True)
    except ShapeError as error:
        raise Refused(422, str(error), "ShapeError") from None
    return None if order is None else list(order)


def _matrix(rows: list[Any], columns: Sequence[str], given: Sequence[str], order: list[int] | None) -> Float:
    """The rows as an array (m, p), with the model's `columns` in order.

    Rows that are lists have the columns `given`; rows that are objects have names.
    """
    width = len(columns)
    if any(type(row) is dict for row in rows):
        # Turn all rows into lists in the model's order; rows that are lists already have the order of `given`.
        rows = [
            _values_of(i, row, columns) if type(row) is dict else _reordered(row, order, width)
            for i, row in enumerate(rows)
        ]
        given, order = columns, None
    for i, row in enumerate(rows):
        if type(row) is not list or len(row) != width or not _NUMBERS.issuperset(map(type, row)):
            raise _wrong(i, row, given)
    try:
        X = np.array(rows, dtype=np.float64)
    except OverflowError:
        X = np.array([[_clipped(value) for value in row] for row in rows])
    if order is not None:
        X = np.ascontiguousarray(X[:, order])
    if not np.isfinite(X.sum()):
        bad = np.argwhere(~np.isfinite(X))
        if len(bad):
            i, j = bad[0]
            kind = "NaN" if np.isnan(X[i, j]) else "infinite, or beyond float64"
            message = f"row {i}, column {columns[j]!r} is {kind}; leave that row out, or fill it in"
            raise Refused(422, message, "NonFiniteDataError")
    return X


def _values_of(i: int, row: Fields, columns: Sequence[str]) -> list[Any]:
    if len(row) != len(columns) or any(name not in row for name in columns):
        _positions(list(row), columns, f"row {i}")
    return [row[name] for name in columns]


def _reordered(row: Unchecked, order: list[int] | None, width: int) -> Unchecked:
    """A row in the model's order. A wrong row is returned unchanged, for the check that follows."""
    return row if order is None or type(row) is not list or len(row) != width else [row[j] for j in order]


def _clipped(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _wrong(i: int, row: Unchecked, columns: Sequence[str]) -> Refused:
    if type(row) is not list:
        return Refused(422, f"row {i} is {described(row)}, not a list of {len(columns)} numbers", "ShapeError")
    if len(row) != len(columns):
        names = ", ".join(columns[:5]) + (", ..." if len(columns) > 5 else "")
        return Refused(422, f"row {i} has {len(row)} values; the model takes {len(columns)} ({names})", "ShapeError")
    j = next(j for j, value in enumerate(row) if type(value) not in _NUMBERS)
    kind = "NonFiniteDataError" if row[j] is None else "DTypeError"
    return Refused(422, f"row {i}, column {columns[j]!r} is {described(row[j])}, not a number", kind)


def one_answer(fields: Sequence[Field], classes: Sequence[Any] | None, values: Fields) -> bytes:
    """The answer for one row, whose outputs are numbers or lists."""
    answer: Fields = {}
    for field in fields:
        value = values[field.output]
        answer[field.name] = value if field.labels is None else field.labels[value]
    if classes is not None and "probabilities" in answer:
        answer["classes"] = list(classes)
    return json.dumps(answer).encode()
