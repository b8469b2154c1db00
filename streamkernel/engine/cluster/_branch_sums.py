"""Sums of complete branches on their way to the driver.

They are fetched while leaves run. A worker that is stopped between the end of a task and the fetch of its result would
hold the sweep until the scheduler drops it, after its ``worker-ttl``. Therefore a branch whose sum does not come, while
a worker is not heard of, runs again on the others; the sum that comes first counts.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections import deque
from typing import TYPE_CHECKING

from distributed import Client

from streamkernel.engine._branches import Branches
from streamkernel.engine.cluster._leaf_tasks import LeafTasks
from streamkernel.engine.cluster.cluster_state import ClosedClientError, audible_workers, await_ready, worker_threads
from streamkernel.reductions import State
from streamkernel.type_aliases import Untyped

if TYPE_CHECKING:
    from streamkernel.engine.cluster.cluster_state import Future

_PATIENCE, _RATE = 10.0, 5e6  # seconds for an answer; bytes that a slow network brings in one
_LOOK = 2.0  # seconds between two questions for the workers that are heard of


class BranchSums:
    """Fetches the sums of branches.

    Parameters
    ----------
    branches : tree that takes the sums.
    tasks : the leaves, of which some are given out again.
    state_bytes : bytes of a sum.
    """

    def __init__(self, client: Client, branches: Branches[Future], tasks: LeafTasks, state_bytes: int) -> None:
        self._client, self._branches, self._tasks = client, branches, tasks
        self._patience = _PATIENCE + state_bytes / _RATE
        self._coming: dict[concurrent.futures.Future[State], tuple[int, Future]] = {}
        self._since: dict[int, float] = {}  # branches whose sums come, and since when
        self._looked = time.monotonic()
        self._again: set[int] = set()
        self._here: set[int] = set()

    def __bool__(self) -> bool:
        """Whether sums are on their way."""
        return bool(self._since)

    def add(self, leaves: range, task: Future) -> None:
        """Add a task that has ended; fetch the sum of its branch if this is complete."""
        branch = self._branches.of(leaves.start)
        root = None if branch in self._here else self._branches.add_leaves(leaves, task)
        if root is not None:
            # Not `result`, which would wait in this thread.
            loop: Untyped = self._client.loop
            coming = asyncio.run_coroutine_threadsafe(_answer(self._client, root), loop.asyncio_loop)
            self._coming[coming] = branch, root  # the result of a future that nobody holds is forgotten
            self._since.setdefault(branch, time.monotonic())

    def take(self, *, wait: bool) -> bool:
        """Add the sums that are here; with `wait` wait half a second for one.

        Returns
        -------
        bool
            Whether one was here.

        Raises
        ------
        Exception
            That of a task.
        """
        if wait:
            await_ready(self._client, lambda: any(each.done() for each in self._coming), 0.5)
        ended = deque(each for each in self._coming if each.done())
        found = bool(ended)
        while ended:
            branch, _ = self._coming.pop(ended[0])
            self._add(branch, ended.popleft())
        self._repeat(time.monotonic())
        return found

    def _add(self, branch: int, ended: concurrent.futures.Future[State]) -> None:
        if branch in self._here:
            return  # the second sum, or its error
        if ended.cancelled():
            raise ClosedClientError("the client was closed")
        # Nothing but the tree holds a state while it is added up, and the tree frees what it has added: states of
        # gathered rows together are as large as the sample, of which the plan counts two.
        states = [_aligned(ended.result())]
        del ended
        self._branches.sums.add(branch, states.pop())
        self._here.add(branch)
        self._since.pop(branch)
        if branch in self._again:
            self._tasks.drop(self._tasks.given(self._branches.leaves(branch)))

    def _repeat(self, now: float) -> None:
        """Run branches again whose sums do not come, if a worker is not heard of."""
        late = {branch for branch, since in self._since.items() if now - since > self._patience} - self._again
        if not late or now - self._looked < _LOOK:
            return
        self._looked = now
        audible = audible_workers(self._client)
        if len(audible) < len(worker_threads(self._client)):
            self._again |= late
            for branch in late:
                self._tasks.again(self._tasks.given(self._branches.leaves(branch)), audible)

    def cancel(self) -> None:
        """Wait for nothing more."""
        for each in self._coming:
            each.cancel()


def _aligned(state: State) -> State:
    """The arrays at addresses that are multiples of their numbers' sizes.

    All that comes over the network is one block of bytes, in which an array begins anywhere. BLAS reads and writes it
    wrongly there, or ends the process: its kernels for processors without AVX do.
    """
    return {name: array if array.flags.aligned else array.copy() for name, array in state.items()}


async def _answer(client: Client, task: Future) -> State:
    state: State = await client.gather(task, asynchronous=True)
    return state
