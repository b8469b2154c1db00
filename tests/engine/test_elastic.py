"""Workers that come, go, die and dawdle in the middle of a sweep: processes of a bare cluster, leaves that sleep."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import Cluster
from distributed import Client
from sleepers import Sleeper, layout, noted, table

from streamkernel.engine import ThreadExecutor, _state_tree
from streamkernel.engine.cluster import ClusterExecutor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
LEAVES, SECONDS = 60, 0.1
HERE = Path(__file__).parent


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    path = os.pathsep.join([str(HERE.parents[1]), str(HERE.parent), str(HERE)])
    made = Cluster(tmp_path / "cluster", environment={"PYTHONPATH": path})
    made.folder.mkdir()
    try:
        yield made
    finally:
        made.stop()


class Sweep:
    """One sweep, in the middle of which something happens, once."""

    def __init__(self, cluster: Cluster, folder: Path, slow_seconds: float = 0.0) -> None:
        self.cluster, self.notes, self.slow = cluster, folder / "notes", folder / "slow"
        self.notes.mkdir()
        self.work = Sleeper(SECONDS, str(self.notes), str(self.slow), slow_seconds)
        self.seconds = 0.0

    def run(self, what: Callable[[Client], Any], at: float) -> None:
        """The sums are those of one thread, whatever happens when a part `at` of the leaves is finished."""
        finished = 0

        def advance(rows: int) -> None:
            nonlocal finished
            finished += 1
            if finished == int(at * LEAVES):
                what(client)

        rows, cut = table(LEAVES), layout(LEAVES)
        with Client(self.cluster.address, set_as_default=False) as client:
            executor = ClusterExecutor(client)
            executor.reduce(Sleeper(), rows, cut, lambda rows: None)  # all is loaded
            began = time.monotonic()
            found = executor.reduce(self.work, rows, cut, advance)["sums"]
            self.seconds = time.monotonic() - began
        alone = ThreadExecutor(1).reduce(Sleeper(), rows, cut, lambda rows: None)["sums"]
        assert found.tobytes() == alone.tobytes()

    @property
    def twice(self) -> int:
        """How many leaves were begun a second time."""
        begun = noted(self.notes)
        assert len(begun) == LEAVES
        return sum(begun.values()) - LEAVES

    @property
    def of_process(self) -> Counter[int]:
        return Counter(int(path.name.split("-")[1]) for path in self.notes.iterdir())


@pytest.mark.parametrize("at", [0.5, 0.95])
def test_a_worker_that_dies_costs_what_it_was_computing(cluster: Cluster, tmp_path: Path, at: float) -> None:
    """One leaf at work, one or two that were finished and not yet part of a copied sum: of 5 s each at most."""
    cluster.start(workers=3)
    sweep = Sweep(cluster, tmp_path)
    sweep.run(lambda client: cluster.kill(cluster.workers[0]), at)
    assert sweep.twice <= 6  # leaves of 0.1 s: some end while the driver submits a sum


def test_without_copies_it_would_cost_what_it_holds(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_state_tree, "_EXPOSED", float("inf"))
    cluster.start(workers=2)
    sweep = Sweep(cluster, tmp_path)

    def a_third_takes_over(client: Client) -> None:
        cluster.add_workers(1)
        for worker in cluster.workers[:2]:
            cluster.kill(worker)

    sweep.run(a_third_takes_over, 0.95)
    assert sweep.twice > LEAVES // 2


def test_a_worker_that_joins_gets_work(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start(workers=1)
    sweep = Sweep(cluster, tmp_path)
    sweep.run(lambda client: cluster.add_workers(1), 0.3)
    assert sweep.of_process[cluster.workers[1].pid] > 10
    assert sweep.twice <= 1


def test_a_worker_that_is_retired_loses_no_sums(cluster: Cluster, tmp_path: Path) -> None:
    """It hands over what it holds; Dask does not wait for the leaf that it is computing."""
    cluster.start(workers=2)
    sweep = Sweep(cluster, tmp_path)

    def retire(client: Client) -> None:
        threading.Thread(target=client.retire_workers, args=([next(iter(client.nthreads()))],)).start()

    sweep.run(retire, 0.3)
    assert min(sweep.of_process.values()) < LEAVES // 2 < max(sweep.of_process.values())
    assert sweep.twice <= 2


def test_the_leaf_of_a_slow_worker_is_given_to_another(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start(workers=2)
    sweep = Sweep(cluster, tmp_path, slow_seconds=60.0)
    sweep.run(lambda client: sweep.slow.write_text(str(cluster.workers[0].pid)), 0.8)
    assert sweep.seconds < 40.0
    assert 1 <= sweep.twice <= 10
