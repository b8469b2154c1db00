"""Workers that Dask pauses for their memory: others do their tasks; if all are paused, the sweep says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, Status
from numpy.typing import NDArray
from ordered_sums import NotedSums, OrderedSums, layout, table
from thread_clients import thread_client

from streamkernel import open_table
from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.engine.cluster import DASK_CONFIG, ClusterExecutor, _leaf_tasks, _paused_workers
from streamkernel.errors import ResourceLimitError
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import FeatureMap, Features
from streamkernel.store import RowSink

LEAVES = 12


@pytest.fixture
def client() -> Iterator[Client]:
    with dask.config.set(DASK_CONFIG), thread_client(2) as found:
        yield found


def set_status(client: Client, status: Status, workers: list[str] | None = None) -> None:
    """As the memory monitor of a worker does; these have no limit, and therefore no monitor that would change it."""

    def change(dask_worker: Any) -> None:
        dask_worker.status = status

    client.run(change, workers=workers)


def sums(executor: Any, reduction: OrderedSums | None = None) -> bytes:
    found = executor.reduce(reduction or OrderedSums(), table(LEAVES), layout(LEAVES), lambda rows: None)["sums"]
    return bytes(found.tobytes())


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_paused_workers, "_PATIENCE", 1.0)
    monkeypatch.setattr(_paused_workers, "_LOOK", 0.1)


@pytest.mark.usefixtures("impatient")
def test_all_are_paused(client: Client, tmp_path: Path) -> None:
    executor = ClusterExecutor(client, remote=False)
    set_status(client, Status.paused)
    with pytest.raises(ResourceLimitError, match=r"paused all workers of .* \(there are 2\) .* free what other work"):
        sums(executor)
    X = np.zeros((40, 2))
    work = FeatureMap(Features.of_basis(Basis(Gaussian(1.0), X[:1], np.arange(1))), dtype=np.dtype(np.float64))
    sink = RowSink.create(tmp_path / "G", len(X), work.columns, 10, fingerprint="G")
    with pytest.raises(ResourceLimitError, match="paused all workers"):
        Session(executor).write(work, open_table(X), sink, "write")
    set_status(client, Status.running)
    assert sums(executor) == sums(ThreadExecutor(1))


@pytest.mark.usefixtures("impatient")
def test_all_are_paused_in_the_middle(client: Client, tmp_path: Path) -> None:
    """Also between the last leaf and the sum of its branch."""
    noted = NotedSums(folder=str(tmp_path), seconds=0.3)

    def pause() -> None:
        while not noted.runs():
            time.sleep(0.01)
        set_status(client, Status.paused)

    pausing = threading.Thread(target=pause, daemon=True)
    pausing.start()
    with pytest.raises(ResourceLimitError, match="paused all workers"):
        sums(ClusterExecutor(client, remote=False), noted)
    pausing.join()


@pytest.mark.usefixtures("impatient")
def test_a_long_task_is_no_pause(client: Client, tmp_path: Path) -> None:
    noted = NotedSums(folder=str(tmp_path), seconds=2.5)
    rows, cut = table(2), layout(2)
    ClusterExecutor(client, remote=False).reduce(noted, rows, cut, lambda rows: None)


def test_a_pause_that_ends(client: Client) -> None:
    set_status(client, Status.paused)
    resumed = threading.Timer(1.5, set_status, (client, Status.running))
    resumed.start()
    assert sums(ClusterExecutor(client, remote=False)) == sums(ThreadExecutor(1))


@pytest.mark.parametrize("when", ["before", "during"])
def test_one_is_paused(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    monkeypatch.setattr(_leaf_tasks, "_LEAST_LATE", 0.2)
    noted, [first, _] = NotedSums(folder=str(tmp_path), seconds=0.1), list(client.nthreads())

    def pause() -> None:
        while when == "during" and not noted.runs():
            time.sleep(0.01)
        set_status(client, Status.paused, [first])

    pausing = threading.Thread(target=pause, daemon=True)
    pausing.start()
    if when == "before":
        pausing.join()
    assert sums(ClusterExecutor(client, remote=False), noted) == sums(ThreadExecutor(1))
    pausing.join()


@pytest.mark.parametrize("when", ["before", "during"])
def test_one_is_paused_while_rows_are_written(client: Client, tmp_path: Path, when: str) -> None:
    X = np.random.default_rng(0).standard_normal((4000, 3))
    basis = Basis(Gaussian(2.0), X[:20], np.arange(20))
    work = FeatureMap(Features.of_basis(basis), dtype=np.dtype(np.float64))
    sink = RowSink.create(tmp_path / "G", len(X), work.columns, 40, fingerprint="G")
    first, _ = client.nthreads()
    pausing = threading.Timer(0.0 if when == "before" else 0.1, set_status, (client, Status.paused, [first]))
    pausing.start()
    if when == "before":
        pausing.join()
    Session(ClusterExecutor(client, remote=False)).write(work, open_table(X), sink, "write")
    pausing.join()  # with the client that it uses, however early the rows were there
    G: NDArray[Any] = open_table(tmp_path / "G").read(0, len(X)).X
    np.testing.assert_allclose(G, basis.features(X), atol=1e-12)
