"""Sweeps on the workers of a Dask client.

Tasks have explicit keys (run/sweep/leaf) and ``pure=False``; table and reduction travel once, as the result of a task
that any worker can repeat; at most four leaves a thread are outstanding; combining follows the fixed tree, so that a
lost worker costs time and never a bit (docs/reliability.md, rules 7 to 10, 15, 17). Workers may come and go during a
sweep: the driver looks at them four times a second.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from distributed import Client

from streamkernel.engine._cluster_sweep import ClusterSweep
from streamkernel.engine._cluster_tasks import map_leaf, write_leaf
from streamkernel.engine._leaf_queue import LeafQueue
from streamkernel.engine._state_tree import StateTree
from streamkernel.engine._tasks import Advance, Receiver
from streamkernel.engine.layout import Layout
from streamkernel.engine.lost_cluster import scheduler_of, translated_loss
from streamkernel.engine.peak_memory import peak_resident_bytes
from streamkernel.engine.versions import check_versions
from streamkernel.engine.worker_warm_up import granted_bytes
from streamkernel.errors import ClusterError
from streamkernel.reductions import RowMap, State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.store import RowSink
from streamkernel.table import Table

if TYPE_CHECKING:
    from distributed import Future as _Future

    Future = _Future[Any]  # a class without parameters before distributed 2025.12

_STATES = 3  # of each thread, beside those that wait in the tree: one at work, two that wait to be combined


@dataclass(frozen=True)
class DriverCost:
    """The driver's part of a sweep: its tasks (leaves, sums, copies), and seconds of this process for all of them.

    The scheduler's seconds are part of it where it runs in this process, as that of a local cluster does.
    """

    tasks: int
    seconds: float


def _room(tree: StateTree, queue: LeafQueue, most: int) -> bool:
    """Whether the workers have memory for the state of one more leaf."""
    return tree.held + queue.running < most


class ClusterExecutor:
    """Runs tasks on the workers of a Dask client.

    Parameters
    ----------
    client : a connected, synchronous client.
    order : permutes the order of submission; for tests that the bits do not depend on it.
    remote : whether the workers are not children of this process; they then report their own memory.
    """

    name = "cluster"

    def __init__(
        self, client: Client, *, order: Callable[[list[int]], list[int]] | None = None, remote: bool = True
    ) -> None:
        self._client = client
        self._scheduler = f"the scheduler at {scheduler_of(client)}"  # a client that lost it has no address
        self._order = order or (lambda leaves: leaves)
        self._run_id = uuid.uuid4().hex[:12]
        self._sweeps = 0
        self.costs: list[DriverCost] = []  # of each sweep
        self.remote = remote
        threads = list(client.nthreads().values())
        if not threads:
            raise ClusterError(f"{self._scheduler} has no workers; start some and try again")
        self._checked: set[str] = set()  # addresses of workers whose versions were checked
        if remote:
            with self._translated_loss("before the first sweep"):
                self._check_versions()
        self.n_workers = len(threads)
        self.threads_per_worker = max(threads)

    @property
    def client(self) -> Client:
        """The client that it was made with."""
        return self._client

    # --- one sweep ---------------------------------------------------------------------------------------------------

    def reduce(self, reduction: AnyReduction, table: Table, layout: Layout, advance: Advance) -> State:
        spans = layout.spans
        with self._sweep(map_leaf, spans, table, reduction, layout.block_rows) as sweep:
            work = [(stop - start) * max(reduction.flops_per_row(), 1.0) for start, stop in spans]
            tree = StateTree(sweep, sweep.completions, work, sweep.threads, reduction.state_bytes())

            def finished(leaf: int, future: Future) -> None:
                tree.add(leaf, future)
                advance(spans[leaf][1] - spans[leaf][0])

            queue = LeafQueue(sweep, sweep.completions, self._order(list(range(len(spans)))), finished, twice=True)
            while (root := tree.root()) is None:
                if sweep.look():
                    queue.hurry(sweep.threads)
                # What the plan counts for each worker, of the states that are there or at work.
                most = min(sweep.workers, 2) * len(spans).bit_length() + _STATES * sweep.threads
                queue.fill(sweep.threads, partial(_room, tree, queue, most))
                sweep.completions.handle()
                tree.mend()
            state: State = sweep.sums(root)
            return state

    def write(
        self, rows: RowMap, table: Table, sink: RowSink, layout: Layout, advance: Advance, written: Receiver
    ) -> None:
        spans = layout.spans
        with self._sweep(write_leaf, spans, table, rows, sink, layout.block_rows) as sweep:

            def finished(leaf: int, future: Future) -> None:
                written(leaf, sweep.result(future, "rows {}:{}".format(*spans[leaf])))
                advance(spans[leaf][1] - spans[leaf][0])

            queue = LeafQueue(sweep, sweep.completions, self._order(list(range(len(spans)))), finished, twice=False)
            while not queue.over:
                sweep.look()
                queue.fill(sweep.threads, lambda: True)
                sweep.completions.handle()

    @contextlib.contextmanager
    def _sweep(
        self, task: Callable[..., Any], spans: Sequence[tuple[int, int]], *payload: Any
    ) -> Iterator[ClusterSweep]:
        self._sweeps += 1
        began = time.process_time()
        with self._translated_loss(f"during sweep {self._sweeps}"):
            sweep = ClusterSweep(self._client, f"{self._run_id}/{self._sweeps}", payload, task, spans)
            sweep.look()
            yield sweep
            self.costs.append(DriverCost(sweep.tasks, time.process_time() - began))
            if self.remote:
                self._check_versions()

    def _check_versions(self) -> None:
        """Raise for workers of other versions, also those that joined during a sweep; their sums are then not used."""
        there = set(self._client.nthreads())
        if there - self._checked:
            check_versions(self._client)
            self._checked = there

    # --- the cluster -------------------------------------------------------------------------------------------------

    def _translated_loss(self, when: str) -> contextlib.AbstractContextManager[None]:
        return translated_loss(self._scheduler, when, "start it again and resume from the last checkpoint")

    def worker_limit(self) -> int | None:
        """The smallest memory limit of a worker, bytes; beyond it Dask, the container or the job ends the worker.

        None where no worker has a limit. Workers with a common limit share it equally.
        """
        with self._translated_loss("before the first sweep"):
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
            granted = granted_bytes(self._client) if self.remote else []
        found = [int(worker["memory_limit"]) for worker in workers if worker["memory_limit"]]
        return min([*found, *granted], default=None)

    def peak_bytes(self) -> int:
        """Peak resident bytes of remote workers, which the session's own meter does not see."""
        if not self.remote:
            return 0
        with self._translated_loss("after the last sweep"):
            return sum(self._client.run(peak_resident_bytes, on_error="ignore").values())
