"""A job's driver as the scheduler sees it: one task, under a key that tells which state of the job asked for it."""

from __future__ import annotations

import time
from typing import Any

from distributed import Client, Future, fire_and_forget
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker, NoValidWorkerError

from streamkernel.blobs import Record
from streamkernel.errors import ClusterError, StoreExistsError, StreamKernelError
from streamkernel.jobs.records import QUEUED, JobRecords
from streamkernel.jobs.reserving import reserve
from streamkernel.jobs.task import drive

__all__ = ["DRIVEN", "WAITING", "ask_again", "begin_again", "error_of", "state_of", "submit_driver"]

_PATIENCE = 5.0
WAITING = frozenset({"waiting", "queued", "no-worker"})  # for a worker
DRIVEN = WAITING | {"processing"}
_LOST = (KilledWorker, NoValidWorkerError, FutureCancelledError, TimeoutError)


def submit_driver(client: Client, records: JobRecords, queued: Record) -> None:
    """Have a job driven. Of several who ask for the same state's driver, the scheduler runs one.

    The task is fire-and-forget: it goes on without this client. Exceptions of its own it has none to retry; of the
    deaths of workers under it the scheduler forgives ``allowed-failures``, after which whoever looks asks anew.
    """
    asked = queued.value["asked"]
    key = _key(records, asked)
    try:
        fire_and_forget(client.submit(drive, records.location, records.id, key=key, pure=False, retries=0, priority=10))
        # The client's messages go out a little later; who has been told that the job is submitted may end at once.
        deadline = time.monotonic() + _PATIENCE
        while state_of(client, records, asked) is None and time.monotonic() < deadline:
            if records.latest().value["status"] != QUEUED:
                break
            time.sleep(0.02)
    except (OSError, RuntimeError, TimeoutError) as error:
        raise ClusterError(
            f"job {records.id} is written down, but its scheduler does not answer ({error}); look at it again, with a "
            "scheduler's address, to have it driven"
        ) from error


def ask_again(client: Client, records: JobRecords, record: Record, said: str) -> None:
    """Have another driver follow those of `record`, unless somebody has asked for one already."""
    queued = records.advance(record, QUEUED)
    if queued is not None:
        records.note("resubmitted", said)
        submit_driver(client, records, queued)


def begin_again(client: Client, records: JobRecords, ended: Record, model: str, said: str) -> None:
    """The same for a job that had ended, and has its model to itself again.

    Raises
    ------
    StoreExistsError
        Another job makes the model; this one is left as it was.
    """
    queued = records.advance(ended, QUEUED, fruitless=0, digest=None, error=None)
    if queued is None:
        return
    try:
        reserve(records, model)
    except StoreExistsError:
        former = {name: ended.value.get(name) for name in ("fruitless", "digest", "error")}
        records.advance(records.latest(), ended.value["status"], **former)
        raise
    records.note("resubmitted", said)
    submit_driver(client, records, queued)


def state_of(client: Client, records: JobRecords, asked: int) -> str | None:
    """What the scheduler says of the driver that was asked for in that state; None if it knows none."""
    key = _key(records, asked)
    scheduler: Any = client.scheduler
    try:
        state: str | None = client.sync(scheduler.get_task_status, keys=[key])[key]
    except (OSError, RuntimeError, TimeoutError) as error:
        raise ClusterError(
            f"the scheduler at {scheduler.address} does not answer ({error}); look at its address"
        ) from error
    return state


def error_of(client: Client, records: JobRecords, queued: Record) -> dict[str, str] | None:
    """What kept the driver that was asked for in that state from beginning; None where only its workers were lost."""
    try:
        error = Future(_key(records, queued.value["asked"]), client=client).exception(timeout=_PATIENCE)
    except _LOST:
        return None
    if error is None or isinstance(error, _LOST):
        return None
    told = str(error) if isinstance(error, StreamKernelError) else f"{type(error).__name__}: {error}"
    kind = type(error) if isinstance(error, StreamKernelError) else ClusterError
    return {"type": kind.__name__, "message": f"on the cluster its driver could not begin: {told}"}


def _key(records: JobRecords, asked: int) -> str:
    return f"streamkernel-job/{records.id}/{asked}"
