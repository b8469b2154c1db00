"""Whether a driver lives is told by the clock of the place of its records, never by those of two machines."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamkernel import connect
from streamkernel.blobs import Blobs, Lease, LocalBlobs, blobs_at, clock, place_time
from streamkernel.errors import ParameterError, StoreAccessError
from streamkernel.jobs import JobsSession
from streamkernel.jobs._progress_watch import ProgressWatch
from streamkernel.jobs._steps import steps_of
from streamkernel.jobs.records import RUNNING, JobRecords
from streamkernel.jobs.specification import JobSpecification
from streamkernel.store import Bundle, write_bundle

AHEAD = pytest.mark.parametrize("ahead", [19.0, -19.0, 1e7])
ID = "20260101-000000-01234567"


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_set", {})


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "place")


@pytest.fixture
def records(place: str) -> JobRecords:
    """A job that this process drives, with a checkpoint."""
    records = JobRecords(f"{place}/jobs", ID)
    records.create(JobSpecification("ridge", {}, f"{place}/rows", f"{place}/model", lease_seconds=15.0))
    write_bundle(f"{steps_of(ID, f'{place}/model')}/0001/0000-sums", Bundle("checkpoint", 1, {}, {}))
    return records


@pytest.fixture
def lease(records: JobRecords) -> Iterator[Lease]:
    held = Lease.acquire(records.blobs, "lease", ttl=15.0, keep_alive=False)
    assert held is not None
    records.claim(held, attempt=1)
    yield held
    held.release()


@pytest.fixture
def looking(records: JobRecords) -> Iterator[JobsSession]:
    with connect(jobs=records.location) as session:
        yield session


def steps(place: str) -> list[str]:
    return blobs_at(steps_of(ID, f"{place}/model")).keys()


@AHEAD
def test_a_client_with_another_time(
    records: JobRecords, lease: Lease, looking: JobsSession, place: str, ahead: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + ahead)
    job = looking.job(ID)
    assert job.status == "running"
    with pytest.raises(ParameterError, match="is running, and only ended jobs are removed"):
        looking.remove(ID)
    job.cancel()
    # The driver is to stop, and to put its things away itself.
    assert job.status == job.refresh() == "cancelling"
    assert steps(place)
    assert lease.held
    with pytest.raises(ParameterError, match="is cancelling, and only ended jobs"):
        looking.remove(ID)


@AHEAD
def test_a_driver_with_another_time(
    records: JobRecords, place: str, looking: JobsSession, ahead: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    with monkeypatch.context() as driver:
        driver.setattr(time, "time", lambda: real() + ahead)
        lease = Lease.acquire(records.blobs, "lease", ttl=15.0, keep_alive=False)
        assert lease is not None
        records.claim(lease, attempt=1)
    assert looking.job(ID).status == "running"
    # By its own clock it has ended yesterday, or will tomorrow.
    for path in Path(records.blobs.location, "lease").iterdir():
        os.utime(path, (real() - 19, real() - 19))
    assert looking.job(ID).status == "interrupted"
    lease.abandon()


def test_a_driver_that_is_gone(
    records: JobRecords, lease: Lease, looking: JobsSession, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cancelled by who looks, and what it had kept goes; watched for no longer than a living one is silent."""
    age = time.time() - 19
    for path in Path(records.blobs.location, "lease").iterdir():
        os.utime(path, (age, age))
    job = looking.job(ID)
    assert job.status == "interrupted"
    monkeypatch.setattr("streamkernel.blobs.lease._WATCHED", 0.2)
    job.cancel()
    assert job.status == "cancelled"
    assert steps(place) == []


