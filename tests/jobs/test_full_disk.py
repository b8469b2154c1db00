"""A disk of records that stays full: whoever looks is told so, and a job can be stopped nevertheless."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from crowded_disk import CrowdedDisk
from fits import written

from streamkernel.cli import main
from streamkernel.errors import StoreError
from streamkernel.jobs import JobsSession
from streamkernel.jobs._steps import steps_of, steps_saved
from streamkernel.jobs.records import JobRecords
from streamkernel.service.allowed_locations import AllowedLocations
from streamkernel.service.job_actions import JobActions
from streamkernel.service.settings import JobsPlace
from streamkernel.store import Bundle, write_bundle


@pytest.fixture
def records(place: Path, tmp_path: Path) -> JobRecords:
    """Of a job whose driver ended, and could record neither its end nor that it gives up its lease."""
    return written(place, "table", tmp_path / "model", status="running", attempt=1)


def test_an_interrupted_job_says_so(
    looking: JobsSession,
    records: JobRecords,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = looking.job(records.id)
    assert (job.status, job.error, job.to_config()["error"]) == ("interrupted", None, None)
    assert not list(place.glob("CLOCK*"))
    said = f"no space left for records in {place}; free some, then resume the job"
    with monkeypatch.context() as patched:
        CrowdedDisk(patched)
        assert job.error == job.to_config()["error"] == {"type": "StoreError", "message": said}
        assert main(["jobs", str(place)]) == 0
        assert capsys.readouterr().err == f"warning: job {job.id} cannot go on: {said}\n"
        assert main(["status", job.id, "--jobs", str(place)]) == 0
        assert f"StoreError: {said}" in capsys.readouterr().out
        actions = JobActions(JobsPlace(str(place)), AllowedLocations([place.parent], str(place)))
        (served,) = actions.list_jobs(10)
        assert served["error"]["message"].startswith("no space left for records in")
    assert job.error is None


def test_a_list_is_no_shorter(
    session: JobsSession, place: Path, records: JobRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster is there, and to have the first job driven again fails: the others are listed all the same."""
    written(place, "table", tmp_path / "other", number=2, status="done")
    with monkeypatch.context() as patched:
        CrowdedDisk(patched)
        assert [job.status for job in session.jobs()] == ["interrupted", "done"]
    records.advance(records.latest(), "cancelled")


@pytest.mark.parametrize("keep", [False, True])
def test_a_job_is_cancelled(
    looking: JobsSession, records: JobRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    """Its checkpoints go anyway, and make room for that record; where they are to be kept, they are."""
    steps = steps_of(records.id, str(tmp_path / "model"))
    write_bundle(f"{steps}/0001/0000-sums", Bundle("checkpoint", 1, {}, {"sums": np.ones(3), "count": np.ones(3)}))
    job = looking.job(records.id)
    with monkeypatch.context() as patched:
        CrowdedDisk(patched)
        if keep:
            with pytest.raises(StoreError, match=r"no space left .* free some"):
                job.cancel(keep_checkpoints=True)
        else:
            job.cancel()
    assert job.status == ("interrupted" if keep else "cancelled")
    assert steps_saved(steps) == int(keep)
    job = looking.job(records.id)
    if keep:
        job.cancel(keep_checkpoints=True)
        assert (job.status, steps_saved(steps)) == ("cancelled", 1)
