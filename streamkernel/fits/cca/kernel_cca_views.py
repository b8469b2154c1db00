"""The two views of kernel canonical correlations: two aligned inputs, or two groups of columns of one input."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from streamkernel.errors import ParameterError, ShapeMismatchError
from streamkernel.reductions import View
from streamkernel.table import Table, open_table
from streamkernel.table.columns import check_distinct, with_names
from streamkernel.table.targets import Targets
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

Groups = tuple[tuple[int, ...], tuple[int, ...]]

_WHOLE = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True)
class Paired:
    """One table whose rows hold both views.

    Attributes
    ----------
    table : rows; the targets are the second view, unless that is a group of columns.
    views : both views, without scalers.
    names : names of the columns of each view.
    own_statistics : whether the table's stored statistics, if any, describe both views.
    named : whether the second view has real column names; for a second view that is not a group of columns.
    """

    table: Table
    views: tuple[View, View]
    names: tuple[tuple[str, ...], tuple[str, ...]]
    own_statistics: bool
    named: bool = False

    @property
    def widths(self) -> tuple[int, int]:
        """Numbers of a row of each view: its columns; of sparse rows pairs with the room of the rows."""
        first, second = (
            self.table.stored_width if view.sparse else len(names)
            for view, names in zip(self.views, self.names, strict=True)
        )
        return first, second


def paired_table(
    X: Unchecked,
    y: Unchecked,
    view_columns: Unchecked,
    names: Sequence[str] | None = None,
    second_names: Sequence[str] | None = None,
    *,
    weights: Unchecked = None,
) -> Paired:
    """One table with the aligned rows of both views, from any kind of input.

    Parameters
    ----------
    X : rows, of any kind that `open_table` takes.
    y : the second view, of any of these kinds; None where X contains both, as columns or as targets.
    view_columns : two groups of the columns of X, by name or position; None for two inputs.
    names, second_names : column names of X and of y, where the inputs have none.
    weights : row weights, of any of these kinds; None for those of X where it is a table, else for 1.

    Raises
    ------
    ParameterError, DataError, StoreError
        There is no second view, or there are two; or the views do not have the same rows.
    """
    if view_columns is not None:
        if y is not None:
            raise ParameterError(f"the second view is given twice, as y and by {option('view_columns')}; leave one out")
        table = with_names(open_table(X, weights=weights, sparse=True), names).without_targets()
        columns = table.columns
        groups = column_groups(view_columns, columns)
        first, second = (tuple(columns[position] for position in group) for group in groups)
        views = View(groups[0], sparse=table.sparse), View(groups[1], sparse=table.sparse)
        return Paired(table, views, (first, second), own_statistics=True)
    named = second_names is not None
    if _is_table(y):
        other = open_table(y, sparse=True)
        _check_second(other.sparse)
        table, named = _with_table(open_table(X, weights=weights, sparse=True), other), other.named
        if other.weights is not None and table.weights is None and weights is None:
            raise ParameterError(
                "the second view has row weights, and the first one has none; give the weights of the rows as "
                "sample_weight, or the second view without them (Table.without_weights)"
            )
    else:
        _check_second(hasattr(y, "toarray"))
        table = open_table(X, y, weights=weights, sparse=True)
    table = with_names(table, names)
    targets = table.targets
    if targets is not None and second_names is not None:
        check_distinct(second_names, "the second view")
        table = replace(table, targets=replace(targets, names=tuple(second_names)))
        targets = table.targets
    if targets is None:
        raise ParameterError(
            f"there is no second view: give y, or name two groups of columns ({option('view_columns')})"
        )
    if targets.classes is not None:
        raise ParameterError(
            f"the targets are class labels, and a view is numbers; give y, or {option('view_columns')}"
        )
    views = View(sparse=table.sparse), View(of_targets=True)
    return Paired(table, views, (table.columns, table.target_names), y is None, named)


def _check_second(sparse: bool) -> None:
    """Refuse a second view of sparse rows of its own: a table has one input of sparse rows."""
    if sparse:
        raise ParameterError(
            "the second view is sparse, and an input of its own, which must be dense; join both views as columns of "
            f"one sparse input (scipy.sparse.hstack), and name the columns of each by {option('view_columns')}"
        )


def _is_table(y: Unchecked) -> bool:
    """Whether y is a table or stored rows; a vector is not."""
    if isinstance(y, (Table, str, PathLike)):
        return True
    return type(y).__module__.split(".")[0] in ("zarr", "xarray") and getattr(y, "ndim", 2) == 2


def _with_table(table: Table, other: Table) -> Table:
    if (other.start, other.stop) != (table.start, table.stop):
        raise ShapeMismatchError(
            f"X has rows {table.start}:{table.stop} and y rows {other.start}:{other.stop}; give the same rows of both"
        )
    if other.scaler is not None or other.features.n_rows != table.features.n_rows:
        raise ShapeMismatchError("the tables X and y do not hold the same rows as stored; give two aligned inputs")
    return replace(table, targets=Targets(other.features, other.columns))


def column_groups(groups: Unchecked, columns: Sequence[str]) -> Groups:
    """Two groups of columns as positions.

    Raises
    ------
    ParameterError
        There are not two groups, a name is not a column, the groups share a column, or one is empty.
    """
    if isinstance(groups, (str, bytes)) or not isinstance(groups, Sequence) or len(groups) != 2:
        raise ParameterError(f"{option('view_columns')} must be two groups of columns, not {groups!r}", value=groups)
    places = {name: place for place, name in reversed(tuple(enumerate(columns)))}  # of the first one of each name
    found: list[tuple[int, ...]] = []
    for group in groups:
        members = [group] if isinstance(group, (str, int, np.integer)) else list(group)
        found.append(tuple(_position(member, columns, places) for member in members))
    first, second = found
    if not first or not second:
        raise ParameterError(f"a group of {option('view_columns')} is empty; give at least one column each")
    twice = sorted({columns[each] for each, times in Counter(first + second).items() if times > 1})
    if twice:
        raise ParameterError(
            f"{option('view_columns')} name {', '.join(twice[:5])} twice; give each column to one view"
        )
    return first, second


def _position(member: Unchecked, columns: Sequence[str], places: Mapping[str, int]) -> int:
    if isinstance(member, str) and member in places:
        return places[member]
    if isinstance(member, str) and _WHOLE.fullmatch(member):
        # As the command line gives positions, where no column has this name.
        member = int(member)
    whole = isinstance(member, (int, np.integer)) and not isinstance(member, (bool, np.bool_))
    if whole and -len(columns) <= member < len(columns):
        return int(member) % len(columns)
    raise ParameterError(
        f"{option('view_columns')} name {member!r}, which is no column; the table has {', '.join(columns[:20])}"
        + (", ..." if len(columns) > 20 else "")
    )
