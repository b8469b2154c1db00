"""Every worker is killed with its nanny, in the middle of a sweep; others are started: it goes on."""

from __future__ import annotations

import time
from typing import Any

import pytest
from runs import At, Cluster, Counter, fit

from streamkernel.engine.cluster import connect


@pytest.mark.slow
@pytest.mark.fault("all workers")
def test_others_go_on(cluster: Cluster, store: str, whole: Any, figure: Any) -> None:
    times: list[float] = []

    def end_and_start() -> None:
        times.append(time.monotonic())
        for number in range(2):
            for process in cluster.topology.process(f"worker-{number}").family():
                process.kill()
        for number in range(2):
            cluster.topology.start_worker(number)

    counter = Counter()
    with connect(cluster.address) as executor:
        watcher = At(4, end_and_start)
        assert fit(store, executor, progress=watcher).digest == whole.digest
        seconds = time.monotonic() - times[0]
    fit(store, progress=counter)
    assert watcher.begun == counter.begun, "no sweep was begun twice"
    assert seconds <= 30.0
    figure(f"equal, {seconds:.1f} s")
