"""A real S3 server on this machine (moto's), in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["S3Server", "running_s3"]

_CODE = """
import sys, threading
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("port", server._server.server_port, flush=True)
sys.stdin.read()
"""


class S3Server:
    """Address of the server; buckets are made here, everything else by what is tested."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"

    def bucket(self) -> str:
        """A new bucket's URL."""
        name = f"b-{uuid.uuid4().hex[:12]}"
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT"), timeout=20).close()
        return f"s3://{name}"

    def environment(self) -> dict[str, str]:
        """What a user sets to work with it."""
        return {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }


@contextmanager
def running_s3(log: Path) -> Iterator[S3Server]:
    """The server, until the block ends (or this process: it reads from our pipe)."""
    with open(log, "wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    assert process.stdout is not None
    try:
        began = time.monotonic()
        found = re.match(rb"port (\d+)", process.stdout.readline())
        assert found, f"moto did not start within {time.monotonic() - began:.0f} s: {log.read_text()}"
        yield S3Server(int(found[1]))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        if process.stdin:
            process.stdin.close()
