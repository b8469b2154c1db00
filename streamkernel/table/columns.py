"""Names of columns: the one place that compares the names of a table with those of a fit.

================================  =====================================================================================
both have names, the same set     the table's columns are put in the order of the fit
both have names, other ones       refused: the error lists the missing and the extra names
one of the two has none           columns are matched by position, if their number is equal (estimators then warn, as
                                  scikit-learn does); a table with all of the names x0, x1, ... is matched by these
                                  names, also where the fit had an array
================================  =====================================================================================

Arrays have no names. Messages call their columns ``x0, x1, ...``, and a record stores whether names are real, because a
CSV file may have a header of these names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.table.frames import refuse_query
from streamkernel.table.rows import OrderedRows
from streamkernel.table.schema import Schema
from streamkernel.table.table import Table
from streamkernel.table.targets import Targets
from streamkernel.table.values import listed
from streamkernel.type_aliases import Fields, Unchecked

NO_WEIGHTS = "none"
_SHOWN = 5
_DEFAULT = re.compile(r"x(0|[1-9][0-9]{0,17})", re.ASCII)


def default_names(width: int) -> tuple[str, ...]:
    """Names for columns without names."""
    return tuple(f"x{index}" for index in range(width))


def default_position(name: object) -> int | None:
    """Position of the column that has this default name, 3 of x3; None for another name."""
    return int(name[1:]) if isinstance(name, str) and _DEFAULT.fullmatch(name) else None


def are_real(names: Sequence[str]) -> bool:
    """Whether names are real, for a record without that field: all are, except the default names.

    An array whose column 0 is the target has the default names x1, x2, ...
    """
    numbers = [int(name[1:]) if _DEFAULT.fullmatch(name) else -1 for name in names]
    return -1 in numbers or numbers != sorted(set(numbers))


def first_repeated(names: Sequence[str]) -> int | None:
    """Position of the first name that occurs before, too; None if all differ."""
    before: set[str] = set()
    for index, name in enumerate(names):
        if name in before:
            return index
        before.add(name)
    return None


def target_position(names: Sequence[str], target: str | int, what: str) -> int:
    """Position of the column that is y; `what` says for the message what a name is one of.

    Raises
    ------
    ParameterError
        There is no such column.
    """
    if isinstance(target, int) and not isinstance(target, bool) and -len(names) <= target < len(names):
        return target % len(names)
    if target not in names:
        raise ParameterError(f"target {target!r} is not a {what}; choose one of {listed(names, 20)}")
    return names.index(str(target))


def columns_named(name: str, names: Sequence[str], schema: Fields | None = None) -> tuple[int, ...]:
    """Positions of the columns that a name stands for; none where it stands for none.

    It is the first of these that there is: the column of this name; the features of the source's column of this name,
    such as ``job=baker``, ``job=smith`` of ``job``; the columns that begin with what is before a ``*`` at its end.

    Parameters
    ----------
    names : names of columns, of the whole table or of some.
    schema : what the columns of the source were (`Table.schema`).
    """
    if name in names:
        return (list(names).index(name),)
    sources = () if schema is None else Schema.from_config(schema).columns
    features = {feature for source in sources if source.name == name for feature in source.features}
    found = tuple(position for position, each in enumerate(names) if each in features)
    if not found and name.endswith("*"):
        found = tuple(position for position, each in enumerate(names) if each.startswith(name[:-1]))
    return found


def check_distinct(names: Sequence[str], what: str) -> None:
    """Raise `ShapeError` where two names are equal."""
    again = first_repeated(names)
    if again is not None:
        raise ShapeError(f"{what} has two columns {names[again]!r}; give each column a name of its own")


def with_names(table: Table, names: Sequence[str] | None) -> Table:
    """The table with these names of its columns; unchanged for None.

    Raises
    ------
    ShapeError
        Two names are equal.
    """
    if names is None:
        return table
    check_distinct(names, "the table")
    return replace(table, columns=tuple(names), named=True)


def with_weights_of(table: Table, column: str | None) -> Table:
    """The table weighted by one of its columns; for "none" without weights, and for None as it is.

    A table that loses its weights keeps the word "none" in their place, for a model: rows of an update then have none
    either.
    """
    if column is None:
        return table
    if column != NO_WEIGHTS:
        return table.weighted_by(column)
    return table if table.weights is None else replace(table.without_weights(), weight_column=NO_WEIGHTS)


@dataclass(frozen=True)
class KnownColumns:
    """The columns of a fit, to compare with those of a table.

    Parameters
    ----------
    names : names in the order of the fit.
    named : whether the names are real.
    made : words for messages, such as "the model was fitted on".
    remedy : remedy, for messages.
    what : name of the compared input, for messages.
    weight : name of the column that was the row weights of the fit; other rows may have it or lack it.
    """

    names: tuple[str, ...]
    named: bool
    made: str
    remedy: str
    what: str = "the table"
    weight: str | None = None

    def order_in(self, found: Sequence[str], *, named: bool) -> tuple[int, ...] | None:
        """Positions of the known columns among those found; None where the order is right already, or there are no
        names.

        Raises
        ------
        ShapeError
            The names or their number differ, or a name occurs twice.
        """
        if self.weight in found and self.weight not in self.names and {*found} == {*self.names, self.weight}:
            check_distinct(found, self.what)
            return tuple(list(found).index(name) for name in self.names)
        # A table's real names x0, x1, ... also match the default names of an array.
        if not named or not (self.named or sorted(found) == sorted(self.names)):
            if len(found) != len(self.names):
                raise ShapeError(f"{self._counted(found)} ({listed(self.names, _SHOWN)}); {self.remedy}")
            return None
        check_distinct(found, self.what)
        place = {name: position for position, name in enumerate(found)}
        if place.keys() != set(self.names):
            raise ShapeError(self._different(found))
        order = tuple(place[name] for name in self.names)
        return None if order == tuple(range(len(order))) else order

    def matched(self, table: Table) -> Table:
        """A table with its columns in this order; nothing is read or copied.

        Raises
        ------
        ShapeError
            See `order_in`.
        """
        order = self.order_in(table.columns, named=table.named)
        return table if order is None else table.reordered(order)

    def matched_targets(self, targets: Targets) -> Targets:
        """The targets of a table in the known order, where their names are those of a second view."""
        if targets.rows.width == len(self.names) and set(targets.names) == set(self.names):
            order = self.order_in(targets.names, named=True) if self.named else None
            if order is not None:
                return replace(targets, rows=OrderedRows(targets.rows, order), names=self.names)
        return targets

    def _counted(self, found: Sequence[str]) -> str:
        return f"{self.what} has {len(found)} features, {self.made} {len(self.names)}"

    def _different(self, found: Sequence[str]) -> str:
        missing = [name for name in self.names if name not in set(found)]
        extra = [name for name in found if name not in set(self.names)]
        if len(found) == len(self.names):
            opening = f"{self.what} has other columns than {self.made}"
        else:
            opening = self._counted(found)
        parts = [f"{word} {_quoted(names)}" for word, names in (("missing", missing), ("extra", extra)) if names]
        return f"{opening}: {'; '.join(parts)}; {self.remedy}"


def _quoted(names: Sequence[str]) -> str:
    return listed(map(repr, names), _SHOWN) + (f" ({len(names)} in all)" if len(names) > _SHOWN else "")


def frame_names(X: Unchecked, what: str = "X") -> list[str] | None:
    """Names of the columns of rows in memory; None for an array, or where some names are not text.

    Raises
    ------
    ParameterError
        It is a query of polars.
    ShapeError
        Two names are equal.
    """
    refuse_query(X)
    names = getattr(X, "column_names", None)  # pyarrow
    if names is None:
        names = getattr(X, "columns", None)
    if names is None or callable(names) or getattr(X, "ndim", 2) != 2:
        return None
    found = list(names)
    check_distinct([str(name) for name in found], what)
    return found if found and all(isinstance(name, str) for name in found) else None
