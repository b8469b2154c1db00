"""One connection, in front of the web server's own protocol: it limits the time and memory that its client can take.

The web server itself waits without limit for headers, trailers and the next request, and keeps all that it receives.
`Connection` counts the bytes and passes them on in small pieces, so that each piece causes little work. It does not
parse HTTP: the application reports when a request begins, when a part of its body is taken, and when it is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from streamkernel.service.connections import Client, Connections, Waiting, address_of
from streamkernel.service.http_errors import STATUSES, error_body

CONNECTION = "connection"
"""Key of the connection in the state of a request's scope."""

# Bytes passed on at a time. Pipelined requests cost a hundred times their bytes in memory, so few are begun at a time.
_PIECE_BEFORE, _PIECE_OF_BODY = 2 << 10, 16 << 10
# Bytes that may arrive before the application takes the next part of a body. Chunks of one byte each have five to ten
# bytes of framing.
_MOST_FRAMING = 1 << 20


class Connection(asyncio.BufferedProtocol):
    """Parameters
    ----------
    connections : all connections of the process.
    make_server : function that makes the web server's protocol of this connection.
    handshake : the TLS handshake of this connection, which holds its place until now.
    """

    def __init__(
        self,
        connections: Connections,
        make_server: Callable[[Connection], asyncio.Protocol],
        handshake: Client | None = None,
    ) -> None:
        self._connections = connections
        self._handshake = handshake
        self._limits = connections.limits
        self._make_server = make_server
        self._server: asyncio.Protocol | None = None
        self._transport: asyncio.Transport | None = None
        self._request: Waiting | None = None
        self._headers: Sequence[object] = ()
        self._answering = False
        # Bytes not yet passed to the web server: it has paused, or it is not known yet what came before them.
        self._unread = b""
        self._paused = self._reading_paused = self._report_pending = self._feeding = False
        self._bytes = self._lines = 0
        self._loop = asyncio.get_running_loop()
        self._since = self._deadline = self._loop.time()
        self._blocked: float | None = None
        self._closing: float | None = None

    # Calls of the event loop.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        if self._handshake is not None:
            self._connections.remove(self._handshake)
            self._handshake = None
        if not self._connections.add(self, address_of(transport)):
            self.refuse(503)
            return
        self._since = self._loop.time()
        self._deadline = self._since + self._limits.header_seconds
        self._server = self._make_server(self)
        self._server.connection_made(_ObservedTransport(transport, self))  # type: ignore[arg-type]

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.remove(self)
        self._unread = b""
        if self._server is not None:
            self._server.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._connections.buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(memoryview(self._connections.buffer)[:nbytes])
        if self._unread or self._paused or self._report_pending:
            self._unread += data
            self._pause_reading()
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

    def began(self, request: Waiting, headers: Sequence[object]) -> None:
        """A request has begun; `headers` is the web server's own list, to which it appends trailers."""
        self._request, self._headers, self._answering = request, headers, False
        self._bytes = self._lines = 0

    def advanced(self) -> None:
        """The application has taken a part of the body."""
        self._bytes = 0

    def answering(self) -> bool:
        """The answer begins; returns whether it is the last one of this connection."""
        self._answering = True
        return self._connections.ending

    def answered(self, request: Waiting) -> None:
        """The answer has been sent."""
        if self._request is not request:
            return
        self._request, self._headers = None, ()
        self._bytes = self._lines = 0
        self._since = self._loop.time()
        self._deadline = self._since + self._limits.idle_seconds

    # Calls of `Connections`.

    def client_wait(self, now: float) -> float | None:
        """Seconds since the service began to wait for the client; None while the service is at work."""
        if self._blocked is not None:
            return now - self._blocked
        if self._request is None:
            return now - self._since
        return self._request.client_wait(now)

    def is_expired(self, now: float) -> bool:
        """Whether the wait has exceeded its limit. `Request` limits the waits for bodies."""
        transport = self._transport
        if transport is not None and transport.is_closing():
            self._closing = self._closing or now
            return now - self._closing > self._limits.write_seconds
        if self._blocked is not None:
            return now - self._blocked > self._limits.write_seconds
        return self._request is None and now > self._deadline

    def cut(self) -> None:
        """Close the connection at once, in any state."""
        self._connections.remove(self)
        if self._transport is not None:
            self._transport.abort()

    # Bytes on their way to the web server.

    def _feed(self, data: bytes) -> None:
        """Pass on as many bytes as the web server may have now; keep the rest in `_unread`."""
        server, transport = self._server, self._transport
        assert server is not None
        assert transport is not None
        while data and not self._paused and not self._report_pending and not transport.is_closing():
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
                    self._report_pending = True
                    self._loop.call_soon(self._report_done)
            elif len(self._headers) > self._limits.headers or self._bytes > _MOST_FRAMING:
                self.refuse(431)
        self._unread = b"" if transport.is_closing() else data
        if self._unread:
            self._pause_reading()
        elif self._reading_paused and not transport.is_closing():
            self._reading_paused = False
            transport.resume_reading()

    def _count(self, piece: bytes) -> None:
        self._bytes += len(piece)
        if self._request is None:
            if self._bytes == len(piece):
                self._deadline = min(self._deadline, self._loop.time() + self._limits.header_seconds)
            self._lines += piece.count(b"\n")

    def _report_done(self) -> None:
        self._report_pending = False
        if self._request is None and self._over_limits():
            self.refuse(431)
        elif self._unread or self._reading_paused:
            self._feed(self._unread)

    def _over_limits(self) -> bool:
        """Whether more bytes or lines have arrived than are allowed before a request begins."""
        return self._bytes > self._limits.header_bytes or self._lines > self._limits.headers + 2

    def set_paused(self, paused: bool) -> None:
        """The web server pauses reading, or resumes it."""
        if self._paused and not paused and (self._unread or self._reading_paused):
            self._loop.call_soon(self._resume)
        self._paused = paused
        if paused:
            self._pause_reading()

    def _resume(self) -> None:
        if not self._paused and not self._report_pending:
            self._feed(self._unread)

    def _pause_reading(self) -> None:
        if not self._reading_paused and self._transport is not None and not self._transport.is_closing():
            self._reading_paused = True
            self._transport.pause_reading()

    @property
    def server_is_writing(self) -> bool:
        """Whether a write now comes from the web server itself, which then reports that the bytes are no HTTP.

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


class _ObservedTransport:
    """The transport that the web server gets: `Connection` sees every write and pause."""

    def __init__(self, transport: asyncio.Transport, connection: Connection) -> None:
        self._transport = transport
        self._connection = connection
        self.get_extra_info = transport.get_extra_info
        self.is_closing = transport.is_closing
        self.close = transport.close
        self.abort = transport.abort

    def write(self, data: bytes) -> None:
        if self._connection.server_is_writing:
            self._connection.refuse(400)
        elif not self._transport.is_closing():
            # After a cut, the application still writes for a moment, until it is notified.
            self._transport.write(data)

    def pause_reading(self) -> None:
        self._connection.set_paused(True)

    def resume_reading(self) -> None:
        self._connection.set_paused(False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
