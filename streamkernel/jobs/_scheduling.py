"""A job's driver at the scheduler: one task, whose key contains the number of the job's state that requested it."""

from __future__ import annotations

import time

from distributed import Client, Future, KilledWorker, fire_and_forget

from streamkernel.engine.cluster.cluster_state import NoValidWorkerError, task_state
from streamkernel.engine.cluster.lost_cluster import scheduler_of, translated_loss
from streamkernel.engine.cluster.versions import check_versions
from streamkernel.engine.security import connect_client
from streamkernel.errors import ClusterError, StoreError, StoreExistsError, StreamKernelError
from streamkernel.jobs._record_fields import Failure
from streamkernel.jobs._reservation import reserve
from streamkernel.jobs._task import drive
from streamkernel.jobs.records import FAILED, QUEUED, JobRecords, State
from streamkernel.type_aliases import Untyped

_PATIENCE, _BRIEFLY = 5.0, 0.5
WAITING = frozenset({"waiting", "queued", "no-worker"})  # the task waits for a worker
DRIVEN = WAITING | {"processing"}
_LOST = (KilledWorker, NoValidWorkerError)


def connected(address: str, security: Untyped, *, insecure: bool, timeout: float) -> Client:
    """A client of the scheduler; parameters and errors are those of `connect`."""
    client = connect_client(address, security, insecure=insecure, timeout=timeout, set_as_default=False)
    try:
        with translated_loss(f"the scheduler at {address}", "as it was asked for its versions", "try again"):
            check_versions(client)
    except BaseException:
        client.close()
        raise
    return client


def submit_driver(client: Client, records: JobRecords, queued: State) -> None:
    """Submit the driver of a job. If several processes submit it for the same state, the scheduler runs one task.

    The task is fire-and-forget: it goes on without this client. Its own exceptions are not retried. The scheduler
    forgives ``allowed-failures`` deaths of its workers; after that, the next process that looks submits it again. If
    the task cannot begin (its error comes soon after the submission), the job fails.
    """
    key = _key(records, queued.fields.asked)
    try:
        driver = client.submit(drive, records.location, records.id, key=key, pure=False, retries=0, priority=10)
        fire_and_forget(driver)
        _wait_for_scheduler(client, records, queued, driver)
        met = driver.exception() if driver.status == "error" else None
        if met is not None and not isinstance(met, _LOST):
            # A second submission would raise the same error, and the scheduler forgets it: so record it for the users.
            failure = _cannot_begin(met)
            records.end(queued, FAILED, failure.message, error=failure.to_config())
    except StoreError as error:
        # Not the error's own remedy, "run again": the job is there, and a second one for its model would be refused.
        raise StoreError(
            f"job {records.id} is recorded, but its records cannot be read or written now ({error.what}); once they "
            "can, status or resume submits it again"
        ) from error
    except (OSError, RuntimeError, TimeoutError) as error:
        raise ClusterError(
            f"job {records.id} is recorded, but its scheduler does not answer ({error}); once it answers, "
            "status or resume submits it again"
        ) from error


def _wait_for_scheduler(client: Client, records: JobRecords, queued: State, driver: Future[str]) -> None:
    """Wait until the scheduler has the task: messages go out later, and a user may exit after the submission."""
    began = time.monotonic()
    while not driver.done() and records.latest().number == queued.number:
        state, waited = state_of(client, records, queued.fields.asked), time.monotonic() - began
        if state in WAITING or waited > (_PATIENCE if state is None else _BRIEFLY):
            return
        time.sleep(0.05)


def resubmit(client: Client, records: JobRecords, record: State, note: str) -> None:
    """Submit another driver after those of `record`, unless another process has submitted one already."""
    queued = records.advance(record, QUEUED)
    if queued is not None:
        records.note("resubmitted", note)
        submit_driver(client, records, queued)


def submit_unseen(client: Client, records: JobRecords, queued: State, model: str) -> None:
    """Submit the driver of a queued job that the scheduler does not know.

    Its submitter may have died before it had reserved the model's location. Where another job makes the model by now,
    this one fails.
    """
    try:
        reserve(records, model)
    except StoreExistsError as error:
        failure = Failure.of(error)
        records.end(queued, FAILED, failure.message, error=failure.to_config())
        return
    submit_driver(client, records, queued)


def submit_again(client: Client, records: JobRecords, ended: State, model: str, note: str) -> None:
    """Submit a driver for a job that had ended, and reserve its model's location again.

    Raises
    ------
    StoreExistsError
        Another job makes the model; this job is unchanged.
    """
    queued = records.advance(ended, QUEUED, fruitless=0, digest=None, error=None)
    if queued is None:
        return
    try:
        reserve(records, model)
    except StoreError:
        former = {name: ended.value.get(name) for name in ("digest", "error")} | {"fruitless": ended.fields.fruitless}
        records.advance(records.latest(), ended.status, **former)
        raise
    records.note("resubmitted", note)
    submit_driver(client, records, queued)


def state_of(client: Client, records: JobRecords, submission: int) -> str | None:
    """State of the driver's task submitted for job state `submission`; None if the scheduler knows no such task."""
    key = _key(records, submission)
    try:
        return task_state(client, key)
    except (OSError, RuntimeError, TimeoutError) as error:
        raise ClusterError(
            f"the scheduler at {scheduler_of(client)} does not answer ({error}); check its address"
        ) from error


def _cannot_begin(error: BaseException) -> Failure:
    what = "on the cluster its driver could not begin"
    if isinstance(error, StreamKernelError):
        return Failure.of(type(error)(f"{what}: {error.message}"))
    return Failure.of(ClusterError(f"{what}: {type(error).__name__}: {error}"))


def _key(records: JobRecords, submission: int) -> str:
    return f"streamkernel-job/{records.id}/{submission}"
