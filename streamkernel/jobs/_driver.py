"""The driver of a job: a task on the cluster that runs the fit while it holds the job's lease.

It may run any number of times, at any time, on any worker. If the job has ended, or another driver has it, the task
ends at once. If an earlier driver died, the task resumes from its checkpoints.
"""

from __future__ import annotations

import atexit
import logging
import traceback
from asyncio import CancelledError
from concurrent.futures import CancelledError as FutureCancelled
from dataclasses import dataclass

from distributed import KilledWorker, Reschedule, get_worker, secede
from distributed.worker import Worker

from streamkernel.blobs import Lease, Record
from streamkernel.engine.cluster.cluster_state import CommClosedError, NoValidWorkerError, is_closing
from streamkernel.errors import ClusterError, DataError, NumericalError, ParameterError, RunLockedError
from streamkernel.jobs._cluster import driver_executor
from streamkernel.jobs._fit_and_publish import Fitting
from streamkernel.jobs._progress_watch import ProgressWatch
from streamkernel.jobs._record_fields import Failure
from streamkernel.jobs._steps import remove_steps, steps_of, steps_saved
from streamkernel.jobs._warning_log import warnings_to
from streamkernel.jobs.records import (
    CANCELLED,
    CANCELLING,
    DONE,
    ENDED,
    FAILED,
    INTERRUPTED,
    LOST,
    JobRecords,
    State,
    Stopped,
)
from streamkernel.jobs.specification import JobSpecification
from streamkernel.type_aliases import Fields, Unchecked

logger = logging.getLogger("streamkernel.jobs")

# Number of drivers in a row without a newly finished sweep at which the job fails.
_FRUITLESS = 5
# Errors that a resumed job would raise again.
_LASTING = (DataError, NumericalError, ParameterError)


def drive(jobs: str, id: str) -> str:
    """Drive a job to its end, or until another driver has it.

    Parameters
    ----------
    jobs, id : place of its records, and its id.

    Returns
    -------
    str
        The final status, for the scheduler's logs.
    """
    # Free this thread for the fit's own tasks: a cluster may have no other.
    secede()
    worker = get_worker()
    records = JobRecords(jobs, id)
    work = records.work()
    before = records.lease.latest_or_damaged()
    lease = Lease.acquire(
        records.blobs,
        "lease",
        ttl=work.lease_seconds,
        wait=1.5 * work.lease_seconds,
        about={"worker": worker.address},
    )
    if lease is None:
        return "driven by another"
    # A worker that has to end does not wait for us: release the lease, so that the next driver need not wait for it.
    atexit.register(lease.release)
    try:
        with lease:
            ended = _Driver(records, work, lease, worker, before).run()
    finally:
        atexit.unregister(lease.release)
    if ended in (INTERRUPTED, LOST):
        # On another worker, or here if this process was only too slow; if another driver has the job, it ends at once.
        raise Reschedule
    return ended


