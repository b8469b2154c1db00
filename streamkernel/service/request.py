"""A request on the fast path: its headers, and its body, with limits of time and size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from streamkernel.service.http_errors import Refused
from streamkernel.service.http_protocol import CONNECTION, Connection
from streamkernel.service.memory_budget import MemoryBudget
from streamkernel.service.settings import Limits

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# Bytes of each request that are not counted: the number of connections bounds them well enough.
_UNCOUNTED = 16 << 10


class Request:
    """A request.

    Parameters
    ----------
    budget : memory and files, shared by all requests.
    deadline : timeout of the whole request, which is moved while its body arrives.

    Attributes
    ----------
    complete : whether the whole body has arrived.
    working : whether the service is at work; otherwise it waits for the client.
    """

    def __init__(
        self, scope: Scope, receive: Receive, limits: Limits, budget: MemoryBudget, deadline: asyncio.Timeout
    ) -> None:
        self.scope = scope
        self.connection: Connection | None = (scope.get("state") or {}).get(CONNECTION)
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.limits = limits
        self.complete = False
        self.working = False
        self._receive = receive
        self._budget = budget
        self._deadline = deadline
        self._received = 0
        self._loop = asyncio.get_running_loop()
        self._began = self._last = self._loop.time()
        if self.connection is not None:
            self.connection.began(self, scope["headers"])

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    @property
    def in_chunks(self) -> bool:
        """Whether the body is sent in chunks, without its size."""
        return b"transfer-encoding" in self.headers

    def flags(self, *known: str) -> dict[str, bool]:
        """The parameters of the query, all true or false.

        Raises
        ------
        Refused
            A parameter is unknown, or its value is neither.
        """
        text = self.scope["query_string"]
        if not text:
            return {}
        found = {}
        for name, value in parse_qsl(text.decode("latin-1"), keep_blank_values=True):
            if name not in known:
                raise Refused(
                    422, f"there is no parameter {name[:50]!r}; there are {', '.join(known)}", "ParameterError"
                )
            if value.lower() not in ("true", "false", "1", "0"):
                raise Refused(422, f"{name} must be true or false, not {value[:50]!r}", "ParameterError")
            found[name] = value.lower() in ("true", "1")
        return found

    def media_type(self) -> str:
        """The media type of the body, without parameters."""
        return self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")

    def declared_bytes(self) -> int | None:
        """Bytes of the body, if the headers have it; else None."""
        declared = self.headers.get(b"content-length")
        if declared is None:
            return None
        if not declared.isdigit():
            raise Refused(400, "Content-Length is not a number")
        return int(declared)

    async def chunks(self, most: int) -> AsyncIterator[bytes]:
        """The body, in chunks as they arrive.

        Raises
        ------
        Refused
            The body is larger than `most` bytes.
        asyncio.CancelledError
            The body arrives too slowly.
        """
        declared = self.declared_bytes()
        if declared is not None and declared > most:
            raise _too_large(most)
        received = 0
        while not self.complete:
            chunk = await self._next()
            received += len(chunk)
            if received > most:
                raise _too_large(most)
            if not self.complete:
                self._expect(received)
            if received > _UNCOUNTED:
                self.hold(len(chunk) if received - len(chunk) > _UNCOUNTED else received)
            if chunk:
                yield chunk
        self.now_computing()

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] != "http.request":
            raise ConnectionResetError
        self._last = self._loop.time()
        if self.connection is not None:
            self.connection.advanced()
        self.complete = not message.get("more_body", False)
        return bytes(message.get("body", b""))

    def client_wait(self, now: float) -> float | None:
        """Seconds for which the client is behind: silent, or slower than allowed; None while the service is at work."""
        if self.complete or self.working:
            return None
        return max(now - self._last, now - self._began - self._received / self.limits.slowest)

    def hold(self, count: int) -> None:
        """Reserve `count` more bytes of memory for this request, until it ends or releases them.

        Raises
        ------
        Refused
            All requests together would hold too much.
        """
        self._budget.memory.hold(self, count)

    def release(self, count: int) -> None:
        """Release `count` bytes of memory."""
        self._budget.memory.release(self, count)

    def hold_file(self, count: int) -> None:
        """Reserve `count` more bytes in a temporary file; see `hold`."""
        self._budget.files.hold(self, count)

    def close(self) -> None:
        """Release all memory and files of this request."""
        self._budget.memory.release_all(self)
        self._budget.files.release_all(self)

    def cut(self) -> None:
        """Close the connection, because other requests need the memory or files of this one."""
        if self.connection is not None:
            self.connection.cut()

    async def body(self, most: int) -> bytes:
        """The whole body."""
        parts = [chunk async for chunk in self.chunks(most)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _expect(self, received: int) -> None:
        """Wait for the rest of the body, after `received` bytes: move the deadline by what has arrived."""
        self.working = False
        self._received = received
        limits = self.limits
        self._deadline.reschedule(self._began + limits.request_seconds + received / limits.slowest)

    def now_computing(self) -> None:
        """The body is complete, or a part of the answer is sent: the next step gets its own time."""
        self.working = True
        self._deadline.reschedule(self._loop.time() + self.limits.compute_seconds)

    async def computing(self, work: Awaitable[T]) -> T:
        """Do work between two parts of the body, without counting its time against the client."""
        began = self._loop.time()
        self.now_computing()
        result = await work
        self._last = self._loop.time()
        self._began += self._last - began
        if not self.complete:
            self._expect(self._received)
        return result

    async def drain(self, seconds: float, most: int) -> None:
        """Read and discard the rest of the body: a client that is still sending does not read an answer."""
        try:
            async with asyncio.timeout(seconds):
                while not self.complete and most > 0:
                    most -= len(await self._next())
        except (TimeoutError, ConnectionResetError):
            return


def _too_large(most: int) -> Refused:
    return Refused(413, f"the body is larger than {most:,} bytes; send fewer rows at a time, or NPY or Arrow")
