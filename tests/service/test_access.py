"""Who may ask for what: tokens, names of models, names of the service."""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from service.bodies import refused
from service.live import Live

from streamkernel.errors import ParameterError
from streamkernel.service import Settings
from streamkernel.service.settings import is_loopback, read_token

TOKEN = "correct-horse-battery"


@pytest.fixture(scope="module")
def closed(saved: Path) -> Iterator[Live]:
    """A service that asks for the token."""
    running = Live(Settings(saved, token=TOKEN))
    yield running
    running.stop()


@pytest.mark.parametrize("given", [None, "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer"])
def test_without_the_token_nothing_is_told(closed: Live, given: str | None) -> None:
    headers = {} if given is None else {"authorization": given}
    with httpx.Client(base_url=closed.url, headers=headers, trust_env=False) as client:
        for path in ("/v1/models", "/v1/models/ridge", "/metrics", "/openapi.json", "/v1/none", "/docs"):
            answer = client.get(path)
            refused(answer, 401, "Unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
        refused(client.post("/v1/models/ridge/predict", json={"row": [1] * 4}), 401, "Unauthorized")
        # What a load balancer and a browser ask first.
        assert client.get("/healthz").json()["models"] == 5
        for path in ("/", "/static/page.js", "/static/page.css", "/favicon.ico"):
            answer = client.get(path)
            assert answer.status_code == 200
            assert "ridge" not in answer.text.replace('ridge: "', "").replace("ridge-classifier", "").replace(
                "kernel ridge", ""
            )


def test_a_token_is_compared_in_constant_time(closed: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who could measure how far a guess is right would guess it letter by letter."""
    compared = []
    plain = hmac.compare_digest

    def compare(*both: bytes) -> bool:
        compared.append(both)
        return plain(*both)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for given in (TOKEN, TOKEN[:-1], TOKEN + "x", "x"):
        httpx.get(f"{closed.url}/v1/models", headers={"authorization": f"Bearer {given}"}, trust_env=False)
    assert compared == [(each.encode(), TOKEN.encode()) for each in (TOKEN, TOKEN[:-1], TOKEN + "x", "x")]


def test_with_the_token(closed: Live) -> None:
    with httpx.Client(base_url=closed.url, headers={"authorization": f"Bearer {TOKEN}"}, trust_env=False) as client:
        assert client.get("/v1/models").status_code == 200
        assert client.post("/v1/models/ridge/predict", json={"row": [1] * 4}).status_code == 200


@pytest.mark.parametrize("scheme", ["bearer ", "BEARER ", "beareR  "])
def test_the_scheme_is_in_either_case_and_the_token_is_not(closed: Live, scheme: str) -> None:
    with httpx.Client(base_url=closed.url, trust_env=False) as client:
        assert client.get("/v1/models", headers={"authorization": scheme + TOKEN}).status_code == 200
        refused(client.get("/v1/models", headers={"authorization": scheme + TOKEN.upper()}), 401, "Unauthorized")
        refused(client.get("/v1/models", headers={"authorization": scheme.strip() + TOKEN}), 401, "Unauthorized")


def test_a_service_without_a_token_answers_to_names_of_this_machine(saved: Path, live: Any) -> None:
    running = live(Settings(saved, hosts=frozenset({"localhost", "127.0.0.1", "::1"})))
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        for host in ("localhost", "localhost:1", "127.0.0.1:8000", "[::1]:80", "LOCALHOST"):
            assert client.get("/v1/models", headers={"host": host}).status_code == 200
        for host in ("evil.example", "127.0.0.1.evil.example", "[::2]"):
            refused(client.get("/v1/models", headers={"host": host}), 421, "UnknownHost")


@pytest.mark.parametrize(
    "name",
    [
        "../ridge", "..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2e%2e%2fridge", "....//ridge", "/etc/passwd", "%2fetc",
        "file:%2f%2f%2fetc%2fpasswd", "file:///etc", "s3://bucket/model", "zip::ridge", "simplecache::file:%2f%2fridge",
        ".hidden", ".ridge.abc.partial", "ridge%00", "ridge%20", "ridge/config.json", "ridge%2fconfig.json",
        "ridge%5c..", "a" * 300, "%ff", "ri%0adge", "r\u00eddge".encode().decode("latin-1"),
    ],
)  # fmt: skip
def test_names_that_lead_elsewhere(client: httpx.Client, name: str) -> None:
    raw = name if name.isascii() else name.encode("latin-1").hex("%")
    port = client.base_url.port
    body = b'{"row": [1, 2, 3, 4]}'
    for method, path, sent in (("POST", f"/v1/models/{raw}/predict", body), ("GET", f"/v1/models/{raw}", b"")):
        # On a socket: a client would tidy the path up.
        status, text = exchange(port, method, path, sent)
        assert status in (400, 403), (name, status, text)
        assert b"root:" not in text
        assert b'"error"' in text


def exchange(port: int | None, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    import socket

    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body)
        received = b""
        while part := connection.recv(65536):
            received += part
    return int(received.split()[1]), received


def test_links_that_lead_out_of_the_folder(models: Path, live: Any, tmp_path: Path, saved: Path) -> None:
    os.symlink(saved / "gp", models / "escape")
    os.symlink("ridge", models / "current")
    os.symlink("/", models / "root")
    running = live(Settings(models))
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        for name in ("escape", "root"):
            refused(client.get(f"/v1/models/{name}"), 403, "ForbiddenName", "out of the folder")
            refused(client.post(f"/v1/models/{name}/predict", json={"row": [1] * 4}), 403, "ForbiddenName")
        # A link within the folder is how an operator says which one is current.
        told = [
            client.post(f"/v1/models/{name}/predict", json={"row": [1] * 4}).json() for name in ("ridge", "current")
        ]
        assert told[0] == told[1]
        assert {model["name"] for model in client.get("/v1/models").json()["models"]} == {
            "ridge", "two", "labels", "gp", "gp-classifier", "current", "features",
        }  # fmt: skip


def test_nothing_of_the_machine_is_told(client: httpx.Client, saved: Path) -> None:
    for path in ("/v1/models", "/v1/models/ridge", "/v1/models/gp-classifier", "/metrics", "/openapi.json", "/healthz"):
        text = client.get(path).text
        assert str(saved) not in text
        assert "/tmp" not in text
        assert "site-packages" not in text


def test_every_answer_forbids_what_the_page_does_not_need(client: httpx.Client) -> None:
    for path in ("/", "/static/page.js", "/healthz", "/v1/models", "/none"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_token_files(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\nand what follows\n")
    assert read_token(file) == TOKEN
    for text in ("", "short\n", "with spaces in the token\n", "\n" + TOKEN):
        file.write_text(text)
        with pytest.raises(ParameterError, match="no token"):
            read_token(file)
    file.write_bytes(b"\xff" * 40)
    with pytest.raises(ParameterError, match="ASCII"):
        read_token(file)
    with pytest.raises(ParameterError, match="cannot be read"):
        read_token(tmp_path / "none")
    assert TOKEN not in repr(Settings(tmp_path, token=TOKEN))


def test_loopback() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.8.8.8", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "")))


def test_one_name_is_called(saved: Path, live: Any) -> None:
    running = live(Settings(saved, hosts=frozenset({"localhost"})))
    for first, second in (("localhost", "evil.example"), ("evil.example", "localhost")):
        told = running.exchange(
            f"GET /v1/models HTTP/1.1\r\nHost: {first}\r\nHost: {second}\r\nConnection: close\r\n\r\n".encode()
        )
        assert told.startswith(b"HTTP/1.1 400 ")
