"""Removal of an ended job: its checkpoints, its log, its records; never the model.

The order makes it safe to repeat an interrupted removal. First a last state marks the job as being removed, so that
nobody resumes it. Then the checkpoints, the log and the spec are removed, and finally the states, the last one last.
On a full disk the log and the checkpoints make room for this state.
"""

from __future__ import annotations

from streamkernel.blobs import Lease, blobs_at, is_disk_full, joined
from streamkernel.errors import ParameterError, StoreError
from streamkernel.jobs._steps import remove_steps, steps_of, steps_saved
from streamkernel.jobs.records import ENDED, REMOVING, JobRecords

_LONGEST_WAIT = 25.0  # seconds to wait for a driver that is ending


def remove_job(records: JobRecords) -> None:
    """Remove a job that has ended; errors are those of `JobsSession.remove`."""
    if records.is_written() or not _was_begun(records):
        work = records.work()
        steps = steps_of(records.id, work.model)
        try:
            _mark(records, work.lease_seconds)
        except StoreError as error:
            if not is_disk_full(error) or records.latest().status not in ENDED:
                raise
            _remove_log(records)
            _remove_checkpoints(steps)
            _mark(records, work.lease_seconds)
        _remove_checkpoints(steps)
    _remove_log(records)
    records.forget()
    # The states last, and the oldest first: the remaining one records that the job is being removed.
    for name in ("lease", "state", ""):
        _remove_below(joined(records.blobs.location, name) if name else records.blobs.location)


def _was_begun(records: JobRecords) -> bool:
    """Whether an earlier removal was interrupted after it had removed the spec."""
    return records.state.latest() is not None and records.latest().status == REMOVING


def _mark(records: JobRecords, lease_seconds: float) -> None:
    while True:
        record = records.latest()
        if record.status == REMOVING:
            return
        if record.status not in ENDED:
            raise ParameterError(
                f"job {records.id} is {record.status}, and only ended jobs are removed; wait for its end, or cancel it"
            )
        # A driver records the end of the job before it has finished its cleaning up.
        wait = min(1.5 * lease_seconds, _LONGEST_WAIT)
        lease = Lease.acquire(records.blobs, "lease", ttl=lease_seconds, wait=wait, about={"removes": True})
        if lease is None:
            raise ParameterError(f"the driver of job {records.id} is still ending; remove the job in some seconds")
        with lease:
            if records.advance(record, REMOVING) is not None:
                return


def _remove_log(records: JobRecords) -> None:
    for name in ("log", "progress"):
        _remove_below(joined(records.blobs.location, name))


def _remove_checkpoints(location: str) -> None:
    remove_steps(location)
    if steps_saved(location):
        raise StoreError(f"checkpoints in {location} cannot be removed; check its permissions, then try again")


def _remove_below(location: str) -> None:
    blobs = blobs_at(location)
    # In order, and an error if one cannot be removed.
    for key in blobs.keys(""):
        blobs.remove(key)
    blobs.remove_below()
