"""The first code that a request meets: token, deadlines, and the answer to every error.

Requests for predictions go from here to `Predict` directly: the web framework's own routing costs more than a
prediction.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from streamkernel.errors import StreamKernelError
from streamkernel.service.formats.json_rows import json_of
from streamkernel.service.http_errors import Refused, error_body, internal_error, refusal_of
from streamkernel.service.memory_budget import MemoryBudget
from streamkernel.service.metrics import Metrics
from streamkernel.service.request import Receive, Request, Scope, Send
from streamkernel.service.settings import JOBS, Settings

ADMITTED = "streamkernel.admitted"
"""Key in the scope of a request: whether the request has the token, or needs none."""
PREFIX, SUFFIX = "/v1/models/", "/predict"
_LARGEST_JOB = 1 << 20

log = logging.getLogger("streamkernel.service")

# Open without the token, because they hold no data. The page itself has a field for the token.
_OPEN_PREFIXES = ("/static/",)
_OPEN_PATHS = frozenset({"/", "/healthz", "/favicon.ico"})

# The page may load nothing from other origins, run nothing inline, and not be put into a frame.
SECURITY_HEADERS = [
    (b"content-security-policy",
     b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]  # fmt: skip
CLOSE = (b"connection", b"close")
_DRAIN_SECONDS, _DRAIN_BYTES = 2.0, 64 << 20
# The machine lacks something: neither the request nor our code is at fault.
_EXHAUSTED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})

Handler = Callable[[Request, Send], Awaitable[None]]


class AccessControl:
    """Parameters
    ----------
    predict : answers requests for predictions.
    rest : the application that answers all other requests.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        predict: Handler,
        rest: Callable[[Scope, Receive, Send], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._predict = predict
        self._rest = rest
        self._submits = settings.jobs is not None and settings.jobs.scheduler is not None
        self._expected = None if settings.token is None else settings.token.encode()
        self._budget = MemoryBudget.of(settings.limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        path: str = scope["path"]
        predicting = path.endswith(SUFFIX) and path.startswith(PREFIX) and scope["method"] == "POST"
        status = 0
        limits = self._settings.limits
        deadline = asyncio.timeout(limits.request_seconds)
        request = Request(scope, receive, limits, self._budget, deadline)
        connection = request.connection

        async def answer(message: dict[str, object]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]  # type: ignore[assignment]
                if connection is not None and connection.answering():
                    # Requests that were sent after this one on the same connection are not answered.
                    message["headers"] = [*message.get("headers", []), CLOSE]  # type: ignore[misc]
            await send(message)
            if connection is not None and message["type"] == "http.response.body" and not message.get("more_body"):
                connection.answered(request)

        try:
            async with deadline:
                self._admit(request, path)
                if predicting:
                    await self._predict(request, answer)  # type: ignore[arg-type]
                else:
                    await self._pass_on(request, answer)  # type: ignore[arg-type]
        except ConnectionResetError:
            pass  # the client has disconnected
        except Exception as error:
            refused = _refused(error, working=request.working)
            if status:
                # A part of the answer has been sent. Only a broken connection shows that the rest is missing.
                raise BrokenAnswer from None
            await _send_error(refused, request, answer)  # type: ignore[arg-type]
        finally:
            request.close()
            route = "predict" if predicting else getattr(scope.get("route"), "path", "other")
            self._metrics.answered(route, status or 499, time.perf_counter() - start)

    def _admit(self, request: Request, path: str) -> None:
        if len(request.scope["headers"]) > request.limits.headers:
            raise Refused(431, f"there are more than {request.limits.headers} headers")
        admitted = self._is_admitted(request)
        request.scope[ADMITTED] = admitted
        if not admitted and path not in _OPEN_PATHS and not path.startswith(_OPEN_PREFIXES):
            raise Refused(401, "the request needs a token: Authorization: Bearer TOKEN")

    def _is_admitted(self, request: Request) -> bool:
        """Whether the client may see the models."""
        expected = self._expected
        if expected is None:
            hosts = self._settings.hosts
            if hosts is not None and sum(name == b"host" for name, _ in request.scope["headers"]) > 1:
                raise Refused(400, "the request has more than one Host header")
            if hosts is not None and _host(request.headers.get(b"host", b"")) not in hosts:
                raise Refused(421, "a service without a token accepts only the host names of its own machine")
            return True
        # The name of the scheme is case-insensitive, the token is not (RFC 9110, 11.1).
        scheme, _, token = request.headers.get(b"authorization", b"").partition(b" ")
        return hmac.compare_digest(token.strip(b" \t"), expected) and scheme.lower() == b"bearer"

    async def _pass_on(self, request: Request, send: Send) -> None:
        # Only a job has a body that is read. `_secured` discards one that was sent nevertheless.
        body = b""

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": body, "more_body": False}

        request.complete = not (request.declared_bytes() or request.in_chunks)
        if self._submits and request.scope["method"] == "POST" and request.path == JOBS:
            if request.media_type() != "application/json" or b"content-encoding" in request.headers:
                # Any other type could be sent by a page of another site, too.
                raise Refused(415, "a job must be sent as JSON: Content-Type: application/json")
            body = await request.body(min(_LARGEST_JOB, request.limits.json_bytes))
            # Refuse a name that occurs twice: the framework would take its last value.
            json_of(body)
        request.now_computing()
        await self._rest(request.scope, receive, _secured(request, send))


class BrokenAnswer(Exception):
    """An answer failed after a part of it was sent; the connection is closed."""


def _host(header: bytes) -> str:
    """The name in a Host header, without its port."""
    text = header.decode("latin-1").lower()
    return text.partition("]")[0].lstrip("[") if text.startswith("[") else text.partition(":")[0]


def _refused(error: Exception, *, working: bool) -> Refused:
    if isinstance(error, Refused):
        return error
    if isinstance(error, TimeoutError):
        message = "the answer took too long; send fewer rows at a time"
        return Refused(503, message, "Timeout") if working else Refused(408, "the body arrived too slowly")
    if isinstance(error, StreamKernelError):
        refusal = refusal_of(error)
        if refusal.status != 500:
            return refusal
    if isinstance(error, OSError) and error.errno in _EXHAUSTED:
        log.error("a request is refused: %s", error.strerror)
        return Refused(503, "the service is short of disk, files or memory; try again later")
    return internal_error(error)


async def _send_error(refused: Refused, request: Request, send: Send) -> None:
    body = error_body(refused.kind, str(refused))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refused.status == 503:
        headers.append((b"retry-after", b"1"))
    secured = _secured(request, send)
    await secured({"type": "http.response.start", "status": refused.status, "headers": headers})
    await secured({"type": "http.response.body", "body": body, "more_body": False})


def _secured(request: Request, send: Send) -> Send:
    """Sends an answer with the security headers; where a part of the body may still arrive, as the last answer."""

    async def secured(message: MutableMapping[str, Any]) -> None:
        unread = not request.complete and (request.headers.get(b"content-length", b"0") != b"0" or request.in_chunks)
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", []), *SECURITY_HEADERS]
            message["headers"] = [*headers, CLOSE] if unread else headers
        elif unread and not message.get("more_body"):
            # Discard the rest of the body before the answer ends: the next request cannot be recognised.
            request.close()
            await send({**message, "more_body": True})
            await request.drain(_DRAIN_SECONDS, _DRAIN_BYTES)
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await send(message)

    return secured
