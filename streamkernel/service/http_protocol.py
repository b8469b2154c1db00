"""One connection, in front of the web server's own protocol: what its client may take in time and memory.

The web server waits for headers, trailers and what follows an answer for as long as a client likes, and keeps all of
it. Here its bytes are counted and handed on in pieces small enough that nothing they ask for is large. What they mean
is left to the web server; when a request begins, takes a part of its body or has been answered, the application says.
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
"""Under this name a request finds its connection in the state of its scope."""

# Requests that were sent without waiting for answers cost a hundred times their bytes: few are begun at a time.
_PIECE_BEFORE, _PIECE_OF_BODY = 2 << 10, 16 << 10
# Chunks of one byte each have five to ten more around them; so much may come until the next byte of a body is taken.
_MOST_AROUND = 1 << 20


class Pending(Protocol):
    """A request at work, as its connection sees it."""

    def kept_waiting(self, now: float) -> float | None:
        """Seconds for which its client is behind; None where what is waited for is ours."""


class Connection(asyncio.BufferedProtocol):
    """Parameters
    ----------
    door : of all connections.
    server : makes the web server's protocol, with these options.
    before : what has held its place until now.
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
        # What the web server has not been given: it is not reading, or has not yet told what came before.
        self._left = b""
        self._stopped = self._reading_stopped = self._telling = self._feeding = False
        self._bytes = self._lines = 0
        self._loop = asyncio.get_running_loop()
        self._since = self._until = self._loop.time()
        self._blocked: float | None = None
        self._closing: float | None = None

    # What the event loop tells.

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

    # What the application tells.

    def began(self, request: Pending, headers: Sequence[object]) -> None:
        """A request has begun; `headers` are those that the web server keeps, to which it adds trailers."""
        self._request, self._headers, self._answering = request, headers, False
        self._bytes = self._lines = 0

    def advanced(self) -> None:
        """The application has taken a part of the body."""
        self._bytes = 0

    def answering(self) -> bool:
        """The answer begins; whether it is the last one of this connection."""
        self._answering = True
        return self._door.ending

    def answered(self, request: Pending) -> None:
        """The answer is out."""
        if self._request is not request:
            return
        self._request, self._headers = None, ()
        self._bytes = self._lines = 0
        self._since = self._loop.time()
        self._until = self._since + self._limits.idle_seconds

    # What the door asks.

    def kept_waiting(self, now: float) -> float | None:
        """Seconds for which the client has kept us waiting; None while the next step is ours."""
        if self._blocked is not None:
            return now - self._blocked
        if self._request is None:
            return now - self._since
        return self._request.kept_waiting(now)

    def is_over(self, now: float) -> bool:
        """Whether a wait has lasted as long as it may. The waits for bodies have their own end, in `Request`."""
        transport = self._transport
        if transport is not None and transport.is_closing():
            self._closing = self._closing or now
            return now - self._closing > self._limits.write_seconds
        if self._blocked is not None:
            return now - self._blocked > self._limits.write_seconds
        return self._request is None and now > self._until

    def cut(self) -> None:
        """End the connection, whatever it is at."""
        self._door.leave(self)
        if self._transport is not None:
            self._transport.abort()

    # Bytes, on their way to the web server.

    def _feed(self, data: bytes) -> None:
        """Hand on what may be handed on now, and keep the rest."""
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
                # Whether a request has begun with it is known once the application has had its turn: before more is
                # read anyway, so that nobody waits for it here where nothing is left and no limit is in question.
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
        """Whether more has come than may come before a request begins."""
        return self._bytes > self._limits.header_bytes or self._lines > self._limits.headers + 2

    def stop(self, stopped: bool) -> None:
        """The web server wants no more bytes for now, or wants them again."""
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
        """Whether what the web server writes now is its own: that these bytes are not HTTP."""
        return self._feeding

    def refuse(self, status: int) -> None:
        """Answer what never became a request, or came with too much around it, and close."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._answering and self._request is not None:
            # Into the middle of an answer nothing can be said.
            self.cut()
            return
        kind, message, phrase = {
            400: ("MalformedRequest", "this is not HTTP", b"Bad Request"),
            431: (
                "HeadersTooLarge",
                f"more than {self._limits.headers} headers or trailers, or {self._limits.header_bytes} bytes of them",
                b"Request Header Fields Too Large",
            ),
            503: (STATUSES[503][0], "too many connections; come again later", b"Service Unavailable"),
        }[status]
        body = error_body(kind, message)
        head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        transport.write(head % (status, phrase, len(body)) + body)
        transport.close()


class _Tapped:
    """A transport, as the web server has it: what it asks for passes `Connection`."""

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
            # The application hears of a connection that was cut a moment later.
            self._transport.write(data)

    def pause_reading(self) -> None:
        self._connection.stop(True)

    def resume_reading(self) -> None:
        self._connection.stop(False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def protocol_class(door: Connections, server: type[asyncio.Protocol]) -> Any:
    """What a web server makes of each connection, instead of its own protocol."""

    class Made(Connection):
        def __init__(self, before: Client | None = None, **options: Any) -> None:
            super().__init__(door, server, options, before)

    return Made
