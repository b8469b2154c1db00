"""Sweeps on the workers of a Dask client.

Tasks have explicit keys (run/sweep/leaf) and ``pure=False``; table and reduction travel once, as the result of a task
that any worker can repeat; leaves are given out as workers come and go (`_leaf_tasks`); combining follows the fixed
tree, whose branches come to the driver (`_branches`), so that a lost worker costs seconds and never a bit
(docs/reliability.md, rules 7 to 10, 15, 17).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import reprlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from distributed import Client, KilledWorker

from streamkernel.engine._branches import Branches, branch_leaves, summed_states
from streamkernel.engine._task_leaves import FixedCut, LeafCut, task_sizes
from streamkernel.engine._tasks import Advance, Receiver
from streamkernel.engine.cluster._branch_sums import BranchSums
from streamkernel.engine.cluster._killed_worker import blame, killed_worker
from streamkernel.engine.cluster._leaf_tasks import LeafTasks
from streamkernel.engine.cluster._paused_workers import PauseWatch
from streamkernel.engine.cluster._worker_tasks import Payload, combine_states, map_leaves, write_leaf
from streamkernel.engine.cluster.cluster_state import (
    FutureCancelledError,
    FuturesCancelledError,
    NoValidWorkerError,
    NoWorkerError,
    await_ready,
    worker_threads,
)
from streamkernel.engine.cluster.lost_cluster import scheduler_of, translated_loss
from streamkernel.engine.cluster.versions import check_versions
from streamkernel.engine.cluster.worker_warm_up import granted_bytes
from streamkernel.engine.layout import Layout, leaf_seconds
from streamkernel.engine.peak_memory import peak_resident_bytes
from streamkernel.engine.plan import TableShape
from streamkernel.errors import ClusterError, ParameterError, StreamKernelError, warn_user
from streamkernel.reductions import RowMap, State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.store import RowSink
from streamkernel.table import Table
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

if TYPE_CHECKING:
    from streamkernel.engine.cluster.cluster_state import Future

_ANSWER = 600.0  # seconds for the transfer of a finished result
_SOON, _LATE = 5.0, 55.0  # seconds for a first worker, before and after the user is told


def checked_client(client: Unchecked) -> Client:
    """A client that a user gave, if sweeps can run on it.

    Raises
    ------
    ParameterError
        It is something else, such as a cluster or an address, or an asynchronous client in its own event loop.
    ClusterError
        It was closed.
    """
    if not isinstance(client, Client):
        raise ParameterError(
            f"{option('client')} must be a distributed.Client, not {reprlib.repr(client)}; give Client(...) of a "
            "cluster or of its address, or leave it out for threads of this process"
        )
    if client.asynchronous:
        raise ParameterError(
            f"{option('client')} is an asynchronous one, and the fit would block the event loop that it waits for; "
            "call the fit in a thread, as by asyncio.to_thread, or give a plain Client of this scheduler"
        )
    if client.status in ("closing", "closed"):
        raise ClusterError("the client is closed; connect a new one to the scheduler")
    return client


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
        self._order = order
        self._run_id = uuid.uuid4().hex[:12]
        self._sweeps = 0
        self._sent: tuple[Any, ...] = ()
        self._futures: WeakSet[Future] = WeakSet()
        self.remote = remote
        threads = list((client.nthreads() or self._first_workers()).values())
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

    def _first_workers(self) -> dict[str, int]:
        """Threads of the workers that come for a task: an adaptive cluster without work has none.

        Raises
        ------
        ClusterError
            None has come within a minute.
        """
        threads: dict[str, int] = {}

        def came() -> bool:
            threads.update(worker_threads(self._client))
            return bool(threads)

        with self._translated_loss("before the first sweep"):
            task = self._submit(os.getpid, f"{self._run_id}/first")
            if not await_ready(self._client, came, _SOON):
                warn_user(f"{self._scheduler} has no workers yet; waiting for {_LATE:.0f} seconds")
                await_ready(self._client, came, _LATE)
            task.release()
        if not threads:
            raise ClusterError(f"{self._scheduler} has no workers, and none has come; start some and try again")
        return threads

    # --- one sweep ---------------------------------------------------------------------------------------------------

    def reduce(self, reduction: AnyReduction, table: Table, layout: Layout, advance: Advance) -> State:
        with self._sweep(table, reduction, layout.block_rows) as (prefix, payload):
            count, leaves = itertools.count(1), len(layout.spans)
            payloads = [payload]

            def combine(nodes: Sequence[range], states: Sequence[Future]) -> Future:
                # Before the leaves that wait on the worker: a branch whose sum is late keeps its states in memory.
                key, places = f"{prefix}/node-{next(count)}", [(each.start, each.stop) for each in nodes]
                return self._submit(combine_states, key, payloads[-1], places, *states, priority=1)

            threads = sum(worker_threads(self._client).values())
            seconds = leaf_seconds(layout, reduction.flops_per_row(), TableShape.of(table).row_bytes)
            size = branch_leaves(leaves, reduction.share_bytes(1 / leaves), threads, seconds)
            sum_bytes = reduction.share_bytes(min(size / leaves, 1.0))
            tasks = self._leaves(map_leaves, prefix, payloads, layout, size, seconds)
            summed = summed_states(sum_bytes)
            # In place: nobody reads the sum of a branch after it has come, and a new array of 8 MB takes 5 ms.
            branches: Branches[Future] = Branches(leaves, size, summed, combine, reduction.absorb)
            sums, done = BranchSums(self._client, branches, tasks, sum_bytes), set[int]()
            watch = PauseWatch(self._client, self._scheduler)
            try:
                while tasks or sums:
                    ended = tasks.take() if tasks else []
                    for few, task in ended:
                        self._check(map_leaves, prefix, layout, tasks, few, task)
                        if few.start not in done:
                            done.add(few.start)
                            advance(layout.spans[few[-1]][1] - layout.spans[few[0]][0])
                        sums.add(few, task)
                    try:
                        watch.look(sums.take(wait=not tasks) or bool(ended))
                    except KilledWorker as error:
                        raise killed_worker(self._client, error, "a task that adds up sums") from error
                    except (NoValidWorkerError, NoWorkerError) as error:
                        raise ClusterError("no worker is left for the sums; start workers and resume") from error
            finally:
                sums.cancel()
            return branches.sums.root()

    def write(
        self, rows: RowMap, table: Table, sink: RowSink, layout: Layout, advance: Advance, written: Receiver
    ) -> None:
        with self._sweep(table, rows, sink, layout.block_rows) as (prefix, payload):
            tasks = self._leaves(write_leaf, prefix, [payload], layout)
            watch = PauseWatch(self._client, self._scheduler)
            while tasks:
                ended = tasks.take()
                watch.look(bool(ended))
                for few, task in ended:
                    self._check(write_leaf, prefix, layout, tasks, few, task)
                    [leaf] = few
                    written(leaf, task.result(_ANSWER))
                    start, stop = layout.spans[leaf]
                    advance(stop - start)

    @contextlib.contextmanager
    def _sweep(self, *payload: Any) -> Iterator[tuple[str, Future]]:
        self._sweeps += 1
        prefix = f"{self._run_id}/{self._sweeps}"
        self._sent = payload
        with self._translated_loss(f"during sweep {self._sweeps}"):
            held = self._submit(Payload, f"{prefix}/payload", *payload)
            try:
                yield prefix, held
            except (FutureCancelledError, FuturesCancelledError, ImportError, AttributeError) as error:
                self._check_readable(held, error)
                raise
            if self.remote:
                self._check_versions()

    def _check_readable(self, payload: Future, error: Exception) -> None:
        """Raise if the scheduler or a worker could not unpickle the payload: a module of the user is missing there.

        The scheduler then forgets the payload, and cancels the leaves as if their data were lost.
        """
        found = payload.exception(_ANSWER) if payload.status == "error" else None
        cause = found.__cause__ or found if found is not None else None
        if isinstance(cause, (ImportError, AttributeError)):
            raise ClusterError(
                f"{self._scheduler}, or a worker, cannot load a class or function of yours ({cause}); install its "
                "module on the scheduler and on all workers, or define it in the script that you run"
            ) from error

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
        payloads: list[Future],
        layout: Layout,
        branch: int | None = None,
        seconds: float = 0.0,
    ) -> LeafTasks:
        """The leaves of a layout, given out.

        Parameters
        ----------
        payloads : the payload. Attempts after the first append theirs: the only worker that has the others may be the
            one that is not heard of.
        branch : leaves of a branch of sums, of which a task may have several and run twice; None for rows that are
            written.
        seconds : what a leaf may take.
        """
        threads = partial(worker_threads, self._client)

        def submit(tasks: Sequence[range], attempt: int, workers: list[str] | None) -> list[Future]:
            keys = [f"{prefix}/leaf-{leaves.start}" + ("" if attempt == 1 else f"/{attempt}") for leaves in tasks]
            if attempt > 1:
                number = f"{prefix}/payload-{len(payloads)}"
                payloads.append(self._submit(Payload, number, *self._sent, workers=workers))
            spans = [layout.spans[leaves.start : leaves.stop] for leaves in tasks]
            # One message for all of these tasks: the scheduler needs half the time that it needs for single messages.
            futures = self._client.map(
                task,
                [payloads[-1]] * len(tasks),
                spans,
                key=keys,
                pure=False,
                workers=workers,
                allow_other_workers=workers is not None,
            )
            self._futures.update(futures)
            return futures

        cut: FixedCut | LeafCut = LeafCut(len(layout.spans), branch or 1, seconds)
        if self._order is not None:
            sizes = task_sizes(len(layout.spans), sum(threads().values()), seconds, branch or 1)
            whole = list(sizes.tasks(len(layout.spans)))
            cut = FixedCut(whole[number] for number in self._order(list(range(len(whole)))))
        return LeafTasks(self._client, cut, submit, threads, twice=branch is not None)

    def _check(
        self, task: Callable[..., Any], prefix: str, layout: Layout, tasks: LeafTasks, leaves: range, ended: Future
    ) -> None:
        """Raise the error of a task that has failed."""
        if ended.status == "finished":
            return
        start, stop = layout.spans[leaves[0]][0], layout.spans[leaves[-1]][1]
        try:
            self._result(ended, f"rows {start}:{stop}")
        except KilledWorker as error:
            suspects = [layout.spans[each] for few in (leaves, *tasks.running) for each in few]
            raise self._killed(task, prefix, suspects, error) from error

    def _killed(
        self, task: Callable[..., Any], prefix: str, suspects: list[tuple[int, int]], error: KilledWorker
    ) -> StreamKernelError:
        """The error for tasks on workers that died; `blame` finds the one that caused it."""
        # Release, not cancel: the scheduler fails on a cancel where a task has raised already (distributed 2026.8).
        for future in list(self._futures):
            future.release()
        payload = self._submit(Payload, f"{prefix}/payload-again", *self._sent)

        def attempt(piece: tuple[int, int], worker: str) -> Future:
            key = f"{prefix}/alone-{piece[0]}-{piece[1]}"
            return self._client.submit(task, payload, [piece], key=key, pure=False, workers=[worker])

        table, work, *_ = self._sent
        return blame(self._client, error, suspects, (work, table), attempt)

    def _submit(
        self,
        function: Callable[..., Any],
        key: str,
        *arguments: Unchecked,
        workers: list[str] | None = None,
        priority: int = 0,
    ) -> Future:
        others = workers is not None  # may take it, too, if these are gone
        future = self._client.submit(
            function,
            *arguments,
            key=key,
            pure=False,
            workers=workers,
            allow_other_workers=others,
            priority=priority,
        )
        self._futures.add(future)
        return future

    def _result(self, future: Future, what: str) -> Any:
        await_ready(self._client, future.done)
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
