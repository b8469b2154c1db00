"""The application: it makes the parts of the service and connects them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from streamkernel.linalg import single_threaded_blas
from streamkernel.service.access_control import AccessControl
from streamkernel.service.health_routes import health_router
from streamkernel.service.http_errors import STATUSES, Refused, error_body, internal_error
from streamkernel.service.job_routes import Jobs
from streamkernel.service.metrics import Metrics
from streamkernel.service.model_registry import Registry
from streamkernel.service.model_routes import models_router
from streamkernel.service.openapi import openapi_of
from streamkernel.service.page_route import page_router
from streamkernel.service.predict_route import Predict
from streamkernel.service.request import Receive, Scope, Send
from streamkernel.service.settings import Settings
from streamkernel.type_aliases import Fields, Unchecked

_END_SECONDS = 0.1  # between two checks, during the first scan, whether the service must end


class Service(FastAPI):
    """A FastAPI application whose requests pass `AccessControl` first."""

    def __init__(self, settings: Settings, **options: Unchecked) -> None:
        self._ending = False
        self.metrics = Metrics()
        self.registry = Registry(settings.root, self._changed)
        self.predict = Predict(settings, self.registry, self.metrics)
        self.settings = settings
        seconds = settings.poll_seconds
        self.poll_seconds = self.registry.place.poll_seconds if seconds is None else seconds
        self.jobs = None if settings.jobs is None else Jobs(settings)
        super().__init__(**options)
        self.access = AccessControl(settings, self.metrics, self.predict, super().__call__)

    def _changed(self, event: str, name: str) -> None:
        entry = self.registry.entries.get(name)
        generation = entry.served.generation if entry is not None and entry.served is not None else 0
        self.metrics.changed(event, name, generation, broken=entry is not None and entry.problem is not None)

    def stop_scanning(self) -> None:
        """End without waiting for models that are not read yet. A signal handler calls this, at any time."""
        self._ending = True
        self.registry.close()

    async def first_scan(self, reader: ThreadPoolExecutor) -> None:
        """Read the models; return early if the service must end."""
        scan = asyncio.get_running_loop().run_in_executor(reader, self.scan_models)
        while not self._ending:
            done, _ = await asyncio.wait([scan], timeout=_END_SECONDS)
            if done:
                return

    def scan_models(self) -> None:
        """Scan the models once, in a thread. An error does not change what is served."""
        try:
            self.registry.scan()
        except Exception as error:
            internal_error(error)
            self.registry.scan_failed(error)
        self.metrics.scanned(self.registry.scanned, stale=self.registry.stale is not None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.access(scope, receive, send)
        elif scope["type"] == "lifespan":
            await super().__call__(scope, receive, send)

    def openapi(self) -> Fields:
        if self.openapi_schema is None:
            self.openapi_schema = openapi_of(self, secured=self.settings.token is not None)
        return self.openapi_schema


def create_app(settings: Settings) -> Service:
    """The application that serves the models of a folder or URL.

    Parameters
    ----------
    settings : where the models are, the token, and the limits.

    Notes
    -----
    The models are read when the application starts; until then there are none.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        assert isinstance(app, Service)
        async with AsyncExitStack() as stack:
            stack.enter_context(single_threaded_blas())
            reader = ThreadPoolExecutor(1, thread_name_prefix="models")
            # Do not wait here: a store that does not answer takes half a minute to fail.
            stack.callback(reader.shutdown, wait=False, cancel_futures=True)
            stack.callback(app.registry.close)
            if app.jobs is not None:
                await stack.enter_async_context(app.jobs.running())
            await app.first_scan(reader)
            task = asyncio.create_task(_keep_scanning(app, reader))
            try:
                yield
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                app.predict.close()

    app = Service(
        settings,
        title="streamkernel",
        description='Predictions of kernel models. Errors have one shape: `{"error": {"type", "message"}}`.',
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.include_router(health_router(app.registry, app.metrics))
    app.include_router(models_router(app.registry))
    if app.jobs is not None:
        app.include_router(app.jobs.router())
    app.include_router(page_router(jobs=app.jobs is not None))
    app.add_exception_handler(HTTPException, _framework_error)
    app.add_exception_handler(RequestValidationError, _framework_error)
    app.add_exception_handler(Refused, _framework_error)
    return app


async def _keep_scanning(app: Service, reader: ThreadPoolExecutor) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(app.poll_seconds)
        await loop.run_in_executor(reader, app.scan_models)


async def _framework_error(request: Request, error: Exception) -> Response:
    """The answer to an error that the framework caught, in the shape of all errors."""
    refused, headers = _refusal(error), dict(getattr(error, "headers", None) or {})
    body = error_body(refused.kind, str(refused))
    return Response(body, refused.status, headers=headers, media_type="application/json")


def _refusal(error: Exception) -> Refused:
    if isinstance(error, Refused):
        return error
    if isinstance(error, HTTPException):
        message = {404: "there is nothing at this address", 405: "this address does not support that method"}
        status = error.status_code if error.status_code in STATUSES else 400
        return Refused(status, message.get(status, "the request cannot be read"))
    assert isinstance(error, RequestValidationError)
    problem = error.errors()[0]
    if problem["type"] == "json_invalid":
        return Refused(400, "the body is not JSON")
    field = ".".join(str(part)[:50] for part in problem["loc"][1:]) or "the body"
    return Refused(422, f"{field}: {problem['msg'][:200]}", "ParameterError")
