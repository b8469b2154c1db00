"""The actions on jobs: list, read, submit, cancel, resume. They block, so they run in threads. No answer has a path."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from streamkernel.engine.security import connect_client, tls_security
from streamkernel.errors import (
    ClusterError,
    ParameterError,
    SecurityError,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
    StreamKernelError,
)
from streamkernel.jobs.job import Job
from streamkernel.jobs.records import ENDED, UNREADABLE, JobRecords, is_id, job_ids
from streamkernel.jobs.requests import requested
from streamkernel.jobs.session import JobsSession
from streamkernel.pursuit import AUTO
from streamkernel.service.allowed_locations import AllowedLocations
from streamkernel.service.http_errors import Refused, in_json, refusal_of
from streamkernel.service.job_schemas import JobEvent, JobProgress, JobResult
from streamkernel.service.settings import JobsPlace
from streamkernel.type_aliases import Fields, FieldsView, Untyped

_LIST_SECONDS = 0.9  # seconds for which a list is reused, so that many open pages cause one reading of the records
_ENDED_SECONDS = 15.0  # seconds for which an ended job's status is reused; only `resume` changes it
_MOST_EVENTS = 1000
_CONNECT_SECONDS, _ANSWER_SECONDS, _LOST_SECONDS = 4.0, 5.0, 5.0


class JobActions:
    """Parameters
    ----------
    place : location of the records, and the scheduler that runs jobs, if any.
    roots : the locations that requests may name.
    """

    def __init__(self, place: JobsPlace, roots: AllowedLocations) -> None:
        self._place, self._roots = place, roots
        self._listing, self._connecting = threading.Lock(), threading.Lock()
        self._list: tuple[float, int, list[Fields]] = (0.0, 0, [])
        self._ended: dict[str, tuple[float, Fields]] = {}
        self._client: Any = None
        self._lost_at = -_LOST_SECONDS

    # --- reading -----------------------------------------------------------------------------------------------------

    def list_jobs(self, limit: int) -> list[Fields]:
        """The latest jobs, the newest first."""
        with self._listing, self._refusing_errors():
            when, listed, jobs = self._list
            if time.monotonic() - when > _LIST_SECONDS or listed < limit:
                jobs = [self._summary(id) for id in reversed(job_ids(self._place.location)[-limit:])]
                self._ended = {job["id"]: self._ended[job["id"]] for job in jobs if job["id"] in self._ended}
                self._list = (time.monotonic(), limit, jobs)
            return jobs[:limit]

    def _summary(self, id: str) -> Fields:
        when, status = self._ended.get(id, (0.0, None))
        if status is not None and time.monotonic() - when < _ENDED_SECONDS:
            return status
        try:
            status = self._status(self._job(id))
        except StreamKernelError as error:
            # A damaged job does not hide the others.
            return {"id": id, "status": UNREADABLE, "error": self._error(error)}
        if status["status"] in ENDED:
            self._ended[id] = (time.monotonic(), status)
        return status

    def status(self, id: str) -> Fields:
        with self._refusing_errors():
            return self._status(self._job(id))

    def logs(self, id: str, after: int) -> Fields:
        """The events of a job with a number above `after`, and the number of the last."""
        with self._refusing_errors():
            self._job(id)
            records = JobRecords(self._place.location, id).events(after)[:_MOST_EVENTS]
        events = [_shown(JobEvent, record.value) for record in records]
        for event in events:
            event["text"] = self._roots.without_locations(event["text"])
        return {"events": events, "last": records[-1].number if records else after}

    # --- acting ------------------------------------------------------------------------------------------------------

    def submit(self, request: FieldsView) -> Fields:
        """Submit a fit; `request` has the fields of `JobRequest`."""
        try:
            table = self._roots.location("table", request["table"])
            model = self._roots.location("model", request["model"], output=True)
            queries = request["queries"] and self._roots.location("queries", request["queries"])
            options = self._with_allowed_rows(request["options"])
        except StreamKernelError as error:
            raise self._refused(error, submitting=type(error) is not StoreError) from None
        try:
            # Before the scheduler is contacted: wrong options are the client's error, with or without a scheduler.
            fit = requested(request["estimator"], options)
        except StreamKernelError as error:
            raise self._refused(error, submitting=True) from None
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError):
            raise Refused(422, "the options have wrong types for the estimator", "ParameterError") from None
        session = self._session()
        try:
            job = session.submit(
                fit,
                table,
                model,
                rows=None if request["rows"] is None else tuple(request["rows"]),
                queries=queries,
                overwrite=request["overwrite"],
                memory_limit=request["memory_limit"],
            )
            self._list = (0.0, 0, [])
            return self._status(job)
        except StreamKernelError as error:
            # A plain StoreError is no fault of the request: a full disk, a store that does not answer.
            raise self._refused(error, submitting=type(error) is not StoreError) from None

    def _with_allowed_rows(self, options: FieldsView) -> FieldsView:
        """The options, with the location of held-out rows resolved below a root: a driver opens what it names."""
        store = options.get("validation")
        if not isinstance(store, str) or store == AUTO:
            return options
        return {**options, "validation": self._roots.location("validation rows", store)}

    def cancel(self, id: str) -> Fields:
        with self._refusing_errors():
            job = self._job(id)
            try:
                job.cancel()
            except ParameterError as error:
                raise Refused(409, self._roots.without_locations(str(error)), "ParameterError") from None
            self._list = (0.0, 0, [])
            return self._status(job)

    def resume_interrupted(self) -> None:
        """Resume jobs that were interrupted. Without such jobs the scheduler is not contacted."""
        if self._place.scheduler is None:
            return
        waiting = [job["id"] for job in self.list_jobs(200) if job["status"] in ("queued", "interrupted", "cancelling")]
        if waiting:
            self._session()
            for id in waiting:
                Job(JobRecords(self._place.location, id), self._client).refresh()

    def close(self) -> None:
        """Disconnect from the cluster; jobs continue."""
        with self._connecting:
            self._disconnect()

    # --- the cluster -------------------------------------------------------------------------------------------------

    def _session(self) -> JobsSession:
        """A session with the shared client, which connects again if it has lost the scheduler."""
        place = self._place
        assert place.scheduler is not None
        with self._connecting:
            if self._client is not None and not _answers(self._client):
                self._disconnect()
            if self._client is None:
                if time.monotonic() - self._lost_at < _LOST_SECONDS:
                    raise _no_scheduler("ClusterError")
                try:
                    self._client = connect_client(
                        place.scheduler,
                        tls_security(*place.tls) if place.scheduler.startswith(("tls:", "wss:")) else None,
                        insecure=place.insecure,
                        timeout=_CONNECT_SECONDS,
                        set_as_default=False,
                    )
                except (ClusterError, SecurityError) as error:
                    self._lost_at = time.monotonic()
                    raise _no_scheduler(type(error).__name__) from None
            return JobsSession(self._client, place.location)

    def _disconnect(self) -> None:
        if self._client is not None:
            with contextlib.suppress(OSError, RuntimeError, TimeoutError):
                self._client.close(timeout=2)
        self._client = None

    # --- answers -----------------------------------------------------------------------------------------------------

    def _job(self, id: str) -> Job:
        if not is_id(id):
            raise Refused(404, "there is no such job; GET /v1/jobs lists them", "UnknownJob")
        return Job(JobRecords(self._place.location, id))

    def _status(self, job: Job) -> Fields:
        config, failure = job.to_config(), job.failure
        return {
            **{name: config[name] for name in ("id", "status", "estimator", "submitted", "changed")},
            **{name: self._roots.public_name(config[name]) for name in ("table", "model")},
            "progress": _shown(JobProgress, config["progress"]) if config["progress"] else None,
            "error": None if config["error"] is None or failure is None else self._error(failure),
            "result": _shown(JobResult, config["result"]) if config["result"] else None,
        }

    def _error(self, error: StreamKernelError) -> dict[str, str]:
        return {"type": type(error).__name__, "message": self._roots.without_locations(error.worded(in_json))}

    @contextlib.contextmanager
    def _refusing_errors(self) -> Iterator[None]:
        try:
            yield
        except StreamKernelError as error:
            raise self._refused(error) from None

    def _refused(self, error: StreamKernelError, *, submitting: bool = False) -> Refused:
        kind, message = type(error).__name__, self._roots.without_locations(error.worded(in_json))
        if isinstance(error, (ClusterError, SecurityError)):
            return Refused(503, message, kind)
        if isinstance(error, StoreExistsError):
            return Refused(409, message, kind)
        if isinstance(error, StoreNotFoundError) and not submitting:
            return Refused(404, "there is no such job; GET /v1/jobs lists them", "UnknownJob")
        if isinstance(error, StoreError):
            return Refused(422 if submitting else 503, message, kind)
        found = refusal_of(error)
        return Refused(found.status, message, kind)


def _shown(schema: type[BaseModel], config: FieldsView) -> Fields:
    """Those fields of a job's record that are in an answer."""
    fields = schema.model_fields.items()
    return {name: config[name] if field.is_required() else config.get(name) for name, field in fields}


def _answers(client: Untyped) -> bool:
    if client.status != "running":
        return False
    try:
        client.sync(client.scheduler.get_task_status, keys=[], callback_timeout=_ANSWER_SECONDS)
    except (OSError, RuntimeError, TimeoutError):
        return False
    return True


def _no_scheduler(kind: str) -> Refused:
    return Refused(503, "the scheduler cannot be reached, and nothing was submitted; try again later", kind)
