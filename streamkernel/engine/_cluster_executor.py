"""Sweeps on the workers of a Dask client.

Tasks have explicit keys (run/sweep/leaf) and ``pure=False``; table and reduction travel once, as the result of a task
that any worker can repeat; at most four leaves a thread are outstanding; combining follows the fixed tree, so that a
lost worker costs time and never a bit (docs/reliability.md, rules 7 to 10, 15, 17).
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from distributed import Client, KilledWorker, as_completed

from streamkernel.engine._cluster_tasks import combine_states, hold, map_leaf, write_leaf
from streamkernel.engine._killed_worker import blame, killed_worker
from streamkernel.engine._tasks import Advance, Receiver
from streamkernel.engine._tree import PairingTree
from streamkernel.engine.cluster_state import ClosedClientError, NoValidWorkerError, NoWorkerError
from streamkernel.engine.layout import Layout
from streamkernel.engine.lost_cluster import scheduler_of, translated_loss
from streamkernel.engine.peak_memory import peak_resident_bytes
from streamkernel.engine.versions import check_versions
from streamkernel.engine.worker_warm_up import granted_bytes
from streamkernel.errors import ClusterError, StreamKernelError
from streamkernel.reductions import RowMap, State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.store import RowSink
from streamkernel.table import Table
from streamkernel.type_aliases import Unchecked

if TYPE_CHECKING:
    from distributed import Future as _Future

    Future = _Future[Any]  # a class without parameters before distributed 2025.12

_OUTSTANDING = 4
_ANSWER = 600.0  # seconds for the transfer of a finished result


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
        self._sent: tuple[Any, ...] = ()
        self._futures: WeakSet[Future] = WeakSet()
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
        self._threads = sum(threads)

    @property
    def client(self) -> Client:
        """The client that it was made with."""
        return self._client

    # --- one sweep ---------------------------------------------------------------------------------------------------

    def reduce(self, reduction: AnyReduction, table: Table, layout: Layout, advance: Advance) -> State:
        with self._sweep(table, reduction, layout.block_rows) as (prefix, payload):
            count = iter(range(1, 2 * len(layout.spans)))

            def combine(left: Future, right: Future) -> Future:
                return self._submit(combine_states, f"{prefix}/node-{next(count)}", payload, left, right)

            tree: PairingTree[Future] = PairingTree(len(layout.spans), combine)
            self._leaves(map_leaf, prefix, payload, layout, advance, submitted=tree.add)
            try:
                root: State = self._result(tree.root(), "the tree of sums")
            except KilledWorker as error:
                raise killed_worker(self._client, error, "a task that adds up sums") from error
            return root

    def write(
        self, rows: RowMap, table: Table, sink: RowSink, layout: Layout, advance: Advance, written: Receiver
    ) -> None:
        with self._sweep(table, rows, sink, layout.block_rows) as (prefix, payload):
            self._leaves(write_leaf, prefix, payload, layout, advance, finished=written)

    @contextlib.contextmanager
    def _sweep(self, *payload: Any) -> Iterator[tuple[str, Future]]:
        self._sweeps += 1
        prefix = f"{self._run_id}/{self._sweeps}"
        self._sent = payload
        with self._translated_loss(f"during sweep {self._sweeps}"):
            yield prefix, self._submit(hold, f"{prefix}/payload", *payload)
            if self.remote:
                self._check_versions()

    def _check_versions(self) -> None:
        """Raise for workers of other versions, also those that joined during a sweep; their sums are then not used."""
        there = set(self._client.nthreads())
        if there - self._checked:
            check_versions(self._client)
            self._checked = there

    def _leaves(
        self,
        task: Callable[..., Any],
        prefix: str,
        payload: Future,
        layout: Layout,
        advance: Advance,
        submitted: Callable[[int, Future], None] | None = None,
        finished: Callable[[int, Any], None] | None = None,
    ) -> None:
        """Submit a task for every span, a bounded number at a time, in the order of submission."""
        spans = layout.spans
        leaves = iter(self._order(list(range(len(spans)))))
        running: dict[Future, int] = {}
        completed = as_completed(loop=self._client.loop)  # this client's loop, not that of the default client

        def submit_next() -> None:
            leaf = next(leaves, None)
            if leaf is None:
                return
            future = self._submit(task, f"{prefix}/leaf-{leaf}", payload, spans[leaf])
            running[future] = leaf
            if submitted is not None:
                submitted(leaf, future)
            completed.add(future)

        for _ in range(_OUTSTANDING * self._threads):
            submit_next()
        while running:
            self._await(completed.has_ready)
            future = next(completed)
            leaf = running.pop(future)
            start, stop = spans[leaf]
            if future.status != "finished":
                try:
                    self._result(future, f"rows {start}:{stop}")
                except KilledWorker as error:
                    suspects = [spans[each] for each in (leaf, *sorted(running.values()))]
                    raise self._killed(task, prefix, suspects, error) from error
            if finished is not None:
                finished(leaf, future.result(_ANSWER))
            advance(stop - start)
            submit_next()

    def _killed(
        self, task: Callable[..., Any], prefix: str, suspects: list[tuple[int, int]], error: KilledWorker
    ) -> StreamKernelError:
        """The error for tasks on workers that died; `blame` finds the one that caused it."""
        # Release, not cancel: the scheduler fails on a cancel where a task has raised already (distributed 2026.8).
        for future in list(self._futures):
            future.release()
        payload = self._submit(hold, f"{prefix}/payload-again", *self._sent)

        def attempt(piece: tuple[int, int], worker: str) -> Future:
            key = f"{prefix}/alone-{piece[0]}-{piece[1]}"
            return self._client.submit(task, payload, piece, key=key, pure=False, workers=[worker])

        table, work, *_ = self._sent
        return blame(self._client, error, suspects, (work, table), attempt)

    def _submit(self, function: Callable[..., Any], key: str, *arguments: Unchecked) -> Future:
        future = self._client.submit(function, *arguments, key=key, pure=False)
        self._futures.add(future)
        return future

    def _await(self, ready: Callable[[], bool]) -> None:
        """Wait in short intervals, because a client that another thread closes may not wake this one.

        Closing does not cancel a future that is submitted or awaited at that moment, and its event loop is gone.
        """
        pause = 0.001
        while not ready():
            if self._client.status == "closed" and not ready():
                raise ClosedClientError("the client was closed")
            time.sleep(pause)
            pause = min(2 * pause, 0.02)

    def _result(self, future: Future, what: str) -> Any:
        self._await(future.done)
        try:
            return future.result(_ANSWER)
        except (NoValidWorkerError, NoWorkerError) as error:
            raise ClusterError(f"no worker is left for {what}; start workers and resume") from error

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
