"""A driver's watch: it records the progress of the fit, and stops the fit when it must stop."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from streamkernel.blobs import Lease, Record
from streamkernel.blobs.lease import this_process
from streamkernel.engine import Plan
from streamkernel.errors import StoreError
from streamkernel.jobs.records import LOST, RUNNING, JobRecords, Stopped
from streamkernel.timing import TimeLeft, usable_rates
from streamkernel.type_aliases import Fields

CLOSING = "closing"
_INTERVAL = 1.5  # seconds between two reads of the records

logger = logging.getLogger("streamkernel.jobs")


@dataclass
class _ProgressFields:
    """The progress of the fit; the names are those of `Job.progress`."""

    attempt: int
    worker: str
    sweep: str = ""
    sweeps_done: int = 0
    sweeps_planned: int | None = None
    sweeps_resumed: int = 0
    rows_done: int = 0
    rows_total: int = 0
    planned_bytes: int | None = None
    peak_bytes: int = 0
    share: float | None = None
    began: float = field(default_factory=time.monotonic)  # a machine's time can be set back in between


class ProgressWatch:
    """A session's `streamkernel.engine.Progress`: it writes the progress, and reads the job's records in a thread.

    Parameters
    ----------
    records, lease : records of the job, and its lease, which must be held.
    attempt : number of this driver, 1 for the first.
    worker : address of the worker in which it runs.
    closing : function that returns whether this worker is about to end.
    memory : function that returns the memory of all workers now, in bytes.
    """

    def __init__(
        self,
        records: JobRecords,
        lease: Lease,
        *,
        attempt: int,
        worker: str,
        closing: Callable[[], bool],
        memory: Callable[[], int],
    ) -> None:
        self.records, self.lease = records, lease
        self.reason: str | None = None
        self.interrupt: Callable[[], None] = lambda: None
        self._closing, self._memory = closing, memory
        self._progress = _ProgressFields(attempt, worker)
        self._written: Fields = {}
        self._written_at = -math.inf
        self._record: Record | None = records.progress.latest_or_damaged()
        self._over = threading.Event()
        self._sweeping = False
        self._time = TimeLeft((), usable_rates())
        self._thread = threading.Thread(target=self._run, name=f"streamkernel-job-{records.id}", daemon=True)

    # --- calls of the session ----------------------------------------------------------------------------------------

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self.check()
        fields = self._progress
        fields.sweep, fields.rows_done, fields.rows_total, self._sweeping = name, 0, rows, True
        self._time.begin(name, rows)
        self.log_event("sweep", f"sweep {fields.sweeps_done + 1}, {name}: began, {rows} rows in {tasks} tasks")

    def advance(self, rows: int) -> None:
        self._progress.rows_done += rows
        self._time.advance(rows)
        self.check()

    def end(self, seconds: float) -> None:
        fields = self._progress
        fields.sweeps_done += 1
        self._time.end()
        if fields.sweeps_planned is not None:
            # After a step that made the result worse, an extra sweep undoes it; no plan counts this sweep.
            fields.sweeps_planned = max(fields.sweeps_planned, fields.sweeps_done)
        if not self._sweeping:
            fields.sweeps_resumed += 1
            self.log_event("resumed", f"sweep {fields.sweeps_done}: taken from its checkpoint")
        else:
            self._sweeping = False
            self.log_event("sweep", f"sweep {fields.sweeps_done}, {fields.sweep}: ended after {seconds:.2f} s")
        self.check()

    def note(self, text: str) -> None:
        self.log_event("note", text)

    def planned(self, plan: Plan) -> None:
        self._progress.sweeps_planned, self._progress.planned_bytes = plan.sweeps, plan.memory_bytes
        self._time = TimeLeft([plan], usable_rates())
        self._time.next_fit()

    def passed(self, flops: float, share: float) -> None:
        self._time.passed(flops, share)

    def log_event(self, event: str, text: str, *, level: str = "info") -> None:
        """Append an event to the job's log, if the lease is held."""
        if self.lease.held:
            with contextlib.suppress(StoreError):
                self.records.note(event, text, level=level)

    # --- calls of the driver -----------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise `Stopped` if the fit must stop; this reads no records."""
        if self.reason is None and not self.lease.held:
            self.reason = LOST
        if self.reason is None and self._closing():
            self.reason = CLOSING
        if self.reason is not None:
            raise Stopped(self.reason)

    def measured(self, peak_bytes: int) -> None:
        """Store the peak memory of all processes that the fit measured."""
        self._progress.peak_bytes = max(self._progress.peak_bytes, peak_bytes)

    # --- the thread --------------------------------------------------------------------------------------------------

    def __enter__(self) -> ProgressWatch:
        # After our first progress record, the former driver can append none: its number is taken.
        self._write()
        while self.reason == LOST and self.lease.held:
            self.reason, self._record = None, self.records.progress.latest_or_damaged()
            self._write()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    def write_last(self) -> None:
        """Write the last progress; to be called after the thread has ended."""
        with contextlib.suppress(StoreError):
            self._write()

    def _run(self) -> None:
        while not self._over.wait(min(_INTERVAL, self.lease.ttl / 5)):
            try:
                self._check_records()
            except StoreError as error:
                # The place may answer again before the lease expires; `held` compares with the clock.
                logger.warning("job %s: %s", self.records.id, error)
            except Exception:  # an error must not end the thread: the fit would then have no watch
                logger.exception("job %s", self.records.id)
            if self.reason is not None:
                # The fit may be waiting for tasks that never end: close its client.
                self.interrupt()
                return

    def _check_records(self) -> None:
        with contextlib.suppress(Stopped):
            self.check()
        if self.reason is None:
            latest = self.records.latest()
            if latest.status != RUNNING or latest.fields.holder != self.lease.holder:
                try:
                    self.records.claim(self.lease)
                except Stopped as stopped:
                    self.reason = stopped.reason
        if self.reason is None:
            with contextlib.suppress(Exception):  # the fit itself notices a lost scheduler
                self._progress.peak_bytes = max(self._progress.peak_bytes, self._memory())
            self._write()

    def _write(self) -> None:
        if self._progress.sweeps_planned is not None:
            self._progress.share = round(self._time.share, 2)  # a hundred records of it at most
        fields = {name: value for name, value in vars(self._progress).items() if name != "began"}
        now = time.monotonic()
        if fields == self._written and now - self._written_at < self.lease.ttl / 3:
            return
        if not self.lease.held:
            return
        left = None if self._progress.share is None else self._time.seconds_left
        seconds = {"seconds": now - self._progress.began, "seconds_left": left}
        value = {**fields, **seconds, "time": time.time(), **this_process()}
        record = self.records.progress.append(value, after=self._record)
        if record is None:
            # Only a driver that took the lease from us writes here.
            self.reason = self.reason or LOST
        else:
            self._record, self._written, self._written_at = record, fields, now
