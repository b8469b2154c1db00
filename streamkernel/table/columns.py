"""Names of columns: the one place where those of a table are held against those that a fit has known.

================================  =====================================================================================
both have names, the same set     the table's columns are put in the order of the fit
both have names, other ones       refused: what is missing, what is extra
one of the two has none           taken as they come, if they are as many (estimators then warn, as scikit-learn does);
                                  a table whose names are all of x0, x1, ... by these, also where the fit had an array
================================  =====================================================================================

Arrays have no names. Theirs are ``x0, x1, ...`` in messages, and a record says beside these whether they are real: a
CSV file may have a header of such names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamkernel.errors import ShapeError
from streamkernel.table.ordered_rows import OrderedRows
from streamkernel.table.table import Table
from streamkernel.table.targets import Targets

__all__ = ["KnownColumns", "are_real", "check_distinct", "default_names", "with_names"]

_SHOWN = 5
_DEFAULT = re.compile(r"x(0|[1-9][0-9]{0,17})", re.ASCII)


def default_names(width: int) -> tuple[str, ...]:
    """What columns without names are called."""
    return tuple(f"x{index}" for index in range(width))


def are_real(names: Sequence[str]) -> bool:
    """Whether columns have names, of a record that does not say: all but those that we give are real.

    Of an array whose column 0 is the target the others are called x1, x2, ...
    """
    numbers = [int(name[1:]) if _DEFAULT.fullmatch(name) else -1 for name in names]
    return -1 in numbers or numbers != sorted(set(numbers))


def check_distinct(names: Sequence[str], what: str) -> None:
    """Refuse names of which two are equal: `ShapeError`."""
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ShapeError(f"{what} has two columns {twice!r}; give each column a name of its own")


def with_names(table: Table, names: Sequence[str] | None) -> Table:
    """The table with these names of its columns, where there are any.

    Raises
    ------
    ShapeError
        Two of them are equal.
    """
    if names is None:
        return table
    check_distinct(names, "the table")
    return replace(table, columns=tuple(names), named=True)


@dataclass(frozen=True)
class KnownColumns:
    """The columns that something was made of.

    Parameters
    ----------
    names : in their order.
    named : whether they are real names.
    made : in messages, such as "the model was fitted on".
    way_out : what to give instead.
    what : in messages, what is held against them.
    """

    names: tuple[str, ...]
    named: bool
    made: str
    way_out: str
    what: str = "the table"

    def order_in(self, found: Sequence[str], *, named: bool) -> tuple[int, ...] | None:
        """Positions of these among the columns found; None where they are as they should be, or have no names.

        Raises
        ------
        ShapeError
            They are others, or another number, or a name is there twice.
        """
        # Names x0, x1, ... that a table has for real are those that an array's columns are called by.
        if not named or not (self.named or sorted(found) == sorted(self.names)):
            if len(found) != len(self.names):
                raise ShapeError(f"{self._counted(found)} ({_listed(self.names, quoted=False)}); {self.way_out}")
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
        """The same of columns that are a table's targets, where these have the names of a second view."""
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
        parts = [f"{word} {_listed(names)}" for word, names in (("missing", missing), ("extra", extra)) if names]
        return f"{opening}: {'; '.join(parts)}; {self.way_out}"


def _listed(names: Sequence[str], *, quoted: bool = True) -> str:
    shown = [repr(name) if quoted else name for name in names[:_SHOWN]]
    if not quoted:
        return ", ".join(shown) + (", ..." if len(names) > _SHOWN else "")
    return ", ".join(shown) + (f", ... ({len(names)} in all)" if len(names) > _SHOWN else "")
