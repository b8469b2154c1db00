"""Frames in memory (pandas, polars, pyarrow, and all that speak Arrow's C interface) as a stream of columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa

from streamkernel.errors import DTypeError, EmptyDataError
from streamkernel.table.columns import check_distinct, default_names
from streamkernel.table.ingest._reader import BATCH_BYTES
from streamkernel.table.ingest._streams import ColumnStream
from streamkernel.type_aliases import Unchecked, Untyped


def is_frame(source: Unchecked) -> bool:
    """Whether rows in memory have typed columns."""
    # A series of pandas is a stream of Arrow, too, and has no columns.
    return getattr(source, "ndim", 2) == 2 and (hasattr(source, "__arrow_c_stream__") or _is_pandas(source))


class FrameStream(ColumnStream):
    """The columns of a frame; nothing is copied that Arrow can share.

    Raises
    ------
    DTypeError
        A column has values of several types, or names are not text.
    ShapeError
        Two columns have one name.
    EmptyDataError
        There are no rows.
    """

    def __init__(self, frame: Unchecked, place: str) -> None:
        self._place = place
        if _is_pandas(frame):
            frame, self.named = _named(frame, place)
        try:
            self.table = _arrow_table(frame)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError) as error:
            why = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise DTypeError(f"{place} cannot be read as typed columns ({why}); give each column one type") from error
        self.names = list(self.table.column_names)
        check_distinct(self.names, place)
        self.n_rows = self.estimated_rows = self.total = self.table.num_rows
        if not self.n_rows:
            raise EmptyDataError(f"{place} has no rows; give at least one")

    def arrow_type(self, name: str) -> Untyped | None:
        return self.table.schema.field(name).type

    def batches(
        self, names: Sequence[str], text: Collection[str], missing: Collection[str] = ()
    ) -> Iterator[tuple[Untyped, int]]:
        rows = max(1, BATCH_BYTES // (8 * max(len(names), 1)))
        for batch in self.table.select(list(names)).to_batches(max_chunksize=rows):
            if batch.num_rows:
                yield batch, batch.num_rows

    def where(self, row: int) -> str:
        return f"{self._place} (row {row})"


def _is_pandas(frame: Unchecked) -> bool:
    return type(frame).__module__.partition(".")[0] == "pandas"


def _named(frame: Unchecked, place: str) -> tuple[Unchecked, bool]:
    """A frame of pandas whose columns have text as names: x0, x1, ... where all are numbers."""
    names = list(frame.columns)
    if all(isinstance(name, int) for name in names):
        return frame.set_axis(list(default_names(len(names))), axis="columns"), False
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:
        raise DTypeError(f"{place}: the name of a column is {wrong!r}, not text; rename it")
    check_distinct(names, place)
    return frame, True


def _arrow_table(frame: Unchecked) -> Untyped:
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return frame
    if _is_pandas(frame):
        return pa.Table.from_pandas(frame, preserve_index=False)
    return pa.table(frame)
