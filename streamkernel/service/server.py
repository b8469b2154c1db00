"""The processes of the service: each has a socket on the same port, and a parent restarts one that ends."""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import resource
import shutil
import signal
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

import uvicorn

from streamkernel.errors import ParameterError
from streamkernel.service.access_control import BrokenAnswer
from streamkernel.service.app import Service, create_app
from streamkernel.service.connections import Connections
from streamkernel.service.http_protocol import protocol_class
from streamkernel.service.settings import Settings
from streamkernel.service.shutdown import ended_by_signals, leave
from streamkernel.service.tls_handshake import handshake_class

__all__ = ["Address", "configured", "serve"]

_GRACE_SECONDS = 10
_END_SECONDS = _GRACE_SECONDS + 2  # after the signal the process ends, even if a thread is still at work
_BACKLOG = 1024
_FILES = 256  # open files for models, threads and libraries
_RESTART_SECONDS = 1.0  # pause before a process that ended is started again


@dataclass(frozen=True)
class Address:
    """The address at which the service listens.

    Parameters
    ----------
    host, port : host and port; port 0 takes a free port.
    certificate, key : PEM files; None for plain HTTP.
    """

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"

    def check(self) -> None:
        """Raise `ParameterError` unless certificate and key can be used."""
        if self.certificate is None:
            return
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key, password=lambda: "")
        except (OSError, ssl.SSLError) as error:
            raise ParameterError(
                f"the certificate {self.certificate} and the key {self.key} cannot be used: {error.strerror or error}"
            ) from None


def serve(
    settings: Settings, address: Address, *, workers: int = 1, ready: Callable[[str], None] = lambda url: None
) -> None:
    """Serve until SIGINT or SIGTERM; running requests are completed first.

    Parameters
    ----------
    workers : number of processes.
    ready : called with the URL once requests are answered.

    Raises
    ------
    ParameterError
        The service cannot listen at the address, or certificate and key cannot be used.
    """
    address.check()
    bound = _bind(address, shared=workers > 1)
    host, port = bound.getsockname()[:2]
    url = f"{address.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    if workers == 1:
        _run(settings, address, bound, lambda: ready(url))
        return
    # The parent's socket reserves the port. It gets no connections, because it does not listen.
    with bound:
        _supervise(settings, Address(address.host, port, address.certificate, address.key), workers, lambda: ready(url))


def _bind(address: Address, *, shared: bool) -> socket.socket:
    try:
        family, kind, proto, _, sockaddr = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, proto)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            bound.bind(sockaddr)
        except BaseException:
            bound.close()
            raise
    except OSError as error:
        raise ParameterError(f"cannot listen on {address.host}:{address.port}: {error.strerror or error}") from None
    return bound


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
        last = threading.Timer(_END_SECONDS, os._exit, (0,))
        last.daemon = True
        last.start()


class _OneLine(logging.Formatter):
    def formatException(self, ei: object) -> str:
        return ""

    def formatStack(self, stack_info: str) -> str:
        return ""


def _configure_logs() -> None:
    """Log one line for each event to stderr, without tracebacks."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("%(levelname)s: %(message)s"))
    handler.addFilter(lambda record: not (record.exc_info and record.exc_info[0] is BrokenAnswer))
    # At a lower level the web server would log every client error.
    for name, level in (("uvicorn", logging.ERROR), ("streamkernel.service", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def configured(settings: Settings, address: Address, started: Callable[[], None]) -> uvicorn.Server:
    """The web server of one process, to be run on a socket."""
    service = create_app(settings)
    config = uvicorn.Config(
        service,
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=math.ceil(settings.limits.idle_seconds),
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
    )
    config.load()
    connections = Connections(settings.limits)
    config.http_protocol_class = protocol_class(connections, config.http_protocol_class)
    if config.ssl is not None:
        config.http_protocol_class = handshake_class(connections, config.ssl, config.http_protocol_class)
        config.ssl = None
    return _Server(config, connections, service, started)


def _run(settings: Settings, address: Address, bound: socket.socket, started: Callable[[], None]) -> None:
    _configure_logs()
    # The thread that reads a new generation yields to requests after 1 ms, not after Python's default of 5 ms.
    sys.setswitchinterval(0.001)
    settings = settings.with_limits(connections=_affordable_connections(settings.limits.connections))
    with ended_by_signals():
        configured(settings, address, started).run(sockets=[bound])


def _affordable_connections(wanted: int) -> int:
    """The number of connections for which there are enough files: if accepting one fails, no client gets an answer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 2 * wanted + _FILES
    if soft != resource.RLIM_INFINITY and soft < files:
        soft = files if hard == resource.RLIM_INFINITY else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        wanted = min(wanted, max(16, (soft - _FILES) // 2))
    return wanted


def _worker(settings: Settings, address: Address, started: multiprocessing.synchronize.Event) -> None:
    parent = os.getppid()

    def watch_parent() -> None:
        # A parent that was killed cannot end its processes, so they end themselves.
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch_parent, daemon=True).start()
    _run(settings, address, _bind(address, shared=True), started.set)
    leave()


def _supervise(settings: Settings, address: Address, workers: int, ready: Callable[[], None]) -> None:
    from prometheus_client import multiprocess

    context = multiprocessing.get_context("spawn")
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    counts = tempfile.mkdtemp(prefix="streamkernel-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts
    former = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    running: list[tuple[BaseProcess, multiprocessing.synchronize.Event]] = []

    def start() -> None:
        started = context.Event()
        process = context.Process(target=_worker, args=(settings, address, started), daemon=True)
        process.start()
        running.append((process, started))

    try:
        for _ in range(workers):
            start()
        reported = False
        while not stopping.wait(0.1):
            if not reported and all(started.is_set() for _, started in running):
                reported = True
                ready()
            for item in [item for item in running if not item[0].is_alive()]:
                running.remove(item)
                multiprocess.mark_process_dead(item[0].pid)  # type: ignore[no-untyped-call]
                if not item[1].is_set():
                    raise ParameterError("a process of the service ended before it had started; see the lines above")
                print("a process of the service ended; another takes its place", file=sys.stderr)
                stopping.wait(_RESTART_SECONDS)
                start()
    finally:
        for process, _ in running:
            process.terminate()
        last = time.monotonic() + _END_SECONDS
        for process, _ in running:
            process.join(max(0.0, last - time.monotonic()))
            if process.is_alive():
                process.kill()
        for number, handler in former.items():
            signal.signal(number, handler)
        os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
        shutil.rmtree(counts, ignore_errors=True)
