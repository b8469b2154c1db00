"""Removing jobs: what is ended goes, but for its model; what is not ended stays; half-done is done again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusters import HANG
from crowded_disk import CrowdedDisk
from fits import events, rows_at, small, written

from streamkernel.blobs import Lease, LocalBlobs
from streamkernel.errors import CorruptMetadataError, ParameterError, StoreError, StoreNotFoundError
from streamkernel.jobs import JobsSession
from streamkernel.jobs._steps import steps_of
from streamkernel.jobs.records import JobRecords
from streamkernel.store import Bundle, write_bundle


@pytest.fixture
def ended(place: Path, tmp_path: Path) -> JobRecords:
    """Cancelled, with a checkpoint and a lease that was released."""
    records = written(place, "table", tmp_path / "model", status="cancelled", keep_checkpoints=True)
    step = f"{steps_of(records.id, str(tmp_path / 'model'))}/0001/0000-sums"
    write_bundle(step, Bundle("checkpoint", 1, {}, {}))
    lease = Lease.acquire(records.blobs, "lease", ttl=1.5, keep_alive=False)
    assert lease is not None
    lease.release()
    return records


def left(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_done_job_leaves_its_model(session: JobsSession, looking: JobsSession, place: Path, tmp_path: Path) -> None:
    rows = rows_at(tmp_path / "rows.zarr", rows=200)
    job = session.submit(small(), rows, tmp_path / "model")
    digest = job.result(HANG).model_.digest
    session.remove(job.id)  # while its driver lets go
    assert digest == type(small()).load(tmp_path / "model").model_.digest
    assert {path.split("/")[0] for path in left(place)} == {"models"}
    assert looking.jobs() == []
    for ask in (lambda: looking.job(job.id), lambda: looking.job(tmp_path / "model"), lambda: looking.remove(job.id)):
        with pytest.raises(StoreNotFoundError, match="no job"):
            ask()
    # The place of the model is free again.
    again = session.submit(small(), rows, tmp_path / "model", overwrite=True)
    assert again.wait(HANG)
    assert looking.job(tmp_path / "model").id == again.id


def test_checkpoints_go_too(looking: JobsSession, ended: JobRecords, place: Path, tmp_path: Path) -> None:
    assert any(".run/" in path for path in left(tmp_path))
    looking.remove(ended.id)
    assert left(tmp_path) == set()
    assert list(place.iterdir()) == [place / "specs"]


@pytest.mark.parametrize("status", ["queued", "running", "cancelling", "interrupted"])
def test_what_has_not_ended_is_refused(looking: JobsSession, place: Path, tmp_path: Path, status: str) -> None:
    records = written(place, "table", tmp_path / "model", status=status)
    before = left(tmp_path)
    with pytest.raises(ParameterError, match=f"{records.id} is {status}, and only ended jobs are removed"):
        looking.remove(records.id)
    assert left(tmp_path) == before


def test_a_driver_that_still_holds_it(looking: JobsSession, place: Path, tmp_path: Path) -> None:
    records = written(place, "table", tmp_path / "model", lease=1.0, status="done")
    with Lease.acquire(records.blobs, "lease", ttl=1.0) as lease:  # type: ignore[union-attr]
        with pytest.raises(ParameterError, match="is still ending"):
            looking.remove(records.id)
        assert lease.held
    looking.remove(records.id)
    assert looking.jobs() == []


def test_interrupted_anywhere_it_is_safe_to_repeat(
    looking: JobsSession, ended: JobRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended after each file that it removes; meanwhile nobody sees a job that could be run."""
    remove: Callable[[Any, str], None] = LocalBlobs.remove

    def ended_after(blobs: Any, key: str) -> None:
        there = blobs.read(key) is not None
        remove(blobs, key)
        if there:
            raise KeyboardInterrupt

    monkeypatch.setattr(LocalBlobs, "remove", ended_after)
    ends = 0
    while ends < 20:
        try:
            looking.remove(ended.id)
        except KeyboardInterrupt:
            found = looking.jobs()
            assert [job.status for job in found] in ([], ["removing"])
            for job in found:
                with pytest.raises(StoreNotFoundError, match="being removed"):
                    job.result()
        except StoreNotFoundError:
            break
        ends += 1
    # An event, the spec, three states, four records of the lease: that of the driver, and that of the first removal.
    assert ends == 9
    assert left(tmp_path) == set()


@pytest.mark.parametrize("shared", [False, True])
def test_a_full_disk(
    looking: JobsSession, ended: JobRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    """What goes anyway makes room. If others take that, too, the job stays, the error says so."""
    with monkeypatch.context() as patched:
        CrowdedDisk(patched).shared = shared
        if not shared:
            looking.remove(ended.id)
            assert left(tmp_path) == set()
            return
        with pytest.raises(StoreError, match=r"no space left .* free some"):
            looking.remove(ended.id)
    assert [job.status for job in looking.jobs()] == ["cancelled"]
    looking.remove(ended.id)
    assert left(tmp_path) == set()


@pytest.mark.parametrize("status", ["queued", "running"])
def test_what_has_not_ended_is_left_alone_on_a_full_disk(
    looking: JobsSession, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    records = written(place, "table", tmp_path / "model", status=status)
    before = left(tmp_path)
    CrowdedDisk(monkeypatch)
    with pytest.raises(ParameterError, match="only ended jobs are removed"):
        looking.remove(records.id)
    assert left(tmp_path) == before


def test_what_is_damaged_is_left(looking: JobsSession, ended: JobRecords, place: Path, tmp_path: Path) -> None:
    spec = place / "specs" / f"{ended.id}.json"
    spec.write_bytes(spec.read_bytes()[:40])
    before = left(tmp_path)
    with pytest.raises(CorruptMetadataError, match=f"{ended.id}.json"):
        looking.remove(ended.id)
    assert left(tmp_path) == before


def test_a_log_goes_on_until_it_is_removed(looking: JobsSession, ended: JobRecords) -> None:
    job = looking.job(ended.id)
    assert [event["event"] for event in events(job)] == ["submitted"]
    looking.remove(ended.id)
    with pytest.raises(StoreNotFoundError, match="no job"):
        job.to_config()
