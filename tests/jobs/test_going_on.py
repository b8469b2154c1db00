"""Who has a job driven again: whoever looks with a cluster, and whoever says so."""

from __future__ import annotations

import errno
import time
from pathlib import Path
from typing import Any, cast

import pytest
from clusters import HANG
from distributed import Client
from fits import events, failure, rows_at, small, until, written

from streamkernel.blobs import LocalBlobs, store_error
from streamkernel.errors import (
    CorruptMetadataError,
    ParameterError,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
)
from streamkernel.jobs import JobsSession
from streamkernel.jobs._reservation import latest_maker, reserve
from streamkernel.jobs._scheduling import submit_driver
from streamkernel.jobs.records import JobRecords


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> str:
    return rows_at(tmp_path_factory.mktemp("rows") / "rows.zarr", rows=200)


def lost(
    place: Path, rows: str, model: Path, number: int = 1, *, lease: float = 1.5, seconds: float = 60
) -> JobRecords:
    """One whose driver was heard of so many seconds ago, on a cluster that is no more."""
    state = {"status": "running", "attempt": 1, "steps": 0, "time": time.time() - seconds}
    return written(place, rows, model, lease=lease, number=number, **state)


def test_whoever_looks(session: JobsSession, looking: JobsSession, place: Path, rows: str, tmp_path: Path) -> None:
    one, two = (lost(place, rows, tmp_path / f"model-{number}", number) for number in (1, 2))
    assert [job.status for job in looking.jobs()] == ["interrupted", "interrupted"]
    assert looking.job(one.id).refresh() == "interrupted"
    assert session.job(one.id).wait(HANG)
    assert two.latest().value["status"] == "running"  # nobody with a cluster has looked at that one
    listed = session.jobs()
    assert [job.id for job in listed] == [one.id, two.id]
    assert listed[1].wait(HANG)
    for job in listed:
        assert [event["text"] for event in events(job, "resubmitted")] == ["resubmitted: its driver was lost"]


@pytest.mark.parametrize("torn", ["lease", "progress"])
def test_a_torn_record_of_a_lost_driver(
    session: JobsSession, looking: JobsSession, place: Path, rows: str, tmp_path: Path, torn: str
) -> None:
    """That of its lease stops nobody who looks, and neither stops the next driver."""
    records = lost(place, rows, tmp_path / "model", lease=1.0)
    assert records.blobs.create(f"{torn}/00000001.json", b'{"nonce": "0a')
    if torn == "lease":
        assert looking.job(records.id).status == "running"
        until(lambda: looking.job(records.id).status == "interrupted")
        assert session.job(records.id).wait(60)
        assert events(looking.job(records.id), "lease")[0]["text"] == "taken over from a driver, which is gone"
        return
    queued = records.advance(records.latest(), "queued")
    assert queued is not None
    # The scheduler begins the driver again, whoever looks.
    submit_driver(session._client, records, queued)  # type: ignore[arg-type]
    until(lambda: records.latest().status == "done")
    assert looking.job(records.id).progress["attempt"] == 2


def test_resume_does_not_wait_for_the_lease(
    session: JobsSession, looking: JobsSession, place: Path, rows: str, tmp_path: Path
) -> None:
    """Somebody knows that the cluster is gone; the records cannot."""
    records = lost(place, rows, tmp_path / "model", lease=3000, seconds=0)
    with pytest.raises(ParameterError, match="give address, the address of a scheduler"):
        looking.job(records.id).resume()
    job = session.job(records.id)
    assert job.status == "running"
    assert job.resume() == 0
    assert job.wait(HANG)
    with pytest.raises(ParameterError, match="is done; what was lost, failed or was cancelled can be resumed"):
        job.resume()


def test_resume_of_a_model_that_another_job_makes(session: JobsSession, place: Path, rows: str, tmp_path: Path) -> None:
    stopped = written(place, rows, tmp_path / "model", number=1, status="cancelled", keep_checkpoints=True)
    job = session.submit(small(), rows, tmp_path / "model", check=False, lease_seconds=2.0)
    with pytest.raises(StoreExistsError, match=f"job {job.id} is making"):
        session.job(stopped.id).resume()
    assert stopped.latest().value["status"] == "cancelled"
    assert job.wait(HANG)
    assert session.job(tmp_path / "model").id == job.id


