"""Records that are torn or of another release: whoever looks is told in one line, and none hides another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fits import written

from streamkernel.blobs import RecordLog
from streamkernel.cli import main
from streamkernel.errors import CorruptMetadataError
from streamkernel.jobs import JobsSession
from streamkernel.jobs.records import JobRecords
from streamkernel.service.allowed_locations import AllowedLocations
from streamkernel.service.job_actions import JobActions
from streamkernel.service.settings import JobsPlace

DAMAGES: dict[str, Any] = {
    "torn": lambda text: text[: len(text) // 2],
    "empty": lambda text: b"",
    "a list": lambda text: b"[]",
    "of another release": lambda text: text.replace(b'"version": 1', b'"version": 9').replace(b'"status"', b'"estate"'),
}


@pytest.fixture
def records(place: Path, tmp_path: Path) -> JobRecords:
    """The second of two jobs."""
    written(place, "table", tmp_path / "other", number=1, status="done")
    return written(place, "table", tmp_path / "model", number=2, status="running")


def damaged(place: Path, records: JobRecords, which: str, damage: Any) -> Path:
    path = {
        "spec": place / "specs" / f"{records.id}.json",
        "state": place / records.id / "state" / "00000002.json",
        "progress": place / records.id / "progress" / "00000001.json",
    }[which]
    if which == "progress":
        RecordLog(records.blobs, "progress").append({"time": "never"}, after=None)
    path.write_bytes(damage(path.read_bytes()))
    return path


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("which", ["spec", "state", "progress"])
def test_the_file_is_named(
    looking: JobsSession, records: JobRecords, place: Path, which: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = damaged(place, records, which, DAMAGES[damage])
    with pytest.raises(CorruptMetadataError) as raised:
        looking.job(records.id)
    assert str(path) in str(raised.value)
    first, second = looking.jobs()
    assert [first.status, second.status] == ["done", "unreadable"]
    assert second.refresh() == "unreadable"
    assert second.error == {"type": "CorruptMetadataError", "message": str(raised.value)}
    for ask in (second.wait, second.result, second.cancel, second.resume, second.logs, lambda: second.progress):
        with pytest.raises(CorruptMetadataError):
            ask()
    assert main(["status", records.id, "--jobs", str(place)]) == 1
    assert capsys.readouterr().err == f"error: {raised.value}\n"
    assert main(["jobs", str(place)]) == 0
    told = capsys.readouterr()
    assert told.err == f"warning: job {records.id} is unreadable: {raised.value}\n"
    assert all(word in told.out for word in (first.id, "done", second.id, "unreadable"))
    assert main(["jobs", str(place), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == [first.to_config(), second.to_config()]


@pytest.mark.parametrize(
    ("which", "name", "value", "words"),
    [
        ("spec", "work", {"model": "m"}, "lacks the field work.estimator"),
        ("spec", "submitted", -1, "field submitted is -1, not a number >= 0"),
        ("state", "status", "ready", "field status is 'ready', not one of 'queued'"),
        ("state", "status", "failed", "lacks the field error"),
        ("state", "asked", True, "field asked is True, not a whole number"),
        ("progress", "time", "never", "lacks the field attempt"),
    ],
)
def test_the_field_is_named(
    looking: JobsSession, records: JobRecords, place: Path, which: str, name: str, value: Any, words: str
) -> None:
    def changed(text: bytes) -> bytes:
        document = json.loads(text)
        (document if which == "spec" else document["value"])[name] = value
        return json.dumps(document).encode()

    path = damaged(place, records, which, changed)
    with pytest.raises(CorruptMetadataError, match=rf"{path.name}.* {words}"):
        looking.job(records.id)


@pytest.mark.parametrize(("log", "number"), [("state", 3), ("log", 2)])
def test_a_folder_in_the_place_of_the_next_record(
    looking: JobsSession, records: JobRecords, place: Path, log: str, number: int
) -> None:
    """Where nothing can be written, nobody tries for ever."""
    path = place / records.id / log / f"{number:08d}.json"
    path.mkdir()
    with pytest.raises(CorruptMetadataError, match=str(path)):
        looking.job(records.id).cancel()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_event_stops_no_job(
    looking: JobsSession, records: JobRecords, place: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A driver could neither begin nor record its end, and a job could not be cancelled."""
    path = place / records.id / "log" / "00000001.json"
    path.write_bytes(DAMAGES[damage](path.read_bytes()).replace(b'"level"', b'"devil"'))
    job = looking.job(records.id)
    job.cancel()
    assert job.status == "cancelled"
    damaged, *others = job.logs()
    assert damaged["level"] == "warning"
    assert str(path) in damaged["text"]
    assert [event["event"] for event in others] == ["cancelling", "cancelled"]
    assert main(["logs", records.id, "--jobs", str(place)]) == 0
    assert f"warning: {path} is no record" in capsys.readouterr().out
    # As the message says; the later ones are not hidden then.
    path.unlink()
    assert list(job.logs()) == others


@pytest.mark.parametrize(
    "marked", ["give \ue0005\ue001", 'give \ue000["call", "newer"]\ue001', 'see \ue000["help", "Newer"]\ue001']
)
def test_an_error_that_this_release_cannot_word_hides_no_job(
    looking: JobsSession, records: JobRecords, place: Path, marked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = {"type": "NewerError", "message": "too new", "marked": marked}
    state = place / records.id / "state" / "00000002.json"
    document = json.loads(state.read_bytes())
    document["value"].update(status="failed", error=failure)
    state.write_text(json.dumps(document))
    first, second = looking.jobs()
    assert [first.status, second.status] == ["done", "failed"]
    assert second.error is not None
    assert second.error["type"] == "NewerError"
    listed = JobActions(JobsPlace(str(place)), AllowedLocations([place.parent], str(place))).list_jobs(10)
    assert [each["status"] for each in listed] == ["failed", "done"]
    assert main(["status", records.id, "--jobs", str(place)]) == 0
    assert "failed" in capsys.readouterr().out
