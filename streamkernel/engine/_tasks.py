"""The work of one task, in any process: pure functions of (table, reduction, span)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from streamkernel.engine._chunk_writer import ChunkWriter
from streamkernel.engine._read_ahead import blocks_ahead, read_ahead
from streamkernel.engine.layout import aligned_blocks
from streamkernel.linalg import BlockMemory, reused_blocks, single_threaded_blas, within_range
from streamkernel.reductions import RowMap, State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.table import RowBlock, Table
from streamkernel.type_aliases import AnyArray


def map_span(table: Table, reduction: AnyReduction, span: tuple[int, int], block_rows: int) -> State:
    """State of one span: its blocks are folded one after another, in the order of their rows."""
    found: list[State] = []
    spans = iter([(0, span)])
    map_spans(table, reduction, spans, block_rows, lambda leaf, state: found.append(state), reduction.empty)
    return found[0]


def map_spans(
    table: Table,
    reduction: AnyReduction,
    spans: Iterator[tuple[int, tuple[int, int]]],
    block_rows: int,
    done: Callable[[int, State], None],
    empty: Callable[[], State | None],
    memory: BlockMemory | None = None,
) -> None:
    """The states of numbered spans, one after another; rows of the next one are read while the last ones are worked on.

    Parameters
    ----------
    done : function that gets the number and the state of each span.
    empty : function for the state to which the first block of a span is added; None where that block makes it.
    memory : memory of the blocks of this and of later calls; None for memory of this call.
    """
    rows = max(block_rows, reduction.row_multiple)
    leaf, state = -1, None
    blocks = _blocks_of_spans(table, reduction.row_multiple, spans, block_rows)
    with (
        single_threaded_blas(),
        within_range(),
        reused_blocks(memory),
        read_ahead(blocks, _ahead(table, rows)) as items,
    ):
        for number, block in items:
            if number != leaf:
                if state is not None:
                    done(leaf, state)
                leaf, state = number, empty()
            state = reduction.map_block(block) if state is None else reduction.fold(state, block)
            del block  # the next one may be made in its place
        if state is not None:
            done(leaf, state)


def _blocks_of_spans(
    table: Table, multiple: int, spans: Iterator[tuple[int, tuple[int, int]]], block_rows: int
) -> Iterator[tuple[int, RowBlock]]:
    for number, span in spans:
        assert (span[0] - table.start) % multiple == 0, "the span does not begin where a member does"
        runs = aligned_blocks(*span, block_rows, multiple)
        for block in table.blocks_between(runs, max(block_rows, multiple)):
            yield number, block


def _ahead(table: Table, block_rows: int) -> int:
    return blocks_ahead(table.chunk_rows, table.chunk_bytes, block_rows)


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
    writing: list[Future[dict[str, str]]] = []
    state: State | None = None
    found = table.blocks_between(runs, block_rows)
    with single_threaded_blas(), read_ahead(found, _ahead(table, block_rows)) as blocks:
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
