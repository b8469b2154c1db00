"""The leaves of a sweep as tasks of a cluster whose workers come, go and lag.

A task has one leaf, or neighbouring ones (`_task_leaves`). Few tasks are outstanding, so that results do not pile up:
of many threads two each, one that runs and one that waits; of few threads some more, for the way to the scheduler and
back. The number of threads is asked again while the sweep runs, and workers that join get their share. Tasks are
submitted together where many end together: the scheduler takes in sixteen for the price of eight. When all leaves are
given out and workers have had nothing to do for as long as a task takes, the tasks of the others are given to them a
second time: one slow or silent worker does not hold the sweep. The copy that ends first counts. Both have the same
bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from distributed import Client, as_completed

from streamkernel.engine.cluster.cluster_state import audible_workers, await_ready, busy_workers

if TYPE_CHECKING:
    from streamkernel.engine.cluster.cluster_state import Future

_OUTSTANDING, _MOST_MORE = 2, 64  # tasks of a thread; and beyond these as many again, but not more of all threads
_LOOK, _LATE_LOOK = 2.0, 0.5  # seconds between two questions for the threads; and for idle workers at the end
_LATE, _LEAST_LATE = 1.5, 1.0  # tasks, and seconds, that a worker is idle before it gets one again
_LATE_AGAIN = 10.0  # seconds, besides, that a second copy has
_MANY, _TOGETHER = 64, 0.02  # outstanding tasks, from which on a look waits for others that end within so many seconds


class Cut(Protocol):
    """The leaves that are still to be given out, in their order."""

    def __bool__(self) -> bool: ...

    def next(self, threads: int) -> range:
        """The leaves of the next task."""

    def took(self, seconds: float, leaves: int) -> None:
        """A task of so many leaves has ended so many seconds after it was given out."""


class LeafTasks:
    """The leaves of a sweep, submitted in their order.

    Parameters
    ----------
    cut : the leaves, as tasks.
    submit : function of the leaves of some tasks, of the attempt, 1 for the first, and of the addresses of the workers
        that may take them (None for all); it returns the tasks.
    threads : function for the number of threads of each worker, by its address.
    twice : True if a task may run on two workers at once.
    """

    def __init__(
        self,
        client: Client,
        cut: Cut,
        submit: Callable[[Sequence[range], int, list[str] | None], list[Future]],
        threads: Callable[[], Mapping[str, int]],
        *,
        twice: bool,
    ) -> None:
        self._client, self._cut, self._submit, self._count = client, cut, submit, threads
        self._twice = twice
        self._completed = as_completed(loop=client.loop)  # this client's loop, not that of the default client
        # Of each task, by its first leaf: the copies that run, and the last attempt if it had several.
        self._running: dict[int, list[Future]] = {}
        self._attempts: dict[int, int] = {}
        self._tasks: dict[int, range] = {}  # all that were given out
        self._of: dict[Future, tuple[int, float]] = {}  # first leaf of a copy, and when it was given out
        self._began = self._looked = self._last = time.monotonic()  # `_last`: when the last task ended
        self._threads, self._given, self._done = threads(), 0, 0  # tasks; leaves
        self._idle: dict[str, float] = {}  # workers without a task, since when
        self._fill()

    @property
    def running(self) -> list[range]:
        """The leaves of each task that has not ended, ascending."""
        return [self._tasks[first] for first in sorted(self._running)]

    def __bool__(self) -> bool:
        """Whether tasks have not ended."""
        return bool(self._running)

    def take(self) -> list[tuple[range, Future]]:
        """Tasks that have ended, finished or failed, with their leaves; none if none does within half a second."""
        ended = await_ready(self._client, self._completed.has_ready, _LATE_LOOK)
        self._look()
        if ended and self._cut and len(self._running) > _MANY:
            time.sleep(_TOGETHER)
        found = []
        for future in self._completed.next_batch(block=False) if ended else []:
            if future not in self._of:
                continue  # the other copy of a task that has ended
            first, given = self._of[future]
            leaves, self._last = self._tasks[first], time.monotonic()
            self.drop([leaves], keep=future)
            self._done += len(leaves)
            if future.status == "finished":
                self._cut.took(self._last - given, len(leaves))
            found.append((leaves, future))
        if found:
            self._fill()
        return found

    def given(self, leaves: range) -> list[range]:
        """The leaves of each task that was given out, among these leaves."""
        return [self._tasks[leaf] for leaf in leaves if leaf in self._tasks]

    def again(self, tasks: Iterable[range], workers: Sequence[str]) -> None:
        """Give out tasks once more, to these workers."""
        given = list(tasks)
        attempt = max((self._attempts.get(leaves.start, 1) for leaves in given), default=1) + 1
        self._attempts.update({leaves.start: attempt for leaves in given})
        self._add(given, attempt, list(workers))

    def drop(self, tasks: Iterable[range], keep: Future | None = None) -> None:
        """Give up what runs of these tasks, except the copy to `keep`."""
        for leaves in tasks:
            for task in self._running.pop(leaves.start, []):
                self._of.pop(task, None)
                if task is not keep:
                    task.release()

    def _fill(self) -> None:
        threads, tasks = max(sum(self._threads.values()), 1), list[range]()
        most = _OUTSTANDING * threads + min(_OUTSTANDING * threads, _MOST_MORE)
        while self._cut and len(self._running) + len(tasks) < most:
            tasks.append(self._cut.next(threads))
        if tasks:
            self._given += len(tasks)
            self._tasks.update({leaves.start: leaves for leaves in tasks})
            self._add(tasks, 1, None)

    def _add(self, tasks: Sequence[range], attempt: int, workers: list[str] | None) -> None:
        now, futures = time.monotonic(), self._submit(tasks, attempt, workers)
        for leaves, future in zip(tasks, futures, strict=True):
            self._running.setdefault(leaves.start, []).append(future)
            self._of[future] = leaves.start, now
        self._completed.update(futures)

    def _look(self) -> None:
        """Ask for the threads from time to time; at the end of the sweep give late tasks out again."""
        now, late = time.monotonic(), not self._cut and self._twice and bool(self._running)
        if now - self._looked < (_LATE_LOOK if late else _LOOK):
            return
        self._threads, self._looked = self._count(), now
        self._fill()
        if late:
            self._give_again(now)

    def _give_again(self, now: float) -> None:
        """Give tasks that one worker has to workers that have been idle for as long as a task takes."""
        busy = busy_workers(self._client)
        free = [worker for worker in self._threads if worker not in busy]
        self._idle = {worker: self._idle.get(worker, now) for worker in free}
        if not self._done:
            return  # nobody knows how long a leaf takes
        at_once = min(sum(self._threads.values()), self._given)
        leaf_seconds = (self._last - self._began) * at_once / self._done
        patience = max(_LATE * leaf_seconds * max(map(len, self.running)), _LEAST_LATE)
        late = [leaves for leaves in self.running if self._is_late(leaves.start, now, patience)]
        idle = [worker for worker, since in self._idle.items() if now - since >= patience]
        if idle:
            # A stopped worker looks idle to the scheduler, too.
            audible = set(audible_workers(self._client))
            idle = [worker for worker in idle if worker in audible]
        for leaves, worker in zip(late, idle, strict=False):
            self.again([leaves], [worker])

    def _is_late(self, first: int, now: float, patience: float) -> bool:
        """Whether a task may be given out again: once, and once more each time that the last copy is late, too.

        A worker that is stopped looks idle, and may steal the copy that was to replace its own.
        """
        last = max(self._of[copy][1] for copy in self._running[first])
        return first not in self._attempts or now - last > _LATE_AGAIN + patience
