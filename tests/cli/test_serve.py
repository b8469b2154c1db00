"""streamkernel serve: what it refuses to start with, and that it starts, answers and ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from objects.flaky_proxy import flaky
from s3_server import S3Server

from streamkernel import KernelPCA
from streamkernel.models import RidgeModel

TOKEN = "correct-horse-battery"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    return file


@contextmanager
def served(*arguments: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The URL of a service in a process of its own; its errors are looked at when it has ended."""
    command = [sys.executable, "-m", "streamkernel", "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if "--json" in arguments:
            assert json.loads(line)["workers"] == 1
        found = re.search(r"https?://\S+?:\d+", line)
        assert found, (line, process.communicate(timeout=10))
        yield found[0], process
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert "Traceback" not in out + err
    assert process.returncode == 0, err


def predicted(url: str, model: Path, **options: Any) -> tuple[int, Any]:
    body = {"row": [0.5] * 6}
    answer = httpx.post(f"{url}/v1/models/{model.name}/predict", json=body, trust_env=False, timeout=20, **options)
    return answer.status_code, answer.json().get("prediction")


def expected(model: Path) -> float:
    from streamkernel.models.few_rows import DirectPredictions

    direct = DirectPredictions(RidgeModel.load(model))
    return float(direct.of_block(direct.prepared(np.full((1, 6), 0.5)))["prediction"][0])


def test_it_serves_a_folder_and_ends_when_told(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Compilers and clients of stores have themselves taken down; that may take longer than the service has.
    (tmp_path / "sitecustomize.py").write_text("import atexit, time\natexit.register(time.sleep, 600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # Nobody drives jobs there: what is written down of them is shown all the same.
    jobs = ("--jobs", tmp_path / "jobs", "--scheduler", "tcp://127.0.0.1:1", "--data-root", tmp_path)
    with served(model.parent, "--json", "--quiet", *jobs) as (url, _):
        told = httpx.get(f"{url}/v1/jobs", trust_env=False).json()
        assert (told["jobs"], told["submits"]) == ([], True)
        told = httpx.get(f"{url}/healthz", trust_env=False).json()
        assert told == {"status": "ok", "models": 1, "failing": 0, "stale": False}
        assert predicted(url, model) == (200, expected(model))


@pytest.mark.slow
def test_it_serves_a_bucket(model: Path, s3: str, s3_server: S3Server) -> None:
    RidgeModel.load(model).save(f"{s3}/models/{model.name}")
    with flaky(s3_server.endpoint) as proxy, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        with served(f"{s3}/models", "--interval", "0.2") as (url, _):
            assert predicted(url, model) == (200, expected(model))
            assert httpx.get(f"{url}/healthz", trust_env=False).json()["status"] == "ok"
            proxy.fault = lambda method, path: "403"
            until = time.monotonic() + 20
            while not httpx.get(f"{url}/healthz", trust_env=False).json()["stale"]:
                assert time.monotonic() < until
            assert predicted(url, model) == (200, expected(model))


def test_a_place_that_fails_is_named_as_it_was_given(cli: Callable, s3: str, s3_server: S3Server) -> None:
    said = "error: there is no bucket s3://no-such-bucket-of-ours; check its name\n"
    assert cli("info", "s3://no-such-bucket-of-ours/x").err == said
    with flaky(s3_server.endpoint) as proxy, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        proxy.fault = lambda method, path: "403"
        for command in (("info",), ("plan",), ("evaluate", f"{s3}/model")):
            error = cli(*command, f"{s3}/rows.zarr").error
            location = f"{s3}/model" if command[1:] else f"{s3}/rows.zarr"
            assert error.startswith(f"error: {location} may not be used (listing "), error


def test_a_bucket_that_is_not_there_is_told_at_the_start(cli: Callable, s3: str, s3_server: S3Server) -> None:
    assert "no bucket" in cli("serve", "s3://no-such-bucket-of-ours/models").error
    with flaky(s3_server.endpoint) as proxy, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        proxy.fault = lambda method, path: "403"
        assert "may not be used" in cli("serve", f"{s3}/models").error
    # A place to be filled is fine; what is wrong with the rest is said then.
    assert (
        "--scheduler-ca"
        in cli("serve", f"{s3}/models", "--jobs", f"{s3}/jobs", "--scheduler", "tls://192.0.2.1:8786", "--quiet").error
    )
    memory = ("serve", "memory://models", "--jobs", f"{s3}/jobs", "--quiet")
    assert "root of data" in cli(*memory).error


# Four processes that each load the libraries: 13 s of CPU.
@pytest.mark.slow
def test_processes_share_the_port_and_the_counts(model: Path) -> None:
    with served(model, "--workers", 2) as (url, process):
        for _ in range(20):  # a connection each, so that both are asked
            assert predicted(url, model) == (200, expected(model))
        text = httpx.get(f"{url}/metrics", trust_env=False).text
        assert 'streamkernel_rows_predicted_total{model="model.zarr"} 20.0' in text
        # One that dies has a successor, and meanwhile the other answers.
        children = subprocess.run(
            ["pgrep", "-P", str(process.pid), "-f", "spawn_main"], capture_output=True, text=True, check=True
        ).stdout.split()
        assert len(children) == 2
        subprocess.run(["kill", "-9", children[0]], check=True)
        until = time.monotonic() + 15
        while time.monotonic() < until:
            try:
                assert predicted(url, model) == (200, expected(model))
                break
            except httpx.TransportError:
                time.sleep(0.05)


def test_tls_and_token(model: Path, certificate: tuple[Path, Path], token_file: Path) -> None:
    cert, key = certificate
    options = ("--token-file", token_file, "--tls-cert", cert, "--tls-key", key)
    with served(model, "--host", "0.0.0.0", *options) as (url, _):
        here = url.replace("0.0.0.0", "127.0.0.1")
        assert here.startswith("https://")
        context = ssl.create_default_context(cafile=cert)
        assert predicted(here, model, verify=context) == (401, None)
        headers = {"authorization": f"Bearer {TOKEN}"}
        assert predicted(here, model, verify=context, headers=headers) == (200, expected(model))
        with pytest.raises(httpx.TransportError):
            predicted(here.replace("https", "http"), model, headers=headers)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_other_addresses_want_token_and_tls(
    cli: Callable, model: Path, certificate: tuple[Path, Path], token_file: Path, host: str
) -> None:
    cert, key = certificate
    for options in ((), ("--token-file", token_file), ("--tls-cert", cert, "--tls-key", key)):
        error = cli("serve", model, "--host", host, *options).error
        assert "--token-file, --tls-cert and --tls-key, or say --insecure" in error


def test_what_cannot_be_served(cli: Callable, model: Path, tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    assert "there is no folder" in cli("serve", tmp_path / "none").error
    assert "there is no folder" in cli("serve", f"file://{tmp_path}/none").error
    for url in ("zip::models", "simplecache::s3://bucket/models"):
        assert "chain of URLs" in cli("serve", url).error
    assert "cannot be listed" in cli("serve", "https://host/models").error
    KernelPCA(2).fit(np.random.default_rng(0).standard_normal((50, 3))).save(tmp_path / "components")
    assert (
        "kernel PCA, not a model that predicts; streamkernel transform" in cli("serve", tmp_path / "components").error
    )
    assert "driver" in cli("serve", "nosuchscheme://bucket/models").error
    assert cli("serve", model, "--interval", "0").status == 2
    assert "belong together" in cli("serve", model, "--tls-cert", cert).error
    assert "cannot be used" in cli("serve", model, "--tls-cert", key, "--tls-key", key).error
    assert "cannot be used" in cli("serve", model, "--tls-cert", tmp_path / "none", "--tls-key", key).error
    assert "cannot be read" in cli("serve", model, "--token-file", tmp_path / "none").error
    (tmp_path / "empty").write_text("")
    assert "no token" in cli("serve", model, "--token-file", tmp_path / "empty").error
    assert "--max-body" in cli("serve", model, "--max-body", "much").error
    assert "cannot listen" in cli("serve", model, "--host", "192.0.2.1", "--insecure").error
    assert cli("serve", model, "--port", "70000").status == 2


def test_jobs_want_a_place_and_a_safe_way(cli: Callable, model: Path, tmp_path: Path, monkeypatch: Any) -> None:
    for what in ("CA", "CERT", "KEY"):
        monkeypatch.delenv(f"STREAMKERNEL_TLS_{what}", raising=False)
    jobs = ("serve", model.parent, "--jobs", tmp_path / "jobs")
    assert "say with --jobs" in cli("serve", model, "--scheduler", "tcp://127.0.0.1:1").error
    assert "give --scheduler" in cli(*jobs, "--data-root", tmp_path).error
    assert "not encrypted" in cli(*jobs, "--scheduler", "tcp://192.0.2.1:8786").error
    assert "--scheduler-ca" in cli(*jobs, "--scheduler", "tls://192.0.2.1:8786").error
    assert "must be an address" in cli(*jobs, "--scheduler", "local").error
    for root in (tmp_path / "none", "http://host/data", "memory://data"):
        error = cli(*jobs, "--scheduler", "tcp://127.0.0.1:1", "--data-root", root).error
        assert "root of data" in error


def test_a_port_that_is_taken(cli: Callable, model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "cannot listen" in cli("serve", model, "--port", taken.getsockname()[1]).error
