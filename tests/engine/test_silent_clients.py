"""What never comes from a cluster: answers to a client that is closed, and sums that are not needed any more."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from memory import traced

from streamkernel.engine._branches import Branches
from streamkernel.engine.cluster._branch_sums import BranchSums
from streamkernel.engine.cluster.cluster_state import ClosedClientError, busy_workers, worker_threads
from streamkernel.reductions import Gather, State
from streamkernel.reductions.contract import add_states


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    running = asyncio.new_event_loop()
    thread = threading.Thread(target=running.run_forever)
    thread.start()
    yield running
    running.call_soon_threadsafe(running.stop)
    thread.join()
    running.close()


@pytest.mark.parametrize("question", [worker_threads, busy_workers])
def test_a_question_ends_with_the_client(question: Any) -> None:
    """Another thread closes it in the middle of the question, and nothing wakes who asked."""
    asked, end = threading.Event(), threading.Event()
    client = SimpleNamespace(status="running", scheduler=object())

    def never() -> dict[str, Any]:
        asked.set()
        end.wait()
        return {}

    def close() -> None:
        asked.wait()
        client.status = "closed"

    client.nthreads = client.processing = never
    closing = threading.Thread(target=close)
    closing.start()
    try:
        with pytest.raises(ClosedClientError):
            question(client)
    finally:
        end.set()
        closing.join()


def test_the_error_of_a_question_is_that_of_the_scheduler() -> None:
    def fails() -> dict[str, int]:
        raise OSError("no answer")

    with pytest.raises(OSError, match="no answer"):
        worker_threads(SimpleNamespace(status="running", scheduler=object(), nthreads=fails))  # type: ignore[arg-type]


def client_of(loop: asyncio.AbstractEventLoop) -> Any:
    """A client whose tasks are functions of their results."""

    async def gather(task: Any, *, asynchronous: bool) -> Any:
        return task()

    return SimpleNamespace(status="running", gather=gather, loop=SimpleNamespace(asyncio_loop=loop))


def test_the_second_sum_of_a_branch_may_fail(loop: asyncio.AbstractEventLoop) -> None:
    """It ran again for a worker that was not heard of, and which came back, or died."""

    def died() -> None:
        raise ValueError("its worker died")

    client = client_of(loop)
    branches: Branches[Any] = Branches(1, 1, 2, lambda places, tasks: tasks[0], add_states)
    sums = BranchSums(client, branches, SimpleNamespace(), 8)  # type: ignore[arg-type]
    sums.add(range(1), lambda: {"sums": np.ones(1)})  # type: ignore[arg-type]
    sums.add(range(1), died)  # type: ignore[arg-type]
    until = time.monotonic() + 10
    while sums:
        assert time.monotonic() < until
        sums.take(wait=True)
    sums.take(wait=True)  # the second one
    assert branches.sums.root()["sums"].tolist() == [1.0]


@pytest.mark.parametrize("offset", [0, 1])
def test_states_that_come_at_once_are_freed_one_by_one(loop: asyncio.AbstractEventLoop, offset: int) -> None:
    """The plan promises two samples for gathered rows: the parts and the whole. Unaligned parts are copied, too."""
    each, count = 1000, 16
    work = Gather(np.arange(count * each), 100, 0, np.dtype(np.float64))

    def state(branch: int) -> State:
        memory = bytearray(8 * 100 * each + offset)
        rows = np.frombuffer(memory, np.float64, offset=offset).reshape(each, 100)
        numbers = np.arange(branch * each, (branch + 1) * each)
        return {"rows": numbers, "X": rows, "Y": np.zeros((each, 0)), "weights": np.ones(each)}

    branches: Branches[Any] = Branches(count, 1, 2, lambda places, tasks: tasks[0], work.absorb)
    sums = BranchSums(client_of(loop), branches, SimpleNamespace(), work.state_bytes())  # type: ignore[arg-type]
    with traced() as memory:
        for branch in range(count):
            sums.add(range(branch, branch + 1), partial(state, branch))  # type: ignore[arg-type]
        until = time.monotonic() + 10
        while not all(task.done() for task in sums._coming):
            assert time.monotonic() < until
            time.sleep(0.01)
        sums.take(wait=False)
    assert len(branches.sums.root()["rows"]) == count * each
    assert memory.peak < 2.1 * work.state_bytes()
