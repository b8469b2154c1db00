"""The rows that a model has seen, recognised by content, so that none is folded in twice, from any path.

For every input whose rows it has seen, a model stores their row numbers and **marks**: digests of pieces of the input
at that time. For an ingested table these are the digests of its chunks, which cost nothing. Rows in memory are digested
as fast as they are read. For other inputs a few chunks are read. An input offered later is compared with the marks:

========================  ===========================================================================================
all reached marks match   the same input, a part of it, or the input with rows appended: its new rows are unseen
no mark matches           another input: all its rows are unseen
some marks match          the same input, changed since: refused
========================  ===========================================================================================

Inserted rows and rows in another order are changes. Equal rows under other row numbers are not recognised, and neither
is a table that ends before the end of its first mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkernel.errors import InputChangedError, ParameterError
from streamkernel.models.row_runs import Runs, clipped, joined, without
from streamkernel.records import SeenRows
from streamkernel.table import Table
from streamkernel.table.class_weights import without_class_weights
from streamkernel.wording import call, option

# Number of chunks that are read to recognise an input whose digests are not known.
_SAMPLED = 8


@dataclass(frozen=True)
class Mark:
    """Rows [first, first + rows) of an input had this digest (`Table.digest`)."""

    first: int
    rows: int
    digest: str

    @property
    def last(self) -> int:
        """The row after the mark."""
        return self.first + self.rows


@dataclass(frozen=True)
class Comparison:
    """The result of comparing an input with a table.

    Attributes
    ----------
    holding : number of marks that match, of those that the table reaches.
    broken : first mark that does not match; None where all do.
    reach : end of the last mark that the table reaches.
    """

    holding: int
    broken: Mark | None
    reach: int


@dataclass(frozen=True)
class SeenInput:
    """An input with rows that a model has seen.

    Attributes
    ----------
    rows : runs of rows that were folded in.
    marks : marks that identify the input. Empty where the model is older than this record: then the rows of the basis
        identify it.
    """

    rows: Runs
    marks: tuple[Mark, ...]

    def compare(self, table: Table, digest: Callable[[int, int], str]) -> Comparison:
        """Compare the marks with a table.

        Where every mark would need a read, a few are compared first: if none of them matches, it is another input.
        """
        reached = [mark for mark in self.marks if mark.last <= _end(table)]
        known = [mark for mark in reached if table.digest_known(mark.first, mark.last)]
        first = known if 2 * len(known) >= len(reached) else spread(reached)
        others = set(reached).difference(first)
        holding, broken = 0, None
        for marks in (first, sorted(others, key=lambda mark: mark.first)):
            for mark in marks:
                if digest(mark.first, mark.last) == mark.digest:
                    holding += 1
                else:
                    broken = broken or mark
            if not holding:
                break
        return Comparison(holding, broken, max((mark.last for mark in reached), default=0))

    def with_rows(self, rows: Runs, marks: Iterable[Mark]) -> SeenInput:
        """The same input with more rows; a new mark replaces an old one inside it (a last chunk that has grown)."""
        fresh = tuple(marks)
        edges = {mark.first: mark.last for mark in fresh}
        kept = [mark for mark in self.marks if edges.get(mark.first, -1) < mark.last]
        return SeenInput(joined([*self.rows, *rows]), tuple(sorted([*kept, *fresh], key=lambda m: (m.first, m.rows))))

    @property
    def record(self) -> SeenRows:
        """The input as a model stores it."""
        return SeenRows(rows=self.rows, marks=tuple((mark.first, mark.rows, mark.digest) for mark in self.marks))

    @classmethod
    def of(cls, record: SeenRows) -> SeenInput:
        """The input that a model stores."""
        return cls(joined(record.rows), tuple(Mark(*mark) for mark in record.marks))


@dataclass(frozen=True)
class Recognised:
    """The rows of a table that were seen, and those that were not.

    Attributes
    ----------
    inputs : positions in `Seen.inputs` of the inputs that match the table.
    seen, unseen : rows of the table's range.
    """

    inputs: tuple[int, ...]
    seen: Runs
    unseen: Runs


def every_row(table: Table) -> Recognised:
    """All rows of a table as unseen ones: those that were seen count once more."""
    return Recognised((), (), ((table.start, table.stop),))


@dataclass(frozen=True)
class Seen:
    """The inputs that a model has seen, in the order of their first rows."""

    inputs: tuple[SeenInput, ...]

    @classmethod
    def of(cls, records: Iterable[SeenRows]) -> Seen:
        """The inputs that a model stores."""
        return cls(tuple(SeenInput.of(record) for record in records))

    def with_marks(self, of_use: Callable[[Mark], bool]) -> Seen:
        """The same inputs with those of their marks that are of use; an input of which none is has no marks."""
        return Seen(tuple(replace(each, marks=tuple(filter(of_use, each.marks))) for each in self.inputs))

    @property
    def records(self) -> tuple[SeenRows, ...]:
        """The inputs as a model stores them."""
        return tuple(entry.record for entry in self.inputs)

    def recognise(self, table: Table, by_basis: Callable[[], Comparison], *, as_new: bool = False) -> Recognised:
        """Find the rows of a table's range that were seen.

        Parameters
        ----------
        by_basis : function that compares the rows of the basis with the table, for inputs without marks.
        as_new : treat an input that has changed since it was seen as another one.

        Raises
        ------
        InputChangedError
            Rows that were seen have changed.
        ParameterError
            The table ends within a mark, whose rows cannot be recognised without the rest.
        """
        cache: dict[tuple[int, int], str] = {}

        def digest(first: int, last: int) -> str:
            if (first, last) not in cache:
                cache[first, last] = table.digest(first, last)
            return cache[first, last]

        same: dict[int, int] = {}
        changed = None
        for position, entry in enumerate(self.inputs):
            found = entry.compare(table, digest) if entry.marks else by_basis()
            if found.holding and found.broken is None:
                same[position] = found.reach
            elif found.holding:
                changed = changed or found.broken
        if changed is not None and not same and not as_new:
            raise InputChangedError(
                f"rows {changed.first}:{changed.last} of the table are not what they were when the model saw them, "
                "other rows of it are; fit again on all rows as they are now, or say that all rows given are "
                f"to be folded in as those of another table by {option('as_new', True)}"
            )
        seen = joined(run for position, reach in same.items() for run in clipped(self.inputs[position].rows, 0, reach))
        perhaps = joined(run for position in same for run in self.inputs[position].rows)
        unseen = without(seen, table.start, table.stop)
        unclear = joined(run for first, last in unseen for run in clipped(perhaps, first, last))
        if unclear and not as_new:
            first, last = unclear[0][0], unclear[-1][1]
            raise ParameterError(
                f"whether the model has seen rows {first}:{last} cannot be told, as the table ends within a piece of "
                f"what was seen; give {option('rows')} up to {first}, or the table with the rows behind them"
            )
        return Recognised(tuple(same), clipped(seen, table.start, table.stop), unseen)

    def check_grown(self, table: Table, found: Recognised) -> None:
        """Raise `InputChangedError` unless the table was seen before, and has not lost rows since."""
        if not found.inputs:
            raise InputChangedError(
                "the table holds none of the rows that the model has seen: it is another one; if its rows are to be "
                f"folded in all the same, do so once by {call('update_model')}"
            )
        most = max(self.inputs[position].rows[-1][1] for position in found.inputs)
        if most > _end(table):
            raise InputChangedError(
                f"the table has {_end(table)} rows, the model has seen {most} of it: it has shrunk; restore it, or fit "
                "again on the rows that it has now"
            )

    def with_rows(self, table: Table, found: Recognised) -> Seen:
        """The record after the unseen rows of a table are folded in."""
        if not found.inputs:
            return Seen((*self.inputs, SeenInput(found.unseen, marks_of(table, found.unseen))))
        # If the table matches several inputs, take the one with the most of its rows.
        most = max(found.inputs, key=lambda position: self.inputs[position].rows[-1][1])
        entry = self.inputs[most]
        marked = found.unseen if entry.marks else joined([*clipped(entry.rows, 0, _end(table)), *found.unseen])
        grown = entry.with_rows(found.unseen, marks_of(table, marked))
        return replace(self, inputs=(*self.inputs[:most], grown, *self.inputs[most + 1 :]))


def marks_of(table: Table, rows: Runs) -> tuple[Mark, ...]:
    """Marks of the chunks that hold these rows; of a few chunks, spread evenly, where each would need a read."""
    features = table.features
    cuts = features.cuts(0, _end(table))
    touched: set[int] = set()
    for first, last in rows:
        low, high = np.searchsorted(cuts, [first, last - 1], side="right") - 1
        touched.update(range(int(low), int(high) + 1))
    chunks = [(int(cuts[index]), int(cuts[index + 1])) for index in sorted(touched)]
    if not all(table.digest_known(*chunk) for chunk in chunks):
        chunks = spread(chunks)
    return tuple(Mark(first, last - first, table.digest(first, last)) for first, last in chunks)


def _end(table: Table) -> int:
    """Number of rows of the whole input, not of the table's range."""
    return table.features.n_rows


def spread(items: list[Any]) -> list[Any]:
    """At most 8 items of a list, spread evenly, with the first and the last."""
    if len(items) <= _SAMPLED:
        return items
    return [items[index] for index in sorted({round(step) for step in np.linspace(0, len(items) - 1, _SAMPLED)})]


def seen_by_fit(table: Table) -> tuple[SeenRows, ...]:
    """The record of a fitted model: the rows of the fit."""
    table = without_class_weights(table)
    rows: Runs = ((table.start, table.stop),)
    return Seen((SeenInput(rows, marks_of(table, rows)),)).records
