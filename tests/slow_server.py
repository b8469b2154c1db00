"""A server in front of another one that is slow on purpose: an object store far away, whose answers are waited for."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["SlowServer", "slowed"]

_PIECE = 1 << 16


class SlowServer:
    """What it passes on: each answer begins after `delay` seconds, and all answers share `rate` bytes a second.

    Attributes
    ----------
    endpoint : its address.
    answers : answers that it has begun.
    """

    def __init__(self, port: int, delay: float, rate: float) -> None:
        self.delay, self.rate = delay, rate
        self.answers = 0
        self._target = port
        self._free = 0.0  # when the line is free again
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                asked = threading.Event()
                for work in ((self._forward, client, server, asked), (self._answer, server, client, asked)):
                    threading.Thread(target=work[0], args=work[1:], daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket, asked: threading.Event) -> None:
        with suppress(OSError):
            while piece := client.recv(_PIECE):
                asked.set()
                server.sendall(piece)
        for each in (client, server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _answer(self, server: socket.socket, client: socket.socket, asked: threading.Event) -> None:
        with suppress(OSError):
            while piece := server.recv(_PIECE):
                if asked.is_set():  # the first piece of an answer
                    asked.clear()
                    self.answers += 1
                    time.sleep(self.delay)
                with self._lock:
                    now = time.monotonic()
                    self._free = max(self._free, now) + len(piece) / self.rate
                    until = self._free
                time.sleep(max(0.0, until - time.monotonic()))
                client.sendall(piece)
        for each in (client, server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def slowed(endpoint: str, *, delay: float = 0.0, rate: float = 1e9) -> Iterator[SlowServer]:
    """A slow server in front of the one at `endpoint`, until the block ends."""
    server = SlowServer(int(endpoint.rpartition(":")[2]), delay, rate)
    try:
        yield server
    finally:
        server.close()
