"""What the engine looks at before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

from streamkernel import KernelRidge
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.engine.cluster import ClusterExecutor, _executor
from streamkernel.errors import ClusterError, InputChangedError, StreamKernelWarning
from streamkernel.table import open_table


def test_nothing_is_written_of_a_table_that_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table(np.zeros((4, 2)))

    def changed(self: object) -> None:
        raise InputChangedError("changed")

    monkeypatch.setattr(type(table), "check_unchanged", changed)
    unasked: Any = None  # neither map nor sink is looked at
    for sweep in (lambda: Session(ThreadExecutor(1)).write(unasked, table, unasked, "write"),):
        with pytest.raises(InputChangedError):
            sweep()


@pytest.fixture
def empty_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """A cluster without workers, for which a fit waits for a moment."""
    monkeypatch.setattr(_executor, "_SOON", 0.1)
    with LocalCluster(n_workers=0, processes=False, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


def test_a_cluster_to_which_no_worker_comes_is_refused(
    empty_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_executor, "_LATE", 0.1)
    with (
        Client(empty_cluster) as client,
        pytest.warns(StreamKernelWarning, match="has no workers yet; waiting"),
        pytest.raises(ClusterError, match="has no workers, and none has come; start some"),
    ):
        ClusterExecutor(client)


@pytest.mark.filterwarnings("ignore:.*has no workers yet")
def test_an_adaptive_cluster_starts_its_first_worker_for_a_fit(empty_cluster: LocalCluster) -> None:
    """It has none while it has no work."""
    empty_cluster.adapt(minimum=0, maximum=1, interval="50ms")
    X = np.random.default_rng(0).standard_normal((60, 2))
    given: dict[str, Any] = {"n_components": 10, "kernel": "gaussian", "lengthscale": 1.0, "alpha": 1e-3}
    with Client(empty_cluster) as client:
        found = KernelRidge(**given, client=client).fit(X, X[:, 0])
    assert found.model_.digest == KernelRidge(**given).fit(X, X[:, 0]).model_.digest
