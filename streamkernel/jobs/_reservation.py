"""Reservation of a model's location: one job at a time makes it.

::

    JOBS/models/DIGEST/00000003.json    {"job": ID, "model": LOCATION}, one record for each job that could begin
"""

from __future__ import annotations

from streamkernel.atomic import text_digest
from streamkernel.blobs import RecordLog, blobs_at
from streamkernel.errors import StoreExistsError, StoreNotFoundError
from streamkernel.jobs.records import ENDED, JobRecords


def reserve(records: JobRecords, model: str) -> None:
    """Record that a job, which is queued already, makes a model.

    Raises
    ------
    StoreExistsError
        Another job is making it.
    """
    log = _makers(records.location, model)
    while True:
        before = log.latest()
        other = None if before is None else str(before.value["job"])
        if other not in (None, records.id) and _is_at_work(records.location, str(other)):
            raise StoreExistsError(
                f"job {other} is making {model} already; wait for it, cancel it, or choose another path"
            )
        # Appended even if our record is the latest: a process that saw us ended must see that we run again.
        if log.append({"job": records.id, "model": model}, after=before) is not None:
            return


def latest_maker(place: str, model: str) -> str | None:
    """Id of the latest job that makes a model and was not removed."""
    for record in reversed(_makers(place, model).all()):
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


def _makers(place: str, model: str) -> RecordLog:
    return RecordLog(blobs_at(place), f"models/{text_digest(model)[:24]}")
