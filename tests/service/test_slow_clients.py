"""Clients that stop in the middle of anything, or send what never ends: memory and places stay, others are served."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from service.bodies import as_arrow, as_npy, refused
from service.live import Live, checked_often, everything, served

from streamkernel.service import Settings
from streamkernel.service.formats import MEDIA_TYPES

ROW = b'{"row": [1, 2, 3, 4]}'
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
PLACES = 6


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


def predicts(running: Live, **options: Any) -> None:
    with httpx.Client(base_url=running.url, trust_env=False, timeout=20, **options) as client:
        assert client.post("/v1/models/ridge/predict", content=ROW, headers=JSON).status_code == 200


JSON = {"content-type": "application/json"}


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


# Of each way of waiting one: for a request, its headers, its body, the end of it, and after an answer.
KINDS = ("nothing", "half a header", "half a body", "begun trailers", "an answered request")


@pytest.mark.parametrize(
    "stop", [stop if stop in KINDS else pytest.param(stop, marks=pytest.mark.slow) for stop in STOPS]
)
def test_who_stops_makes_place_for_who_does_not(saved: Path, live: Any, stop: str) -> None:
    """With waits that last, all places are taken by clients that are behind; a client that is not, is served."""
    running = live(Settings(saved).with_limits(connections=PLACES, patience_seconds=0.1))
    with contextlib.ExitStack() as stack:
        for _ in range(PLACES + 3):
            held = stack.enter_context(running.connect())
            with contextlib.suppress(OSError):
                held.sendall(STOPS[stop])
        served_within(running, 20)


def served_within(running: Live, seconds: float, **options: Any) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            return predicts(running, **options)
        except (AssertionError, httpx.TransportError):
            assert time.monotonic() < until
            time.sleep(0.05)


def test_who_connects_again_and_again_does_not_keep_others_out(saved: Path, live: Any) -> None:
    """Nobody is behind for long enough to give way, but an address has no more than its share."""
    running = live(Settings(saved).with_limits(connections=PLACES))
    ended = threading.Event()

    def storm() -> None:
        held: list[socket.socket] = []
        while not ended.is_set():
            with contextlib.suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", running.port), 5, ("127.0.0.2", 0)))
            if len(held) > 2 * PLACES:
                held.pop(0).close()
        for connection in held:
            connection.close()

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        time.sleep(0.3)
        for _ in range(20):
            predicts(running)
    finally:
        ended.set()
        thread.join()


def test_of_one_address_nobody_gives_way_to_another(saved: Path, live: Any) -> None:
    running = live(Settings(saved).with_limits(connections=PLACES, patience_seconds=60))
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(running.connect()) for _ in range(PLACES)]
        time.sleep(0.1)
        assert running.exchange(LAST).startswith(b"HTTP/1.1 503 ")
        held[0].sendall(LAST)
        assert everything(held[0]).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("limits", [{"patience_seconds": 0.1}, {"patience_seconds": 1e9, "header_seconds": 0.5}])
def test_handshakes_that_stop_give_way(
    saved: Path, live: Any, certified: dict[str, Path], limits: dict[str, float]
) -> None:
    """They have places as all connections have, so that they are as few; where nobody wants one, they end in time."""
    running = live(Settings(saved).with_limits(connections=PLACES, **limits), **certified)
    served_within(running, 20, verify=trusted(certified))
    before = psutil.Process().num_fds()
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(running.connect()) for _ in range(10 * PLACES)]
        for connection in held[::2]:
            with contextlib.suppress(OSError):
                connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        served_within(running, 20, verify=trusted(certified))
        # Both ends are of this process.
        assert psutil.Process().num_fds() - before <= len(held) + PLACES + 2


def test_many_clients_over_tls_at_once(saved: Path, live: Any, certified: dict[str, Path]) -> None:
    running = live(Settings(saved), **certified)
    statuses: list[bytes] = []

    def ask() -> None:
        for _ in range(10):
            with (
                running.connect() as raw,
                trusted(certified).wrap_socket(raw, server_hostname="127.0.0.1") as encrypted,
            ):
                encrypted.sendall(LAST)
                statuses.append(everything(encrypted)[:12])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [b"HTTP/1.1 200"] * 80


def trusted(certified: dict[str, Path]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certified["certificate"]))


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tls")
    made = {"certificate": folder / "cert.pem", "key": folder / "key.pem"}
    call = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", str(made["key"]), "-out", str(made["certificate"])]  # fmt: skip
    subprocess.run(call, check=True, capture_output=True)
    return made


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
    running = live(replace(Settings(saved), batch_seconds=0.3))
    with running.connect() as connection:
        connection.sendall(WHOLE)
        time.sleep(0.1)
        connection.sendall(b"\x00\r\n\r\n")
        assert everything(connection).startswith(b"HTTP/1.1 400 ")
    time.sleep(0.4)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
    predicts(running)


def test_a_body_that_nobody_reads_ends_the_connection_after_the_answer(client: httpx.Client) -> None:
    for body in (b"x" * 100, b"x" * 3_000_000):
        for method, path in (("POST", "/v1/none"), ("PUT", "/healthz"), ("GET", "/v1/models")):
            told = client.request(method, path, content=body)
            assert told.status_code in (200, 404, 405)
            assert told.headers["connection"] == "close"
    assert "connection" not in client.get("/healthz").headers


@pytest.mark.slow
def test_a_thousand_clients_that_stop(saved: Path) -> None:
    """In each state more connections than there are places; memory, and another client, are watched meanwhile."""
    with served(saved) as (process, port):
        service = psutil.Process(process.pid)
        before = service.memory_info().rss
        for name, said in STOPS.items():
            with contextlib.ExitStack() as stack:
                for _ in range(1100):
                    with contextlib.suppress(OSError):
                        held = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=15))
                        held.sendall(said)
                began, status = time.monotonic(), 0
                while status != 200:
                    with contextlib.suppress(httpx.TransportError):
                        status = httpx.post(
                            f"http://127.0.0.1:{port}/v1/models/ridge/predict",
                            content=ROW, headers=JSON, trust_env=False,
                        ).status_code  # fmt: skip
                    assert time.monotonic() - began < 15, name
                assert service.memory_info().rss - before < 200e6, name
        process.terminate()
        assert process.wait(20) == 0


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


def test_bodies_share_a_room(saved: Path, live: Any) -> None:
    """Unfinished bodies are held until there is no room; then those that are behind give way."""
    limits = {"memory_bytes": 4 << 20, "patience_seconds": 0.3}
    running = live(Settings(saved).with_limits(**limits))
    unfinished = PREDICT + b"Content-Length: 2000000\r\n\r\n" + b" " * 1_500_000
    room = running.service.access._budget.memory
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(running.connect()) for _ in range(8)]
        for connection in held:
            with contextlib.suppress(OSError):
                connection.sendall(unfinished)
            assert room.total <= 4 << 20
        time.sleep(0.5)
        # Small ones never wait, and a large one has the room of those that do not go on.
        predicts(running)
        large = as_npy(np.ones((60_000, 4)))
        with httpx.Client(base_url=running.url, trust_env=False) as client:
            headers = {"content-type": MEDIA_TYPES["npy"]}
            assert client.post("/v1/models/ridge/predict", content=large, headers=headers).status_code == 200
    until = time.monotonic() + 10
    while room.total and time.monotonic() < until:
        time.sleep(0.02)
    assert room.total == 0


def test_what_has_no_room_is_refused(saved: Path, live: Any) -> None:
    running = live(Settings(saved).with_limits(memory_bytes=200_000, spool_bytes=1_500_000))
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        where = "/v1/models/ridge/predict"
        text = json.dumps({"rows": [[1.0, 2.0, 3.0, 4.0]] * 20_000})
        refused(client.post(where, content=text, headers=JSON), 503, "Overloaded", "large bodies")
        many = as_arrow(np.ones((60_000, 4)))
        arrow = {"content-type": MEDIA_TYPES["arrow"]}
        refused(client.post(where, content=many, headers=arrow), 503, "Overloaded", "large bodies")
        # A body that is worked up while it comes needs room for a block of it.
        assert client.post(where, content=ROW, headers=JSON).status_code == 200


def test_clients_that_send_headers_alone_keep_no_place_from_others(saved: Path, live: Any) -> None:
    running = live(Settings(saved).with_limits(streams=2))
    head = PREDICT.replace(b"application/json", MEDIA_TYPES["npy"].encode())
    body = as_npy(np.ones((100, 4)))
    with contextlib.ExitStack() as stack:
        for sent in (b"", body[:60], body[:200]) * 3:
            connection = stack.enter_context(running.connect())
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + sent)
        time.sleep(0.3)
        with httpx.Client(base_url=running.url, trust_env=False, timeout=8) as client:
            for form, rows in (("npy", as_npy(np.ones((2, 4)))), ("arrow", as_arrow(np.ones((2, 4))))):
                headers = {"content-type": MEDIA_TYPES[form]}
                assert client.post("/v1/models/ridge/predict", content=rows, headers=headers).status_code == 200


def test_clients_that_do_not_read_keep_no_place_from_others(saved: Path, live: Any) -> None:
    running = live(Settings(saved).with_limits(streams=1))
    running.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    body = as_npy(np.zeros((400_000, 4), np.float16))
    head = PREDICT.replace(b"application/json", MEDIA_TYPES["npy"].encode() + b"\r\nAccept: application/json")
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", running.port))
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        connection.recv(100)
        with httpx.Client(base_url=running.url, trust_env=False, timeout=8) as client:
            headers = {"content-type": MEDIA_TYPES["npy"]}
            rows = as_npy(np.ones((2, 4)))
            assert client.post("/v1/models/ridge/predict", content=rows, headers=headers).status_code == 200
