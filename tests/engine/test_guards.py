"""What the engine looks at before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from distributed import Client
from thread_clients import thread_client

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
def without_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client of a cluster without workers, for which a fit waits for a moment."""
    monkeypatch.setattr(_executor, "_SOON", 0.1)
    with thread_client(0) as client:
        yield client


def test_a_cluster_to_which_no_worker_comes_is_refused(
    without_workers: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_executor, "_LATE", 0.1)
    with (
        pytest.warns(StreamKernelWarning, match="has no workers yet; waiting"),
        pytest.raises(ClusterError, match="has no workers, and none has come; start some"),
    ):
        ClusterExecutor(without_workers)


@pytest.mark.filterwarnings("ignore:.*has no workers yet")
def test_an_adaptive_cluster_starts_its_first_worker_for_a_fit(without_workers: Client) -> None:
    """It has none while it has no work."""
    without_workers.cluster.adapt(minimum=0, maximum=1, interval="50ms")
    X = np.random.default_rng(0).standard_normal((60, 2))
    given: dict[str, Any] = {"n_components": 10, "kernel": "gaussian", "lengthscale": 1.0, "alpha": 1e-3}
    found = KernelRidge(**given, client=without_workers).fit(X, X[:, 0])
    assert found.model_.digest == KernelRidge(**given).fit(X, X[:, 0]).model_.digest
