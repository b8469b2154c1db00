"""A job, looked at from anywhere."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from distributed import Client

from streamkernel.blobs import Lease, Record, blobs_at, place_time
from streamkernel.errors import ClusterError, ParameterError, StoreNotFoundError
from streamkernel.estimators.base import SupervisedEstimator
from streamkernel.jobs.failures import as_error
from streamkernel.jobs.fitting import published_digest, steps_of
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
)
from streamkernel.jobs.scheduling import DRIVEN, WAITING, ask_again, begin_again, state_of, submit_driver
from streamkernel.jobs.steps import remove_steps, steps_saved
from streamkernel.jobs.work import Work

__all__ = ["Job"]

_LATE = 3.0  # seconds that a driver's word may take beyond its lease; stamps may be of whole seconds
_PATIENCE = 10.0  # seconds for which a holder of the lease is watched that seems to be gone
_POLL = 0.5
_REMEMBERED = 1000


class Job:
    """A fit on a cluster, known by its records: every attribute is read anew.

    Parameters
    ----------
    records : of the job.
    client : of the cluster that is to drive it; None only to look.

    Attributes
    ----------
    id : str
    jobs : the place of its records.

    Raises
    ------
    StoreNotFoundError
        There is no such job.
    """

    def __init__(self, records: JobRecords, client: Client | None = None) -> None:
        self._records, self._client = records, client
        self.id, self.jobs = records.id, records.location
        self._spec = records.spec()
        self._first_seen: dict[str, float] = {}

    @cached_property
    def work(self) -> Work:
        """What it is to do: estimator, settings, table, model."""
        return Work.from_config(self._spec["work"], f"job {self.id} in {self.jobs}")

    @property
    def model(self) -> str:
        """Location of its model."""
        return self.work.model

    # --- looking -----------------------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """ "queued", "running", "interrupted", "done", "failed", "cancelling", "cancelled" or "removing".

        It is interrupted where its driver has given no sign of life for longer than its lease, by the clock of the
        place of its records, and has not been replaced yet.
        """
        return self._seen()[0]

    @property
    def progress(self) -> dict[str, Any]:
        """The latest words of its driver; empty before the first.

        `sweep` is the name of the one at work, `sweeps_done` of `sweeps_planned`, of which `sweeps_resumed` were
        taken from checkpoints; `rows_done` of `rows_total` rows of it; `seconds` since this driver began;
        `planned_bytes` and `peak_bytes` of all processes together; `host`, `process` and `worker` of the driver, and
        the how-manieth it is, `attempt`; `time` of these words.
        """
        record = self._records.said()
        return {} if record is None else dict(record.value)

    @property
    def error(self) -> dict[str, str] | None:
        """Class and message of what it failed by: ``{"type": ..., "message": ...}``."""
        value = self._records.latest().value
        return dict(value["error"]) if value["status"] == FAILED else None

    def to_config(self) -> dict[str, Any]:
        """All of it as plain JSON."""
        status, record = self._seen()
        return {
            "id": self.id,
            "status": status,
            "jobs": self.jobs,
            **{name: getattr(self.work, name) for name in ("estimator", "table", "rows", "model")},
            "submitted": self._spec["submitted"],
            "changed": record.value["time"],
            "progress": self.progress,
            "error": self.error if status == FAILED else None,
            "result": record.value.get("result") if status == DONE else None,
        }

    def logs(self, *, follow: bool = False) -> Iterator[dict[str, Any]]:
        """Its events, the oldest first: ``{"time", "event", "level", "text", "host", "process"}``.

        Parameters
        ----------
        follow : go on until the job has ended.
        """
        number = 0
        while True:
            ended = not follow or self.look() in ENDED
            for record in self._records.events(number):
                number = record.number
                yield dict(record.value)
            if ended:
                return
            time.sleep(_POLL)

    def _seen(self) -> tuple[str, Record]:
        while True:
            record = self._records.latest()
            status = str(record.value["status"])
            if status == RUNNING:
                self._records.said()  # if that is damaged, it is told to who looks, not to who shows what was seen
            if status != RUNNING or self._silence() <= self._lease_seconds:
                return status, record
            # Its driver may have ended, and let go, between the two looks.
            if self._records.latest() == record:
                return INTERRUPTED, record

    @property
    def _lease_seconds(self) -> float:
        return self.work.lease_seconds + _LATE

    def _silence(self) -> float:
        """Seconds since the holder of the lease has given a sign of life; infinity where nobody holds it."""
        latest = self._records.lease.latest()
        return math.inf if latest is None or latest.value.get("released") else self._age(latest)

    def _age(self, record: Record) -> float:
        """Seconds since a record was made: by the clock of the place that it is in, never by its writer's and ours.

        Where the place does not tell, since this object has first seen it.
        """
        now = place_time(blobs_at(self.jobs)) if record.written else None
        if now is not None:
            return (now - record.written) / 1e9
        if len(self._first_seen) > _REMEMBERED:
            self._first_seen.clear()
        return time.monotonic() - self._first_seen.setdefault(record.nonce, time.monotonic())

    # --- acting ------------------------------------------------------------------------------------------------------

    def look(self) -> str:
        """Its status; and, with a cluster, have it driven where nobody does.

        Of several who look at the same moment one has it driven; a driver that was only thought dead still holds its
        lease, and the new one ends at once.
        """
        status, record = self._seen()
        if status == CANCELLING and self._silence() > self._lease_seconds:
            # Nobody is left who could say that it has stopped; whoever wakes finds that it has.
            self._finish_cancelling(record)
            return self.status
        if self._client is None or status not in (QUEUED, INTERRUPTED):
            return status
        state = state_of(self._client, self._records, record.value["asked"])
        if status == QUEUED and state is None:
            submit_driver(self._client, self._records, record)
        elif status == QUEUED and state not in DRIVEN:
            ask_again(self._client, self._records, record, "resubmitted: no worker came for its driver")
        elif status == INTERRUPTED and state not in WAITING and not self._awaited(record, state):
            ask_again(self._client, self._records, record, "resubmitted: its driver was lost")
        return self.status

    def _awaited(self, record: Record, state: str | None) -> bool:
        """Whether a driver that the scheduler has started may yet speak: before it does, it waits for the lease."""
        return state == "processing" and min(self._silence(), self._age(record)) <= 2 * self._lease_seconds

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end; False if that has not come after `timeout` seconds.

        Raises
        ------
        StreamKernelError
            The job failed: of the class that its driver met.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.look()) not in ENDED:
            left = _POLL if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL, left))
        if status == FAILED:
            raise as_error(self._records.latest().value["error"])
        return True

    def result(self, timeout: float | None = None) -> SupervisedEstimator:
        """Wait for its end, and load what it made: the fitted estimator, whose `model_` is the saved model.

        Raises
        ------
        StreamKernelError
            The job failed (the error of its driver), was cancelled, or goes on after `timeout` seconds.
        """
        if not self.wait(timeout):
            raise ClusterError(f"job {self.id} is {self.status} after {timeout:g} s; wait longer for its result")
        if self.status == CANCELLED:
            raise StoreNotFoundError(f"job {self.id} was cancelled and made no model; resume it, or submit it again")
        if self.status == REMOVING:
            raise StoreNotFoundError(f"job {self.id} is being removed; what it made is {self.model}, if it was done")
        return self.work.kind.estimator.load(self.model)

    def cancel(self, *, keep_checkpoints: bool = False) -> None:
        """Have it stop: a running driver sees it within some seconds, a queued job is cancelled at once.

        Parameters
        ----------
        keep_checkpoints : leave them, so that `resume` goes on where it stopped.

        Raises
        ------
        ParameterError
            It has ended, is just publishing its model, or was lost after it had published it.
        """
        while True:
            record = self._records.latest()
            status = record.value["status"]
            if status in ENDED:
                raise ParameterError(f"job {self.id} is {status} already; there is nothing to cancel")
            if status == CANCELLING:
                return
            running = status == RUNNING and self._silence() <= self._lease_seconds
            if digest := record.value.get("digest"):
                if running:
                    raise ParameterError(f"job {self.id} is publishing its model; it is too late to cancel it")
                if published_digest(self.work) == digest:
                    # Lost before it could say so; without the model to itself nobody could make another one there.
                    raise ParameterError(
                        f"job {self.id} has published its model; it is too late to cancel it, and resume ends it"
                    )
            told = self._records.advance(record, CANCELLING, keep_checkpoints=keep_checkpoints)
            if told is not None:
                self._records.note(CANCELLING, "asked to cancel")
                if not running:
                    self._finish_cancelling(told)
                return

    def resume(self) -> int:
        """Have it go on, from its last checkpoint: what was lost, failed or was cancelled.

        Whoever looks with a cluster has a lost driver replaced, too, but not before its lease has lapsed; this asks
        for one as soon as the cluster knows of none. A job that is driven goes on as it does.

        Returns
        -------
        int
            Sweeps that there are checkpoints of, as seen from here; at 0 it begins with the first sweep.

        Raises
        ------
        ParameterError
            It is done or about to end; or there is no cluster to go on with.
        StoreExistsError
            Another job makes its model by now.
        """
        if self._client is None:
            raise ParameterError(
                f"nobody can drive job {self.id} here; give --scheduler (connect) a scheduler's address to resume it"
            )
        self.look()
        record = self._records.latest()
        status, steps = record.value["status"], steps_saved(steps_of(self.id, self.model))
        if status in (DONE, CANCELLING, REMOVING):
            raise ParameterError(f"job {self.id} is {status}; what was lost, failed or was cancelled can be resumed")
        if status in (FAILED, CANCELLED):
            said = f"resumed after {steps} sweeps" if steps else "resumed: no checkpoint is left, it begins anew"
            begin_again(self._client, self._records, record, self.model, said)
        elif status == RUNNING and state_of(self._client, self._records, record.value["asked"]) not in DRIVEN:
            ask_again(self._client, self._records, record, "resumed: this cluster knew of no driver")
        return steps

    def _finish_cancelling(self, record: Record) -> None:
        """Say that it has stopped, for a driver that is gone: as the holder of its lease, which no other then has."""
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
            # It lives: it sees that it is cancelled, and puts its things away itself.
            return
        with lease:
            if not record.value.get("keep_checkpoints"):
                remove_steps(steps_of(self.id, self.model))
            if self._records.advance(record, CANCELLED) is not None:
                self._records.note(CANCELLED, "cancelled")

    def __repr__(self) -> str:
        return f"<Job {self.id}: {self.status}>"
