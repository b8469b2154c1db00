"""Which rows a model has seen: known by their content, so that none is folded in twice, by whatever path it comes.

A model keeps, for every input whose rows it has seen, their row numbers and **marks**: digests of pieces of the input
as it was then. Of an ingested table these are the digests of its chunks, which cost nothing; rows in memory are
digested as quickly as they are read; of other inputs a few chunks are read. An input offered later is held against
the marks:

========================  ===========================================================================================
all that it reaches hold  the same input, or a part of it, or one with rows appended: what is new in it is unseen
none holds                another input, all of it unseen
some hold                 the same input, changed since: refused
========================  ===========================================================================================

Rows that are inserted or put in another order are changes. Equal rows under other row numbers are not recognised, nor
is a table that ends before its first mark does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkernel.errors import InputChangedError, ModelFormatError, ParameterError
from streamkernel.estimators.runs import Runs, clipped, joined, without
from streamkernel.table import Table

__all__ = ["Comparison", "Mark", "Recognised", "Seen", "SeenInput", "marks_of", "seen_by_fit", "spread"]

# Of inputs whose digests are not known, so many chunks are read to tell them by.
_SAMPLED = 8


@dataclass(frozen=True)
class Mark:
    """Rows [first, first + rows) of an input had this digest (`Table.digest`)."""

    first: int
    rows: int
    digest: str

    @property
    def last(self) -> int:
        """The row after them."""
        return self.first + self.rows


@dataclass(frozen=True)
class Comparison:
    """An input held against a table.

    Attributes
    ----------
    holding : how many marks hold, of those that the table reaches.
    broken : the first of them that does not.
    reach : row up to which they tell of the table.
    """

    holding: int
    broken: Mark | None
    reach: int


@dataclass(frozen=True)
class SeenInput:
    """An input that a model has seen rows of.

    Attributes
    ----------
    rows : that were folded in.
    marks : by which the input is known. None where the model is older than this record: then it is known by the rows
        of the basis.
    """

    rows: Runs
    marks: tuple[Mark, ...]

    def compare(self, table: Table, digest: Callable[[int, int], str]) -> Comparison:
        """Which marks hold for a table.

        Where every mark would have to be read, a few are looked at first: if none of them holds it is another input.
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
        """The same with more rows; marks within new ones, as of a last chunk that has grown, are dropped."""
        fresh = tuple(marks)
        edges = {mark.first: mark.last for mark in fresh}
        kept = [mark for mark in self.marks if edges.get(mark.first, -1) < mark.last]
        return SeenInput(joined([*self.rows, *rows]), tuple(sorted([*kept, *fresh], key=lambda m: (m.first, m.rows))))

    def to_config(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "rows": [list(run) for run in self.rows],
            "marks": [[mark.first, mark.rows, mark.digest] for mark in self.marks],
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeenInput:
        """The one that `to_config` wrote."""
        rows = joined((int(first), int(last)) for first, last in config["rows"])
        return cls(rows, tuple(Mark(int(first), int(rows), str(text)) for first, rows, text in config["marks"]))


@dataclass(frozen=True)
class Recognised:
    """What of a table was seen.

    Attributes
    ----------
    inputs : positions, among those seen, of the inputs that the table is.
    seen, unseen : rows of the table's range.
    """

    inputs: tuple[int, ...]
    seen: Runs
    unseen: Runs


@dataclass(frozen=True)
class Seen:
    """The inputs that a model has seen, in the order of their first rows."""

    inputs: tuple[SeenInput, ...]

    @classmethod
    def from_config(cls, config: list[dict[str, Any]]) -> Seen:
        """The one that `to_config` wrote.

        Raises
        ------
        ModelFormatError
            It is not what we write.
        """
        try:
            return cls(tuple(SeenInput.from_config(entry) for entry in config))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFormatError(
                f"the model's record of the rows that it has seen is damaged ({error!r}); restore the model from a copy"
            ) from error

    def to_config(self) -> list[dict[str, Any]]:
        """Plain JSON."""
        return [entry.to_config() for entry in self.inputs]

    def recognise(self, table: Table, by_basis: Callable[[], Comparison], *, as_new: bool = False) -> Recognised:
        """Which rows of a table's range were seen.

        Parameters
        ----------
        by_basis : the rows of the basis held against the table, for inputs without marks.
        as_new : take an input that has changed since it was seen for another one.

        Raises
        ------
        InputChangedError
            Rows that were seen are no longer what they were.
        ParameterError
            The table ends among rows of which one cannot tell without those behind it.
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
                "to be folded in as those of another table (--as-new, with --rows A:B for some of them)"
            )
        seen = joined(run for position, reach in same.items() for run in clipped(self.inputs[position].rows, 0, reach))
        perhaps = joined(run for position in same for run in self.inputs[position].rows)
        unseen = without(seen, table.start, table.stop)
        unclear = joined(run for first, last in unseen for run in clipped(perhaps, first, last))
        if unclear and not as_new:
            first, last = unclear[0][0], unclear[-1][1]
            raise ParameterError(
                f"whether the model has seen rows {first}:{last} cannot be told, as the table ends within a piece of "
                f"what was seen; give rows up to {first} (--rows), or the table with the rows behind them"
            )
        return Recognised(tuple(same), clipped(seen, table.start, table.stop), unseen)

    def check_grown(self, table: Table, found: Recognised) -> None:
        """Raise `InputChangedError` unless the table is one that was seen, with no rows fewer than then."""
        if not found.inputs:
            raise InputChangedError(
                "the table holds none of the rows that the model has seen: it is another one; if its rows are to be "
                "folded in all the same, do so once by hand (streamkernel update)"
            )
        most = max(self.inputs[position].rows[-1][1] for position in found.inputs)
        if most > _end(table):
            raise InputChangedError(
                f"the table has {_end(table)} rows, the model has seen {most} of it: it has shrunk; restore it, or fit "
                "again on the rows that it has now"
            )

    def with_rows(self, table: Table, found: Recognised) -> Seen:
        """The record once the unseen rows of a table were folded in."""
        if not found.inputs:
            return Seen((*self.inputs, SeenInput(found.unseen, marks_of(table, found.unseen))))
        # Of several that it is, the one that has most of it.
        most = max(found.inputs, key=lambda position: self.inputs[position].rows[-1][1])
        entry = self.inputs[most]
        marked = found.unseen if entry.marks else joined([*clipped(entry.rows, 0, _end(table)), *found.unseen])
        grown = entry.with_rows(found.unseen, marks_of(table, marked))
        return replace(self, inputs=(*self.inputs[:most], grown, *self.inputs[most + 1 :]))


def marks_of(table: Table, rows: Runs) -> tuple[Mark, ...]:
    """Marks of the chunks that hold these rows; of a few, spread over them, where each would have to be read."""
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
    """Rows of the whole input, whatever the range."""
    return table.features.n_rows


def spread(items: list[Any]) -> list[Any]:
    """Some of a list, the first and the last among them."""
    if len(items) <= _SAMPLED:
        return items
    return [items[index] for index in sorted({round(step) for step in np.linspace(0, len(items) - 1, _SAMPLED)})]


def seen_by_fit(table: Table) -> dict[str, Any]:
    """Fields of a fitted model: the rows it has seen; that it was not updated yet."""
    rows: Runs = ((table.start, table.stop),)
    return {"seen": Seen((SeenInput(rows, marks_of(table, rows)),)).to_config(), "updates": None}
