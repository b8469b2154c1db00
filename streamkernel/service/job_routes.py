"""Jobs over HTTP: list, read, submit, cancel. A service without a place for jobs has none of these routes."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from streamkernel.errors import StreamKernelError
from streamkernel.service.allowed_locations import AllowedLocations
from streamkernel.service.http_errors import Refused, internal_error
from streamkernel.service.job_actions import JobActions
from streamkernel.service.job_schemas import JobList, JobLogs, JobRequest, JobStatus
from streamkernel.service.schemas import ERRORS
from streamkernel.service.settings import JOBS, Settings
from streamkernel.type_aliases import Fields

_THREADS = 4
_RESUME_SECONDS = 5.0

log = logging.getLogger("streamkernel.service")

_Most = Annotated[int, Query(ge=1, le=1000, description="most jobs to list, the newest first")]
_After = Annotated[int, Query(ge=0, le=10**9, description="list the events with higher numbers")]


class Jobs:
    """The actions on jobs, and the threads that run them.

    Parameters
    ----------
    settings : settings with a place for jobs.

    Raises
    ------
    ParameterError
        A root is no existing folder and no URL of an object store.
    """

    def __init__(self, settings: Settings) -> None:
        place = settings.jobs
        assert place is not None
        self.submits = place.scheduler is not None
        self._actions = JobActions(place, AllowedLocations((settings.root, *place.roots), place.location))
        # A pool of its own, so that calls that wait for a scheduler take no threads from predictions.
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="jobs")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Resume interrupted jobs in the background while the application runs."""
        task = asyncio.create_task(self._resume_interrupted()) if self.submits else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            self._pool.submit(self._actions.close)
            self._pool.shutdown(wait=False)

    async def _resume_interrupted(self) -> None:
        logged = ""
        while True:
            await asyncio.sleep(_RESUME_SECONDS)
            try:
                await asyncio.get_running_loop().run_in_executor(self._pool, self._actions.resume_interrupted)
                logged = ""
            except (Refused, StreamKernelError) as error:
                if str(error) != logged:
                    logged = str(error)
                    log.warning("interrupted jobs cannot be resumed: %s", logged)

    async def _answer(self, action: Callable[..., Fields], *arguments: Any, status: int = 200) -> Response:
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._pool, action, *arguments)
        except Refused:
            raise
        except Exception as error:
            raise internal_error(error) from None
        # Not `JSONResponse`: a name may have characters that UTF-8 cannot hold, which are escaped here.
        body = json.dumps(answer, allow_nan=False, separators=(",", ":"))
        return Response(body, status, media_type="application/json")

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(prefix=JOBS)
        actions = self._actions

        @router.get("", response_model=JobList, summary="Jobs, the newest first", responses=ERRORS(401, 421, 422, 503))
        async def listed(limit: _Most = 50) -> Response:
            return await self._answer(
                lambda: {"jobs": actions.list_jobs(limit), "time": time.time(), "submits": self.submits}
            )

        @router.get("/{id}", response_model=JobStatus, summary="One job", responses=ERRORS(401, 404, 421, 422, 503))
        async def one(id: str) -> Response:
            return await self._answer(actions.status, id)

        @router.get(
            "/{id}/logs", response_model=JobLogs, summary="Events of a job", responses=ERRORS(401, 404, 421, 422, 503)
        )
        async def logs(id: str, after: _After = 0) -> Response:
            return await self._answer(actions.logs, id, after)

        @router.delete(
            "/{id}", response_model=JobStatus, summary="Cancel a job", responses=ERRORS(401, 404, 409, 421, 422, 503)
        )
        async def cancel(id: str) -> Response:
            return await self._answer(actions.cancel, id)

        if self.submits:

            @router.post(
                "",
                response_model=JobStatus,
                status_code=201,
                summary="Submit a fit",
                responses=ERRORS(400, 401, 403, 408, 409, 413, 415, 421, 422, 503),
            )
            async def submit(request: JobRequest) -> Response:
                return await self._answer(actions.submit, request.model_dump(), status=201)

        return router
