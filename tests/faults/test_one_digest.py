"""However many workers and threads, in whatever order, and if tasks run twice: one digest.

Processes of a local cluster, more rules and more estimators: tests/engine/test_one_digest.py.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from runs import Cluster, fit

from streamkernel.engine import ThreadExecutor, _tasks, threads
from streamkernel.engine.cluster import ClusterExecutor, connect, local_cluster


def shuffled(leaves: list[int]) -> list[int]:
    return random.Random(len(leaves)).sample(leaves, len(leaves))


@pytest.mark.fault("one digest")
@pytest.mark.slow
def test_workers_and_order(cluster: Cluster, store: str, whole: Any, figure: Any) -> None:
    cluster.topology.start_worker(2)
    cluster.wait_for_workers(3)
    try:
        with connect(cluster.address) as executor:
            assert executor.n_workers == 3
            assert fit(store, executor).digest == whole.digest
            assert fit(store, ClusterExecutor(executor._client, order=shuffled)).digest == whole.digest
            # Every task has run before when its result is made.
            cluster.behave(twice=True)
            assert fit(store, executor).digest == whole.digest
    finally:
        cluster.behave()
        for process in cluster.topology.process("worker-2").family():
            process.kill()
    figure("3 workers, shuffled, twice: 1 digest")


@pytest.mark.fault("one digest")
@pytest.mark.slow
@pytest.mark.parametrize(("workers", "threads"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_processes(store: str, whole: Any, figure: Any, workers: int, threads: int) -> None:
    with local_cluster(workers, threads) as executor:
        assert fit(store, executor).digest == whole.digest
    figure(f"{workers} x {threads}: 1")


@pytest.mark.slow
@pytest.mark.fault("one digest")
def test_threads_and_tasks_run_twice(store: str, whole: Any, figure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fit(store, ThreadExecutor(2)).digest == whole.digest
    assert fit(store, ThreadExecutor(2, shuffled)).digest == whole.digest
    once = _tasks.map_spans

    def twice(table: Any, work: Any, spans: Any, rows: int, done: Any, empty: Any) -> None:
        both = list(spans)
        once(table, work, iter(both), rows, lambda leaf, state: None, empty)
        once(table, work, iter(both), rows, done, empty)

    monkeypatch.setattr(threads, "map_spans", twice)
    assert fit(store, ThreadExecutor(2)).digest == whole.digest
    figure("1 and 2 threads, shuffled, twice: 1 digest")
