"""submit, jobs, status, logs, cancel, resume: what they print, and their exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from clusters import Cluster

from streamkernel.cli import job_options
from streamkernel.jobs.records import JobRecords, new_id
from streamkernel.jobs.specification import JobSpecification


@pytest.fixture
def scheduler(dask_cluster: Cluster) -> str:
    return dask_cluster.address


FIT = ("--basis", 40, "--rows", "0:5000", "--seed", 3, "--kernel", "gaussian")


def test_submit_and_look(cli: Callable, scheduler: str, store: Path, tmp_path: Path) -> None:
    """The commands of a laptop: the model is that of `fit`."""
    model = tmp_path / "model"
    submitted = cli("submit", store, model, *FIT, "--scheduler", scheduler)
    assert submitted.status == 0, submitted.err
    job = submitted.out.strip()
    followed = cli("status", job, "--jobs", tmp_path / ".jobs", "--follow", "--json", "--scheduler", scheduler)
    told = followed.result
    assert told["status"] == "done"
    assert "done" in followed.err
    alone = cli("fit", store, tmp_path / "alone", *FIT, "--scheduler", "threads", "--json").result
    assert told["result"]["digest"] == alone["digest"]
    assert told["result"].keys() >= alone.keys() - {"seconds"}
    assert cli("status", model, "--json").result == told
    shown = cli("status", model).out
    assert job in shown
    assert told["result"]["digest"] in shown.replace("\n", "").replace(" ", "")

    listed = cli("jobs", tmp_path / ".jobs", "--json").result["jobs"]
    assert listed == [told]
    assert job in cli("jobs", tmp_path / ".jobs").out
    events = cli("logs", model, "--json").result["events"]
    assert [events[0]["event"], events[-1]["event"]] == ["submitted", "done"]
    assert len(cli("logs", model).out.splitlines()) == len(events)
    followed = cli("logs", model, "--follow", "--json")
    assert [json.loads(line) for line in followed.out.splitlines()] == events
    assert f"job {job} is done already" in cli("cancel", model).error
    assert f"job {job} is done;" in cli("resume", model, "--scheduler", scheduler).error

    assert cli("jobs", tmp_path / ".jobs", "--remove", job, "--json").result == {"removed": [job]}
    assert cli("jobs", tmp_path / ".jobs", "--json").result == {"jobs": []}
    assert "no job" in cli("jobs", tmp_path / ".jobs", "--remove", job).error
    assert cli("info", model, "--json").result["digest"] == alone["digest"]


def test_a_job_that_fails(cli: Callable, scheduler: str, store: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    given = ("--scheduler", scheduler, "--memory", "400MB", "--json", "--quiet")
    submitted = cli("submit", store, model, *FIT, *given).result
    assert submitted["model"] == str(model)
    failed = cli("status", submitted["id"], "--jobs", submitted["jobs"], "--follow", "--scheduler", scheduler)
    assert "exceeds allowed memory" in failed.error
    assert "ResourceLimitError" in failed.out
    assert cli("status", model, "--json").result["error"]["type"] == "ResourceLimitError"
    assert not model.exists()


def test_cancel_and_resume(cli: Callable, scheduler: str, store: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    many = ("--rule", "rpcholesky", "--block", 5, "--basis", 300, "--kernel", "gaussian")
    job = cli("submit", store, model, *many, "--scheduler", scheduler, "--lease", 2, "--json").result["id"]
    assert f"job {job} is " in cli("jobs", tmp_path / ".jobs", "--remove", job).error
    assert cli("cancel", model, "--json").result["status"] in ("cancelling", "cancelled")
    assert cli("status", model, "--follow", "--quiet", "--json").result["status"] == "cancelled"
    assert not model.exists()
    assert "cancelled already" in cli("cancel", job, "--jobs", tmp_path / ".jobs").error

    assert "give --scheduler" in cli("resume", model).error
    resumed = cli("resume", model, "--scheduler", scheduler, "--json")
    assert resumed.result == {"id": job, "status": resumed.result["status"], "model": str(model), "checkpoints": 0}
    assert resumed.result["status"] in ("queued", "running")
    assert "there is no checkpoint, or none that can be read here: the job begins with the first sweep" in resumed.err
    assert cli("cancel", model, "--keep-checkpoints").status == 0
    assert cli("status", model, "--follow", "--quiet", "--json").result["status"] == "cancelled"


def test_what_is_refused(cli: Callable, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    assert "--scheduler the address of one" in cli("submit", store, model).error
    assert "not encrypted" in cli("submit", store, model, "--scheduler", "tcp://head.example:8786").error
    assert "no job in" in cli("status", model).error
    assert "STREAMKERNEL_JOBS" in cli("jobs").error
    monkeypatch.setenv("STREAMKERNEL_JOBS", str(tmp_path / "elsewhere"))
    assert "elsewhere" in cli("status", "20260101-000000-01234567").error
    assert cli("jobs", "--json").result == {"jobs": []}
    assert list(tmp_path.iterdir()) == []


def test_records_tell_whether_or_not_the_scheduler_answers(
    cli: Callable, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_options, "_PATIENCE", 0.3)
    records = JobRecords(str(tmp_path / ".jobs"), new_id())
    records.create(
        JobSpecification("ridge", {"n_components": 10}, str(store), str(tmp_path / "model"), lease_seconds=2.0)
    )
    gone = ("--scheduler", "tcp://127.0.0.1:1", "--jobs", tmp_path / ".jobs")
    for command in (("status", records.id), ("jobs",)):
        looked = cli(*command, *gone, "--json")
        assert looked.status == 0
        assert "queued" in looked.out
        assert looked.err.startswith("warning: no Dask scheduler answers at tcp://127.0.0.1:1")
        assert len(looked.err.splitlines()) == 1
    assert cli("logs", records.id, *gone).err == ""
    assert cli("cancel", records.id, *gone, "--json").result["status"] == "cancelled"


def test_which_jobs(cli: Callable, tmp_path: Path) -> None:
    assert "give their LOCATION" in cli("jobs").error
    assert "there is no folder" in cli("jobs", tmp_path / "none").error
    assert cli("jobs", tmp_path).out == "no jobs\n"
