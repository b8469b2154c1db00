"""A writer that writes chunks of an output while the next ones are computed."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from streamkernel.store import RowSink, page_aligned
from streamkernel.type_aliases import AnyArray


class ChunkWriter:
    """One writing thread and two alternating sets of buffers: new memory would cost as much as a write.

    One computing thread uses it at a time, for any number of spans. When it is closed, all given chunks are written.
    """

    def __init__(self, sink: RowSink) -> None:
        self.sink = sink
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="streamkernel-write")
        self._turns: list[tuple[dict[str, AnyArray], Future[dict[str, str]] | None]] = []

    def buffers(self, rows: int) -> dict[str, AnyArray]:
        """Arrays for `rows` rows, to fill and pass to `write`; waits until their former content is on the disk."""
        if len(self._turns) < 2:
            self._turns.append((self._new(), None))
        else:
            arrays, writing = self._turns.pop(0)
            if writing is not None:
                writing.exception()  # the caller of result() gets the error
            self._turns.append((arrays, None))
        return {name: array[:rows] for name, array in self._turns[-1][0].items()}

    def write(self, start: int, values: dict[str, AnyArray]) -> Future[dict[str, str]]:
        """Begin to write the filled buffers as chunks from row `start` on; the future gives their digests by key."""
        writing = self._thread.submit(self._write, start, values)
        self._turns[-1] = self._turns[-1][0], writing
        return writing

    def _write(self, start: int, values: dict[str, AnyArray]) -> dict[str, str]:
        digests: dict[str, str] = {}
        for name, chunk in values.items():
            digests |= self.sink.write(name, start, chunk)
        return digests

    def _new(self) -> dict[str, AnyArray]:
        rows = self.sink.chunk_rows
        return {
            name: page_aligned(column.shape(rows), np.dtype(column.dtype)) for name, column in self.sink.columns.items()
        }

    def __enter__(self) -> ChunkWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._thread.shutdown()
