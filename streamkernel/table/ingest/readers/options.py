"""What a user says of a source: which of its columns or arrays are X, y and weights, how text is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.table.ingest.readers.csv.format import CsvFormat
from streamkernel.table.schema import MISSING_POLICIES, UNKNOWN_POLICIES
from streamkernel.table.values import listed
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option


@dataclass(frozen=True)
class SourceOptions:
    """How a source is to be read.

    Attributes
    ----------
    targets, weight
        Names or indices of the columns that are y, and of that of row weights.
    csv
        How CSV is written.
    X, y
        Names of the arrays that are X and y, of a source with several.
    drop
        Names of columns that are left out.
    keep
        Names of the columns that are features; None for all others, too.
    sparse
        Whether rows of libsvm text stay sparse; None for what their number of entries says.
    columns
        Number of columns of libsvm text; None for its largest index.
    schema
        A schema, its plain JSON or file; "auto" for what a look at the rows suggests.
    categories, dates
        Names of columns that are categories, or dates.
    missing, unknown
        What becomes of missing values, and of categories that the fit has not seen.
    id
        Name of the column that tells which row it is.
    appended
        Whether the rows go to a table that is there: `sparse` and `columns` are then those of its rows.

    Raises
    ------
    ParameterError
        A value that means nothing.
    """

    targets: tuple[str | int, ...] = ()
    weight: str | int | None = None
    csv: CsvFormat = field(default_factory=CsvFormat)
    X: str | None = None
    y: str | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] | None = None
    sparse: bool | None = None
    columns: int | None = None
    schema: Unchecked = None
    categories: Sequence[str] = ()
    dates: Sequence[str] = ()
    missing: str | None = None
    unknown: str | None = None
    id: str | None = None
    appended: bool = False

    def __post_init__(self) -> None:
        for name, value in (*(("target", each) for each in self.targets), ("weight", self.weight)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
                raise ParameterError(f"{option(name)} must be a column's name or index, not {value!r}", value=value)

        for name, value in (("X", self.X), ("y", self.y)):
            # An array is a path below the group.
            if value is not None and (not isinstance(value, str) or not value or {"", ".", ".."} & {*value.split("/")}):
                raise ParameterError(f"{option(name)} must be the name of an array, not {value!r}", value=value)
        if self.y is not None and self.target is not None:
            raise ParameterError(
                f"y is given twice: {option('y')} names an array, and {option('target')} a column of X; leave one out"
            )
        if self.y is not None and self.y == (self.X or "X"):
            raise ParameterError(
                f"X and y are the same array, {self.y!r}; choose two by {option('X')} and {option('y')}"
            )

        if self.sparse is not None and not isinstance(self.sparse, bool):
            raise ParameterError(f"{option('sparse')} must be True, False or None, not {self.sparse!r}")
        whole = isinstance(self.columns, (int, np.integer)) and not isinstance(self.columns, bool)
        if self.columns is not None and not (whole and 1 <= self.columns < 2**31):
            raise ParameterError(
                f"{option('columns')} must be a whole number from 1 to {2**31 - 1}, not {self.columns!r}",
                value=self.columns,
            )
        if self.drop and self.keep is not None:
            raise ParameterError(f"{option('drop')} and {option('keep')} both choose columns; give one of them")
        lists = {"drop": self.drop, "keep": self.keep, "categories": self.categories, "dates": self.dates}
        for name, names in lists.items():
            if isinstance(names, str) or not all(isinstance(each, str) for each in names or ()):
                raise ParameterError(f"{option(name)} must be names of columns, not {names!r}", value=names)

        both = {*self.categories} & {*self.dates}
        if both:
            raise ParameterError(f"column {min(both)!r} is a category and a date; leave it out of one of them")
        for name, given, allowed in (
            ("missing", self.missing, MISSING_POLICIES),
            ("unknown", self.unknown, UNKNOWN_POLICIES),
        ):
            if given is not None and given not in allowed:
                raise ParameterError(f"{option(name)} must be one of {', '.join(allowed)}, not {given!r}", value=given)
        if self.id is not None and not isinstance(self.id, str):
            raise ParameterError(f"{option('id')} must be the name of a column, not {self.id!r}", value=self.id)

    @property
    def target(self) -> str | int | None:
        """The target where there is one."""
        return self.targets[0] if len(self.targets) == 1 else None

    @property
    def described(self) -> bool:
        """Whether the columns need a schema: not all are numbers, or there are several targets."""
        given = (self.schema, self.missing, self.unknown, self.id)
        return any(each is not None for each in given) or bool(self.categories or self.dates) or len(self.targets) > 1

    def refuse_schema(self, place: str) -> None:
        """Refuse kinds of columns for a source whose columns have none: all are numbers.

        Raises
        ------
        ParameterError
            One of the options is given.
        """
        given = {name: getattr(self, name) for name in ("schema", "categories", "dates", "missing", "unknown", "id")}
        for name, value in given.items():
            if value:
                raise ParameterError(
                    f"{option(name)} is for columns of CSV, Parquet and Arrow files and of frames, and {place} has "
                    "numbers only; leave it out"
                )
        if len(self.targets) > 1:
            raise ParameterError(
                f"several targets by {option('target')} are columns of CSV, Parquet and Arrow files and of frames, and "
                f"{place} is none; give a y of several columns"
            )

    def takes_unasked(self, name: str) -> bool:
        """Whether the first column, of this name, becomes a feature of a new table though no option names it."""
        named = {*self.targets, self.weight, self.id, *self.categories, *self.dates, *self.drop}
        looked_at = self.schema is None or self.schema == "auto"
        return looked_at and not self.appended and self.keep is None and named.isdisjoint({name, 0})

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that the user drops, as text for `Reader.left_out`."""
        return tuple(f"column {name!r} (dropped)" for name in dict.fromkeys(self.drop))

    def columns_of(self, names: Sequence[str], used: Sequence[str], place: str) -> list[str]:
        """Those of the columns of a source that are read, in their order.

        Parameters
        ----------
        used : columns of the target and of the row weights.

        Raises
        ------
        ParameterError
            A name is that of no column, or of one in use.
        """
        for name, given in (("drop", self.drop), ("keep", self.keep or ())):
            for each in given:
                if each not in names:
                    raise ParameterError(absent_column(place, names, each, name))
                if name == "drop" and each in used:
                    raise ParameterError(f"{place}: column {each!r} is in use, and cannot be dropped as well")
        return [
            name
            for name in names
            if name in used or (name not in self.drop if self.keep is None else name in self.keep)
        ]

    def refuse_columns(self, place: str) -> None:
        """Refuse a choice of columns for a source whose columns have no names of their own.

        Raises
        ------
        ParameterError
            Columns are chosen.
        """
        for name, given in (("drop", self.drop), ("keep", self.keep)):
            if given:
                raise ParameterError(
                    f"{option(name)} chooses columns of CSV, Parquet and Arrow files, and {place} is none; leave it out"
                )

    def refuse_sparse(self, place: str, *, sparse: bool = False) -> None:
        """Refuse options of libsvm text, and a table of sparse rows, for a source that is none.

        Any rows can be made dense.

        Parameters
        ----------
        sparse : whether the rows of the source are sparse.

        Raises
        ------
        ParameterError
            One of them is given.
        """
        if self.appended and self.sparse and not sparse:
            raise ParameterError(
                f"the rows of the table are sparse, and those of {place} are dense; give libsvm text, or sparse rows "
                "(open_table(scipy.sparse.csr_array(X), y, sparse=True))"
            )
        if self.columns is not None and not self.appended:
            raise ParameterError(f"{option('columns')} is for libsvm text, and {place} is none; leave it out")
        if self.sparse and not sparse:
            raise ParameterError(
                f"{option('sparse', True)} is for libsvm text, and the rows of {place} are dense; leave it out"
            )

    def refuse_names(self, place: str, why: str) -> None:
        """Refuse names of arrays for a source that has none to choose from.

        Raises
        ------
        ParameterError
            One of them is given.
        """
        for name, value in (("X", self.X), ("y", self.y)):
            if value is not None:
                raise ParameterError(
                    f"{option(name)} names an array of an NPZ file, a Zarr group or a Dataset, and {place} {why}; "
                    "leave it out"
                )

    def refuse_csv(self, place: str) -> None:
        """Refuse options of CSV for a source that is none.

        Raises
        ------
        ParameterError
            One of them is given.
        """
        for each in fields(CsvFormat):
            if getattr(self.csv, each.name) != each.default:
                raise ParameterError(f"{option(each.name)} is for CSV, and {place} is none; leave it out")


