"""The web server, with our connections in front of its protocol; uvicorn documents neither protocols nor hooks.

What is used: that the options of a protocol hold `app_state`, which becomes the state of each request; that a protocol
keeps to asyncio's interface of protocols and transports; that a server's start, end and signals are methods.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import os
import socket
import ssl
import threading
from collections.abc import Callable
from types import FrameType

import uvicorn

from streamkernel.dependencies import missing_part
from streamkernel.service.app import Service, create_app
from streamkernel.service.connections import Connections
from streamkernel.service.http_protocol import CONNECTION, Connection
from streamkernel.service.settings import Settings
from streamkernel.service.tls_handshake import Handshake
from streamkernel.type_aliases import Untyped

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ModuleNotFoundError as error:
    if error.name == "httptools":  # not installed, for which `serve` has its own error
        raise
    raise missing_part("uvicorn", str(error)) from error

for _method, _argument in (
    (HttpToolsProtocol.__init__, "app_state"),
    (getattr(uvicorn.Server, "startup", None), "sockets"),
    (getattr(uvicorn.Server, "shutdown", None), "sockets"),
    (getattr(uvicorn.Server, "handle_exit", None), "sig"),
):
    if _method is None or _argument not in inspect.signature(_method).parameters:
        raise missing_part("uvicorn", f"a method of its server or protocol with an argument {_argument}")

GRACE_SECONDS = 10
"""Time for requests at work after the signal that ends the service."""
_BACKLOG = 1024


class _Server(uvicorn.Server):
    """A web server that reports when it has started, and ends the service's connections and scans on a signal."""

    def __init__(
        self, config: uvicorn.Config, connections: Connections, service: Service, started: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._connections = connections
        self._service = service
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._connections.start_shutdown()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._service.stop_scanning()
        # A thread that waits for a disk or store that does not answer cannot be ended; the process can.
        last = threading.Timer(GRACE_SECONDS + 2, os._exit, (0,))
        last.daemon = True
        last.start()


def _protocol_maker(connections: Connections, context: ssl.SSLContext | None) -> Untyped:
    """What the web server calls for each connection, in place of its own protocol's class."""

    def protocol(**options: Untyped) -> asyncio.BaseProtocol:
        def make_server(connection: Connection) -> asyncio.Protocol:
            state = {**options["app_state"], CONNECTION: connection}
            return HttpToolsProtocol(**{**options, "app_state": state})

        if context is None:
            return Connection(connections, make_server)
        return Handshake(connections, context, lambda handshake: Connection(connections, make_server, handshake))

    return protocol


def configured(settings: Settings, context: ssl.SSLContext | None, started: Callable[[], None]) -> uvicorn.Server:
    """The web server of one process, to be run on a socket.

    Parameters
    ----------
    context : certificate and key; None for plain HTTP.
    started : called once requests are answered.
    """
    service = create_app(settings)
    connections = Connections(settings.limits)
    config = uvicorn.Config(
        service,
        http=_protocol_maker(connections, context),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=math.ceil(settings.limits.idle_seconds),
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return _Server(config, connections, service, started)
