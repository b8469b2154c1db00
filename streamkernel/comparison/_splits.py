"""Which rows are fitted to and which are left out, fold by fold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.errors import DTypeError, ParameterError, ShapeMismatchError
from streamkernel.fits.steps.fold_rows import FoldRows
from streamkernel.settings.checks import is_whole
from streamkernel.table import PartFolds, Table
from streamkernel.table.columns import columns_named
from streamkernel.table.parts.row_parts import ContentParts, PartNumbers, RowParts, content_folds
from streamkernel.table.parts.search import check_filled, content_parts, group_parts, time_parts
from streamkernel.table.parts.weights import PartSums
from streamkernel.table.row_keys import NO_ROUNDING, RowRounding
from streamkernel.table.rows import NumpyRows, RowArray
from streamkernel.table.values import listed
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

MOST_FOLDS = 100


@dataclass(frozen=True)
class Splits:
    """The folds of cross-validation.

    "content" and "group": fold j is part j, and the fit takes all other parts. There may be one part more, which no
    fold leaves out. "time": fold j is part j + 1 of ``folds + 1``, and the fit takes only the parts before it: an
    expanding window, as in scikit-learn's ``TimeSeriesSplit``. No fold leaves part 0 out.

    Attributes
    ----------
    by : "content", "group" or "time".
    folds : number of folds K.
    table : rows without the column of the split, each with the weight that it has in its part.
    sums : sums of the weights of each part.
    """

    by: str
    folds: int
    table: Table
    parts: RowParts
    sums: PartSums

    def tables(self) -> Iterator[tuple[Table, Table]]:
        """For each fold the rows that are fitted to, and those that are left out."""
        for fold in range(self.folds):
            others = (part for part in range(self.parts.count) if part != fold)
            fitted = range(fold + 1) if self.by == "time" else others
            yield self.sums.table_of(*fitted), self.sums.table_of(fold + (self.by == "time"))

    @cached_property
    def fold_rows(self) -> FoldRows | None:
        """The rows of fits that share the sums of a sweep; None where no part is beside the folds."""
        if self.parts.count == self.folds:
            return None
        past = self.by == "time"
        fitted = tuple(table for table, _ in self.tables())
        beside = self.sums.table_of(0 if past else self.folds)
        if isinstance(self.parts, ContentParts) and self.parts.rounding is NO_ROUNDING:
            return FoldRows(content_folds(self.parts.count), self.table, beside, fitted)
        numbers, folds = PartNumbers(self.parts), PartFolds(self.folds, self.parts.count, first=int(past))
        return FoldRows(folds, self.table.in_parts(numbers), beside.in_parts(numbers), fitted, past)


def checked_folds(folds: Unchecked) -> int:
    """The number of folds; `ParameterError` for anything else."""
    if not is_whole(folds, 2) or folds > MOST_FOLDS:
        raise ParameterError(
            f"{option('folds')} must be a whole number from 2 to {MOST_FOLDS}, not {folds!r}", value=folds
        )
    return int(folds)


def without_columns(
    table: Table, groups: Unchecked, times: Unchecked
) -> tuple[Table, RowArray | None, RowArray | None]:
    """The table without the columns of groups and of times, and their values; of these only ids are read.

    Parameters
    ----------
    groups, times : None, the name of a column, or an array (m,) of all rows of the input. Groups may be the ids of the
        rows, by the name of their column, which is no feature.

    Raises
    ------
    ParameterError
        Both are given, or there is no such column.
    DataError
        An array is not of one number for each row; groups may be text, too.
    """
    if groups is not None and times is not None:
        raise ParameterError(
            f"{option('groups')} and {option('time')} are two ways to make folds; give one, and leave the other out"
        )
    for name, what, given in (("groups", "groups", groups), ("time", "times", times)):
        if given is None:
            continue
        found: RowArray
        if name == "groups" and isinstance(given, str) and given == table.id_name:
            found = table.id_codes()
        elif isinstance(given, str):
            table, found = _apart(table, given, what)
        else:
            found = _array(given, name, table, text=name == "groups")
        return (table, found, None) if name == "groups" else (table, None, found)
    return table, None, None


def _apart(table: Table, name: str, what: str) -> tuple[Table, RowArray]:
    """The table without a column of groups or times, and its values; of a date without all its features.

    Raises
    ------
    ParameterError
        There is no such column, some of its dates are missing, or it is a category.
    """
    made = () if name in table.columns else columns_named(name, table.columns, table.schema)
    features = [table.columns[position] for position in made]
    elapsed, missing = f"{name} (elapsed)", f"{name} is missing"
    if what == "groups" and features:
        raise ParameterError(
            f"column {name!r} has become the features {listed(features)}; groups are a column of numbers, or the one "
            f"that {option('id', name)} names"
        )
    if elapsed not in features:
        return table.apart(name, what, name)
    if missing in features:
        raise ParameterError(
            f"column {name!r} lacks some dates, which have no place among the {what}; remove those rows"
        )
    if len(features) == table.n_features:
        raise ParameterError(f"{name!r} is the only column, and cannot be the {what}; add a feature")
    beside, found = table.apart(elapsed, what, name)
    return beside.reordered([at for at, each in enumerate(beside.columns) if each not in features]), found


def _array(given: Unchecked, name: str, table: Table, *, text: bool) -> RowArray:
    values, m = np.asarray(given), table.features.n_rows
    if values.shape != (m,):
        raise ShapeMismatchError(
            f"{option(name)} has shape {values.shape} and X {table.features.shape}; give one value for each row of X, "
            "or the name of a column"
        )
    objects = values.dtype.kind == "O"
    if text and (values.dtype.kind in "UT" or (objects and all(isinstance(value, str) for value in values))):
        values = np.unique(values.astype(np.str_), return_inverse=True)[1]
    if values.dtype.kind == "M":
        if np.isnat(values).any():
            raise DTypeError(f"{option(name)} lacks some dates; leave these rows out")
        values = values.astype(np.int64)
    if values.dtype.kind not in "biuf":
        raise DTypeError(f"{option(name)} must be numbers{' or text' if text else ' or dates'}, one for each row")
    return NumpyRows(np.ascontiguousarray(values, dtype=np.float64), name)


def share_beside(folds: int) -> float:
    """Share of the distinct rows in the part that no fold leaves out: as large as a fold."""
    return 1.0 / (folds + 1)


def splits_of(
    table: Table,
    folds: int,
    groups: RowArray | None,
    times: RowArray | None,
    *,
    beside: bool = False,
    rounding: RowRounding = NO_ROUNDING,
) -> Splits:
    """The folds of a table, in a pass over what decides them, and one or four more over a column.

    Parameters
    ----------
    rounding : how features are rounded where they decide.
    beside : whether folds by content or by group leave a part of the rows in none, unless there are too few rows or
        groups for that.

    Raises
    ------
    ParameterError, DataError
        There are too few rows, groups or times for so many folds.
    """
    table.check_weights()
    parts: RowParts
    if groups is not None:
        by, what, parts = "group", groups.name, group_parts(table, groups, folds, beside=beside)
    elif times is not None:
        by, what, parts = "time", times.name, time_parts(table, times, folds + 1)
    else:
        by, what, parts = "content", "all features", content_parts(table, folds + beside, rounding)
    sums = PartSums(table, parts)
    if beside and parts.count > folds and not all(each.counted for each in sums.of_parts):
        return splits_of(table, folds, groups, times, rounding=rounding)
    check_filled(np.array([each.counted for each in sums.of_parts]), what, folds)
    return Splits(by, folds, table, parts, sums)
