"""Load from another process: keep-alive connections on raw sockets, every answer compared with what it must be."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import numpy as np
import uvloop


class Connection(asyncio.Protocol):
    """Sends the next request when the answer to the last one is there.

    Parameters
    ----------
    requests : bytes of each, in the order in which they are sent, again and again.
    expected : for each the bodies that are right, one a generation of the model.
    """

    def __init__(self, load: Load, first: int) -> None:
        self.load = load
        self.at = first
        self.sent = 0.0
        self.received = bytearray()
        self.wanted = -1
        self.body = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.load.open += 1
        self._next()

    def _next(self) -> None:
        load = self.load
        if time.perf_counter() >= load.until:
            self.transport.close()
            return
        self.at = (self.at + 1) % len(load.requests)
        self.received.clear()
        self.wanted = -1
        self.sent = time.perf_counter()
        load.sent += 1
        self.transport.write(load.requests[self.at])

    def data_received(self, data: bytes) -> None:
        received = self.received
        received += data
        if self.wanted < 0:
            end = received.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(received[:end]).lower()
            at = head.find(b"content-length: ")
            self.body = end + 4
            self.wanted = self.body + int(head[at + 16 :].partition(b"\r\n")[0])
        if len(received) >= self.wanted:
            load = self.load
            load.latencies.append(time.perf_counter() - self.sent)
            try:
                load.answered[load.expected[self.at].index(bytes(received[self.body :]))] += 1
            except ValueError:
                load.wrong.append(bytes(received[:400]).decode("latin-1"))
            self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self.load.open -= 1
        if not self.load.open:
            self.load.done.set_result(None)


class Load:
    def __init__(self, requests: list[bytes], expected: list[list[bytes]], seconds: float) -> None:
        self.requests, self.expected = requests, expected
        self.until = time.perf_counter() + seconds
        self.latencies: list[float] = []
        self.answered = [0] * len(expected[0])
        self.wrong: list[str] = []
        self.sent = self.open = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


def head(path: str, media_type: str, size: int) -> bytes:
    lines = ["POST " + path + " HTTP/1.1", "Host: localhost", f"Content-Type: {media_type}", f"Content-Length: {size}"]
    return "\r\n".join([*lines, "", ""]).encode()


async def run(arguments: dict[str, Any]) -> dict[str, Any]:
    with np.load(arguments["rows"]) as stored:
        X, predictions = stored["X"], stored["predictions"]
    path = f"/v1/models/{arguments['model']}/predict"
    if arguments["batch"]:
        import io

        def npy(values: np.ndarray) -> bytes:
            out = io.BytesIO()
            np.save(out, values)
            return out.getvalue()

        body = npy(X)
        requests = [head(path, "application/x-npy", len(body)) + body]
        expected = [[npy(values) for values in predictions]]
    else:
        bodies = [json.dumps({"row": row}).encode() for row in X.tolist()]
        requests = [head(path, "application/json", len(body)) + body for body in bodies]
        expected = [[json.dumps({"prediction": value}).encode() for value in values] for values in predictions.T]
    load = Load(requests, expected, arguments["seconds"])
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    for i in range(arguments["connections"]):
        await loop.create_connection(lambda i=i: Connection(load, 7 * i), "127.0.0.1", arguments["port"])
    await load.done
    seconds = time.perf_counter() - began
    milliseconds = 1e3 * np.array(load.latencies)
    return {
        "sent": load.sent,
        "answered": load.answered,
        "wrong": len(load.wrong),
        "first_wrong": load.wrong[:1],
        "lost": load.sent - len(load.latencies),
        "seconds": seconds,
        "per_second": len(load.latencies) / seconds,
        "median_ms": float(np.median(milliseconds)),
        "p99_ms": float(np.percentile(milliseconds, 99)),
        "worst_ms": float(milliseconds.max()),
        "client_cpu_seconds": time.process_time(),
    }


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    return uvloop.run(run(arguments))


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