def test_one_that_only_seemed_to_be_gone(
    records: JobRecords, looking: JobsSession, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records look old, as at a place whose clock was set; but it gives a sign of life, and nothing is removed."""
    held = Lease.acquire(records.blobs, "lease", ttl=1.5)
    assert held is not None
    with held:
        records.claim(held, attempt=1)
        monkeypatch.setattr("streamkernel.jobs.job.Job._silence", lambda self: 60.0)
        monkeypatch.setattr("streamkernel.blobs.lease._RENEWALS", 4.0)  # a busy machine wakes a holder late
        job = looking.job(ID)
        job.cancel()
        assert records.latest().value["status"] == "cancelling"
        assert held.held
        assert steps(place)


def test_a_lease_that_nobody_holds(records: JobRecords, lease: Lease, looking: JobsSession) -> None:
    assert looking.job(ID).status == "running"
    lease.release()
    assert looking.job(ID).status == "interrupted"


def test_a_place_that_does_not_tell_its_time(
    records: JobRecords, lease: Lease, looking: JobsSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that may not be written, say: then who looks has to watch, by a clock of its own."""

    def refused(*arguments: object) -> None:
        raise StoreAccessError("read only")

    monkeypatch.setattr(LocalBlobs, "write", refused)
    age = time.time() - 1000
    for path in Path(records.blobs.location, "lease").iterdir():
        os.utime(path, (age, age))
    job, now = looking.job(ID), time.monotonic()
    assert job.status == "running"
    monkeypatch.setattr(time, "monotonic", lambda: now + 17.0)
    assert job.status == "running"
    monkeypatch.setattr(time, "monotonic", lambda: now + 19.0)
    assert job.status == "interrupted"
    records.state.append({**records.latest().value, "status": RUNNING}, after=records.latest())
    assert not math.isinf(job._age(records.latest()))


@pytest.mark.parametrize("hours", [1, 24])
def test_a_driver_that_was_lost_before_the_clock_of_the_place_was_set_back(
    records: JobRecords, lease: Lease, looking: JobsSession, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last record is of the future, and its age would be negative for as long as the clock was set back."""
    from_the_future(records, hours)
    monkeypatch.setattr("streamkernel.blobs.lease._WATCHED", 0.2)
    job = looking.job(ID)
    # Also for who looks only once, and without another watch for who looks again.
    assert job.status == "interrupted"
    monkeypatch.setattr("streamkernel.jobs.job.is_renewed", None)
    assert job.status == "interrupted"


def from_the_future(records: JobRecords, hours: int) -> None:
    later = time.time() + 3600 * hours
    for path in Path(records.blobs.location, "lease").iterdir():
        os.utime(path, (later, later))


def test_a_driver_that_works_as_the_clock_of_the_place_is_set_back(
    records: JobRecords, looking: JobsSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamkernel.blobs.lease._RENEWALS", 4.0)  # a busy machine wakes a holder late
    held = Lease.acquire(records.blobs, "lease", ttl=1.5)
    assert held is not None
    with held:
        records.claim(held, attempt=1)
        from_the_future(records, 1)
        assert looking.job(ID).status == "running"


def test_a_clock_that_is_set_back_after_it_was_read(
    records: JobRecords, lease: Lease, looking: JobsSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver renews its lease by the new time, which must not be compared with the old one."""
    assert looking.job(ID).status == "running"
    (stamp, sent) = clock._set[records.location]
    monkeypatch.setitem(clock._set, records.location, (stamp + 3600 * 10**9, sent))
    assert looking.job(ID).status == "running"


@pytest.mark.parametrize("where", ["folder", "s3", "memory"])
def test_the_time_of_a_place(request: pytest.FixtureRequest, tmp_path: Path, where: str) -> None:
    location = {
        "folder": str(tmp_path / "p"),
        "s3": f"{request.getfixturevalue('s3')}/p" if where == "s3" else "",
        "memory": f"memory://{tmp_path.name}/p",
    }[where]
    blobs: Blobs = blobs_at(location)
    blobs.write("earlier", b"1")
    sent = time.monotonic_ns()
    first, took = place_time(blobs), time.monotonic_ns() - sent
    assert first is not None
    blobs.write("later", b"1")
    earlier, later = (blobs.stamps(key)[key].time for key in ("earlier", "later"))
    # Stamps of some stores are of whole seconds; when the place stamped its value between question and answer, no one
    # tells.
    assert earlier - 1e9 < first < later + 1e9 + took
    assert place_time(blobs) > first  # type: ignore[operator]
    assert sorted(blobs.keys()) == ["earlier", "later"]


def test_what_killed_processes_left_as_they_asked_for_the_time(tmp_path: Path) -> None:
    left = ["CLOCK-0", ".CLOCK-1.0123abcd.partial"]
    for name in [*left, "CLOCK-2", "theirs"]:
        (tmp_path / name).write_bytes(b"")
        old = time.time() - 7200.0
        os.utime(tmp_path / name, None if name == "CLOCK-2" else (old, old))
    assert place_time(blobs_at(tmp_path)) is not None
    assert sorted(os.listdir(tmp_path)) == ["CLOCK-2", "theirs"]


def test_a_clock_that_is_set_back_while_a_driver_works(
    records: JobRecords, lease: Lease, looking: JobsSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProgressWatch(records, lease, attempt=1, worker="here", closing=lambda: False, memory=lambda: 0) as watch:
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() - 3600.0)
        watch.measured(1)
    watch.write_last()
    progress = looking.job(ID).progress
    assert progress["peak_bytes"] == 1
    assert 0.0 <= progress["seconds"] < 3600.0
