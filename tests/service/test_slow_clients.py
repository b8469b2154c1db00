"""Clients that stop in the middle of anything, or send what never ends: every wait ends, and so does the service."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from service.live import Live, checked_often, everything, served
from service.stopped_clients import CHUNKED, HEALTH, JSON, LAST, ROW, STOPS, WHOLE, predicts

from streamkernel.service import Settings


@pytest.fixture(scope="module")
def of_short_waits(saved: Path) -> Iterator[Live]:
    running = Live(
        Settings(saved).with_limits(
            request_seconds=0.4, header_seconds=0.4, idle_seconds=0.4, write_seconds=0.4, connections=60
        )
    )
    yield running
    running.stop()


@pytest.fixture
def impatient(of_short_waits: Live, monkeypatch: pytest.MonkeyPatch) -> Live:
    checked_often(monkeypatch)
    return of_short_waits


def test_every_wait_ends(impatient: Live) -> None:
    with contextlib.ExitStack() as stack:
        held = {stop: stack.enter_context(impatient.connect()) for stop in STOPS}
        for stop, connection in held.items():
            connection.sendall(STOPS[stop])
        began = time.monotonic()
        for stop, connection in held.items():
            everything(connection)
            assert time.monotonic() - began < 10, stop
    predicts(impatient)


def test_every_wait_ends_that_is_kept_up_byte_by_byte(impatient: Live) -> None:
    """One byte before the end of each pause: what counts is the whole wait."""
    complete = ("nothing", "an empty line", "an answered request", "many requests")
    with contextlib.ExitStack() as stack:
        held = {stop: stack.enter_context(impatient.connect()) for stop in STOPS}
        for stop, connection in held.items():
            connection.sendall(STOPS[stop])
        until = time.monotonic() + 10
        while held:
            for stop, connection in list(held.items()):
                try:
                    connection.sendall(b"\r\n" if stop in complete else b"1")
                except OSError:
                    del held[stop]
            assert time.monotonic() < until, list(held)
            time.sleep(0.1)
    predicts(impatient)


def sent_until_cut(running: Live, first: bytes, more: bytes, most: int) -> tuple[int, bytes]:
    """How many bytes were taken before the connection ended, and what came back."""
    sent = 0
    with running.connect() as connection:
        connection.sendall(first)
        with contextlib.suppress(OSError):
            while sent < most:
                connection.sendall(more)
                sent += len(more)
        return sent, everything(connection)


TRAILERS = b"".join(b"X-%d: y\r\n" % i for i in range(4000))


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (CHUNKED + b"0\r\n", TRAILERS),
        (CHUNKED + b"15\r\n" + ROW + b"\r\n0\r\n", TRAILERS),
        (CHUNKED + b"0\r\nX: ", b"y" * 65536),
        (CHUNKED + b"1;", b"e" * 65536),
        (HEALTH.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n") + b"0\r\n", TRAILERS),
        (HEALTH, b"\r\n" * 30000),
        (HEALTH.replace(b"\r\n\r\n", b"\r\nX: "), b"y" * 65536),
        (b"GET /", b"y" * 65536),
        (b"GET / HTTP/1.1\r\n", b"a:\r\n" * 16384),
        (b"", b"\r\n" * 30000),
    ],
)  # fmt: skip
def test_what_never_ends_is_cut(client: httpx.Client, first: bytes, more: bytes) -> None:
    running = Reached(client)
    # Both ends' buffers hold a few megabytes by themselves.
    sent, told = sent_until_cut(running, first, more, 64 << 20)
    assert sent < 32 << 20
    if told:
        last = told.rpartition(b"HTTP/1.1 ")[2]
        assert last[:3] in (b"400", b"431", b"200"), told[:200]
    assert client.post("/v1/models/ridge/predict", content=ROW, headers=JSON).status_code == 200


class Reached:
    """The service of a client, by sockets."""

    def __init__(self, client: httpx.Client) -> None:
        self._port = client.base_url.port

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=15)


def test_as_many_headers_as_there_may_be(client: httpx.Client) -> None:
    for count, status in ((90, 200), (101, 431), (5000, 431)):
        with Reached(client).connect() as connection:
            headers = b"".join(b"x%d: y\r\n" % i for i in range(count))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + b"\r\n")
            assert everything(connection).startswith(b"HTTP/1.1 %d " % status)


def test_headers_are_counted_before_they_end(client: httpx.Client) -> None:
    with Reached(client).connect() as connection:
        connection.settimeout(5)
        connection.sendall(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 200)
        assert everything(connection).startswith(b"HTTP/1.1 431 ")


def test_trailers_are_counted_before_they_end(client: httpx.Client) -> None:
    with Reached(client).connect() as connection:
        connection.settimeout(5)
        connection.sendall(CHUNKED + b"0\r\n")
        time.sleep(0.2)  # the request has begun
        connection.sendall(b"a:\r\n" * 200)
        assert everything(connection).startswith(b"HTTP/1.1 431 ")


def test_trailers_and_extensions_that_end(client: httpx.Client) -> None:
    with Reached(client).connect() as connection:
        body = b"".join(b"1;x=y\r\n" + ROW[i : i + 1] + b"\r\n" for i in range(len(ROW)))
        connection.sendall(CHUNKED.replace(b"Host", b"Connection: close\r\nHost") + body + b"0\r\nX-Sum: 1\r\n\r\n")
        assert everything(connection).startswith(b"HTTP/1.1 200 ")


def test_thousands_of_requests_in_one_packet(saved: Path, live: Any) -> None:
    """They are begun a few at a time, answered in their order, and cost memory for a few."""
    running = live(Settings(saved))
    requests = 5_000
    predicts(running)
    assert running.exchange(HEALTH * 500 + LAST).count(b"HTTP/1.1 200") == 501
    with running.connect() as connection:
        before = psutil.Process().memory_info().rss
        connection.settimeout(60)
        sender = threading.Thread(target=connection.sendall, args=(HEALTH * requests + LAST,))
        sender.start()
        time.sleep(0.3)
        grown = psutil.Process().memory_info().rss - before
        answered = everything(connection)
        sender.join()
    assert grown < 16e6
    assert answered.count(b"HTTP/1.1 200") == requests + 1


def test_an_answer_to_a_connection_that_has_been_refused(
    saved: Path, live: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """What comes behind a request that is at work is no HTTP: the answer has nowhere to go, which is no fault."""
    running = live(replace(Settings(saved), batch_seconds=1.0))
    with running.connect() as connection:
        connection.sendall(WHOLE)
        time.sleep(0.1)
        connection.sendall(b"\x00\r\n\r\n")
        assert everything(connection).startswith(b"HTTP/1.1 400 ")
    predicts(running)  # of the same batch, or of a later one: the answer has been given
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_body_that_nobody_reads_ends_the_connection_after_the_answer(client: httpx.Client) -> None:
    for body in (b"x" * 100, b"x" * 3_000_000):
        for method, path in (("POST", "/v1/none"), ("PUT", "/healthz"), ("GET", "/v1/models")):
            told = client.request(method, path, content=body)
            assert told.status_code in (200, 404, 405)
            assert told.headers["connection"] == "close"
    assert "connection" not in client.get("/healthz").headers


@pytest.mark.slow
def test_it_ends_soon_whatever_its_clients_wait_for(saved: Path) -> None:
    with served(saved) as (process, port), contextlib.ExitStack() as stack:
        for said in STOPS.values():
            stack.enter_context(socket.create_connection(("127.0.0.1", port))).sendall(said)
        time.sleep(0.5)
        process.terminate()
        assert process.wait(8) == 0


@pytest.mark.parametrize(
    "stop",
    [
        "begun trailers",
        pytest.param("half a body", marks=pytest.mark.slow),
        pytest.param("many requests", marks=pytest.mark.slow),
    ],
)
def test_one_connection_that_waits_does_not_keep_the_service_from_ending(saved: Path, stop: str) -> None:
    running = Live(Settings(saved))
    with running.connect() as connection:
        connection.sendall(STOPS[stop])
        time.sleep(0.2)
        began = time.monotonic()
        running.stop()
        assert time.monotonic() - began < 6


def test_requests_that_wait_behind_another_do_not_keep_the_service_from_ending(saved: Path) -> None:
    """Of requests that were sent at once one is at work: it is answered, as the last one of its connection."""
    running = Live(replace(Settings(saved), batch_seconds=0.5))
    with running.connect() as connection:
        connection.sendall(WHOLE * 30)
        time.sleep(0.7)
        running.stop()
        told = everything(connection)
    assert 1 <= told.count(b"HTTP/1.1 200") <= 4
    assert told.count(b"connection: close") == 1
    last = told.rpartition(b"HTTP/1.1 ")[2]
    assert b"connection: close" in last
    assert last.endswith(b"}")
