"""How a job ends that is not done: cancelled, failed; and how it goes on from there."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters import HANG, Cluster
from distributed import Client
from fits import estimator, events, failure, rows_at, small, sweeps_begun, until

from streamkernel import connect, open_table
from streamkernel.cli.wording import in_flags
from streamkernel.engine import Machine, MemoryLimits
from streamkernel.errors import (
    ClusterError,
    NonFiniteDataError,
    NumericalError,
    ParameterError,
    ResourceLimitError,
    StoreNotFoundError,
)
from streamkernel.fits import plan_ridge
from streamkernel.jobs import JobsSession
from streamkernel.jobs._cluster import DriverExecutor, DriverLimits
from streamkernel.jobs._record_fields import Failure
from streamkernel.jobs.records import JobRecords
from streamkernel.jobs.requests import requested
from streamkernel.jobs.specification import JobSpecification
from streamkernel.service.http_errors import in_json
from streamkernel.settings import RidgeSettings
from streamkernel.wording import in_python, option


def test_the_client_is_not_closed_under_the_watch(dask_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch would wait for ever for an event loop that has ended, and the driver for the watch."""
    found: list[int] = []
    asking = threading.Event()
    ask = Client.scheduler_info

    def slowly(self: Client, **options: Any) -> Any:
        asking.set()
        time.sleep(0.2)
        return ask(self, **options)

    monkeypatch.setattr(Client, "scheduler_info", slowly)
    with Client(dask_cluster.address, set_as_default=False) as client:
        executor = DriverExecutor(client)
        watch = threading.Thread(target=lambda: found.append(executor.memory_now()), daemon=True)
        watch.start()
        assert asking.wait(HANG)
        executor.close()
        watch.join(HANG)
        assert found
        assert found[0] > 0
        assert executor.memory_now() == 0


# --- cancelling ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_cancel_and_resume(session: JobsSession, store: str, digest: str, tmp_path: Path) -> None:
    job = session.submit(estimator(), store, tmp_path / "model", lease_seconds=2.0)
    until(lambda: len(sweeps_begun(job)) >= 3)
    job.cancel(keep_checkpoints=True)
    assert job.wait(HANG)
    assert job.status == "cancelled"
    assert not (tmp_path / "model").exists()
    with pytest.raises(StoreNotFoundError, match="cancelled"):
        job.result()
    with pytest.raises(ParameterError, match="cancelled already"):
        job.cancel()
    assert job.resume() >= 2
    assert job.resume() >= 2  # driven already: nothing to do
    assert job.result(HANG).model_.digest == digest
    assert job.to_config()["result"]["resumed_sweeps"] >= 2
    assert len(events(job, "resubmitted")) == 1
    with pytest.raises(ParameterError, match="done already"):
        job.cancel()
    with pytest.raises(ParameterError, match="is done"):
        job.resume()


def test_a_lost_job_is_cancelled_by_whoever_looks(tmp_path: Path) -> None:
    """No driver is left that could say that it has stopped."""
    records = JobRecords(str(tmp_path / "jobs"), "20260101-000000-01234567")
    queued = records.create(JobSpecification("ridge", {}, "table", str(tmp_path / "model"), lease_seconds=1.0))
    running = records.state.append({**queued.value, "status": "running", "time": time.time() - 60}, after=queued)
    assert running is not None
    (tmp_path / ".model.20260101-000000-01234567.run" / "0001").mkdir(parents=True)
    with connect(jobs=tmp_path / "jobs") as session:
        job = session.job(records.id)
        assert job.status == "interrupted"
        records.state.append({**running.value, "status": "cancelling"}, after=running)
        assert job.refresh() == "cancelled"
    assert [path.name for path in tmp_path.iterdir()] == ["jobs"]


def test_a_cancelled_job_leaves_nothing(session: JobsSession, store: str, tmp_path: Path) -> None:
    job = session.submit(estimator(320), store, tmp_path / "out" / "model", lease_seconds=2.0)
    until(lambda: len(sweeps_begun(job)) >= 2)
    job.cancel()
    assert job.wait(HANG)
    assert list((tmp_path / "out").iterdir()) == []


# --- failing ---------------------------------------------------------------------------------------------------------


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name not in ("jobs", "rows.zarr"))


def test_rows_that_cannot_be_used(session: JobsSession, tmp_path: Path) -> None:
    job = session.submit(small(), rows_at(tmp_path / "rows.zarr", nan=True), tmp_path / "model")
    failure(job, NonFiniteDataError, "300")
    assert left(tmp_path) == []
    [event] = events(job, "failed")
    assert event["level"] == "error"
    # Who follows the log stops at the record that ends the job: the event is there by then.
    assert event["time"] <= JobRecords(str(tmp_path / "jobs"), job.id).latest().value["time"]


def test_a_memory_limit_that_is_too_small(session: JobsSession, tmp_path: Path) -> None:
    job = session.submit(small(), rows_at(tmp_path / "rows.zarr"), tmp_path / "model", memory_limit="400MB")
    failure(job, ResourceLimitError, "exceeds allowed memory")
    assert left(tmp_path) == []


def test_the_driver_counts_on_its_worker() -> None:
    """Its worker may hold the tasks, and the driver alone, but not both."""
    table = open_table(np.zeros((4000, 3)), np.zeros(4000))
    plan = plan_ridge(table, RidgeSettings(n_components=2500), Machine(2, 1), 2500)
    limit = max(plan.driver_bytes, plan.worker_bytes)
    assert MemoryLimits(driver=limit, worker=limit).exceeded(plan) is None
    assert "worker that drives the job" in str(DriverLimits(driver=limit, worker=limit).exceeded(plan))
    assert DriverLimits(worker=plan.driver_bytes + plan.worker_bytes).exceeded(plan) is None


def test_five_drivers_without_a_sweep_are_enough(session: JobsSession, tmp_path: Path) -> None:
    rows = rows_at(tmp_path / "rows.zarr")
    records = JobRecords(str(tmp_path / "jobs"), "20260101-000000-01234567")
    queued = records.create(JobSpecification("ridge", requested(small()).plain, rows, str(tmp_path / "model")))
    lost = {"attempt": 9, "steps": 0, "fruitless": 4, "status": "interrupted", "worker": "tcp://gone"}
    assert records.state.append({**queued.value, **lost}, after=queued) is not None
    job = session.job(records.id)
    failure(job, ClusterError, "drivers in a row .* tcp://gone")
    job.resume()
    assert job.wait(HANG)


def test_errors_are_kept_as_what_they_are() -> None:
    kept = Failure.of(NonFiniteDataError("3 values in X")).as_error()
    assert type(kept) is NonFiniteDataError
    assert str(kept) == "3 values in X"
    assert isinstance(Failure.of(MemoryError("x")).as_error(), ResourceLimitError)
    assert "unexpected ZeroDivisionError" in str(Failure.of(ZeroDivisionError("x")).as_error())
    for front_end, words in ((in_python, "alpha=0.5"), (in_flags, "--alpha 0.5"), (in_json, '"alpha": 0.5')):
        failure = Failure.of(NumericalError(f"give {option('alpha', 0.5)} or more"))
        read = Failure.from_config(json.loads(json.dumps(failure.to_config())))
        assert read.message == "give alpha=0.5 or more"
        assert read.as_error().worded(front_end) == f"give {words} or more"
    assert type(Failure(type="os", message="x").as_error()) is ClusterError
