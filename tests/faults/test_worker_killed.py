"""kill -9 of a worker in the middle of a reduction: tasks run again, the sums are the same."""

from __future__ import annotations

import time
from typing import Any

import pytest
from runs import At, Cluster, fit

from streamkernel.engine.cluster import connect


@pytest.mark.fault("worker")
@pytest.mark.slow
@pytest.mark.parametrize("times", [2, pytest.param(10, marks=pytest.mark.timeout(300))])
def test_same_bits(cluster: Cluster, store: str, whole: Any, figure: Any, times: int) -> None:
    with connect(cluster.address) as executor:
        began = time.monotonic()
        assert fit(store, executor).digest == whole.digest
        baseline = time.monotonic() - began
    worst = 0.0
    for number in range(times):
        cluster.wait_for_workers(2)
        victims = [cluster.workers()[number % 2]]
        with connect(cluster.address) as executor:
            began = time.monotonic()
            # Another sweep and place in it every time.
            watcher = At(2 + number % 4, lambda victims=victims: victims.pop().kill(), 1 + 5_000 * (number % 5))  # type: ignore[misc]
            assert fit(store, executor, progress=watcher).digest == whole.digest
            worst = max(worst, time.monotonic() - began - baseline)
            assert not victims
    assert worst <= 10.0
    figure(f"{times} of {times} equal, at most baseline ({baseline:.1f} s) + {max(worst, 0.0):.1f} s")
