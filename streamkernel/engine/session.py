"""A session runs the sweeps of one fit: in order, with counts, times, checkpoints and progress."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

from streamkernel.engine._tasks import Written
from streamkernel.engine._tree import PairingTree
from streamkernel.engine.executor import Executor
from streamkernel.engine.layout import (
    Layout,
    Parts,
    aligned_spans,
    block_rows_of,
    equal_leaves,
    equal_spans,
    leaf_count,
    span_rows,
    worth_sending,
)
from streamkernel.engine.peak_memory import release_freed
from streamkernel.engine.plan import TableShape
from streamkernel.engine.progress import Progress, Silent, tell_pass
from streamkernel.engine.threads import ThreadExecutor
from streamkernel.outputs import TemporaryFolder
from streamkernel.records import SweepRecord
from streamkernel.reductions import Reduction, RowMap, State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.store import RowSink
from streamkernel.table import Table, repeated

Result = TypeVar("Result")
T = TypeVar("T")


class Checkpointing(Protocol):
    """The store for the states of a session's sweeps, such as `streamkernel.store.Checkpoints`."""

    def load(self, step: int, name: str) -> State | None:
        """The state saved as step number `step` under a name; None where there is none that can be used."""

    def save(self, step: int, name: str, state: State) -> None:
        """Save the final state of a sweep."""

    @property
    def rows_folder(self) -> Path | None:
        """A folder for values of rows that lasts as long as the states; None where there is none."""


def layout_of(work: AnyReduction | RowMap, table: Table) -> Layout:
    """The spans and blocks of a table for this work; they depend only on these two."""
    multiple = work.row_multiple if isinstance(work, Reduction) else 1
    shape = TableShape.of(table)
    cut = table.n_rows, work.flops_per_row(), shape.row_bytes
    equal = equal_leaves(*cut, shape.chunk_rows)
    spans = equal_spans(table.start, table.stop, equal) if equal else table.spans(span_rows(*cut))
    return Layout(aligned_spans(spans, multiple), block_rows_of(work, shape.cut_bytes))