@dataclass
class _Driver:
    records: JobRecords
    work: JobSpecification
    lease: Lease
    worker: Worker
    before: Record | None  # the lease of the driver before this one

    @property
    def steps_at(self) -> str:
        return steps_of(self.records.id, self.work.model)

    def run(self) -> str:
        record = self._begin()
        if record is None:
            return self.records.latest().status
        fitting = Fitting(self.records, self.work, self.lease, record)
        watch = ProgressWatch(
            self.records,
            self.lease,
            attempt=record.fields.attempt,
            worker=self.worker.address,
            closing=lambda: is_closing(self.worker),
            memory=lambda: fitting.memory_now(),
        )
        try:
            with warnings_to(lambda text: watch.log_event("warning", text, level="warning")), watch:
                result = fitting.published_before() or self._fit(fitting, watch)
            watch.write_last()
            return self._end(DONE, f"finished: {self.work.model}", result=result)
        except Exception as error:
            return self._failed(error, watch)

    def _fit(self, fitting: Fitting, watch: ProgressWatch) -> Fields:
        fitting.prepare(watch)
        with driver_executor(self.worker) as executor:
            watch.interrupt = executor.close
            model = fitting.fit(executor, watch)
        return fitting.publish(model, watch)

    # --- states ------------------------------------------------------------------------------------------------------

    def _begin(self) -> State | None:
        """Record that this driver runs; None if there is nothing to run."""
        before = self.before
        if before is not None and not before.value.get("released"):
            holder = f"{before.value['host']}:{before.value['process']}" if "host" in before.value else "a driver"
            self.records.note("lease", f"taken over from {holder}, which is gone")
        latest = self.records.latest()
        former = latest.fields
        attempt = former.attempt + 1
        steps = steps_saved(self.steps_at)
        fruitless = 0 if steps > former.steps else (former.fruitless or 0) + 1
        try:
            if fruitless >= _FRUITLESS and latest.status not in ENDED:
                error = ClusterError(
                    f"{fruitless} drivers in a row ended before they had finished a sweep, the last on "
                    f"{former.worker}; check that it does not run out of memory, and that workers live long "
                    "enough for a sweep, then resume the job"
                )
                self._end(FAILED, str(error), error=Failure.of(error).to_config())
                return None
            running = self.records.claim(
                self.lease, attempt=attempt, steps=steps, fruitless=fruitless, worker=self.worker.address
            )
        except Stopped as stopped:
            if stopped.reason == CANCELLED:
                self._end(CANCELLED, "cancelled")
            return None
        self.records.note("started", f"started on {self.worker.address}, driver {attempt}")
        return running

    def _end(self, status: str, text: str, **more: Unchecked) -> str:
        """Write the last state of this driver, unless another driver has the job."""
        if status == DONE:
            # Before the record: if we are lost between the two, the next driver finds the model and needs no steps.
            self._remove_steps()
        while True:
            record = self.records.latest()
            if record.status in ENDED:
                return record.status
            if not self.lease.held:
                return LOST
            if status == INTERRUPTED and record.status == CANCELLING:
                status, text = CANCELLED, "cancelled"
            if status == CANCELLED and not record.fields.keep_checkpoints:
                # Before the record: a user who reads "cancelled" and resumes must find no checkpoints still in removal.
                self._remove_steps()
            if self.records.end(record, status, text, **more) is not None:
                return status

    def _remove_steps(self) -> None:
        """Remove the checkpoints, unless another driver has them by now."""
        if self.lease.held:
            remove_steps(self.steps_at)

    def _failed(self, error: Exception, watch: ProgressWatch) -> str:
        reason = watch.reason if not isinstance(error, Stopped) else error.reason
        if reason == LOST or isinstance(error, RunLockedError):
            logger.warning(
                "job %s continues elsewhere: this driver had lost its lease and wrote nothing more", self.records.id
            )
            return LOST
        watch.write_last()
        if reason == CANCELLED:
            return self._end(CANCELLED, "cancelled")
        if reason is not None or _cluster_lost(error):
            why = f"its worker {self.worker.address} ends" if reason is not None else f"the cluster was lost ({error})"
            return self._end(INTERRUPTED, f"interrupted: {why}")
        logger.error("job %s failed", self.records.id, exc_info=error)
        failure = Failure.of(error)
        if failure.type != type(error).__name__:
            self.records.note("traceback", "".join(traceback.format_exception(error)), level="error")
        if isinstance(error, _LASTING):
            self._remove_steps()
        return self._end(FAILED, str(error), error=failure.to_config())


def _cluster_lost(error: Exception) -> bool:
    """Whether the scheduler cannot be reached; False if only a task failed."""
    if isinstance(error, ClusterError):
        return not isinstance(error.__cause__, (KilledWorker, NoValidWorkerError))
    return isinstance(error, (CommClosedError, CancelledError, FutureCancelled, TimeoutError))
