"""Rows for a model of sparse rows: JSON objects of the values that are not 0, or libsvm text.

What is not named is 0. Rows are held as CSR, so that a full row among many takes the memory of its own entries.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy  # its parts are loaded when they are used

from streamkernel.service.formats.json_rows import check_number, json_of, rows_of
from streamkernel.service.http_errors import Refused, described
from streamkernel.service.settings import Limits
from streamkernel.type_aliases import Fields, Unchecked, Untyped

_SHOWN = 40  # characters of a wrong token


@dataclass(frozen=True)
class SparseRows:
    """X (m, p), a CSR array of SciPy; `single` if the body has one row, not a list of rows."""

    X: Untyped
    single: bool = False


@dataclass
class _Entries:
    """Rows under construction, one after the other."""

    columns: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    ends: array[int] = field(default_factory=lambda: array("q", [0]))

    def add(self, column: int, value: float) -> None:
        if value:
            self.columns.append(column)
            self.values.append(value)

    def end_row(self) -> None:
        self.ends.append(len(self.columns))

    def csr(self, p: int) -> Untyped:
        """The rows (m, p); the order of a row's entries is any."""
        parts = (np.frombuffer(self.values), np.frombuffer(self.columns, np.int64), np.frombuffer(self.ends, np.int64))
        rows = scipy.sparse.csr_array(parts if len(self.values) else (np.zeros(0), np.zeros(0, np.int64), parts[2]),
                                      shape=(len(self.ends) - 1, p))  # fmt: skip
        rows.sort_indices()
        return rows


def sparse_json(body: bytes, positions: Mapping[str, int], limits: Limits) -> SparseRows:
    """The rows of a JSON body, each an object of numbers by the names of columns, or a list of a number for each.

    Parameters
    ----------
    positions : of the model's columns, by name.

    Raises
    ------
    Refused
        The body is not so; the message names row and column.
    """
    value = json_of(body)
    rows, single = rows_of(value)
    check_number(len(rows), 1, limits)
    if "columns" in value:
        message = 'the model has sparse rows, for which there is no "columns"; give rows that are objects, with names'
        raise Refused(422, message, "ShapeError")
    found = _Entries()
    for i, row in enumerate(rows):
        if type(row) is dict:
            _add_object(found, i, row, positions)
        else:
            _add_list(found, i, row, positions)
        found.end_row()
    return SparseRows(found.csr(len(positions)), single)


def _add_object(found: _Entries, i: int, row: Fields, positions: Mapping[str, int]) -> None:
    for name, value in row.items():
        column = positions.get(name)
        if column is None:
            message = f"row {i} has a column {name[:_SHOWN]!r}, which is none of the {len(positions)} of the model"
            raise Refused(422, message, "ShapeError")
        found.add(column, _number(i, name, value))


def _add_list(found: _Entries, i: int, row: Unchecked, positions: Mapping[str, int]) -> None:
    p = len(positions)
    if type(row) is not list or len(row) != p:
        what = f"a list of {len(row)} values" if type(row) is list else described(row)
        message = f"row {i} is {what}; give an object of the values that are not 0, or a list of all {p}"
        raise Refused(422, message, "ShapeError")
    for name, value in zip(positions, row, strict=True):
        if value or type(value) is not int:
            found.add(positions[name], _number(i, name, value))


def _number(i: int, name: str, value: Unchecked) -> float:
    """A finite number of float64.

    Raises
    ------
    Refused
        It is none.
    """
    if type(value) not in (int, float):
        kind = "NonFiniteDataError" if value is None else "DTypeError"
        raise Refused(422, f"row {i}, column {name!r} is {described(value)}, not a number", kind)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        what = "NaN" if math.isnan(number) else "infinite, or beyond float64"
        raise Refused(
            422, f"row {i}, column {name!r} is {what}; leave that row out, or fill it in", "NonFiniteDataError"
        )
    return number


def libsvm_rows(body: bytes, p: int, limits: Limits) -> SparseRows:
    """The rows of libsvm text: a line ``label index:value ...`` each, of which the label may be left out.

    Index 1 is the first column of the model, whatever the rows have. A line with a label alone is a row of zeros; empty
    lines, comments and `qid` are skipped.

    Parameters
    ----------
    p : number of the model's columns.

    Raises
    ------
    Refused
        A line is not so, or an index is of no column; the message names the line.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(400, "the body is not libsvm text: it is not UTF-8") from None
    found = _Entries()
    for number, line in enumerate(text.split("\n"), 1):
        tokens = line.partition("#")[0].split()
        if not tokens:
            continue
        before = 0
        for token in tokens if ":" in tokens[0] else tokens[1:]:
            if not token.startswith("qid:"):
                before = _add_token(found, number, token, before, p)
        found.end_row()
        check_number(len(found.ends) - 1, 1, limits)
    if len(found.ends) == 1:
        raise Refused(422, "the body has no rows; give at least one line `label index:value ...`", "EmptyDataError")
    return SparseRows(found.csr(p))


def _add_token(found: _Entries, line: int, token: str, before: int, p: int) -> int:
    """Add an ``index:value``, and return its index, which is above the one before."""
    index, _, text = token.partition(":")
    try:
        # int() and float() also take underscores and digits of other scripts.
        if not (token.isascii() and index.isdigit() and "_" not in text):
            raise ValueError
        column, value = int(index), float(text)
    except ValueError:
        message = f"the body is not libsvm text: line {line} has {token[:_SHOWN]!r}, not index:value"
        raise Refused(400, message) from None
    if not before < column <= p:
        range_of = f"columns are 1 to {p}" if not 1 <= column <= p else f"indices rise, and {before} is before it"
        raise Refused(422, f"line {line} has index {index[:_SHOWN]}: {range_of}", "ShapeError")
    if not math.isfinite(value):
        raise Refused(422, f"line {line}, index {column} is {text[:_SHOWN]}; leave that row out", "NonFiniteDataError")
    found.add(column - 1, value)
    return column
