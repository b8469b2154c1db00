"""Files of typed columns, Parquet and Arrow, as streams of record batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from streamkernel.blobs import first_line
from streamkernel.errors import SourceFormatError
from streamkernel.table.ingest.readers.files import SourceFile
from streamkernel.type_aliases import Untyped

_ARROW_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"


class ColumnFile(ABC):
    """A file of typed columns.

    Attributes
    ----------
    schema, n_rows
        Arrow's schema; number of rows.
    """

    schema: Untyped
    n_rows: int

    def __init__(self, file: SourceFile) -> None:
        self.file = file

    @abstractmethod
    def batches(self, rows: int) -> Iterator[Untyped]:
        """Record batches of at most so many rows.

        Raises
        ------
        SourceFormatError
            The file is damaged.
        """

    @contextmanager
    def _damage(self, what: str) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, EOFError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # pyarrow raises a bare one for damage
                raise
            if "crypt" in str(error):  # keys, footers and columns have messages of their own
                what = "is encrypted ({}); write it without encryption"
            raise SourceFormatError(f"{self.file} {what.format(first_line(error))}") from error


class ParquetFile(ColumnFile):
    """A Parquet file, read by pages."""

    def __init__(self, file: SourceFile) -> None:
        super().__init__(file)
        with (
            self._damage("is not a Parquet file ({}); check or fetch it again"),
            pq.ParquetFile(file.path) as source,
        ):
            self.schema, self.n_rows = source.schema_arrow, int(source.metadata.num_rows)

    def batches(self, rows: int) -> Iterator[Untyped]:
        with (
            self._damage("is damaged ({}); fetch it again"),
            pq.ParquetFile(self.file.path, pre_buffer=False, buffer_size=1 << 20) as source,
        ):
            yield from source.iter_batches(batch_size=rows)


class ArrowFile(ColumnFile):
    """An Arrow file (.arrow, .feather) or stream, by a memory map; of a compressed one a record batch is in memory."""

    def __init__(self, file: SourceFile) -> None:
        super().__init__(file)
        with open(file.path, "rb") as handle:
            start = handle.read(len(_ARROW_FILE))
        if start.startswith(_FEATHER_1):
            raise SourceFormatError(f"{file} is Feather of version 1; write it with version 2 (pyarrow.feather)")
        self._stream = start != _ARROW_FILE
        with self._damage("is not an Arrow file ({}); check or fetch it again"), ExitStack() as stack:
            self.schema = self._open(stack, pa.ipc.IpcReadOptions())[1].schema
            # Numbers of rows stand with the batches: one column of each is read.
            source, reader = self._open(stack, pa.ipc.IpcReadOptions(included_fields=[0]))
            self.n_rows = sum(batch.num_rows for batch in self._batches(reader))
            if self._stream and source.tell() < source.size():
                raise SourceFormatError(
                    f"{file} goes on after the end of its Arrow stream, as files do that were joined; give each as a "
                    "file of its own"
                )

    def _open(self, stack: ExitStack, options: Untyped) -> tuple[Untyped, Untyped]:
        """The memory map of the file, and the reader of its batches."""
        source = stack.enter_context(pa.memory_map(str(self.file.path)))
        opened = pa.ipc.open_stream if self._stream else pa.ipc.open_file
        return source, stack.enter_context(opened(source, options=options))

    def _batches(self, reader: Untyped) -> Iterator[Untyped]:
        if self._stream:
            yield from reader
        else:
            yield from (reader.get_batch(index) for index in range(reader.num_record_batches))

    def batches(self, rows: int) -> Iterator[Untyped]:
        with self._damage("is damaged ({}); fetch it again"), ExitStack() as stack:
            for batch in self._batches(self._open(stack, pa.ipc.IpcReadOptions())[1]):
                # A damaged batch could point beyond its bytes.
                batch.validate(full=True)
                for first in range(0, batch.num_rows, rows):
                    yield batch.slice(first, rows)


def column_file(file: SourceFile) -> ColumnFile:
    """The file, opened by its kind."""
    return ParquetFile(file) if file.kind == "Parquet" else ArrowFile(file)
