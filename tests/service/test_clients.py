"""Clients that are slow, silent, greedy or gone: each costs its connection and nothing else."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from service.bodies import as_npy, refused
from service.live import Live, checked_often, everything

from streamkernel.service import Settings
from streamkernel.service.formats import MEDIA_TYPES, NPY

HEAD = "POST /v1/models/ridge/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n"


@pytest.fixture(scope="module")
def of_short_waits(saved: Path) -> Iterator[Live]:
    settings = Settings(saved).with_limits(
        request_seconds=0.4, header_seconds=0.4, write_seconds=0.4, connections=30, header_bytes=4000
    )
    running = Live(settings)
    yield running
    running.stop()


@pytest.fixture
def impatient(of_short_waits: Live, monkeypatch: pytest.MonkeyPatch) -> Live:
    checked_often(monkeypatch)
    return of_short_waits


def answers(running: Live) -> None:
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        assert client.post("/v1/models/ridge/predict", json={"row": [1, 2, 3, 4]}).status_code == 200


def test_a_body_that_never_comes(impatient: Live) -> None:
    text = impatient.exchange(HEAD.format("application/json", 100).encode() + b'{"row": [')
    assert text.startswith(b"HTTP/1.1 408")
    assert json.loads(text.partition(b"\r\n\r\n")[2])["error"]["type"] == "Timeout"
    body = as_npy(np.ones((300, 4)))
    text = impatient.exchange(HEAD.format(MEDIA_TYPES[NPY], len(body)).encode() + body[:5000])
    assert text.startswith(b"HTTP/1.1 408")
    answers(impatient)


def test_a_body_that_trickles(impatient: Live) -> None:
    with impatient.connect() as connection:
        connection.sendall(HEAD.format("application/json", 1000).encode())
        began = time.monotonic()
        try:
            while time.monotonic() < began + 20:
                connection.sendall(b" ")
                time.sleep(0.05)
        except OSError:
            pass
    assert time.monotonic() < began + 10
    answers(impatient)


@pytest.mark.parametrize("said", [b"", b"POST /v1/models/ridge", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_headers_that_never_end(impatient: Live, said: bytes) -> None:
    assert impatient.exchange(said) == b""
    answers(impatient)


def test_headers_that_are_too_many(impatient: Live) -> None:
    text = impatient.exchange(b"GET / HTTP/1.1\r\n" + b"X-Many: 0123456789\r\n" * 5000)
    assert text.startswith(b"HTTP/1.1 431") or text == b""
    answers(impatient)


@pytest.mark.parametrize("said", [b"GET /", b"GET / HTTP/1.1\r\nX: "])
def test_headers_that_are_too_long(impatient: Live, said: bytes) -> None:
    """Told at once: in less than half a second a connection that waits is cut without a word."""
    assert impatient.exchange(said + b"y" * 3000) == b""
    assert impatient.exchange(said + b"y" * 5000).startswith(b"HTTP/1.1 431")


def answered(connection: socket.socket) -> None:
    """One answer, whose headers and body may come one after the other."""
    text = connection.recv(65536)
    assert text.startswith(b"HTTP/1.1 200 ")
    while not text.endswith(b"}"):
        text += connection.recv(65536)


def test_the_next_request_has_longer_to_begin_than_to_come(impatient: Live) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for begun in (b"GET /heal", whole[:-2], b"\r\n"):
        with impatient.connect() as connection:
            connection.sendall(whole)
            answered(connection)
            connection.sendall(begun)
            assert everything(connection) == b""
    with impatient.connect() as connection:
        for _ in range(2):
            connection.sendall(whole)
            answered(connection)
            time.sleep(0.7)


def test_what_is_not_http(impatient: Live) -> None:
    for said in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"HELLO\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        text = impatient.exchange(said)
        assert text.startswith(b"HTTP/1.1 400")
        assert json.loads(text.partition(b"\r\n\r\n")[2])["error"]["type"] == "MalformedRequest"
    answers(impatient)


def test_answers_that_nobody_reads(impatient: Live) -> None:
    # More than the buffers of both ends hold; how large they may grow by themselves differs between machines.
    impatient.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    body = as_npy(np.zeros((400_000, 4), np.float16))
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", impatient.port))
        head = HEAD.format(MEDIA_TYPES[NPY], len(body)).replace("\r\n\r\n", "\r\nAccept: application/json\r\n\r\n")
        connection.sendall(head.encode() + body)
        assert connection.recv(12) == b"HTTP/1.1 200"
        until = time.monotonic() + 60
        while impatient.server.server_state.connections and time.monotonic() < until:
            time.sleep(0.05)
        assert not impatient.server.server_state.connections
        assert not everything(connection).endswith(b"0\r\n\r\n")
    answers(impatient)


def asking(port: int, rows: int, *headers: str) -> socket.socket:
    """A client that has asked for so many predictions, and reads none."""
    body = as_npy(np.zeros((rows, 4), np.float16))
    head = HEAD.format(MEDIA_TYPES[NPY], len(body)).replace("\r\n\r\n", "\r\n" + "".join(headers) + "\r\n")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(15)
    connection.connect(("127.0.0.1", port))
    connection.sendall(head.encode() + body)
    return connection


def test_an_answer_that_nobody_takes_the_last_of(impatient: Live) -> None:
    """It is given out whole, and the connection is closed: what is left of it waits for the client."""
    impatient.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    held = [asking(impatient.port, rows, "Connection: close\r\n") for rows in range(10_000, 80_000, 5000)]
    try:
        until = time.monotonic() + 15
        time.sleep(0.5)
        while impatient.server.server_state.connections:
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        for connection in held:
            connection.close()


def test_who_does_not_read_makes_place_for_who_does(saved: Path, live: Any) -> None:
    # More than the buffers of both ends hold, and of several pieces: the answer is still at work.
    running = live(Settings(saved).with_limits(connections=2, patience_seconds=0.1))
    running.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    held = [asking(running.port, 400_000, "Accept: application/json\r\n") for _ in range(2)]
    try:
        for connection in held:
            assert connection.recv(12) == b"HTTP/1.1 200"
        time.sleep(0.5)
        answers(running)
    finally:
        for connection in held:
            connection.close()


def test_too_many_connections(saved: Path, live: Any, until: Any) -> None:
    running = live(Settings(saved).with_limits(connections=30, patience_seconds=60))
    asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    held = [running.connect() for _ in range(30)]
    try:
        assert running.exchange(asked).startswith(b"HTTP/1.1 503")
    finally:
        for connection in held:
            connection.close()
    until(lambda: running.exchange(asked).startswith(b"HTTP/1.1 200"))


def test_who_hangs_up(impatient: Live) -> None:
    for sent in (b"", b'{"row": [1', b'{"row": [1, 2, 3, 4]}'):
        for _ in range(5):
            with impatient.connect() as connection:
                connection.sendall(HEAD.format("application/json", 21).encode() + sent)
    answers(impatient)


def test_a_refusal_reaches_who_is_still_sending(saved: Path, live: Any) -> None:
    running = live(Settings(saved).with_limits(body_bytes=1000))
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        body = as_npy(np.ones((100_000, 4)))
        answer = client.post("/v1/models/ridge/predict", content=body, headers={"content-type": MEDIA_TYPES[NPY]})
        refused(answer, 413, "TooLarge")
        assert answer.headers["connection"] == "close"


def test_many_requests_on_one_connection_at_once(impatient: Live, estimators: dict[str, Any], rows: np.ndarray) -> None:
    bodies = [json.dumps({"row": row.tolist()}).encode() for row in rows[:20]]
    requests = [HEAD.format("application/json", len(body)).encode() + body for body in bodies]
    requests[-1] = requests[-1].replace(b"Host:", b"Connection: close\r\nHost:")
    text = impatient.exchange(b"".join(requests))
    found = [json.loads(part.partition(b"}")[0] + b"}")["prediction"] for part in text.split(b"\r\n\r\n")[1:]]
    assert found == [estimators["ridge"].predict(row[None])[0] for row in rows[:20]]
