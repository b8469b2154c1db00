"""A worker whose lifetime ends (``dask worker --lifetime``, as in a SLURM job) leaves in the middle of a fit."""

from __future__ import annotations

from typing import Any

import pytest
from runs import Cluster, Counter, fit, until

from streamkernel.engine.cluster import connect


@pytest.mark.fault("lifetime")
@pytest.mark.slow
def test_it_drains(cluster: Cluster, store: str, whole: Any, figure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lifetime = {"DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION": "3s"}
    monkeypatch.setattr(cluster.topology, "dask", {**cluster.topology.dask, **lifetime})
    cluster.behave(sleep=0.15)
    leaving = cluster.topology.start_worker(2)
    cluster.wait_for_workers(3)
    counter, undisturbed = Counter(), Counter()
    with connect(cluster.address) as executor:
        assert executor.n_workers == 3
        assert fit(store, executor, progress=counter).digest == whole.digest
        assert len(executor._client.nthreads()) == 2
    until(lambda: not leaving.alive)
    fit(store, progress=undisturbed)
    assert counter.begun == undisturbed.begun
    figure("equal")
