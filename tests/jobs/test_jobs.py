"""What a session offers: submit, look, wait, cancel, resume; what it refuses; how a job fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from clusters import HANG, Cluster
from distributed import Client
from fits import estimator, events, rows_at, small, sweeps_begun, until
from problems import zarr_of_chunks
from sklearn.linear_model import Lasso

from streamkernel import BayesianCommitteeMachine, KernelRidge, KernelRidgeClassifier, connect, open_table
from streamkernel.errors import (
    ParameterError,
    StoreExistsError,
    StoreNotFoundError,
    StreamKernelError,
)
from streamkernel.jobs import JobsSession
from streamkernel.jobs._task import drive
from streamkernel.jobs.records import JobRecords
from streamkernel.jobs.requests import requested
from streamkernel.jobs.specification import JobSpecification
from streamkernel.kernels import Gaussian
from streamkernel.selection.rules import as_rule

# --- what becomes of a job -------------------------------------------------------------------------------------------


def test_a_job_is_the_local_fit(session: JobsSession, tmp_path: Path) -> None:
    rows = rows_at(tmp_path / "rows.zarr")
    job = session.submit(small(), rows, tmp_path / "model")
    fitted = job.result(HANG)
    assert isinstance(fitted, KernelRidge)
    assert fitted.model_.digest == small().fit(rows).model_.digest
    assert job.status == "done"
    progress = job.progress
    assert progress["sweeps_done"] == fitted.n_sweeps_
    assert progress["sweeps_planned"] >= 2
    assert progress["rows_done"] == progress["rows_total"] == 600
    assert progress["peak_bytes"] > 0
    assert 0.5 < progress["share"] < 1.0
    assert progress["seconds_left"] >= 0.0
    assert progress["planned_bytes"] == job.to_config()["result"]["planned_memory_bytes"]
    said = [event["event"] for event in events(job)]
    assert said[:2] == ["submitted", "started"]
    assert said[-1] == "done"
    assert list(job.logs(follow=True)) == list(job.logs())
    assert [each.id for each in session.jobs()] == [job.id]
    assert session.job(tmp_path / "model").id == job.id
    with connect(jobs=tmp_path / "jobs") as looking:
        assert looking.job(job.id).to_config() == job.to_config()


@pytest.mark.parametrize(
    "asked",
    [
        KernelRidge(15, kernel=Gaussian(2.0), alpha=1.0),
        KernelRidge(15, lengthscale=(1.0, 2.0, np.float64(3.0)), rule="sgma", rule_options={"candidates": 5}),
        KernelRidge(
            15, kernel_params={"shape": 2.0}, kernel="rational_quadratic", random_state=np.random.RandomState(1)
        ),
        BayesianCommitteeMachine(15, block_size=100, tune="none", signal_variance=1.0, noise_variance=0.1),
    ],
    ids=lambda asked: f"{type(asked).__name__} {asked.kernel} {asked.rule}",
)
def test_a_description_is_the_estimator(asked: Any, tmp_path: Path) -> None:
    """Through JSON and back: the same settings, so the same model."""
    if isinstance(asked.random_state, np.random.RandomState):
        expected = type(asked)(**{**asked.get_params(), "random_state": np.random.RandomState(1)})._settings()
    else:
        expected = asked._settings()
    fit = requested(asked)
    records = JobRecords(str(tmp_path), "20260101-000000-01234567")
    records.create(JobSpecification(fit.estimator, fit.plain, "table", "model"))
    assert records.work().opened_settings().to_config() == expected.to_config()


def test_rows_and_queries_and_a_name(session: JobsSession, tmp_path: Path) -> None:
    rows, queries = rows_at(tmp_path / "rows.zarr"), rows_at(tmp_path / "queries.zarr", rows=10)
    given = {"n_components": 40, "block_size": 100, "tune": "none", "signal_variance": 1.0, "noise_variance": 0.1}
    job = session.submit("committee", rows, tmp_path / "model", settings=given, rows=(0, 400), queries=queries)
    fitted = job.result(HANG)
    assert isinstance(fitted, BayesianCommitteeMachine)
    assert fitted.model_.config["rows"] == {"start": 0, "stop": 400, "count": 400}
    points = np.asarray(open_table(queries).read(0, 10).X)
    given = {**given, "queries": points, "random_state": 0}
    alone = BayesianCommitteeMachine(**given).fit(open_table(rows).slice(0, 400))
    np.testing.assert_array_equal(fitted.components_, alone.components_)


def test_a_table_that_is_made_when_it_is_read(session: JobsSession, tmp_path: Path) -> None:
    url = "synthetic://friedman?rows=1e3&features=5"
    job = session.submit(small(), url, tmp_path / "model")
    assert job.result(HANG).model_.digest == small().fit(url).model_.digest
    assert JobRecords(job.jobs, job.id).work().table == "synthetic://friedman?rows=1000&seed=0&features=5"
    with pytest.raises(ParameterError, match="no generator 'x'"):
        session.submit(small(), "synthetic://x?rows=9", tmp_path / "other")
    with pytest.raises(ParameterError, match="not a place"):
        session.submit(small(), url, "synthetic://friedman?rows=9")


def test_warnings_are_in_the_log(session: JobsSession, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((200, 3))
    X[:, 1] = 1.0
    rows = zarr_of_chunks(tmp_path / "rows.zarr", X, X[:, 0], 50)
    job = session.submit(small(), rows, tmp_path / "model")
    assert job.wait(HANG)
    assert any("constant" in event["text"] for event in events(job, "warning"))


def test_one_job_makes_a_model_at_a_time(session: JobsSession, store: str, tmp_path: Path) -> None:
    rows = rows_at(tmp_path / "rows.zarr")
    first = session.submit(estimator(), store, tmp_path / "model")
    with pytest.raises(StoreExistsError, match=f"job {first.id} is making"):
        session.submit(small(), rows, tmp_path / "model")
    first.cancel()
    assert first.wait(HANG)
    second = session.submit(small(), rows, tmp_path / "model")
    assert second.wait(HANG)
    with pytest.raises(StoreExistsError):
        session.submit(small(10), rows, tmp_path / "model")
    third = session.submit(small(10), rows, tmp_path / "model", overwrite=True)
    assert len(third.result(HANG).components_) == 10
    assert session.job(tmp_path / "model").id == third.id


def test_a_second_driver_is_refused(dask_cluster: Cluster, session: JobsSession, store: str, tmp_path: Path) -> None:
    """Whoever asks for one, and however often: one lease, one driver."""
    job = session.submit(estimator(), store, tmp_path / "model", lease_seconds=1.5)
    until(lambda: sweeps_begun(job))
    with Client(dask_cluster.address, set_as_default=False) as client:
        second = client.submit(drive, job.jobs, job.id, pure=False)
        assert second.result(HANG) in ("driven by another", "done")
    assert job.wait(HANG)
    assert len(events(job, "started")) == 1


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        (KernelRidge(rule=as_rule("uniform")), "rule by its name"),
        (BayesianCommitteeMachine(5, queries=np.zeros((2, 3))), "queries='queries.zarr'"),
        (KernelRidge(progress=object()), "job.progress"),
        (KernelRidge(client=object()), "session's cluster"),
        (Lasso(), "cannot fit a Lasso; give one of KernelRidge, .*, KernelCCA, or its name"),
        ("forest", "one of ridge"),
        (KernelRidge(-1), "whole number"),
    ],
    ids=["rule", "queries", "progress", "client", "transformer", "name", "parameter"],
)
def test_what_json_cannot_tell(asked: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        requested(asked)


@pytest.mark.parametrize("rows", [np.zeros((3, 2)), 5, None])
def test_rows_of_this_process(session: JobsSession, tmp_path: Path, rows: Any) -> None:
    with pytest.raises(ParameterError, match=r"streamkernel\.ingest"):
        session.submit(small(), rows, tmp_path / "model")
    with pytest.raises(ParameterError, match="Table"):
        session.submit(small(), open_table(np.zeros((3, 2))), tmp_path / "model")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_classifier_of_numbers_is_refused_before_anything_is_written(session: JobsSession, tmp_path: Path) -> None:
    rows = rows_at(tmp_path / "rows.zarr")
    with pytest.raises(StreamKernelError):
        session.submit(KernelRidgeClassifier(10), rows, tmp_path / "model")
    assert not (tmp_path / "jobs").exists()


def test_looking_where_there_is_nothing(tmp_path: Path) -> None:
    with connect(jobs=tmp_path / "jobs") as session:
        assert session.jobs() == []
        with pytest.raises(StoreNotFoundError, match="no job"):
            session.job("20260101-000000-01234567")
        with pytest.raises(StoreNotFoundError, match="no job"):
            session.job(tmp_path / "model")
        with pytest.raises(ParameterError, match="no cluster can run"):
            session.submit(small(), rows_at(tmp_path / "rows.zarr"), tmp_path / "model")
    with connect() as nowhere, pytest.raises(ParameterError, match="STREAMKERNEL_JOBS"):
        nowhere.jobs()
    with pytest.raises(ParameterError, match="is not the id of a job"):
        JobRecords(str(tmp_path), "../../etc/passwd")


def test_the_place_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMKERNEL_JOBS", str(tmp_path / "jobs"))
    with connect() as session:
        assert session.jobs() == []


def test_the_stored_table_is_not_written(session: JobsSession, tmp_path: Path) -> None:
    rows = rows_at(tmp_path / "rows.zarr")
    before = {path: path.stat().st_mtime_ns for path in Path(rows).rglob("*")}
    assert session.submit(small(), rows, tmp_path / "model").wait(HANG)
    assert before == {path: path.stat().st_mtime_ns for path in Path(rows).rglob("*")}
    assert zarr.open_group(rows, mode="r")["X"].shape == (600, 3)
