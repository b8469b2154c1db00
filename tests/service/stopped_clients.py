"""Clients that stop in the middle of a request: what each has sent, and whether others are served meanwhile."""

from __future__ import annotations

from typing import Any

import httpx
from service.live import Live

ROW = b'{"row": [1, 2, 3, 4]}'
JSON = {"content-type": "application/json"}
PREDICT = b"POST /v1/models/ridge/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = PREDICT + b"Transfer-Encoding: chunked\r\n\r\n"
WHOLE = PREDICT + b"Content-Length: %d\r\n\r\n" % len(ROW) + ROW
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = HEALTH.replace(b"Host", b"Connection: close\r\nHost")

# What a client has sent when it stops.
STOPS = {
    "nothing": b"",
    "half a request line": b"POST /v1/mod",
    "half a header": b"GET /healthz HTTP/1.1\r\nHost: lo",
    "headers alone": PREDICT + b"Content-Length: 1000\r\n\r\n",
    "half a body": PREDICT + b"Content-Length: 1000\r\n\r\n{",
    "half a size of a chunk": CHUNKED + b"1",
    "an extension of a chunk": CHUNKED + b"1;abc",
    "half a chunk": CHUNKED + b"ff\r\n{",
    "begun trailers": CHUNKED + b"0\r\nX-A: 1\r\n",
    "an empty line": b"\r\n",
    "an answered request": HEALTH,
    "a request and an empty line": HEALTH + b"\r\n",
    "a request and half of one": HEALTH + b"GET /heal",
    "a refused request": b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a refused request with half a body": b"POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    "a request whose body nobody reads": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    "trailers of a request that nobody reads": HEALTH.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
    + b"0\r\nX: 1\r\n",
    "many requests": HEALTH * 5 + PREDICT,
}


def predicts(running: Live, **options: Any) -> None:
    with httpx.Client(base_url=running.url, trust_env=False, timeout=20, **options) as client:
        assert client.post("/v1/models/ridge/predict", content=ROW, headers=JSON).status_code == 200
