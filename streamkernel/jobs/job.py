"""A job, as any process reads it from its records."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamkernel.blobs import Lease, Record, blobs_at, is_disk_full, place_time
from streamkernel.blobs.lease import is_renewed
from streamkernel.errors import ClusterError, ParameterError, StoreError, StoreNotFoundError, StreamKernelError
from streamkernel.jobs._record_fields import Failure
from streamkernel.jobs._steps import remove_steps, steps_of, steps_saved
from streamkernel.jobs.records import (
    CANCELLED,
    CANCELLING,
    DONE,
    ENDED,
    FAILED,
    INTERRUPTED,
    QUEUED,
    REMOVING,
    RUNNING,
    JobRecords,
    State,
)
from streamkernel.jobs.specification import JobSpecification
from streamkernel.type_aliases import Fields
from streamkernel.wording import option

if TYPE_CHECKING:
    from distributed import Client

    from streamkernel.estimators.base import SavedEstimator

_LATE = 3.0  # seconds that a driver's record may take beyond its lease; stamps may have whole seconds only
_PATIENCE = 10.0  # seconds to watch a holder of the lease that seems to be dead
_POLL = 0.5
_REMEMBERED = 1000


class Job:
    """A fit on a cluster; every attribute is read anew from its records.

    Parameters
    ----------
    records : records of the job.
    client : client of the cluster that can drive it; None if jobs can only be read.

    Attributes
    ----------
    id : str
    jobs : location of its records.

    Raises
    ------
    StoreNotFoundError
        There is no such job.
    """

    def __init__(self, records: JobRecords, client: Client | None = None) -> None:
        self._records, self._client = records, client
        self.id, self.jobs = records.id, records.location
        self._spec = records.spec()
        self._first_read: dict[str, float] = {}

    @property
    def work(self) -> JobSpecification:
        """The work to do: estimator, settings, table, model."""
        return self._spec.work

    @property
    def model(self) -> str:
        """Location of its model."""
        return self.work.model

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """ "queued", "running", "interrupted", "done", "failed", "cancelling", "cancelled" or "removing".

        "interrupted" means that the driver has made no record for longer than its lease, by the clock of the place of
        the records, and that no new driver has been submitted yet.
        """
        return self._current()[0]

    @property
    def progress(self) -> Fields:
        """The latest progress record of its driver; empty before the first one.

        `sweep` is the name of the current sweep. `sweeps_done` of `sweeps_planned` are finished, and `sweeps_resumed`
        of them were loaded from checkpoints. `rows_done` of `rows_total` rows of the current sweep are finished.
        `share` (0 to 1) of the work of the whole fit is done, and `seconds_left` remain, by the plan and the rates seen
        so far; None, or absent, where that is not known. `seconds` is the time since this driver began.
        `planned_bytes` and `peak_bytes` are the memory of all processes together. `host`, `process` and `worker`
        identify the driver, and `attempt` is its number, 1 for the first driver. `time` is the time of this record.
        """
        record = self._records.latest_progress()
        return {} if record is None else dict(record.value)

    @property
    def error(self) -> dict[str, str] | None:
        """Class and message of the error that ended a failed job: ``{"type": ..., "message": ...}``; else None.

        For an interrupted job it is the error that keeps it from going on, if the disk of its records is full.
        """
        failure = self._failure()
        # The recorded class: this release may not know it.
        return None if failure is None else {"type": failure.type, "message": str(failure.as_error())}

    @property
    def failure(self) -> StreamKernelError | None:
        """The error that ended a failed job, of the class that its driver raised; else None. See `error`."""
        failure = self._failure()
        return None if failure is None else failure.as_error()

    def _failure(self) -> Failure | None:
        status, record = self._current()
        if status == INTERRUPTED:
            # Its driver may have ended because of it, and could not record that.
            full = self._records.full_disk()
            return None if full is None else Failure.of(full)
        return record.fields.error if status == FAILED else None

    def to_config(self) -> Fields:
        """The whole job as plain JSON."""
        status, record = self._current()
        return {
            "id": self.id,
            "status": status,
            "jobs": self.jobs,
            **{name: getattr(self.work, name) for name in ("estimator", "table", "rows", "model")},
            "submitted": self._spec.submitted,
            "changed": record.fields.time,
            "progress": self.progress,
            "error": self.error if status in (FAILED, INTERRUPTED) else None,
            "result": record.value.get("result") if status == DONE else None,
        }

    def logs(self, *, follow: bool = False) -> Iterator[Fields]:
        """Its events, oldest first: ``{"time", "event", "level", "text", "host", "process"}``.

        Parameters
        ----------
        follow : whether to wait for further events until the job has ended.
        """
        number = 0
        while True:
            ended = not follow or self.refresh() in ENDED
            for record in self._records.events(number):
                number = record.number
                yield dict(record.value)
            if ended:
                return
            time.sleep(_POLL)

    def _current(self) -> tuple[str, State]:
        while True:
            record = self._records.latest()
            status = record.status
            if status == RUNNING:
                # A damaged record raises here, and not later in code that prints the job.
                self._records.latest_progress()
            if status != RUNNING or self._silence() <= self._lease_seconds:
                return status, record
            # Its driver may have ended and released the lease between the two reads.
            if self._records.latest() == record:
                return INTERRUPTED, record

    @property
    def _lease_seconds(self) -> float:
        return self.work.lease_seconds + _LATE

    def _silence(self) -> float:
        """Seconds since the last record of the lease's holder; infinity if there is no holder."""
        latest = self._records.lease.latest_or_damaged()
        if latest is None or latest.value.get("released"):
            return math.inf
        age = self._stamped_age(latest)
        if age is not None and age < -_LATE and latest.nonce not in self._first_read:
            # The clock was set back since: only the holder's next record tells that it lives.
            if is_renewed(self._records.lease, latest):
                return self._silence()
            self._first_read[latest.nonce] = -math.inf
        return self._age(latest)

    def _stamped_age(self, record: Record) -> float | None:
        """Age of a record in seconds, by the clock of its place; None if that gives no times.

        The clocks of writer and reader can differ. It is negative if the clock of the place was set back since.
        """
        blobs, most = blobs_at(self.jobs), self._lease_seconds
        now = place_time(blobs) if record.written else None
        if now is not None and not -_LATE <= (now - record.written) / 1e9 <= most:
            # Too old, or of the future: before that counts, see that the clock was not set since it was last read.
            now = place_time(blobs, anew=True)
        return None if now is None else (now - record.written) / 1e9

    def _age(self, record: Record) -> float:
        """Age of a record in seconds; where its place does not tell, since this object first saw the record."""
        age = self._stamped_age(record)
        if age is not None and age >= -_LATE:
            return age
        if len(self._first_read) > _REMEMBERED:
            self._first_read.clear()
        return time.monotonic() - self._first_read.setdefault(record.nonce, time.monotonic())

    # --- acting ------------------------------------------------------------------------------------------------------

    def refresh(self) -> str:
        """Return its status; with a cluster, also submit a driver if the job has none.

        If several processes do so at the same moment, only one submission takes effect. If the driver was only thought
        dead, it still holds its lease, and the new one ends at once.
        """
        status, record = self._current()
        if status == CANCELLING and self._silence() > self._lease_seconds:
            # No driver is left to record that it has stopped; a driver that wakes up finds this record.
            self._finish_cancelling(record)
            return self.status
        if self._client is None or status not in (QUEUED, INTERRUPTED):
            return status
        # Here and in `resume`, because Dask takes long to load, and jobs are read and cancelled without it.
        from streamkernel.jobs._scheduling import DRIVEN, WAITING, resubmit, state_of, submit_unseen

        state = state_of(self._client, self._records, record.fields.asked)
        if status == QUEUED and state is None:
            submit_unseen(self._client, self._records, record, self.model)
        elif status == QUEUED and state not in DRIVEN:
            resubmit(self._client, self._records, record, "resubmitted: no worker has started its driver")
        elif status == INTERRUPTED and state not in WAITING and not self._may_still_begin(record, state):
            resubmit(self._client, self._records, record, "resubmitted: its driver was lost")
        return self.status

    def _may_still_begin(self, record: State, state: str | None) -> bool:
        """Whether a driver that the scheduler has started may still begin: it waits for the lease before its record."""
        return state == "processing" and min(self._silence(), self._age(record)) <= 2 * self._lease_seconds

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end; False if it has not ended after `timeout` seconds.

        Raises
        ------
        StreamKernelError
            The job failed; the class is that of the driver's error.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.refresh()) not in ENDED:
            left = _POLL if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL, left))
        if status == FAILED and (failure := self.failure) is not None:
            raise failure
        return True

    def result(self, timeout: float | None = None) -> SavedEstimator:
        """Wait for its end, and load the result: the fitted estimator, whose `model_` is the saved model.

        Raises
        ------
        StreamKernelError
            The job failed (the driver's error), was cancelled, or has not ended after `timeout` seconds.
        """
        if not self.wait(timeout):
            raise ClusterError(f"job {self.id} is {self.status} after {timeout:g} s; wait longer for its result")
        if self.status == CANCELLED:
            raise StoreNotFoundError(f"job {self.id} was cancelled and made no model; resume it, or submit it again")
        if self.status == REMOVING:
            raise StoreNotFoundError(f"job {self.id} is being removed; what it made is {self.model}, if it was done")
        return self.work.kind.estimator.load(self.model)

    def cancel(self, *, keep_checkpoints: bool = False) -> None:
        """Stop the job: a running driver sees the request within some seconds; a queued job is cancelled at once.

        Parameters
        ----------
        keep_checkpoints : whether the checkpoints stay, so that `resume` goes on from them.

        Raises
        ------
        ParameterError
            The job has ended, is publishing its model now, or its driver was lost after publishing it.
        """
        while True:
            record = self._records.latest()
            status = record.status
            if status in ENDED:
                raise ParameterError(f"job {self.id} is {status} already; there is nothing to cancel")
            if status == CANCELLING:
                return
            running = status == RUNNING and self._silence() <= self._lease_seconds
            if digest := record.fields.digest:
                if running:
                    raise ParameterError(f"job {self.id} is publishing its model; it is too late to cancel it")
                # Here, because only this rare case reads a model.
                from streamkernel.jobs._fit_and_publish import published_digest

                if published_digest(self.work) == digest:
                    # Its driver was lost between publishing and its last record. A job that is cancelled and resumed
                    # forgets the digest, so its own model would stop it.
                    raise ParameterError(
                        f"job {self.id} has published its model; it is too late to cancel it, and resume ends it"
                    )
            try:
                cancelling = self._records.advance(record, CANCELLING, keep_checkpoints=keep_checkpoints)
            except StoreError as error:
                if running or keep_checkpoints or not is_disk_full(error):
                    raise
                # Nobody uses the checkpoints, which are to be removed anyway: they make room for the records.
                remove_steps(steps_of(self.id, self.model))
                cancelling = self._records.advance(record, CANCELLING, keep_checkpoints=keep_checkpoints)
            if cancelling is not None:
                self._records.note(CANCELLING, "cancellation requested")
                if not running:
                    self._finish_cancelling(cancelling)
                return

    def resume(self) -> int:
        """Go on from the last checkpoint, if the job was lost, failed or was cancelled.

        `refresh` also replaces a lost driver, but only after its lease has expired; this replaces it as soon as the
        cluster knows of no driver. A job that is being driven is not disturbed.

        Returns
        -------
        int
            Number of sweeps with a checkpoint, as seen from here; with 0 it begins with the first sweep.

        Raises
        ------
        ParameterError
            The job is done or about to end, or there is no cluster.
        StoreExistsError
            Another job makes its model by now.
        """
        if self._client is None:
            raise ParameterError(
                f"no cluster can run job {self.id} here; give {option('address')}, the address of a scheduler"
            )
        from streamkernel.jobs._scheduling import DRIVEN, resubmit, state_of, submit_again

        self.refresh()
        record = self._records.latest()
        status, steps = record.status, steps_saved(steps_of(self.id, self.model))
        if status in (DONE, CANCELLING, REMOVING):
            raise ParameterError(f"job {self.id} is {status}; what was lost, failed or was cancelled can be resumed")
        if status in (FAILED, CANCELLED):
            note = f"resumed after {steps} sweeps" if steps else "resumed from the first sweep: no checkpoint is left"
            submit_again(self._client, self._records, record, self.model, note)
        elif status == RUNNING and state_of(self._client, self._records, record.fields.asked) not in DRIVEN:
            resubmit(self._client, self._records, record, "resumed: the cluster has no driver of the job")
        return steps

    def _finish_cancelling(self, record: State) -> None:
        """Record that the job has stopped, in place of a dead driver; holding its lease keeps other drivers out."""
        silence = self._silence()
        lease = Lease.acquire(
            self._records.blobs,
            "lease",
            ttl=self.work.lease_seconds,
            wait=_PATIENCE,
            while_silent=True,
            silent=silence if math.isfinite(silence) else 0.0,
            about={"cancels": True},
        )
        if lease is None:
            # The driver lives: it sees the request, and removes its checkpoints itself.
            return
        with lease:
            if not record.fields.keep_checkpoints:
                remove_steps(steps_of(self.id, self.model))
            self._records.end(record, CANCELLED, "cancelled")

    def __repr__(self) -> str:
        return f"<Job {self.id}: {self.status}>"
