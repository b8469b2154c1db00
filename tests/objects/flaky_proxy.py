"""An HTTP proxy before an S3 server that misbehaves as it is told."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

__all__ = ["FlakyProxy", "every", "flaky", "storm"]

Fault = Callable[[str, str], str | None]
"""Of method and path with query: None, or "403", "503", "reset", "unheard", "truncated", "slow", "silent".

A request that is "unheard" is done, and its answer lost.
"""

_STATUS = {
    "403": (403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"),
    "503": (503, b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"),
}


class FlakyProxy:
    """Passes requests on to `upstream` but for those of which `fault` says otherwise.

    Attributes
    ----------
    fault : may be set at any time.
    seen : method and path of every request.
    delay : seconds of a "slow" answer.
    left_out : headers, in small letters, that are not passed on.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream)
        self.fault: Fault = lambda method, path: None
        self.seen: list[tuple[str, str]] = []
        self.faults = 0
        self.delay = 0.3
        self.left_out: set[str] = set()
        self._over = threading.Event()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Headers and body go out one after the other; the second would wait for the first to be acknowledged.
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                proxy.answer(self)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_any

            def log_message(self, *arguments: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """One request."""
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        method, path = request.command, request.path
        self.seen.append((method, path))
        fault = self.fault(method, path)
        if fault is not None:
            self.faults += 1
        if fault == "unheard":
            self._pass_on(request, body)
        if fault in ("reset", "unheard"):
            # With unread data or not: the peer sees "connection reset".
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.close_connection = True
            request.connection.close()
            return
        if fault == "silent":
            self._over.wait()
            request.close_connection = True
            return
        if fault == "slow":
            time.sleep(self.delay)
        if fault in _STATUS:
            self._send(request, *_STATUS[fault], {"Content-Type": "application/xml"})
            return
        status, content, headers = self._pass_on(request, body)
        self._send(request, status, content, headers, truncated=fault == "truncated")

    def _pass_on(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection(self.upstream.hostname or "", self.upstream.port, timeout=60)
        try:
            left_out = {"connection", *self.left_out}
            headers = {key: value for key, value in request.headers.items() if key.lower() not in left_out}
            connection.request(request.command, request.path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    @staticmethod
    def _send(
        request: BaseHTTPRequestHandler,
        status: int,
        content: bytes,
        headers: dict[str, str],
        *,
        truncated: bool = False,
    ) -> None:
        request.send_response(status)
        length = headers.get("Content-Length") if request.command == "HEAD" else None
        for key, value in headers.items():
            if key.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                request.send_header(key, value)
        request.send_header("Content-Length", length or str(len(content)))
        request.end_headers()
        if truncated:
            request.wfile.write(content[: len(content) // 2])
            request.wfile.flush()
            request.close_connection = True
            request.connection.shutdown(socket.SHUT_RDWR)
        elif request.command != "HEAD":
            request.wfile.write(content)

    def close(self) -> None:
        """No more answers."""
        self._over.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def flaky(upstream: str) -> Iterator[FlakyProxy]:
    """A proxy, while the block runs."""
    proxy = FlakyProxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()


def storm(
    seconds: float, faults: Sequence[str], where: Callable[[str, str], bool] = lambda method, path: True
) -> Fault:
    """Those faults in turn, for all requests from the first of those chosen on, until so much time has passed."""
    lock, began, counts = threading.Lock(), [0.0], [0]

    def decide(method: str, path: str) -> str | None:
        with lock:
            if not began[0] and where(method, path):
                began[0] = time.monotonic()
            if not began[0] or time.monotonic() - began[0] > seconds:
                return None
            counts[0] += 1
            return faults[counts[0] % len(faults)]

    return decide


def every(number: int, fault: str, where: Callable[[str, str], bool] = lambda method, path: True) -> Fault:
    """That fault for every `number`-th request of those chosen."""
    lock, counts = threading.Lock(), [0]

    def decide(method: str, path: str) -> str | None:
        if not where(method, path):
            return None
        with lock:
            counts[0] += 1
            return fault if counts[0] % number == 0 else None

    return decide
