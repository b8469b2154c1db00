"""The tasks of a sweep over rows: submitted a bounded number at a time, and at the end given to a second worker.

Outstanding are at most four tasks for each thread that the cluster has at the moment: workers that join get work at
once, for tasks wait at the scheduler and not at a worker, and what a worker that leaves had begun goes to another.

At the end of a sweep, when threads are idle and no task is left for them, a task that takes half as long again as
others is given to a second worker, and the first result counts. A task is a pure function, so that both have the same
bits. Tasks that write are not doubled: the slower one could still write when the output is published.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from streamkernel.engine._completions import Completions

if TYPE_CHECKING:
    from distributed import Future as _Future

    Future = _Future[Any]  # a class without parameters before distributed 2025.12

OUTSTANDING = 4
_LATE = 1.5  # of the time that a task takes
_LEAST_LATE = 1.0  # seconds


class Workers(Protocol):
    """The cluster as the queue sees it."""

    def submit_leaf(self, leaf: int, name: str, workers: Sequence[str] = ()) -> Future:
        """Submit the task of a leaf, on one of `workers` if some are given."""

    def processing(self) -> Mapping[str, Sequence[Any]]:
        """Keys of the tasks that each worker has."""

    def failed(self, leaf: int, future: Future, running: Sequence[int]) -> None:
        """Raise the error of a task."""


class LeafQueue:
    """The leaves of one sweep.

    Parameters
    ----------
    order : numbers of the leaves, in the order of submission.
    finished : function that gets the number of each leaf and its finished future, once.
    twice : whether a late task may run on a second worker too.
    """

    def __init__(
        self,
        workers: Workers,
        completions: Completions,
        order: Sequence[int],
        finished: Callable[[int, Future], None],
        *,
        twice: bool,
    ) -> None:
        self._workers, self._completions, self._finished = workers, completions, finished
        self._waiting = list(reversed(order))
        self._running: dict[int, list[Future]] = {}  # a leaf's task, and its second one
        self._twice = twice
        self._done, self._began = 0, time.monotonic()
        self._idle_since = self._ended_at = self._began
        self._starved = False
        self._first: dict[int, str] = {}  # workers of leaves that were given to a second one
        self.slow: set[str] = set()  # those of them whose leaf the second one finished first
        self.given_twice = 0

    @property
    def over(self) -> bool:
        """Whether all leaves are finished."""
        return not self._waiting and not self._running

    @property
    def running(self) -> int:
        """Number of leaves that are submitted and not finished."""
        return len(self._running)

    def fill(self, threads: int, room: Callable[[], bool]) -> None:
        """Submit leaves for so many threads.

        Parameters
        ----------
        room : function that tells whether the workers have memory for more states; one leaf at least is always at work.
        """
        while self._waiting and len(self._running) < OUTSTANDING * threads and (room() or not self._running):
            leaf = self._waiting.pop()
            self._submit(leaf, f"leaf-{leaf}")
        self._starved = len(self._running) < OUTSTANDING * threads

    def _submit(self, leaf: int, name: str, workers: Sequence[str] = ()) -> None:
        future = self._workers.submit_leaf(leaf, name, workers)
        self._running.setdefault(leaf, []).append(future)
        self._completions.watch(future, lambda future: self._ended(leaf, future))

    def _ended(self, leaf: int, future: Future) -> None:
        attempts = self._running.get(leaf, [])
        if future not in attempts:
            return
        if future.status in ("error", "cancelled"):
            if len(attempts) > 1 and future.status == "error":
                attempts.remove(future)  # the other one decides
                return
            self._workers.failed(leaf, future, [leaf, *sorted(each for each in self._running if each != leaf)])
        del self._running[leaf]
        if leaf in self._first and future is not attempts[0]:
            self.slow.add(self._first[leaf])
        for other in attempts:
            if other is not future:
                self._completions.forget(other)
        self._done += 1
        self._ended_at = time.monotonic()
        self._finished(leaf, future)

    def hurry(self, threads: int) -> None:
        """Give late tasks to idle workers, where no other task is left for these."""
        now = time.monotonic()
        usual = (now - self._began) * threads / max(self._done, 1)
        late = max(_LATE * usual, _LEAST_LATE)
        look = self._twice and self._done and (self._starved or now - self._ended_at > late)
        tasks = self._workers.processing() if look else {}
        # Tasks that combine take no time, unless they wait for a state that a slow worker holds.
        waits = re.compile(r"/(node|copy)-\d+$")
        free = [
            worker
            for worker, keys in tasks.items()
            if worker not in self.slow and all(waits.search(str(key)) for key in keys)
        ]
        if not free:
            self._idle_since = now
            return
        if now - self._idle_since < late:
            return
        for leaf, attempts in sorted(self._running.items()):
            if free and len(attempts) == 1:
                key = attempts[0].key
                self._first[leaf] = next((worker for worker, keys in tasks.items() if key in keys), "")
                self._submit(leaf, f"leaf-{leaf}-again-{self.given_twice}", [free.pop()])
                self.given_twice += 1
