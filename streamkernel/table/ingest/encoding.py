"""The features of a source by a schema, without a store: what `TableEncoder` is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamkernel.table.frames import is_dask_frame
from streamkernel.table.ingest._encoded import EncodedReader
from streamkernel.table.ingest.progress import as_progress
from streamkernel.table.ingest.readers.frames import FrameStream, is_frame
from streamkernel.table.ingest.readers.open import column_stream, name_of
from streamkernel.table.ingest.readers.options import SourceOptions
from streamkernel.table.schema import Schema
from streamkernel.type_aliases import Float, Unchecked, Untyped

__all__ = ["EncodedRows", "as_arrow", "is_frame"]


class EncodedRows:
    """Rows of files or of a frame as features; the schema is complete from the start.

    Parameters
    ----------
    source
        CSV, Parquet or Arrow files, or a frame.
    schema
        As of `ingest`.
    targets
        Names of the targets.
    weight
        Name of the row weights.
    options
        Further ones of `ingest`: categories, dates, missing, unknown, drop, keep.

    Raises
    ------
    DataError, StoreError, ParameterError
        As of `ingest`.
    """

    def __init__(
        self,
        source: Unchecked,
        schema: Unchecked,
        targets: Sequence[str] = (),
        weight: str | None = None,
        **options: Unchecked,
    ) -> None:
        given = SourceOptions(tuple(targets), weight, schema=schema, **options)
        stream = column_stream(source, given)
        self.names = [name for name in stream.names if name not in (*targets, weight)]
        self._reader = EncodedReader(stream, name_of(source), given)
        self._reader.prepare(as_progress(None))

    @property
    def schema(self) -> Schema:
        """Complete."""
        return self._reader.schema

    def batches(self) -> Iterator[Float]:
        """Features (b, p), batch by batch."""
        for batch in self._reader.batches():
            yield batch.X


def as_arrow(frame: Unchecked) -> Untyped:
    """A frame as a table of Arrow; one of Dask is computed.

    Raises
    ------
    DTypeError, EmptyDataError, ShapeError
        As of `ingest`.
    """
    whole = frame.compute(scheduler="synchronous") if is_dask_frame(frame) else frame
    return FrameStream(whole, name_of(frame)).table
