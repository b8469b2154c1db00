"""The records of a job: plain JSON beside its output, read and advanced from any machine that sees the place.

::

    JOBS/specs/ID.json            the work to do, written once
    JOBS/models/DIGEST/           the jobs that make a model: one at a time
    JOBS/ID/state/00000003.json   its states, one after another; none is ever replaced
    JOBS/ID/progress/             the latest progress of its driver
    JOBS/ID/lease/                the lease of its driver
    JOBS/ID/log/                  its events, one record each

A state follows another by compare-and-swap (`RecordLog`). If a driver finishes and a user cancels at the same moment,
one of them is first, and the other sees it.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field

from streamkernel.atomic import parsed_json
from streamkernel.blobs import Lease, Record, RecordLog, Stamp, blobs_at, is_disk_full, joined
from streamkernel.blobs.clock import CLOCK
from streamkernel.blobs.lease import this_process
from streamkernel.errors import (
    CorruptMetadataError,
    ParameterError,
    StoreError,
    StoreNotFoundError,
    StreamKernelError,
)
from streamkernel.jobs._record_fields import (
    EventFields,
    ProgressFields,
    StateFields,
    SubmittedJob,
    read_fields,
)
from streamkernel.jobs.specification import JobSpecification
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import call, option

QUEUED, RUNNING, INTERRUPTED = "queued", "running", "interrupted"
DONE, FAILED, CANCELLING, CANCELLED = "done", "failed", "cancelling", "cancelled"
REMOVING = "removing"
ENDED = frozenset({DONE, FAILED, CANCELLED, REMOVING})

UNREADABLE = "unreadable"  # never written: the status shown for a job with damaged records
LOST = "lost"  # no status: the reason why a driver stops after it has lost its lease

_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}")
_SPECS = "specs/"
_RECORD_BYTES = 4096
_FORMAT = {"format": "streamkernel.job", "version": 1}


class Stopped(StreamKernelError):
    """A driver must stop: its job was cancelled, its lease is lost, or its worker is about to end."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the job was stopped: {reason}")
        self.reason = reason


@dataclass(frozen=True)
class State(Record):
    """One state of a job: a record of its log, whose fields were checked."""

    fields: StateFields = field(kw_only=True)

    @property
    def status(self) -> str:
        return self.fields.status


def new_id() -> str:
    """A new unique id; ids sort by time."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:8]}"


def is_id(text: str) -> bool:
    """Whether a text can be a job's id, and not the location of a model."""
    return _ID.fullmatch(text) is not None


def job_ids(location: str) -> list[str]:
    """Ids of the jobs in a place, in the order of submission."""
    keys = blobs_at(location).keys(_SPECS)
    names = (key.removeprefix(_SPECS).removesuffix(".json") for key in keys)
    return sorted(name for name in names if is_id(name))


