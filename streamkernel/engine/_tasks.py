"""The work of one task, in any process: pure functions of (table, reduction, span)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from streamkernel.engine._chunk_writer import ChunkWriter
from streamkernel.engine.layout import aligned_blocks
from streamkernel.linalg import single_threaded_blas, within_range
from streamkernel.reductions import RowMap, State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.table import RowBlock, Table
from streamkernel.type_aliases import AnyArray


def map_span(table: Table, reduction: AnyReduction, span: tuple[int, int], block_rows: int) -> State:
    """State of one span: its blocks are folded one after another, in the order of their rows."""
    multiple = reduction.row_multiple
    assert (span[0] - table.start) % multiple == 0, "the span does not begin where a member does"
    state = reduction.empty()
    with single_threaded_blas(), within_range():
        runs = aligned_blocks(*span, block_rows, multiple)
        for block in table.blocks_between(runs, max(block_rows, multiple)):
            state = reduction.map_block(block) if state is None else reduction.fold(state, block)
    assert state is not None
    return state


@dataclass(frozen=True)
class Written:
    """The result of a written span: digests of its chunks, and the summary of its rows where the row map has one."""

    digests: dict[str, str]
    summary: State | None


Advance = Callable[[int], None]
"""Function that is called with the number of rows of each finished task."""

Receiver = Callable[[int, Written], None]
"""Function that is called with the number of each written span and its result."""


@dataclass(frozen=True)
class Writing:
    """A computed span whose last chunks are still being written."""

    chunks: list[Future[dict[str, str]]]
    summary: State | None

    def wait(self) -> Written:
        """Wait for the writes and return the result; raises an error of the writes."""
        digests: dict[str, str] = {}
        for chunk in self.chunks:
            digests |= chunk.result()
        return Written(digests, self.summary)


def write_span(table: Table, rows: RowMap, writer: ChunkWriter, span: tuple[int, int], block_rows: int) -> Writing:
    """Compute and write the values of one span, chunk by chunk; chunks of an earlier run are read back instead.

    A block never holds rows of two chunks: the result of BLAS for a row depends on its block, and a resumed run
    computes fewer chunks.
    """
    sink = writer.sink
    first, last = span[0] - table.start, span[1] - table.start
    chunks = [(start, min(start + sink.chunk_rows, last)) for start in range(first, last, sink.chunk_rows)]
    finished = {start for start, stop in chunks if sink.is_finished(start, stop)}
    runs = [(start + table.start, stop + table.start) for start, stop in chunks if start not in finished]
    blocks = table.blocks_between(runs, block_rows)
    writing: list[Future[dict[str, str]]] = []
    state: State | None = None
    with single_threaded_blas():
        for start, stop in chunks:
            values: dict[str, AnyArray] = {}
            if start not in finished:
                values = writer.buffers(stop - start)
                _fill(values, rows, blocks, start + table.start)
                writing.append(writer.write(start, values))
            if rows.summary is not None:
                name, reduction = rows.summary
                block = RowBlock(start, sink.read(name, start, stop) if start in finished else values[name], None)
                state = reduction.map_block(block) if state is None else reduction.fold(state, block)
    return Writing(writing, state)


def _fill(values: dict[str, AnyArray], rows: RowMap, blocks: Iterator[RowBlock], start: int) -> None:
    """Fill in the values of one chunk, whose first row is `start`, from the next blocks."""
    size, at = min(map(len, values.values())), 0
    while at < size:
        block = next(blocks)
        at = block.start - start
        rows.fill(block, {name: array[at : at + len(block)] for name, array in values.items()})
        at += len(block)
