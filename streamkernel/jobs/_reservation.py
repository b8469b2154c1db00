"""Reservation of a model's location: one job at a time makes it.

::

    JOBS/models/DIGEST/00000003.json    {"job": ID, "model": LOCATION}, one record for each job that could begin

A folder may have several names, by links. So DIGEST is of the model's real path; and of the path as given, too, where
that is another one: machines that see the place may have other links, and earlier releases knew no other.
"""

from __future__ import annotations

import os

from streamkernel.atomic import text_digest
from streamkernel.blobs import RecordLog, blobs_at, is_url, joined, parent_of
from streamkernel.errors import StoreExistsError, StoreNotFoundError
from streamkernel.jobs.records import ENDED, JobRecords


def reserve(records: JobRecords, model: str) -> None:
    """Record that a job, which is queued already, makes a model.

    Raises
    ------
    StoreExistsError
        Another job is making it.
    """
    logs = _makers(records.location, model)
    while True:
        before = [log.latest() for log in logs]
        for record in before:
            other = None if record is None else str(record.value["job"])
            if other not in (None, records.id) and _is_at_work(records.location, str(other)):
                raise StoreExistsError(
                    f"job {other} is making {model} already; wait for it, cancel it, or choose another path"
                )
        # Appended even if our record is the latest: a process that saw us ended must see that we run again.
        value = {"job": records.id, "model": model}
        if all(log.append(value, after=record) is not None for log, record in zip(logs, before, strict=True)):
            return


def latest_maker(place: str, model: str) -> str | None:
    """Id of the latest job that makes a model and was not removed."""
    for log in _makers(place, model):
        for record in reversed(log.all()):
            records = JobRecords(place, str(record.value.get("job")))
            if records.is_written():
                return records.id
    return None


def _is_at_work(place: str, id: str) -> bool:
    try:
        return JobRecords(place, id).latest().status not in ENDED
    except StoreNotFoundError:
        # The other job was removed.
        return False


def _makers(place: str, model: str) -> list[RecordLog]:
    """The logs of a model's makers, that of its real path first."""
    return [RecordLog(blobs_at(place), f"models/{text_digest(each)[:24]}") for each in _spellings(model)]


def _spellings(model: str) -> list[str]:
    if is_url(model):
        return [model]
    # Not the real path of the model itself: one that is a link is refused.
    folder, name = parent_of(model)
    return list(dict.fromkeys([joined(os.path.realpath(folder), name), model]))