class Session:
    """Runs reductions over tables.

    Parameters
    ----------
    executor : executor of the sweeps over the data; default threads of this process.
    progress : receiver of progress.
    checkpoints : store for the state of each finished sweep. A session that finds the states of an earlier one there
        uses them instead of a new sweep. Everything between two sweeps is a function of their states, so that a resumed
        run gives the same bits as an uninterrupted one.
    """

    def __init__(
        self,
        executor: Executor | None = None,
        *,
        progress: Progress | None = None,
        checkpoints: Checkpointing | None = None,
    ) -> None:
        self.executor: Executor = executor or ThreadExecutor()
        self.progress: Progress = progress or Silent()
        self.records: list[SweepRecord] = []
        self._checkpoints = checkpoints
        self._driver = self.executor if isinstance(self.executor, ThreadExecutor) else ThreadExecutor()

    def sweep(self, reduction: Reduction[Result], table: Table, name: str) -> Result:
        """One pass over the rows of a table.

        Raises
        ------
        InputChangedError, MissingChunkError
            The table has changed since it was opened.
        """
        step = len(self.records)
        began = time.perf_counter()
        saved_as = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:60]
        state = self._checkpoints.load(step, saved_as) if self._checkpoints is not None else None
        resumed = state is not None
        layout = layout_of(reduction, table)
        if state is None:
            table.check_unchanged()
            self.progress.begin(name, table.n_rows, len(layout.spans))
            state = self.executor.reduce(reduction, table, layout, self.progress.advance)
            table.check_read()
            if self._checkpoints is not None:
                self._checkpoints.save(step, saved_as, state)
        seconds = time.perf_counter() - began
        self.records.append(SweepRecord(name, seconds, table.n_rows, len(layout.spans), resumed))
        self.progress.end(seconds)
        release_freed(reduction.state_bytes())
        return reduction.finalize(reduction.opened(state))

    @contextmanager
    def rows_folder(self) -> Iterator[Path | None]:
        """A folder for values of rows, which tasks write and those of later sweeps read; removed after the block.

        It is beside the checkpoints, and then stays after an error, for a run that resumes; without checkpoints it is a
        temporary folder. None where workers are of other machines, which may share no folder, and where none can be
        made.
        """
        if self.executor.remote:
            yield None
            return
        kept = None if self._checkpoints is None else self._checkpoints.rows_folder
        folder: Path | None = None
        with ExitStack() as stack:
            with suppress(OSError):
                if kept is None:
                    folder = stack.enter_context(TemporaryFolder())
                else:
                    kept.mkdir(exist_ok=True)
                    folder = kept
            yield folder
        if kept is not None and folder == kept:
            shutil.rmtree(kept, ignore_errors=True)

    def local(self, reduction: Reduction[Result], table: Table) -> Result:
        """The result of a reduction over a sample in memory, on the driver's threads; not a sweep over the data."""
        return self._over_sample(self._driver, reduction, table)

    def shared(self, reduction: Reduction[Result], table: Table) -> Result:
        """As `local`, with the same bits, on the workers of a cluster if there is enough work (`worth_sending`).

        The workers would wait meanwhile, and a driver may have a core where they have a thousand.
        """
        executor = self.executor if worth_sending(table.n_rows * reduction.flops_per_row()) else self._driver
        divided = reduction.divided(table.n_rows) if executor.n_workers else None
        if divided is None:
            return self._over_sample(executor, reduction, table)
        layout, workers = layout_of(reduction, table), executor.n_workers
        threads = workers * executor.threads_per_worker
        if not Parts.of(divided).pay(len(layout.spans), reduction.flops_per_row(), threads, workers):
            return self._over_sample(executor, reduction, table)
        # The spans of the whole, for each part anew.
        starts = range(0, divided.parts * table.n_rows, table.n_rows)
        spans = [(start + first, start + stop) for start in starts for first, stop in layout.spans]
        again = repeated(table, divided.parts)
        return self._over_sample(executor, divided.reduction, again, Layout(spans, layout.block_rows))

    def _over_sample(
        self, executor: Executor, reduction: Reduction[Result], table: Table, layout: Layout | None = None
    ) -> Result:
        flops, all_rows = reduction.flops_per_row(), table.n_rows

        def advance(rows: int) -> None:
            tell_pass(self.progress, rows * flops, rows / all_rows)

        state = executor.reduce(reduction, table, layout or layout_of(reduction, table), advance)
        release_freed(reduction.state_bytes())
        return reduction.finalize(reduction.opened(state))

    def side_by_side(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """The results of independent tasks, in their order, on the driver's threads; each may call `local`."""
        return self._driver.side_by_side(tasks)

    def write(self, rows: RowMap, table: Table, sink: RowSink, name: str) -> Any:
        """One pass whose values are written for every row; the sink is complete when this returns.

        Returns
        -------
        object
            Result of the map's `summary` over the stored values; None where it has no summary.
        """
        table.check_unchanged()
        began = time.perf_counter()
        layout = _whole_chunks(rows, table, sink.chunk_rows)
        self.progress.begin(name, table.n_rows, len(layout.spans))
        summary = rows.summary
        tree = None if summary is None else PairingTree[State](len(layout.spans), summary[1].combine)
        digests: dict[str, str] = {}

        def written(leaf: int, result: Written) -> None:
            digests.update(result.digests)
            if tree is not None and result.summary is not None:
                tree.add(leaf, result.summary)

        try:
            self.executor.write(rows, table, sink, layout, self.progress.advance, written)
            table.check_read()
            sink.finish(digests)
        except BaseException:
            sink.abort()
            raise
        seconds = time.perf_counter() - began
        resumed = bool(sink.finished())
        self.records.append(SweepRecord(name, seconds, table.n_rows, len(layout.spans), resumed))
        self.progress.end(seconds)
        return None if summary is None or tree is None else summary[1].finalize(tree.root())


def _whole_chunks(rows: RowMap, table: Table, chunk_rows: int) -> Layout:
    """Spans of whole chunks of the output, nearly equal in number, independent of the table's own chunks."""
    chunks, shape = -(-table.n_rows // chunk_rows), TableShape.of(table)
    count = min(chunks, leaf_count(table.n_rows, rows.flops_per_row(), shape.row_bytes))
    edges = [table.start + chunks * i // count * chunk_rows for i in range(count)] + [table.stop]
    return Layout(list(pairwise(edges)), block_rows_of(rows, shape.cut_bytes))
