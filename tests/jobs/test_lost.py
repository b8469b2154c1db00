"""What may die under a job: client, worker, scheduler. It costs time, at most a sweep, and never a bit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from clusters import HANG, Cluster, Process
from fits import estimator, events, failure, rows_at, small, sweeps_begun, until

from streamkernel import connect
from streamkernel.errors import StoreNotFoundError
from streamkernel.jobs import Job

LEASE = 3.0

_SUBMIT = """
import os, signal, sys
from fits import estimator
from streamkernel import connect
address, store, model = sys.argv[1:]
job = connect(address).submit(estimator(), store, model, lease_seconds=4.0)
print(job.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def submitted(session: object, store: str, model: Path) -> Job:
    return session.submit(estimator(), store, model, lease_seconds=LEASE)  # type: ignore[attr-defined,no-any-return]


def driver(cluster: Cluster, job: Job, sweep: int, attempt: int = 1) -> Process:
    """The worker that drives it, once that many sweeps have begun."""
    until(lambda: max(sweeps_begun(job), default=0) >= sweep and job.progress["attempt"] == attempt)
    return cluster.worker_of(job.progress["process"])


def attempts(job: Job) -> int:
    return len(events(job, "started"))


def repeated(job: Job) -> int:
    begun = sweeps_begun(job)
    return len(begun) - len(set(begun))


@pytest.mark.slow
def test_a_client_that_is_killed_is_not_missed(dask_cluster: Cluster, store: str, digest: str, tmp_path: Path) -> None:
    """Submit, kill -9, come back by id from another process: same bits as a local fit."""
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here.parent}"}
    command = [sys.executable, "-c", _SUBMIT, dask_cluster.address, store, str(tmp_path / "model")]
    client = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert client.returncode == -signal.SIGKILL, client.stderr
    with connect(dask_cluster.address, jobs=tmp_path / ".jobs") as session:
        job = session.job(client.stdout.strip())
        assert job.result(HANG).model_.digest == digest
        assert attempts(job) == 1
        assert job.to_config()["result"]["digest"] == digest
    assert sorted(path.name for path in tmp_path.iterdir()) == [".jobs", "model"]


@pytest.mark.slow
def test_workers_that_are_not_there_yet_and_no_longer(
    cluster: Callable[..., Cluster], store: str, digest: str, tmp_path: Path
) -> None:
    """Jobs wait for workers, the driver's is killed, the next one's is told to end, as by the end of an allocation.

    A driver that nobody could run the scheduler has given up by then: it waits for workers for no longer than
    `no-workers-timeout`.
    """
    running = cluster({"DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT": "1s"}, workers=0)
    rows = rows_at(tmp_path / "rows.zarr")
    with connect(running.address) as session:
        with pytest.raises(StoreNotFoundError):
            session.submit(small(), tmp_path / "nothing", tmp_path / "model")
        waiting = session.submit(small(), rows, tmp_path / "cancelled")
        assert waiting.status == "queued"
        assert waiting.wait(0.5) is False
        waiting.cancel()
        assert waiting.status == "cancelled"
        lacking = session.submit(small(), rows, tmp_path / "lacking")
        shutil.rmtree(rows)
        assert lacking.wait(2.5) is False

        running.add_workers(3)
        failure(lacking, StoreNotFoundError, "rows.zarr")
        job = submitted(session, store, tmp_path / "model")
        running.kill(driver(running, job, 3))
        os.kill(driver(running, job, 6, attempt=2).pid, signal.SIGTERM)
        assert job.result(HANG).model_.digest == digest
    assert attempts(job) == 3
    assert repeated(job) <= 2
    assert job.to_config()["result"]["resumed_sweeps"] >= 4
    assert any("taken over" in event["text"] for event in events(job, "lease"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".jobs", "cluster-0", "model"]
    assert events(waiting, "started") == []


@pytest.mark.slow
def test_the_scheduler_is_killed(cluster: Callable[..., Cluster], store: str, digest: str, tmp_path: Path) -> None:
    """Two who look at the same moment have it driven again once; at most one sweep is done twice."""
    first = cluster(workers=1)
    with connect(first.address) as session:
        job = submitted(session, store, tmp_path / "model")
        driver(first, job, 6)
    first.kill(first.scheduler)
    until(lambda: not first.workers[0].alive)
    with connect(jobs=tmp_path / ".jobs") as looking:
        until(lambda: looking.job(job.id).status == "interrupted")
        assert not (tmp_path / "model").exists()

    second = cluster(workers=2)
    together = threading.Barrier(2)
    found: list[Job] = []

    def look() -> None:
        with connect(second.address, jobs=tmp_path / ".jobs") as session:
            together.wait()
            found.append(session.job(job.id))

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    for looker in lookers:
        looker.join()
    assert len(found) == 2
    with connect(second.address, jobs=tmp_path / ".jobs") as session:
        assert session.job(job.id).result(HANG).model_.digest == digest
    assert len(events(job, "resubmitted")) == 1
    assert attempts(job) == 2
    assert repeated(job) <= 1
    assert job.to_config()["result"]["resumed_sweeps"] >= 5
    # One driver after another, each with a lease of its own.
    states = job._records.state.all()
    assert len({state.value["holder"] for state in states if "holder" in state.value}) == 2
    assert [state.value["status"] for state in states].count("queued") == 2


@pytest.mark.slow
def test_a_driver_that_wakes_after_its_lease_writes_nothing(
    cluster: Callable[..., Cluster], store: str, digest: str, tmp_path: Path
) -> None:
    """SIGSTOP for longer than the lease and the scheduler's worker-ttl: another goes on; SIGCONT: one result."""
    running = cluster({"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "6s"}, workers=2)
    with connect(running.address) as session:
        job = submitted(session, store, tmp_path / "model")
        stopped = driver(running, job, 4)
        os.kill(stopped.pid, signal.SIGSTOP)
        until(lambda: attempts(job) == 2 and job.progress["sweeps_done"] > 4)
        os.kill(stopped.pid, signal.SIGCONT)
        assert job.result(HANG).model_.digest == digest
    until(lambda: not stopped.alive or b"wrote nothing more" in Path(stopped.log).read_bytes())
    second = next(event for event in events(job, "started") if "driver 2" in event["text"])
    assert not [event for event in events(job) if event["process"] == stopped.pid and event["time"] > second["time"]]
    holders = [state.value["holder"] for state in job._records.state.all() if "holder" in state.value]
    assert holders == sorted(holders, key=holders.index)
    assert len(set(holders)) == 2
