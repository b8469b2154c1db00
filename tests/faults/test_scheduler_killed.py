"""kill -9 of the scheduler: the client says so within seconds, and a new one goes on from the last sweep.

Jobs, whose driver is on the cluster: tests/jobs/test_lost.py::test_the_scheduler_is_killed.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from clusters import topology
from runs import At, Cluster, Counter, fit, run_of

from streamkernel.engine.cluster import connect
from streamkernel.errors import ClusterError


@pytest.mark.slow
@pytest.mark.fault("scheduler")
def test_an_error_and_resumable(
    store: str, whole: Any, tmp_path: Path, figure: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    killed: list[float] = []
    counter, undisturbed = Counter(), Counter()
    with Cluster.started(topology, tmp_path / "cluster", workers=1) as cluster:
        scheduler = psutil.Process(cluster.topology.process("scheduler").pid)

        def kill() -> None:
            scheduler.kill()
            killed.append(time.monotonic())

        watcher = At(4, kill)
        with run_of(store, tmp_path / "run") as checkpoints:
            with pytest.raises(ClusterError, match="resume from the last checkpoint"), connect(cluster.address) as one:
                fit(store, one, checkpoints=checkpoints, progress=watcher)
            seconds = time.monotonic() - killed[0]
    assert capfd.readouterr().err == "", "Dask's tracebacks"
    with run_of(store, tmp_path / "run") as checkpoints:
        assert fit(store, checkpoints=checkpoints, progress=counter).digest == whole.digest
    fit(store, progress=undisturbed)
    lost = len(watcher.begun) + len(counter.begun) - len(undisturbed.begun)
    assert lost <= 1
    assert seconds <= 5.0
    figure(f"error in {seconds:.1f} s, {lost} sweep lost")
