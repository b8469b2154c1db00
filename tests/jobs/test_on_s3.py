"""Jobs whose records, and all that they make, are in an object store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from clusters import HANG, Cluster
from fits import estimator, events, sweeps_begun, until

from streamkernel import connect
from streamkernel.blobs import blobs_at


@pytest.mark.slow
def test_records_in_a_bucket(s3: str, dask_cluster: Cluster, store: str, digest: str, tmp_path: Path) -> None:
    """Cancelled by one, resumed by another, looked at by a third: all they share is the bucket."""
    with connect(dask_cluster.address, jobs=f"{s3}/jobs") as session:
        job = session.submit(estimator(), store, tmp_path / "model", lease_seconds=2.0)
        until(lambda: len(sweeps_begun(job)) >= 2)
    with connect(jobs=f"{s3}/jobs") as looking:
        looking.job(job.id).cancel(keep_checkpoints=True)
        until(lambda: looking.job(job.id).status == "cancelled")
    with connect(dask_cluster.address, jobs=f"{s3}/jobs") as session:
        session.job(job.id).resume()
        assert session.job(tmp_path / "model").result(HANG).model_.digest == digest
        assert [each.status for each in session.jobs()] == ["done"]
    assert len(events(job, "started")) == 2
    assert blobs_at(f"{s3}/jobs").read(f"specs/{job.id}.json") is not None
    with connect(jobs=f"{s3}/jobs") as looking:
        looking.remove(job.id)
        assert looking.jobs() == []
    assert {key.split("/")[0] for key in blobs_at(f"{s3}/jobs").keys("")} == {"models"}
    assert (tmp_path / "model").exists()


@pytest.mark.slow
def test_everything_in_a_bucket(s3: str, cluster: Callable[..., Cluster], store: str, digest: str) -> None:
    """Rows, checkpoints, model and records; the driver's worker is killed in between."""
    rows = f"{s3}/rows.zarr"
    for path in sorted(Path(store).rglob("*")):
        if path.is_file():
            blobs_at(rows).write(str(path.relative_to(store)), path.read_bytes())
    running = cluster(workers=2)
    with connect(running.address) as session:
        job = session.submit(estimator(), rows, f"{s3}/model.zarr", lease_seconds=4.0)
        until(lambda: len(sweeps_begun(job)) >= 4)
        running.kill(running.worker_of(job.progress["process"]))
        assert session.job(f"{s3}/model.zarr").result(HANG).model_.digest == digest
    assert job.to_config()["result"]["resumed_sweeps"] >= 3
    assert {key.split("/")[0] for key in blobs_at(s3).keys("")} == {".jobs", "model.zarr", "rows.zarr"}
