"""A service on a port of loopback, in a thread of this process or in a process of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

from streamkernel.service import Settings, access_control, connections
from streamkernel.service.server import Address
from streamkernel.service.web_server import configured


class Live:
    def __init__(self, settings: Settings, **options: Any) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        address = Address("127.0.0.1", self.port, **options)
        self.url = f"{address.scheme}://127.0.0.1:{self.port}"
        started = threading.Event()
        self.server = configured(settings, address.tls(), started.set)
        self.service: Any = self.server.config.app
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listening]})
        self._thread.start()
        assert started.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=15)

    def exchange(self, sent: bytes) -> bytes:
        """Everything that comes back until the service closes the connection."""
        with self.connect() as connection:
            connection.sendall(sent)
            return everything(connection)


@contextmanager
def served(models: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A service in a process of its own, and its port."""
    command = [sys.executable, "-m", "streamkernel", "serve", str(models), "--port", "0", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(json.loads(process.stdout.readline())["url"].rpartition(":")[2])
        finally:
            process.kill()


def checked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits end soon after their limits; who is refused in the middle of a body has less time to send the rest."""
    monkeypatch.setattr(connections, "_CHECK_SECONDS", 0.05)
    monkeypatch.setattr(access_control, "_DRAIN_SECONDS", 0.3)


def everything(connection: socket.socket) -> bytes:
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)
