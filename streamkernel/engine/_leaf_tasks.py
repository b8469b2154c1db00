"""The leaves of a sweep as tasks of a cluster whose workers come, go and lag.

At most four leaves a thread are outstanding, so that results do not pile up; the number of threads is asked again while
the sweep runs, and workers that join get their share. When all leaves are given out and workers have had nothing to do
for as long as a leaf takes, the leaves of the others are given to them a second time: one slow or silent worker does
not hold the sweep. The copy that ends first counts. Both have the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from distributed import Client, as_completed

from streamkernel.engine.cluster_state import audible_workers, await_ready, busy_workers

if TYPE_CHECKING:
    from streamkernel.engine.cluster_state import Future

_OUTSTANDING = 4
_LOOK, _LATE_LOOK = 2.0, 0.5  # seconds between two questions for the threads; and for idle workers at the end
_LATE, _LEAST_LATE = 1.5, 1.0  # leaves, and seconds, that a worker is idle before it gets one again


class LeafTasks:
    """The leaves of a sweep, submitted in their order.

    Parameters
    ----------
    leaves : numbers of the leaves.
    submit : function of a leaf, of the attempt, 1 for the first, and of the addresses of the workers that may take it
        (None for all); it returns the task.
    threads : function for the number of threads of each worker, by its address.
    twice : True if a leaf may run on two workers at once.
    """

    def __init__(
        self,
        client: Client,
        leaves: Iterable[int],
        submit: Callable[[int, int, list[str] | None], Future],
        threads: Callable[[], Mapping[str, int]],
        *,
        twice: bool,
    ) -> None:
        self._client, self._leaves, self._submit, self._count = client, iter(leaves), submit, threads
        self._twice = twice
        self._completed = as_completed(loop=client.loop)  # this client's loop, not that of the default client
        self._running: dict[int, list[Future]] = {}  # the copies of each leaf
        self._of: dict[Future, int] = {}
        self._attempts: dict[int, int] = {}  # of leaves that were given out more than once
        self._began = self._looked = self._last = time.monotonic()  # `_last`: when the last leaf ended
        self._threads, self._given, self._done = threads(), 0, 0
        self._all_given = False
        self._idle: dict[str, float] = {}  # workers without a task, since when
        self._fill()

    @property
    def running(self) -> list[int]:
        """The leaves that have not ended, ascending."""
        return sorted(self._running)

    def take(self) -> tuple[int, Future] | None:
        """A leaf with its task, finished or failed, which has ended; None if there is none within half a second."""
        ended = await_ready(self._client, self._completed.has_ready, _LATE_LOOK)
        self._look()
        future = next(self._completed) if ended else None
        if future is None or future not in self._of:
            return None  # or the other copy of a leaf that has ended
        leaf = self._of[future]
        self.drop([leaf], keep=future)
        self._done, self._last = self._done + 1, time.monotonic()
        self._fill()
        return leaf, future

    def again(self, leaves: Iterable[int], workers: Sequence[str]) -> None:
        """Give out leaves once more, to these workers."""
        for leaf in leaves:
            self._attempts[leaf] = self._attempts.get(leaf, 1) + 1
            self._add(leaf, self._submit(leaf, self._attempts[leaf], list(workers)))

    def drop(self, leaves: Iterable[int], keep: Future | None = None) -> None:
        """Give up what runs of these leaves, except the task to `keep`."""
        for leaf in leaves:
            for task in self._running.pop(leaf, []):
                self._of.pop(task, None)
                if task is not keep:
                    task.release()

    def _fill(self) -> None:
        while not self._all_given and len(self._running) < _OUTSTANDING * max(sum(self._threads.values()), 1):
            leaf = next(self._leaves, None)
            if leaf is None:
                self._all_given = True
            else:
                self._given += 1
                self._add(leaf, self._submit(leaf, 1, None))

    def _add(self, leaf: int, future: Future) -> None:
        self._running.setdefault(leaf, []).append(future)
        self._of[future] = leaf
        self._completed.add(future)

    def _look(self) -> None:
        """Ask for the threads from time to time; at the end of the sweep give late leaves out again."""
        now, late = time.monotonic(), self._all_given and self._twice and bool(self._running)
        if now - self._looked < (_LATE_LOOK if late else _LOOK):
            return
        self._threads, self._looked = self._count(), now
        self._fill()
        if late:
            self._give_again(now)

    def _give_again(self, now: float) -> None:
        """Give leaves that one worker has to workers that have been idle for as long as a leaf takes."""
        busy = busy_workers(self._client)
        free = [worker for worker in self._threads if worker not in busy]
        self._idle = {worker: self._idle.get(worker, now) for worker in free}
        if not self._done:
            return  # nobody knows how long a leaf takes
        at_once = min(sum(self._threads.values()), self._given)
        leaf_seconds = (self._last - self._began) * at_once / self._done
        patience = max(_LATE * leaf_seconds, _LEAST_LATE)
        idle = [worker for worker, since in self._idle.items() if now - since >= patience]
        if idle:
            # To the scheduler a worker that is stopped looks idle, too.
            audible = set(audible_workers(self._client))
            idle = [worker for worker in idle if worker in audible]
        once = [leaf for leaf in self.running if leaf not in self._attempts]
        for leaf, worker in zip(once, idle, strict=False):
            self.again([leaf], [worker])
