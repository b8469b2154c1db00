"""Rows that belong together lie in one block, whatever the chunks, the spans, and who asks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import cuts

from streamkernel.engine import ThreadExecutor, layout_of, step_of
from streamkernel.engine._tasks import map_span
from streamkernel.engine.layout import Layout, aligned_blocks, aligned_spans, block_rows
from streamkernel.engine.plan import Machine, TableShape, make_plan
from streamkernel.reductions import Moments, Reduction, State
from streamkernel.table import RowBlock, open_table


@dataclass(frozen=True)
class Blocks(Reduction[Any]):
    """First row and length of every block, in the order of the rows."""

    multiple: int
    flops: float = 1.0
    row_bytes: int = 8

    @property
    def row_multiple(self) -> int:
        return self.multiple

    def map_block(self, block: RowBlock) -> State:
        return {"blocks": np.array([[block.start, len(block)]])}

    def combine(self, left: State, right: State) -> State:
        return {"blocks": np.concatenate([left["blocks"], right["blocks"]])}

    def finalize(self, state: State) -> Any:
        return state["blocks"]

    def state_bytes(self) -> int:
        return 16

    def scratch_bytes(self, rows: int) -> int:
        return self.row_bytes * rows

    def flops_per_row(self) -> float:
        return self.flops


def assert_aligned(found: Any, start: int, stop: int, multiple: int, most: int) -> None:
    first, length = found.T
    assert first[0] == start
    assert (first[1:] == (first + length)[:-1]).all()
    assert first[-1] + length[-1] == stop
    assert ((first - start) % multiple == 0).all()
    assert (length > 0).all()
    assert length.max() <= max(most, multiple)


@given(data=st.data(), m=st.integers(1, 60), multiple=st.integers(1, 70), threads=st.sampled_from([1, 3]))
def test_blocks_begin_at_whole_multiples(data: st.DataObject, m: int, multiple: int, threads: int) -> None:
    chunks = data.draw(cuts(m))
    start = data.draw(st.integers(0, m - 1))
    stop = data.draw(st.integers(start + 1, m))
    span, most = data.draw(st.integers(1, m)), data.draw(st.integers(1, m))
    table = open_table(da.zeros((m, 1), chunks=(chunks, -1))).slice(start, stop)
    layout = Layout(aligned_spans(table.spans(span), multiple), most)
    work = Blocks(multiple)
    assert_aligned(
        ThreadExecutor(threads).reduce(work, table, layout, lambda rows: None)["blocks"], start, stop, multiple, most
    )


@given(m=st.integers(1, 10**6), multiple=st.integers(1, 50_000), flops=st.floats(1.0, 1e8), first=st.integers(0, 10**6))
def test_spans_of_a_layout_are_cut_where_members_end(m: int, multiple: int, flops: float, first: int) -> None:
    table = open_table(da.zeros((first + m, 1), chunks=(4096, -1))).slice(first, first + m)
    layout = layout_of(Blocks(multiple, flops), table)
    starts, stops = np.array(layout.spans).T
    assert starts[0] == first
    assert stops[-1] == first + m
    assert (starts[1:] == stops[:-1]).all()
    assert ((starts - first) % multiple == 0).all()
    assert (stops > starts).all()
    assert layout.block_rows % multiple == 0
    # Borders move to the nearest multiple: no span loses or gains more than one.
    free = layout_of(Blocks(1, flops), table)
    assert (stops - starts).max() <= max(b - a for a, b in free.spans) + multiple


@given(spans=st.lists(st.integers(1, 9), min_size=1, max_size=9), first=st.integers(0, 99))
def test_a_multiple_of_one_changes_nothing(spans: list[int], first: int) -> None:
    edges = (first + np.concatenate([[0], np.cumsum(spans)])).tolist()
    pairs = list(pairwise(edges))
    assert aligned_spans(pairs, 1) == pairs


@given(start=st.integers(0, 10**6), m=st.integers(1, 5000), rows=st.integers(1, 3000))
def test_blocks_without_members_are_the_tables_own(start: int, m: int, rows: int) -> None:
    table = open_table(da.zeros((start + m, 1), chunks=(1 << 20, -1)))
    own = [(block.start, block.stop) for block in table.blocks(start, start + m, rows)]
    assert aligned_blocks(start, start + m, rows, 1) == own


def test_blocks_share_the_members_evenly() -> None:
    assert aligned_blocks(100, 1100, 400, 100) == [(100, 400), (400, 700), (700, 1100)]
    assert aligned_blocks(0, 950, 299, 100) == [(0, 200), (200, 400), (400, 600), (600, 800), (800, 950)]
    assert aligned_blocks(0, 30, 10, 100) == [(0, 30)]


def test_rows_of_a_block_are_whole_multiples() -> None:
    for bytes_per_row, free in ((8, 8192), (1 << 20, 2048)):

        def scratch(rows: int, bytes_per_row: int = bytes_per_row) -> int:
            return bytes_per_row * rows

        assert block_rows(scratch) == free
        assert block_rows(scratch, 1000) == free // 1000 * 1000
        assert block_rows(scratch, 3000) == max(free // 3000, 1) * 3000
        assert block_rows(scratch, 100_000) == 100_000


def test_a_span_in_the_middle_of_a_member_is_a_mistake() -> None:
    table = open_table(np.zeros((30, 1)))
    with pytest.raises(AssertionError, match="does not begin where a member does"):
        map_span(table, Blocks(10), (5, 30), 10)


def test_the_plan_knows_the_size_of_the_blocks() -> None:
    """A member larger than any block has to fit into memory all the same, and no more than the table's rows."""
    table = TableShape(rows=10**6, features=1, width=1, targets=0, itemsize=8, chunk_rows=1000, in_memory=True)
    scratch = {}
    for multiple in (1, 5000, 100_000):
        step = step_of("members", Blocks(multiple, row_bytes=1 << 14), table.rows, kernel_columns=0)
        assert step.block_rows == max(multiple, 2048)
        assert step.scratch_bytes == step.block_rows << 14
        scratch[multiple] = make_plan([step], table, Machine(0, 1), disk_bytes=0).memory_bytes
    assert scratch[1] < scratch[5000] < scratch[100_000]
    few = step_of("members", Blocks(100_000), 300, kernel_columns=0)
    assert few.scratch_bytes == 8 * 300
    assert step_of("moments", Moments(1, 0), 10**6, kernel_columns=0).block_rows == 16_384