class JobRecords:
    """The records of one job.

    Parameters
    ----------
    location : place of the jobs.
    id : id of this job.

    Raises
    ------
    ParameterError
        The id does not have the form of a job's id.
    """

    def __init__(self, location: str, id: str) -> None:
        if not is_id(id):
            raise ParameterError(
                f"{id!r} is not the id of a job, such as 20260131-235959-0a1b2c3d; {call('session.jobs')} lists them"
            )
        self.location, self.id = location, id
        self.blobs = blobs_at(joined(location, id))
        self.state = RecordLog(self.blobs, "state", kept=None)
        self.progress = RecordLog(self.blobs, "progress", kept=2)
        self.log = RecordLog(self.blobs, "log", kept=None)
        self.lease = RecordLog(self.blobs, "lease")

    # --- the work to do ----------------------------------------------------------------------------------------------

    def create(self, work: JobSpecification) -> State:
        """Write a new job, with the status "queued"."""
        spec = {**_FORMAT, "id": self.id, "submitted": time.time(), "by": this_process(), "work": work.to_config()}
        text = json.dumps(spec, indent=1, sort_keys=True, allow_nan=False)
        place, key = blobs_at(self.location), f"{_SPECS}{self.id}.json"
        # The spec is ours if the answer to the first try was lost.
        if not place.create(key, text.encode()) and place.read(key) != text.encode():
            raise StoreError(f"a job {self.id} is in {self.location} already; submit again")
        try:
            record = self.advance(None, QUEUED)
            assert record is not None
            self.note("submitted", f"submitted: {work.estimator} on {work.table}, to {work.model}")
        except StoreError:
            self.withdraw()
            raise
        return record

    def withdraw(self) -> None:
        """Take back a job that was refused on submission, so that the next process that looks does not drive it."""
        with suppress(StoreError):
            try:
                self.advance(self.latest(), CANCELLED)
            except StoreError:
                # Nothing can be written, as on a full disk; but files can be removed.
                self.forget()
                self.blobs.remove_below()

    def spec(self) -> SubmittedJob:
        """The spec that was written on submission.

        Raises
        ------
        StoreNotFoundError
            There is no such job here.
        CorruptMetadataError
            The file is not in our format.
        """
        key = f"{_SPECS}{self.id}.json"
        content = blobs_at(self.location).read(key)
        if content is None:
            raise StoreNotFoundError(
                f"no job {self.id} in {self.location}; name the place of the jobs ({option('jobs')}) as on submission"
            )
        try:
            config = parsed_json(content)
        except (ValueError, RecursionError) as error:
            raise CorruptMetadataError(f"{self.location}/{key} is not JSON; restore it from a copy") from error
        spec = read_fields(SubmittedJob, config, f"{self.location}/{key}")
        if spec.version != _FORMAT["version"]:
            raise CorruptMetadataError(
                f"{self.location}/{key} has version {spec.version}, which this release does not read; submit it again"
            )
        return spec

    def is_written(self) -> bool:
        """Whether the job exists, readable or not."""
        return blobs_at(self.location).read(f"{_SPECS}{self.id}.json") is not None

    def forget(self) -> None:
        """Remove the spec, so that the job is no longer listed."""
        blobs_at(self.location).remove(f"{_SPECS}{self.id}.json")

    def work(self) -> JobSpecification:
        """The work in its spec."""
        return self.spec().work

    # --- its states --------------------------------------------------------------------------------------------------

    def latest(self) -> State:
        """Its latest state."""
        record = self.state.latest()
        if record is None:
            # Its submitter died between its two writes: any reader may make the first state.
            self.spec()
            record = self.advance(None, QUEUED) or self.state.latest()
        assert record is not None
        return self._state(record)

    def _state(self, record: Record) -> State:
        fields = read_fields(StateFields, record.value, self._path(self.state, record))
        return State(record.number, record.value, record.nonce, record.written, fields=fields)

    def latest_progress(self) -> Record | None:
        """The latest progress of its driver, checked; None before the first."""
        record = self.progress.latest()
        if record is not None:
            read_fields(ProgressFields, record.value, self._path(self.progress, record))
        return record

    def _path(self, log: RecordLog, record: Record) -> str:
        return f"{self.blobs.location}/{log.name}/{record.number:08d}.json"

    def advance(self, after: Record | None, status: str, **changes: Unchecked) -> State | None:
        """Append the state that follows `after`, with its other values unchanged; None if another state follows it."""
        fields = {} if after is None else after.value
        if status == QUEUED:
            # This number is in the key of the driver's task: all who submit a driver for this state name the same task.
            changes["asked"] = 1 if after is None else after.number + 1
        value = {**fields, **changes, "status": status, "time": time.time()}
        record = self.state.append(value, after=after)
        return None if record is None else self._state(record)

    def end(self, after: Record, status: str, text: str, **changes: Unchecked) -> State | None:
        """`advance` to the last state of the job, after its last event.

        The event comes first, because a reader who follows the log stops when the job has ended. Where another state
        follows `after`, the log has one event too many.
        """
        self.note(status, text, level="error" if status == FAILED else "info")
        return self.advance(after, status, **changes)

    def claim(self, lease: Lease, **changes: Unchecked) -> State:
        """Record that the holder of the lease runs the job, even if another process has just queued the job again.

        Raises
        ------
        Stopped
            The job was cancelled, or this holder has lost it.
        """
        while True:
            record = self.latest()
            # Check after reading the record: if we are stopped from here on, the record will no longer be the latest.
            if record.status in ENDED or not lease.held:
                raise Stopped(LOST)
            if record.status == CANCELLING:
                raise Stopped(CANCELLED)
            claimed = self.advance(record, RUNNING, holder=lease.holder, **changes)
            if claimed is not None:
                return claimed

    def full_disk(self) -> StoreError | None:
        """An error, if nothing can be recorded because the disk of the records is full; else None."""
        place, key = blobs_at(self.location), f"{CLOCK}{uuid.uuid4().hex}"  # one that is removed if it stays
        try:
            # As large as a record: a full disk may still take an empty file.
            place.write(key, bytes(_RECORD_BYTES))
        except StoreError as error:
            if not is_disk_full(error):
                return None  # a reader may not write, and the drivers may
            return StoreError(f"no space left for records in {self.location}", remedy="free some, then resume the job")
        with suppress(StoreError):
            place.remove(key)
        return None

    # --- its log -----------------------------------------------------------------------------------------------------

    def note(self, event: str, text: str, *, level: str = "info") -> None:
        """Append an event to the log. A full disk is no error: the state that follows the event may still find room."""
        try:
            self.log.add({"time": time.time(), "event": event, "level": level, "text": text, **this_process()})
        except StoreError as error:
            if not is_disk_full(error):
                raise

    def events(self, after: int = 0) -> list[Record]:
        """Events with a number higher than `after`, checked; a damaged one is a warning that names its file."""
        stamps = self.log.stamps()
        found = (self._event(number, stamps[number]) for number in sorted(stamps) if number > after)
        return [record for record in found if record is not None]

    def _event(self, number: int, stamp: Stamp) -> Record | None:
        try:
            record = self.log.read(number)
            if record is not None:
                read_fields(EventFields, record.value, self._path(self.log, record))
            return record
        except CorruptMetadataError as error:
            nobody = {"host": "unknown", "process": 0}
            value = {"time": stamp.time / 1e9, "event": "damaged", "level": "warning", "text": str(error), **nobody}
            return Record(number, value, "")
