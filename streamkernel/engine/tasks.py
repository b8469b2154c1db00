"""What one task does, in whatever process: pure functions of (table, reduction, span)."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import Reduction, RowMap, State
from streamkernel.store import RowSink
from streamkernel.table import RowBlock, Table

__all__ = ["Written", "map_span", "write_span"]


def map_span(table: Table, reduction: Reduction[Any], span: tuple[int, int], block_rows: int) -> State:
    """State of one span: its blocks, one after another in the order of their rows."""
    state: State | None = None
    with single_threaded_blas():
        for block in table.blocks(*span, block_rows):
            state = reduction.map_block(block) if state is None else reduction.fold(state, block)
    assert state is not None
    return state


@dataclass(frozen=True)
class Written:
    """What became of one span: digests of its chunks, and the summary of its rows where one was asked for."""

    digests: dict[str, str]
    summary: State | None


def write_span(table: Table, rows: RowMap, sink: RowSink, span: tuple[int, int], block_rows: int) -> Written:
    """Compute and write the values of one span, chunk by chunk; what an earlier run finished is read back instead."""
    digests: dict[str, str] = {}
    state: State | None = None
    first, last = span[0] - table.start, span[1] - table.start
    # The disk has one chunk to write while the next is computed.
    with single_threaded_blas(), ThreadPoolExecutor(1, thread_name_prefix="streamkernel-write") as disk:
        writing: Future[dict[str, str]] | None = None
        for start in range(first, last, sink.chunk_rows):
            stop = min(start + sink.chunk_rows, last)
            finished = sink.is_finished(start, stop)
            values = {} if finished else _values(table, rows, sink, start, stop, block_rows)
            if writing is not None:
                digests |= writing.result()
            writing = disk.submit(_write, sink, start, values)
            if rows.summary is not None:
                name, reduction = rows.summary
                block = RowBlock(start, sink.read(name, start, stop) if finished else values[name], None)
                state = reduction.map_block(block) if state is None else reduction.fold(state, block)
        if writing is not None:
            digests |= writing.result()
    return Written(digests, state)


def _write(sink: RowSink, start: int, values: dict[str, NDArray[Any]]) -> dict[str, str]:
    digests: dict[str, str] = {}
    for name, chunk in values.items():
        digests |= sink.write(name, start, chunk)
    return digests


def _values(
    table: Table, rows: RowMap, sink: RowSink, start: int, stop: int, block_rows: int
) -> dict[str, NDArray[Any]]:
    """Values of one chunk, rows counted from 0.

    Its blocks are its own, though a chunk of the table may be decoded again for the next one: what BLAS makes of a row
    depends on the block it stands in, and a resumed run computes fewer chunks.
    """
    values = {name: np.empty(column.shape(stop - start), column.dtype) for name, column in sink.columns.items()}
    for block in table.blocks(start + table.start, stop + table.start, block_rows):
        at = block.start - table.start - start
        for name, part in rows.map_block(block).items():
            values[name][at : at + len(block)] = part
    return values
