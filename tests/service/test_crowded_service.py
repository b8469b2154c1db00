"""More clients than there are places or room: those that are behind give way, and others are served."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from service.bodies import as_arrow, as_npy, refused
from service.live import Live, everything, served
from service.stopped_clients import JSON, LAST, PREDICT, ROW, STOPS, predicts

from streamkernel.service import Settings
from streamkernel.service.formats import MEDIA_TYPES

PLACES = 6

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
        for _ in range(6):
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
