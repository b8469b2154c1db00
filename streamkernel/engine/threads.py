"""Sweeps on threads of this process: kernels and BLAS release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from itertools import islice
from queue import SimpleQueue
from threading import Event, Lock
from typing import TypeVar

from streamkernel.engine._chunk_writer import ChunkWriter
from streamkernel.engine._state_memory import StateMemory
from streamkernel.engine._tasks import Advance, Receiver, Writing, map_spans, write_span
from streamkernel.engine._tree import PairingTree
from streamkernel.engine.layout import Layout
from streamkernel.engine.peak_memory import limit_heaps
from streamkernel.reductions import RowMap, State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.store import RowSink
from streamkernel.table import Table

T = TypeVar("T")


class _Over(Exception):
    """Another thread has failed, or the user has interrupted: this one need not go on."""


def available_cpus() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ThreadExecutor:
    """Runs tasks on `threads` threads.

    Parameters
    ----------
    threads : number of threads; default all cores this process may use.
    order : permutes the order of submission; for tests that the bits do not depend on it.
    """

    name = "threads"
    remote = False

    def __init__(self, threads: int | None = None, order: Callable[[list[int]], list[int]] | None = None) -> None:
        limit_heaps()
        self.n_workers = 0
        self.threads_per_worker = threads or available_cpus()
        self._order = order or (lambda leaves: leaves)

    def _run(self, count: int, task: Callable[[int], T], done: Callable[[int, T], None]) -> None:
        """Run task(i) for all i, with at most two outstanding per thread, so that results never pile up."""
        leaves = iter(self._order(list(range(count))))
        if self.threads_per_worker == 1 or count == 1:
            for leaf in leaves:
                done(leaf, task(leaf))
            return
        with ThreadPoolExecutor(self.threads_per_worker, thread_name_prefix="streamkernel") as pool:
            running: dict[Future[T], int] = {}

            def submit(some: Iterable[int]) -> None:
                running.update({pool.submit(task, leaf): leaf for leaf in some})

            submit(islice(leaves, 2 * self.threads_per_worker))
            try:
                while running:
                    finished, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in finished:
                        done(running.pop(future), future.result())
                        submit(islice(leaves, 1))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def side_by_side(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """The results of independent tasks, in their order."""
        results: dict[int, T] = {}
        self._run(len(tasks), lambda index: tasks[index](), results.__setitem__)
        return [results[index] for index in range(len(tasks))]

    def reduce(self, reduction: AnyReduction, table: Table, layout: Layout, advance: Advance) -> State:
        spans = layout.spans
        memory = StateMemory(reduction)
        tree: PairingTree[State] = PairingTree(len(spans), memory.absorb)
        leaves, lock = iter(self._order(list(range(len(spans))))), Lock()
        count = min(self.threads_per_worker, len(spans))

        def taken() -> Iterator[tuple[int, tuple[int, int]]]:
            """The leaves of one thread: the next one that no other has, as soon as its rows can be read."""
            while True:
                with lock:
                    leaf = next(leaves, None)
                if leaf is None:
                    return
                yield leaf, spans[leaf]

        def rows(leaf: int) -> int:
            return spans[leaf][1] - spans[leaf][0]

        if count == 1:

            def add(leaf: int, state: State) -> None:
                tree.add(leaf, memory.sealed(state))
                advance(rows(leaf))

            map_spans(table, reduction, taken(), layout.block_rows, add, memory.empty)
            return tree.root()

        made: SimpleQueue[int | None] = SimpleQueue()  # leaves; None for a thread that has ended
        over = Event()

        def done(leaf: int, state: State) -> None:
            if over.is_set():
                raise _Over
            tree.add(leaf, memory.sealed(state))
            made.put(leaf)

        with ThreadPoolExecutor(count, thread_name_prefix="streamkernel") as pool:
            try:
                running = [
                    pool.submit(map_spans, table, reduction, taken(), layout.block_rows, done, memory.empty)
                    for _ in range(count)
                ]
                for future in running:
                    future.add_done_callback(lambda future: made.put(None))
                at_work = count
                while at_work:
                    leaf = made.get()
                    if leaf is not None:
                        advance(rows(leaf))
                        continue
                    at_work -= 1
                    for future in running:
                        if future.done():
                            future.result()
            except BaseException:
                over.set()
                raise
        return tree.root()

    def write(
        self, rows: RowMap, table: Table, sink: RowSink, layout: Layout, advance: Advance, written: Receiver
    ) -> None:
        with ExitStack() as stack:
            writers: SimpleQueue[ChunkWriter] = SimpleQueue()
            for _ in range(self.threads_per_worker):
                writers.put(stack.enter_context(ChunkWriter(sink)))

            def task(leaf: int) -> Writing:
                writer = writers.get_nowait()
                try:
                    return write_span(table, rows, writer, layout.spans[leaf], layout.block_rows)
                finally:
                    writers.put(writer)

            def done(leaf: int, result: Writing) -> None:
                # The last chunk may still be being written, while the thread computes the next span.
                written(leaf, result.wait())
                start, stop = layout.spans[leaf]
                advance(stop - start)

            self._run(len(layout.spans), task, done)

    def peak_bytes(self) -> int:
        return 0  # the session's meter sees this process and its children

    def worker_limit(self) -> int | None:
        return None
