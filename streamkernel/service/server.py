"""The processes of the service: each has a socket on the same port, and a parent restarts one that ends.

They end quickly, and with status 0 after a signal.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import signal
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import NoReturn

from streamkernel.errors import ParameterError
from streamkernel.service.access_control import BrokenAnswer
from streamkernel.service.settings import Settings
from streamkernel.service.web_server import GRACE_SECONDS, configured

_END_SECONDS = GRACE_SECONDS + 2  # after the signal the process ends, even if a thread is still at work
_FILES = 256  # open files for models, threads and libraries
_TIDY_SECONDS = 2.0  # for threads to remove their files, when a process ends
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

    def tls(self) -> ssl.SSLContext | None:
        """Certificate and key; None for plain HTTP. Raises `ParameterError` if they cannot be used."""
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except (OSError, ssl.SSLError) as error:
            raise ParameterError(
                f"the certificate {self.certificate} and the key {self.key} cannot be used: {error.strerror or error}"
            ) from None
        return context


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
    address.tls()  # before a port is taken
    bound = _bind(address, shared=workers > 1)
    host, port = bound.getsockname()[:2]
    url = f"{address.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    if workers == 1:
        _run(settings, address, bound, lambda: ready(url))
        return
    # The parent's socket reserves the port. It gets no connections, because it does not listen.
    with bound:
        _supervise(settings, replace(address, port=port), workers, lambda: ready(url))


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


def _run(settings: Settings, address: Address, bound: socket.socket, started: Callable[[], None]) -> None:
    _configure_logs()
    # The thread that reads a new generation yields to requests after 1 ms, not after Python's default of 5 ms.
    sys.setswitchinterval(0.001)
    settings = settings.with_limits(connections=_affordable_connections(settings.limits.connections))
    with ended_by_signals():
        configured(settings, address.tls(), started).run(sockets=[bound])


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
    running: list[tuple[BaseProcess, multiprocessing.synchronize.Event]] = []

    def start() -> None:
        started = context.Event()
        process = context.Process(target=_worker, args=(settings, address, started), daemon=True)
        process.start()
        running.append((process, started))

    with (
        tempfile.TemporaryDirectory(prefix="streamkernel-metrics-", ignore_cleanup_errors=True) as counts,
        _signals_handled(lambda number, frame: stopping.set()),
    ):
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts
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
                        raise ParameterError(
                            "a process of the service ended before it had started; see the lines above"
                        )
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
            os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)


class _Ended(BaseException):
    """SIGINT or SIGTERM."""


@contextmanager
def _signals_handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let a function handle SIGINT and SIGTERM during the block."""
    former = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handled in former.items():
            signal.signal(number, handled)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End the block without an error on SIGINT or SIGTERM.

    This covers the time before the web server handles signals, and its end, when it raises the signal again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise _Ended

    with suppress(_Ended), _signals_handled(end):
        yield


def leave() -> NoReturn:
    """End the process with status 0, without Python's finalization.

    Finalization takes seconds for compilers, and half a minute for a thread that waits for a store. In that time no
    signal can end the process.
    """
    last = time.monotonic() + _TIDY_SECONDS
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join(max(0.0, last - time.monotonic()))
    logging.shutdown()
    os._exit(0)
