"""What never comes from a cluster: answers to a client that is closed, and sums that are not needed any more."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from streamkernel.engine._branches import Branches
from streamkernel.engine.cluster._branch_sums import BranchSums
from streamkernel.engine.cluster.cluster_state import ClosedClientError, busy_workers, worker_threads
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


def test_the_second_sum_of_a_branch_may_fail(loop: asyncio.AbstractEventLoop) -> None:
    """It ran again for a worker that was not heard of, and which came back, or died."""

    async def gather(task: Any, *, asynchronous: bool) -> Any:
        if isinstance(task, Exception):
            raise task
        return task

    client: Any = SimpleNamespace(status="running", gather=gather, loop=SimpleNamespace(asyncio_loop=loop))
    branches: Branches[Any] = Branches(1, 1, 2, lambda places, tasks: tasks[0], add_states)
    sums = BranchSums(client, branches, SimpleNamespace(), 8)  # type: ignore[arg-type]
    sums.add(range(1), {"sums": np.ones(1)})  # type: ignore[arg-type]
    sums.add(range(1), ValueError("its worker died"))  # type: ignore[arg-type]
    until = time.monotonic() + 10
    while sums:
        assert time.monotonic() < until
        sums.take(wait=True)
    sums.take(wait=True)  # the second one
    assert branches.root()["sums"].tolist() == [1.0]
