"""A client that is closed by another thread, as a job's driver is told to stop: its fit ends, at whatever moment."""

from __future__ import annotations

import threading
from typing import Any

import data_sets
import pytest
from clusters import Cluster
from distributed import Client

from streamkernel import open_table
from streamkernel.engine import Session
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.errors import ClusterError
from streamkernel.fits import fit_ridge
from streamkernel.settings import RidgeSettings

DATA = data_sets.friedman(2000, 5)


@pytest.mark.parametrize(("how", "at"), [("submit", "payload"), ("map", "leaf-0")])
def test_a_task_that_was_just_submitted_is_not_waited_for(
    dask_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, how: str, at: str
) -> None:
    met: list[BaseException] = []
    with Client(dask_cluster.address, set_as_default=False) as client:
        real = getattr(client, how)

        def closing(function: Any, *arguments: Any, key: str | list[str], **options: Any) -> Any:
            future = real(function, *arguments, key=key, **options)
            if (key if isinstance(key, str) else key[0]).endswith(f"/{at}"):
                other = threading.Thread(target=client.close)
                other.start()
                other.join()
            return future

        monkeypatch.setattr(client, how, closing)

        def fit() -> None:
            try:
                fit_ridge(open_table(DATA.X, DATA.y), RidgeSettings(n_components=20), Session(ClusterExecutor(client)))
            except Exception as error:
                met.append(error)

        fitting = threading.Thread(target=fit, daemon=True)
        fitting.start()
        fitting.join(60)
        assert not fitting.is_alive(), "it waits for ever"
    assert isinstance(met[0], ClusterError)
    assert "was lost" in str(met[0])
