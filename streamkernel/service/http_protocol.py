"""One connection, in front of the web server's own protocol: it limits the time and memory that its client can take.

The web server itself waits without limit for headers, trailers and the next request, and keeps all that it receives.
`Connection` counts the bytes and passes them on in small pieces, so that each piece causes little work. It does not
parse HTTP: the application reports when a request begins, when a part of its body is taken, and when it is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from streamkernel.service.connections import Client, Connections, address_of
from streamkernel.service.http_errors import STATUSES, error_body

__all__ = ["CONNECTION", "Connection", "Pending", "protocol_class"]

CONNECTION = "connection"
"""Key of the connection in the state of a request's scope."""

# Bytes passed on at a time. Pipelined requests cost a hundred times their bytes in memory, so few are begun at a time.
_PIECE_BEFORE, _PIECE_OF_BODY = 2 << 10, 16 << 10
# Bytes that may arrive before the application takes the next part of a body. Chunks of one byte each have five to ten
# bytes of framing.
_MOST_AROUND = 1 << 20


class Pending(Protocol):
    """The current request, as its connection sees it."""

    def kept_waiting(self, now: float) -> float | None:
        """Seconds for which the client is behind; None while the service is at work."""


class Connection(asyncio.BufferedProtocol):
    """Parameters
    ----------
    door : all connections of the process.
    server : class of the web server's protocol, made with `options`.
    before : the TLS handshake of this connection, which holds its place until now.
    """

    def __init__(
        self, door: Connections, server: type[asyncio.Protocol], options: dict[str, Any], before: Client | None = None
    ) -> None:
        self._door = door
        self._before = before
        self._limits = door.limits
        options["app_state"] = {**options["app_state"], CONNECTION: self}
        self._make_server: Callable[[], asyncio.Protocol] = partial(server, **options)
        self._server: asyncio.Protocol | None = None
        self._transport: asyncio.Transport | None = None
        self._request: Pending | None = None
        self._headers: Sequence[object] = ()
        self._answering = False
        # Bytes not yet passed to the web server: it has paused, or it is not known yet what came before them.
        self._left = b""
        self._stopped = self._reading_stopped = self._telling = self._feeding = False
        self._bytes = self._lines = 0
        self._loop = asyncio.get_running_loop()
        self._since = self._until = self._loop.time()
        self._blocked: float | None = None
        self._closing: float | None = None

    # Calls of the event loop.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        if self._before is not None:
            self._door.leave(self._before)
            self._before = None
        if not self._door.enter(self, address_of(transport)):
            self.refuse(503)
            return
        self._since = self._loop.time()
        self._until = self._since + self._limits.header_seconds
        self._server = self._make_server()
        self._server.connection_made(_Tapped(transport, self))  # type: ignore[arg-type]

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.leave(self)
        self._left = b""
        if self._server is not None:
            self._server.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._door.buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(memoryview(self._door.buffer)[:nbytes])
        if self._left or self._stopped or self._telling:
            self._left += data
            self._stop_reading()
        else:
            self._feed(data)

    def eof_received(self) -> bool | None:
        return None if self._server is None else self._server.eof_received()

    def pause_writing(self) -> None:
        self._blocked = self._loop.time()
        if self._server is not None:
            self._server.pause_writing()

    def resume_writing(self) -> None:
        self._blocked = None
        if self._server is not None:
            self._server.resume_writing()

    # Calls of the application.

    def began(self, request: Pending, headers: Sequence[object]) -> None:
        """A request has begun; `headers` is the web server's own list, to which it appends trailers."""
        self._request, self._headers, self._answering = request, headers, False
        self._bytes = self._lines = 0

    def advanced(self) -> None:
        """The application has taken a part of the body."""
        self._bytes = 0

    def answering(self) -> bool:
        """The answer begins; returns whether it is the last one of this connection."""
        self._answering = True
        return self._door.ending

    def answered(self, request: Pending) -> None:
        """The answer has been sent."""
        if self._request is not request:
            return
        self._request, self._headers = None, ()
        self._bytes = self._lines = 0
        self._since = self._loop.time()
        self._until = self._since + self._limits.idle_seconds

    # Calls of `Connections`.

    def kept_waiting(self, now: float) -> float | None:
        """Seconds since the service began to wait for the client; None while the service is at work."""
        if self._blocked is not None:
            return now - self._blocked
        if self._request is None:
            return now - self._since
        return self._request.kept_waiting(now)

    def is_over(self, now: float) -> bool:
        """Whether the wait has exceeded its limit. `Request` limits the waits for bodies."""
        transport = self._transport
        if transport is not None and transport.is_closing():
            self._closing = self._closing or now
            return now - self._closing > self._limits.write_seconds
        if self._blocked is not None:
            return now - self._blocked > self._limits.write_seconds
        return self._request is None and now > self._until

    def cut(self) -> None:
        """Close the connection at once, in any state."""
        self._door.leave(self)
        if self._transport is not None:
            self._transport.abort()

    # Bytes on their way to the web server.

    def _feed(self, data: bytes) -> None:
        """Pass on as many bytes as the web server may have now; keep the rest in `_left`."""
        server, transport = self._server, self._transport
        assert server is not None
        assert transport is not None
        while data and not self._stopped and not self._telling and not transport.is_closing():
            size = _PIECE_BEFORE if self._request is None else _PIECE_OF_BODY
            piece, data = (data, b"") if len(data) <= size else (data[:size], data[size:])
            self._count(piece)
            self._feeding = True
            server.data_received(piece)
            self._feeding = False
            if self._request is None:
                # The application reports a new request only in its next turn of the event loop. Where no byte is left
                # and no limit is exceeded that is early enough: it is before the next read.
                if data or self._over_limits():
                    self._telling = True
                    self._loop.call_soon(self._told)
            elif len(self._headers) > self._limits.headers or self._bytes > _MOST_AROUND:
                self.refuse(431)
        self._left = b"" if transport.is_closing() else data
        if self._left:
            self._stop_reading()
        elif self._reading_stopped and not transport.is_closing():
            self._reading_stopped = False
            transport.resume_reading()

    def _count(self, piece: bytes) -> None:
        self._bytes += len(piece)
        if self._request is None:
            if self._bytes == len(piece):
                self._until = min(self._until, self._loop.time() + self._limits.header_seconds)
            self._lines += piece.count(b"\n")

    def _told(self) -> None:
        self._telling = False
        if self._request is None and self._over_limits():
            self.refuse(431)
        elif self._left or self._reading_stopped:
            self._feed(self._left)

    def _over_limits(self) -> bool:
        """Whether more bytes or lines have arrived than are allowed before a request begins."""
        return self._bytes > self._limits.header_bytes or self._lines > self._limits.headers + 2

    def stop(self, stopped: bool) -> None:
        """The web server pauses reading, or resumes it."""
        if self._stopped and not stopped and (self._left or self._reading_stopped):
            self._loop.call_soon(self._go_on)
        self._stopped = stopped
        if stopped:
            self._stop_reading()

    def _go_on(self) -> None:
        if not self._stopped and not self._telling:
            self._feed(self._left)

    def _stop_reading(self) -> None:
        if not self._reading_stopped and self._transport is not None and not self._transport.is_closing():
            self._reading_stopped = True
            self._transport.pause_reading()

    @property
    def objects(self) -> bool:
        """Whether the web server itself would be the author of what is written now: its complaint that this is no HTTP.

        The application writes only after `data_received` has returned.
        """
        return self._feeding

    def refuse(self, status: int) -> None:
        """Send an error for bytes that are no acceptable request, and close."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._answering and self._request is not None:
            # An answer is being sent; an error cannot be put into the middle of it.
            self.cut()
            return
        kind, message, phrase = {
            400: ("MalformedRequest", "this is not HTTP", b"Bad Request"),
            431: (
                "HeadersTooLarge",
                f"more than {self._limits.headers} headers or trailers, or {self._limits.header_bytes} bytes of them",
                b"Request Header Fields Too Large",
            ),
            503: (STATUSES[503][0], "too many connections; try again later", b"Service Unavailable"),
        }[status]
        body = error_body(kind, message)
        head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        transport.write(head % (status, phrase, len(body)) + body)
        transport.close()


class _Tapped:
    """The transport that the web server gets: `Connection` sees every write and pause."""

    def __init__(self, transport: asyncio.Transport, connection: Connection) -> None:
        self._transport = transport
        self._connection = connection
        self.get_extra_info = transport.get_extra_info
        self.is_closing = transport.is_closing
        self.close = transport.close
        self.abort = transport.abort

    def write(self, data: bytes) -> None:
        if self._connection.objects:
            self._connection.refuse(400)
        elif not self._transport.is_closing():
            # After a cut, the application still writes for a moment, until it is notified.
            self._transport.write(data)

    def pause_reading(self) -> None:
        self._connection.stop(True)

    def resume_reading(self) -> None:
        self._connection.stop(False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def protocol_class(door: Connections, server: type[asyncio.Protocol]) -> Any:
    """The class that the web server makes for each connection, in place of its own protocol."""

    class Made(Connection):
        def __init__(self, before: Client | None = None, **options: Any) -> None:
            super().__init__(door, server, options, before)

    return Made
