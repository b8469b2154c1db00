"""Rows with named columns as a stream of Arrow's record batches, whatever file or frame they are in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from streamkernel.table.schema.arrow_types import is_text
from streamkernel.type_aliases import Untyped

# No column has marks of its own for what is missing.
NO_MARKS: Mapping[str, Collection[str]] = MappingProxyType({})


class ColumnStream(ABC):
    """The columns of a source, which may be read more than once.

    Attributes
    ----------
    names
        Names of all columns, those of folders (``year=2020/``) last.
    named
        Whether the names are from the source.
    n_rows, estimated_rows
        As of `Reader`.
    total, unit
        As of `Reader`.
    unnamed
        What of the source is no column, as text for `Reader.left_out`.
    separator
        The letter between the fields of CSV; None in a source of another kind.
    """

    names: list[str]
    named: bool = True
    n_rows: int | None = None
    estimated_rows: int | None = None
    total: int | None = None
    unit: str = "rows"
    unnamed: tuple[str, ...] = ()
    separator: str | None = None

    @abstractmethod
    def arrow_type(self, name: str) -> Untyped | None:
        """Arrow's type of a column; None where the source holds text of which the reader makes what it needs."""

    def has_text(self, name: str) -> bool:
        """Whether a column is text, as far as the first rows tell."""
        return is_text(self.arrow_type(name))

    @abstractmethod
    def batches(
        self, names: Sequence[str], text: Collection[str], missing: Mapping[str, Collection[str]] = NO_MARKS
    ) -> Iterator[tuple[Untyped, int]]:
        """Record batches of some columns in this order, and the bytes or rows that were read for each.

        Parameters
        ----------
        text : names of the columns that stay text; of the others CSV becomes numbers.
        missing : by column, texts that stand for a missing number, beside the empty field, NA and the like; of CSV.

        Raises
        ------
        SourceFormatError
            With the place of the fault.
        """

    @abstractmethod
    def where(self, row: int) -> str:
        """Place of a row, for messages."""
