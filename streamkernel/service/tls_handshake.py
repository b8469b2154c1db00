"""A connection during its TLS handshake: it counts among all connections, and can be closed in favour of others.

The event loop's own TLS does not report connections before the handshake ends: thousands of handshakes that do not go
on would use up all files of the process.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable

from streamkernel.service.connections import Connections, address_of

# Time for the client to confirm the end of the TLS session.
_CLOSE_SECONDS = 2.0


class Handshake(asyncio.Protocol):
    """Parameters
    ----------
    connections : all connections of the process.
    context : certificate and key.
    make_protocol : makes the protocol of the encrypted connection.
    """

    def __init__(
        self,
        connections: Connections,
        context: ssl.SSLContext,
        make_protocol: Callable[[Handshake], asyncio.BaseProtocol],
    ) -> None:
        self._connections = connections
        self._context = context
        self._make_protocol = make_protocol
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # Nothing has been read yet. The handshake uses a copy of the socket, because asyncio offers no way to encrypt
        # a transport before it reads.
        if self._connections.add(self, address_of(transport)):
            original: socket.socket = transport.get_extra_info("socket")
            self._task = self._loop.create_task(self._encrypt(socket.socket(fileno=os.dup(original.fileno()))))
        transport.abort()

    async def _encrypt(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._make_protocol(self),
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._connections.limits.header_seconds,
                ssl_shutdown_timeout=_CLOSE_SECONDS,
            )
        except OSError:
            accepted.close()  # no handshake, or not in time
        finally:
            self._connections.remove(self)

    def client_wait(self, now: float) -> float:
        """Seconds since the handshake began."""
        return now - self._since

    def is_expired(self, now: float) -> bool:
        """False: the event loop limits the time of the handshake."""
        return False

    def cut(self) -> None:
        """Close the connection at once."""
        self._connections.remove(self)
        if self._task is not None:
            self._task.cancel()