# Options that name one column each time.
_REPEATED = ("target", "drop", "keep", "categories", "dates")
_MOST_COMPARED = 2000  # names of columns
_NOUNS = {"target": "target column", "weight": "column of row weights"}


def absent_column(place: object, names: Sequence[str], wanted: object, name: str, hint: str = "") -> str:
    """A message: an option names a column that is not there, and what to do.

    Parameters
    ----------
    name : of the option. A command that has a model names its target and its features itself.
    hint : what else to say of the columns that are there.
    """
    use = f" for {option(name)}" if name in ("categories", "dates", "id") else ""
    absent = f"{place}: there is no {_NOUNS.get(name, 'column')} {wanted!r}{use}"
    parts = [part.strip() for part in wanted.split(",")] if isinstance(wanted, str) else []
    if name in _REPEATED and len(parts) > 1 and {*parts} <= {*names}:
        return f"{absent}, but {' and '.join(map(repr, parts))} are there; name each by itself, {option(name, parts)}"
    near = _nearest(wanted, names) if isinstance(wanted, str) else None
    meant = "" if near is None else f" (did you mean {near!r}?)"
    return f"{absent}{meant}; its columns are {listed(names, 20)}{hint}"


def _nearest(wanted: str, names: Sequence[str]) -> str | None:
    """The name that is meant by a misspelt one: one of other case, spaces, or a few letters."""
    plain = {name.strip().casefold(): name for name in names[:_MOST_COMPARED]}
    found = get_close_matches(wanted.strip().casefold(), plain, 1, 0.8)
    return plain[found[0]] if found else None


def targets_of(target: str | int | Sequence[str | int] | None) -> tuple[str | int, ...]:
    """The targets that a user names: none, one, or a list."""
    if target is None:
        return ()
    # Anything else is refused with the other options.
    return tuple(target) if isinstance(target, (list, tuple)) else (target,)  # type: ignore[return-value]
