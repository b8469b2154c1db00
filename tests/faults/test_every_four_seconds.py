"""A worker dies every 4 s, for as long as a fit takes: it ends, with the same bits."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from runs import Cluster, fit

from streamkernel.engine.cluster import connect


class Assassin:
    """Kills a worker every 4 s, while the block runs."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.killed = cluster, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while not self._over.wait(4.0):
            for victim in self.cluster.workers()[self.killed % 2 :][:1] or self.cluster.workers()[:1]:
                victim.kill()
                self.killed += 1

    def __enter__(self) -> Assassin:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


@pytest.mark.fault("every 4 s")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_ends_with_the_same_bits(cluster: Cluster, store: str, whole: Any, figure: Any) -> None:
    killed = []
    for _ in range(5):
        cluster.wait_for_workers(2)
        cluster.behave(sleep=0.25)
        with connect(cluster.address) as executor, Assassin(cluster) as assassin:
            assert fit(store, executor).digest == whole.digest
        killed.append(assassin.killed)
        assert assassin.killed >= 2
    figure(f"5 of 5, {sum(killed)} workers killed")
