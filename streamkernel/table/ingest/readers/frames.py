"""Frames (pandas, polars, pyarrow, and all that speak Arrow's C interface; Dask's, part by part) as columns.

No library of frames is imported: a frame is known by its module, or by Arrow's interface.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from streamkernel.errors import DTypeError, EmptyDataError, ShapeError
from streamkernel.table.columns import check_distinct, default_names
from streamkernel.table.frames import arrow_table, is_dask_frame, is_pandas, refuse_query
from streamkernel.table.ingest.readers._pandas_columns import pandas_as_arrow
from streamkernel.table.ingest.readers.reader import BATCH_BYTES
from streamkernel.table.ingest.readers.streams import NO_MARKS, ColumnStream
from streamkernel.table.schema.arrow_types import plain_batch, plain_type
from streamkernel.type_aliases import Unchecked, Untyped


def is_frame(source: Unchecked) -> bool:
    """Whether rows have typed columns.

    Raises
    ------
    ParameterError
        It is a query of polars, which has no rows yet.
    """
    refuse_query(source)
    # A series of pandas is a stream of Arrow, too, and has no columns.
    return getattr(source, "ndim", 2) == 2 and (
        hasattr(source, "__arrow_c_stream__") or is_pandas(source) or is_dask_frame(source)
    )


def frame_stream(frame: Unchecked, place: str) -> ColumnStream:
    """The columns of a frame; errors as of `FrameStream`."""
    return DaskFrameStream(frame, place) if is_dask_frame(frame) else FrameStream(frame, place)


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
        if is_pandas(frame):
            frame, self.named = _named(frame, place)
            frame = pandas_as_arrow(frame, place)
        try:
            self.table = arrow_table(frame)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError) as error:
            why = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise DTypeError(f"{place} cannot be read as typed columns ({why}); give each column one type") from error
        self.names = list(self.table.column_names)
        check_distinct(self.names, place)
        self.n_rows = self.estimated_rows = self.total = self.table.num_rows
        if not self.names:
            raise EmptyDataError(f"{place} has no columns; give at least one")
        if not self.n_rows:
            raise EmptyDataError(f"{place} has no rows; give at least one")

    def arrow_type(self, name: str) -> Untyped | None:
        return plain_type(self.table.schema.field(name).type)

    def batches(
        self, names: Sequence[str], text: Collection[str], missing: Mapping[str, Collection[str]] = NO_MARKS
    ) -> Iterator[tuple[Untyped, int]]:
        rows = max(1, BATCH_BYTES // (8 * max(len(names), 1)))
        for batch in self.table.select(list(names)).to_batches(max_chunksize=rows):
            if batch.num_rows:
                yield plain_batch(batch), batch.num_rows

    def where(self, row: int) -> str:
        return f"{self._place} (row {row})"


class DaskFrameStream(ColumnStream):
    """The columns of a DataFrame of Dask, one partition after the other; each pass computes them again.

    Raises
    ------
    DTypeError, ShapeError, EmptyDataError
        As of `FrameStream`, of the first partition with rows.
    """

    def __init__(self, frame: Unchecked, place: str) -> None:
        self._frame, self._place = frame, place
        self._first, parts = self._first_part()
        self.names, self.named = self._first.names, self._first.named
        self.estimated_rows = self._first.table.num_rows * parts
        self._starts = [0]

    def _first_part(self) -> tuple[FrameStream, int]:
        """The first partition with rows, and the number of those from it on."""
        for number in range(self._frame.npartitions):
            part = self._part(number)
            if len(part):
                return FrameStream(part, self._place), self._frame.npartitions - number
        raise EmptyDataError(f"{self._place} has no rows; give at least one")

    def _part(self, number: int) -> Unchecked:
        # In this thread: memory holds one partition.
        return self._frame.partitions[number].compute(scheduler="synchronous")

    def arrow_type(self, name: str) -> Untyped | None:
        return self._first.arrow_type(name)

    def batches(
        self, names: Sequence[str], text: Collection[str], missing: Mapping[str, Collection[str]] = NO_MARKS
    ) -> Iterator[tuple[Untyped, int]]:
        self._starts = []
        row = 0
        for number in range(self._frame.npartitions):
            part = self._part(number)
            self._starts.append(row)
            if len(part):
                stream = FrameStream(part, f"partition {number} of {self._place}")
                lacking = next((name for name in names if name not in stream.names), None)
                if lacking is not None:
                    raise ShapeError(
                        f"partition {number} of {self._place} has no column {lacking!r}, which those before it have; "
                        "give all partitions the same columns"
                    )
                yield from stream.batches(names, text, missing)
                row += len(part)

    def where(self, row: int) -> str:
        number = max(0, bisect_right(self._starts, row) - 1)
        return f"partition {number} of {self._place} (row {row - self._starts[number]} of it)"


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
