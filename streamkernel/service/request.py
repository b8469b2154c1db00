"""A request, as the hot path sees it: headers as they are, and a body that comes in time and within its limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from streamkernel.service.refusals import Refused
from streamkernel.service.settings import Limits

__all__ = ["Receive", "Request", "Scope", "Send"]

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Request:
    """Parameters
    ----------
    deadline : of the whole request; moved on while its body comes.

    Attributes
    ----------
    complete : the body is there. working : what is waited for is ours, not the client's.
    """

    def __init__(self, scope: Scope, receive: Receive, limits: Limits, deadline: asyncio.Timeout) -> None:
        self.scope = scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.limits = limits
        self.complete = False
        self.working = False
        self._receive = receive
        self._deadline = deadline
        self._received = 0
        self._began = asyncio.get_running_loop().time()

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    def flags(self, *known: str) -> dict[str, bool]:
        """The query, whose values are all yes or no.

        Raises
        ------
        Refused
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
        """Of the body, without parameters."""
        return self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")

    def declared_bytes(self) -> int | None:
        """Bytes of the body, where the headers say it."""
        declared = self.headers.get(b"content-length")
        if declared is None:
            return None
        if not declared.isdigit():
            raise Refused(400, "Content-Length is not a number")
        return int(declared)

    async def chunks(self, most: int) -> AsyncIterator[bytes]:
        """The body as it comes.

        Raises
        ------
        Refused
            It is larger than `most` bytes.
        asyncio.CancelledError
            It comes too slowly.
        """
        declared = self.declared_bytes()
        if declared is not None and declared > most:
            raise _too_large(most)
        received = 0
        while not self.complete:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ConnectionResetError
            self.complete = not message.get("more_body", False)
            chunk: bytes = message.get("body", b"")
            received += len(chunk)
            if received > most:
                raise _too_large(most)
            if not self.complete:
                self._expect(received)
            if chunk:
                yield chunk
        self.now_computing()

    async def body(self, most: int) -> bytes:
        """The whole of it."""
        parts = [chunk async for chunk in self.chunks(most)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _expect(self, received: int) -> None:
        """The rest of the body, of which so many bytes are there."""
        self.working = False
        self._received = received
        limits = self.limits
        self._deadline.reschedule(self._began + limits.request_seconds + received / limits.slowest)

    def now_computing(self) -> None:
        """The body is there, or a part of the answer: what is left has its own time."""
        self.working = True
        self._deadline.reschedule(asyncio.get_running_loop().time() + self.limits.compute_seconds)

    async def computing(self, work: Awaitable[T]) -> T:
        """What is done between two parts of the body, whose time is not the client's."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.now_computing()
        result = await work
        self._began += loop.time() - began
        if not self.complete:
            self._expect(self._received)
        return result

    async def drain(self, seconds: float, most: int) -> None:
        """Read what still comes of the body, and forget it: who is still sending does not read an answer."""
        try:
            async with asyncio.timeout(seconds):
                while not self.complete and most > 0:
                    message = await self._receive()
                    self.complete = message["type"] != "http.request" or not message.get("more_body", False)
                    most -= len(message.get("body", b""))
        except TimeoutError:
            return


def _too_large(most: int) -> Refused:
    return Refused(413, f"the body is larger than {most:,} bytes; send fewer rows at a time, or NPY or Arrow")
