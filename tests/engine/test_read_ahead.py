"""Reading ahead: the same blocks, a bounded number of them, and no thread that outlives its task."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import basis_of, table_of_chunks

from streamkernel.engine import Machine, Session, TableShape, ThreadExecutor, make_plan, step_of
from streamkernel.engine._read_ahead import blocks_ahead, read_ahead
from streamkernel.errors import CorruptChunkError, NumericalError
from streamkernel.kernels import Polynomial
from streamkernel.reductions.sums import NormalEquations
from streamkernel.table import RowBlock, Table

SOON = 20.0  # seconds, within which a thread does what it should


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "streamkernel-reader"]


def gone() -> bool:
    """Whether all readers end."""
    for thread in readers():
        thread.join(SOON)
    return not readers()


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_the_items_are_the_same(count: int) -> None:
    with read_ahead(iter(range(20)), count) as items:
        assert list(items) == list(range(20))
    assert not readers()
    with read_ahead(iter(()), count) as nothing:
        assert list(nothing) == []


@pytest.mark.parametrize("count", [1, 3])
def test_so_many_are_made_ahead_and_no_more(count: int) -> None:
    taken, most = [0], [0]
    ahead = threading.Event()

    def made() -> Iterator[int]:
        for number in range(1, 30):
            most[0] = max(most[0], number - taken[0])
            if number - taken[0] == count:
                ahead.set()
            yield number

    with read_ahead(made(), count) as items:
        for number in items:
            taken[0] = number
            # While this one is worked on, the next ones are made.
            assert number > 29 - count or ahead.wait(SOON)
            ahead.clear()
            if number == 5:
                break
    assert most[0] <= count + 1  # the one that was just taken is counted only after it is
    assert not readers()


def test_an_error_comes_in_its_place() -> None:
    def broken() -> Iterator[int]:
        yield 1
        yield 2
        raise CorruptChunkError("chunk 3 is corrupt")

    with read_ahead(broken(), 5) as items:
        assert [next(items), next(items)] == [1, 2]
        with pytest.raises(CorruptChunkError, match="chunk 3"):
            next(items)
    assert not readers()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_task_that_ends_early_leaves_no_thread(error: type[BaseException]) -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    def task() -> None:
        with read_ahead(endless(), 2) as items:
            next(items)
            raise error

    with pytest.raises(error):
        task()
    assert gone()


def test_an_interrupt_does_not_wait_for_a_read() -> None:
    answer = threading.Event()

    def slow() -> Iterator[int]:
        yield 1
        answer.wait(SOON)
        yield 2

    def task() -> None:
        with read_ahead(slow(), 1) as items:
            next(items)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        task()
    assert readers()
    answer.set()
    assert gone()


# ------------------------------------------------------------------------------------------------------------- sweeps
@pytest.fixture
def X() -> Any:
    return np.random.default_rng(0).standard_normal((20_000, 3))


def work_on(X: Any, **options: Any) -> NormalEquations:
    return NormalEquations(basis_of(X, range(10), **options), np.zeros(1))


def test_a_sweep_reads_ahead_with_the_same_bits(X: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = table_of_chunks(tmp_path / "t", X, X[:, 0], 500)
    work = work_on(X)
    found = [Session(ThreadExecutor(threads)).sweep(work, stored, "sums").H for threads in (1, 3)]
    monkeypatch.setattr("streamkernel.engine._tasks.blocks_ahead", lambda *arguments: 0)
    found += [Session(ThreadExecutor(threads)).sweep(work, stored, "sums").H for threads in (1, 3)]
    assert all(np.array_equal(found[0], each) for each in found)


def test_rows_are_read_while_those_before_them_are_worked_on(
    X: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the first rows of the next span: a fold of the last block of one waits until these are there."""
    stored = table_of_chunks(tmp_path / "t", X, X[:, 0], 2000)
    read: dict[int, threading.Event] = {start: threading.Event() for start in range(0, 20_000, 2000)}
    block_of, fold = Table._block, NormalEquations.fold

    def read_block(self: Table, first: int, *arguments: Any) -> RowBlock:
        found = block_of(self, first, *arguments)
        read[first].set()
        return found

    def worked_on(self: NormalEquations, state: Any, block: RowBlock) -> Any:
        assert block.stop == 20_000 or read[block.stop].wait(SOON), "the next rows were not read ahead"
        return fold(self, state, block)

    monkeypatch.setattr(Table, "_block", read_block)
    monkeypatch.setattr(NormalEquations, "fold", worked_on)
    session = Session(ThreadExecutor(1))
    session.sweep(work_on(X), stored, "sums")
    assert session.records[0].tasks > 1
    assert not readers()


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_of_reader_and_work_end_all_threads(
    X: Any, tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = table_of_chunks(tmp_path / "t", X, X[:, 0], 500)
    before = threading.active_count()
    victim = next((tmp_path / "t").rglob("c/7/0"))
    content = victim.read_bytes()
    victim.write_bytes(content[: len(content) // 2])
    session = Session(ThreadExecutor(threads))
    monkeypatch.setattr(Table, "check_unchanged", lambda self: None)
    with pytest.raises(CorruptChunkError, match="c/7/0"):
        session.sweep(work_on(X), stored, "sums")
    assert gone()
    victim.write_bytes(content)
    large = work_on(1e40 * X, kernel=Polynomial(degree=9))
    with pytest.raises(NumericalError):
        session.sweep(large, stored, "sums")
    assert gone()
    assert threading.active_count() <= before


def test_an_overflow_in_the_reader_is_an_error_too() -> None:
    def scaled() -> Iterator[Any]:
        yield np.float64(1e300) * np.float64(1e300)

    with pytest.raises(FloatingPointError), np.errstate(over="raise"), read_ahead(scaled(), 1) as items:
        list(items)


# ------------------------------------------------------------------------------------------------------------- memory
def test_a_chunk_is_read_ahead_and_large_ones_are_not() -> None:
    assert blocks_ahead(65_536, 5 << 20, 4096) == 16
    assert blocks_ahead(1000, 8000, 4096) == 1
    assert blocks_ahead(10_000, 800_000, 8192) == 2
    assert blocks_ahead(1024, 0, 4096) == 0  # in memory
    assert blocks_ahead(1024, 400 << 20, 64) == 0


def test_the_plan_counts_rows_that_are_read_ahead(X: Any, tmp_path: Path) -> None:
    table = table_of_chunks(tmp_path / "t", X, X[:, 0], 2000)
    step = step_of("sums", work_on(X), table, kernel_columns=10)
    shape = TableShape.of(table)
    stored = make_plan([step], shape, Machine(0, 1), disk_bytes=0).task_bytes
    here = make_plan([step], replace(shape, in_memory=True), Machine(0, 1), disk_bytes=0).task_bytes
    # Three times a chunk, the rows of a block as read, and those that are read ahead.
    ahead = step.block_rows * (3 * 8 + 8)
    assert stored - here == 3 * shape.chunk_bytes + step.block_rows * 3 * 8 + ahead