@pytest.mark.parametrize("first", ["linked", "folder"])
def test_a_linked_folder_is_no_other_place(
    looking: JobsSession, place: Path, rows: str, tmp_path: Path, first: str
) -> None:
    """Two jobs for one model, one by a link and one by the real path."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "linked").symlink_to("folder")
    other = {"linked": "folder", "folder": "linked"}[first]
    maker = written(place, rows, tmp_path / first / "model", number=1)
    reserve(maker, str(tmp_path / first / "model"))
    second = written(place, rows, tmp_path / other / "model", number=2)
    with pytest.raises(StoreExistsError, match=f"job {maker.id} is making .*/{other}/model already"):
        reserve(second, str(tmp_path / other / "model"))
    assert latest_maker(str(place), str(tmp_path / other / "model")) == maker.id
    reserve(second, str(tmp_path / other / "another model"))


def test_a_link_that_other_machines_do_not_have(place: Path, rows: str, tmp_path: Path) -> None:
    """The path as it was given is a name of the model, too: what this machine finds behind it, another may not."""
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked").symlink_to("here")
    model = str(tmp_path / "linked" / "model")
    maker = written(place, rows, Path(model), number=1)
    reserve(maker, model)
    (tmp_path / "linked").unlink()
    (tmp_path / "linked").symlink_to("elsewhere")
    with pytest.raises(StoreExistsError, match=f"job {maker.id} is making"):
        reserve(written(place, rows, Path(model), number=2), model)
    assert latest_maker(str(place), model) == maker.id


def test_what_was_refused_is_driven_by_nobody(session: JobsSession, place: Path, rows: str, tmp_path: Path) -> None:
    """The record of the model's maker is torn: nobody knows whether another job makes the model."""
    former = written(place, rows, tmp_path / "model", status="cancelled")
    reserve(former, str(tmp_path / "model"))
    (torn,) = (place / "models").rglob("*.json")
    torn.write_bytes(b"")
    with pytest.raises(CorruptMetadataError, match=torn.name):
        session.submit(small(), rows, tmp_path / "model")
    with pytest.raises(CorruptMetadataError, match=torn.name):
        session.job(former.id).resume()
    assert [job.status for job in session.jobs()] == ["cancelled", "cancelled"]


@pytest.mark.parametrize("written_before", range(4))
def test_what_found_no_space_is_driven_by_nobody(
    looking: JobsSession, place: Path, rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_before: int
) -> None:
    """The disk is full after some records of the job: the user reads that, and submits it again later."""
    create, left = LocalBlobs.create, [written_before]

    def full(self: LocalBlobs, key: str, value: bytes) -> bool:
        if not left[0]:
            raise StoreError("no space left")
        left[0] -= 1
        return create(self, key, value)

    connected = JobsSession(cast(Client, object()), str(place))
    with monkeypatch.context() as patched:
        patched.setattr(LocalBlobs, "create", full)
        with pytest.raises(StoreError, match=r"^no space left$"):
            connected.submit(small(), rows, tmp_path / "model")
    assert looking.jobs() == []
    reserve(written(place, rows, tmp_path / "model"), str(tmp_path / "model"))


def test_a_driver_whose_end_cannot_be_recorded(
    session: JobsSession, place: Path, rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user is not told to submit the job again, which would be refused: it is there."""
    records = written(place, rows, tmp_path / "model")
    queued = records.latest()

    def full(*arguments: Any, **options: Any) -> None:
        raise store_error(OSError(errno.ENOSPC, "a; b"), "PLACE", "writing")

    said = (
        f"^job {records.id} is recorded, but its records cannot .* now "
        r"\(no space left while writing PLACE \(a; b\)\); once they can, status or resume submits it again$"
    )
    with monkeypatch.context() as patched:
        patched.setattr(records, "location", str(tmp_path / "elsewhere"))
        patched.setattr(records, "end", full)
        with pytest.raises(StoreError, match=said):
            until(lambda: submit_driver(session._client, records, queued))
    assert session.job(records.id).wait(HANG)


@pytest.mark.parametrize("other", ["queued", "done"])
def test_a_submitter_that_died_before_it_reserved_the_model(
    session: JobsSession, place: Path, rows: str, tmp_path: Path, other: str
) -> None:
    """Another job may make the model by now: two of them would work for one that is kept."""
    died = written(place, rows, tmp_path / "model", number=1)
    second = written(place, rows, tmp_path / "model", number=2, **({} if other == "queued" else {"status": other}))
    reserve(second, str(tmp_path / "model"))
    if other == "queued":
        failure(session.job(died.id), StoreExistsError, f"job {second.id} is making")
    else:
        assert session.job(died.id).wait(HANG)
        assert session.job(tmp_path / "model").id == died.id


def test_a_driver_that_cannot_begin_is_told_of(
    session: JobsSession, place: Path, rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of workers that do not see the records Dask's log knows, and so shall who looks."""
    records = written(place, rows, tmp_path / "model")
    queued = records.latest()
    with monkeypatch.context() as patched:
        patched.setattr(records, "location", str(tmp_path / "elsewhere"))
        until(lambda: submit_driver(session._client, records, queued) or records.latest().number > queued.number)
    job = session.job(records.id)
    failure(job, StoreNotFoundError, f"on the cluster its driver could not begin: no job {records.id} in .*elsewhere")
    assert events(job, "failed")[0]["level"] == "error"
    assert job.resume() == 0
    assert job.wait(HANG)
