"""One sweep on a cluster: its tasks, and what is known of the workers at the moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from distributed import Client, KilledWorker

from streamkernel.engine._cluster_tasks import hold
from streamkernel.engine._completions import Completions
from streamkernel.engine._killed_worker import blame, killed_worker
from streamkernel.engine.cluster_state import ClosedClientError, NoValidWorkerError, NoWorkerError
from streamkernel.errors import ClusterError
from streamkernel.type_aliases import Unchecked

if TYPE_CHECKING:
    from distributed import Future as _Future

    Future = _Future[Any]  # a class without parameters before distributed 2025.12

_ANSWER = 600.0  # seconds for the transfer of a finished result
_TURN = 0.25  # seconds between two looks at the workers


class ClusterSweep:
    """The tasks of one sweep.

    Parameters
    ----------
    prefix : beginning of the keys of its tasks, different for each sweep.
    payload : table, work and what else all of its leaves need.
    task : function of the payload and a span.
    spans : rows of the leaves.
    """

    def __init__(
        self,
        client: Client,
        prefix: str,
        payload: tuple[Any, ...],
        task: Callable[..., Any],
        spans: Sequence[tuple[int, int]],
    ) -> None:
        self._client, self._prefix, self._sent = client, prefix, payload
        self._task, self._spans = task, spans
        self._futures: WeakSet[Future] = WeakSet()
        self._workers: dict[str, int] = {}
        self._looked = -_TURN
        self._turned = 0
        self.threads = 1
        self.tasks = 0
        self.completions = Completions(client)
        self._payload = self._submitted(hold, "payload", *payload)

    # --- the workers of this moment ----------------------------------------------------------------------------------

    def look(self) -> bool:
        """Look at the workers again, if the last look is a while ago; returns whether it did."""
        now = time.monotonic()
        if now - self._looked < _TURN:
            return False
        self._looked = now
        self._workers = dict(self._asked(self._client.nthreads))
        # Without workers the scheduler waits for some, and then says so.
        self.threads = sum(self._workers.values()) or self.threads
        return True

    @property
    def workers(self) -> int:
        """Number of workers at the last look, at least one."""
        return len(self._workers) or 1

    def processing(self) -> Mapping[str, Sequence[Any]]:
        """Keys of the tasks that each worker has."""
        found: Mapping[str, Sequence[Any]] = self._asked(self._client.processing)
        return found

    def places(self, futures: Sequence[Future]) -> list[tuple[str, str]]:
        """For each finished future, the address of a worker that holds its result, and of one that does not, or "".

        The others are taken in turn, so that each gets its share.
        """
        holders: Mapping[Any, Sequence[str]] = self._asked(lambda: self._client.who_has(list(futures)))
        addresses = list(self._workers)
        found = []
        for future in futures:
            self._turned += 1
            here = list(holders.get(future.key, ()))
            turned = (addresses[(self._turned + step) % len(addresses)] for step in range(len(addresses)))
            found.append((here[0] if here else "", next((each for each in turned if each not in here), "")))
        return found

    def is_there(self, worker: str) -> bool:
        """Whether a worker was part of the cluster at the last look."""
        return worker in self._workers

    def _asked(self, question: Callable[[], Any]) -> Any:
        """The scheduler's answer; a client that another thread has closed has no scheduler to ask."""
        if self._client.scheduler is None:
            raise ClosedClientError("the client was closed")
        return question()

    # --- tasks -------------------------------------------------------------------------------------------------------

    def submit(
        self,
        function: Callable[..., Any],
        name: str,
        *arguments: Future,
        workers: Sequence[str] = (),
        priority: int = 0,
    ) -> Future:
        """Submit a task of payload and arguments, on one of `workers` if some are given."""
        return self._submitted(function, name, self._payload, *arguments, workers=workers, priority=priority)

    def submit_leaf(self, leaf: int, name: str, workers: Sequence[str] = ()) -> Future:
        """Submit the task of a leaf."""
        return self._submitted(self._task, name, self._payload, self._spans[leaf], workers=workers)

    def _submitted(
        self,
        function: Callable[..., Any],
        name: str,
        *arguments: Unchecked,
        workers: Sequence[str] = (),
        priority: int = 0,
    ) -> Future:
        # Not "preferably": Dask may give such a task away, and a copy then lies where the state is.
        where: dict[str, Any] = {"workers": list(workers)} if workers else {}
        future: Future = self._client.submit(
            function, *arguments, key=f"{self._prefix}/{name}", pure=False, priority=priority, **where
        )
        self._futures.add(future)
        self.tasks += 1
        return future

    # --- results and errors ------------------------------------------------------------------------------------------

    def result(self, future: Future, what: str) -> Any:
        """The result of a task that is done, or its error."""
        try:
            return future.result(_ANSWER)
        except (NoValidWorkerError, NoWorkerError) as error:
            raise ClusterError(f"no worker is left for {what}; start workers and resume") from error

    def sums(self, future: Future) -> Any:
        """The result of a task that combines states."""
        try:
            return self.result(future, "the tree of sums")
        except KilledWorker as error:
            raise killed_worker(self._client, error, "a task that adds up sums") from error

    def checked(self, future: Future) -> Future:
        """The future of a task that combines states, unless it failed."""
        if future.status in ("error", "cancelled"):
            self.sums(future)
        return future

    def failed(self, leaf: int, future: Future, running: Sequence[int]) -> None:
        """Raise the error of a leaf.

        Parameters
        ----------
        running : leaves that were at work then, this one first.
        """
        start, stop = self._spans[leaf]
        try:
            self.result(future, f"rows {start}:{stop}")
        except KilledWorker as error:
            raise self._killed([self._spans[each] for each in running], error) from error

    def _killed(self, suspects: list[tuple[int, int]], error: KilledWorker) -> Exception:
        """The error for tasks on workers that died; `blame` finds the one that caused it."""
        # Release, not cancel: the scheduler fails on a cancel where a task has raised already (distributed 2026.8).
        for future in list(self._futures):
            future.release()
        payload = self._submitted(hold, "payload-again", *self._sent)

        def attempt(piece: tuple[int, int], worker: str) -> Future:
            key = f"{self._prefix}/alone-{piece[0]}-{piece[1]}"
            return self._client.submit(self._task, payload, piece, key=key, pure=False, workers=[worker])

        table, work, *_ = self._sent
        return blame(self._client, error, suspects, (work, table), attempt)
