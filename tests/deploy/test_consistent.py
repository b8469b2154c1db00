"""The files of deploy/ agree with the package and with each other."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import _check_deploy
import pytest
import yaml
from clusters import ROOT

from streamkernel.engine.cluster import DASK_CONFIG

DEPLOY = ROOT / "deploy"


def leaves(tree: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(value, dict):
            yield from leaves(value, path)
        else:
            yield path, value


def test_dask_is_told_what_a_client_sets_for_itself() -> None:
    told = dict(leaves(yaml.safe_load((DEPLOY / "dask.yaml").read_text())))
    modules = [name for path in ("scheduler", "worker") for name in told.pop(f"distributed.{path}.preload")]
    assert modules
    assert all(map(importlib.util.find_spec, modules))
    assert told == DASK_CONFIG


def test_images_are_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    named = [
        (path.name, found)
        for path in _check_deploy.sources(DEPLOY)
        for found in re.findall(r"(?<![\w/])streamkernel:(\d[\w.]*)", path.read_text())
    ]
    assert len(named) >= 8
    assert {found for _, found in named} == {version}


def test_ports_that_are_watched_are_those_that_listen() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name in ("scheduler", "worker"):
        port = next(word.rpartition(":")[2] for word in services[name]["command"] if "--dashboard-address" in word)
        assert services[name]["environment"]["STREAMKERNEL_HEALTH"] == f"http://127.0.0.1:{port}/health"


def test_every_key_is_a_secret_of_its_own_role() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name, service in services.items():
        keys = {secret for secret in service.get("secrets", []) if secret.endswith("-key")}
        # The service is a client of the scheduler, too.
        assert keys <= {f"{name}-key"} | ({"client-key"} if name == "service" else set()), name
        mounted = {word.rpartition("/")[2] for word in service.get("command", []) if "/run/secrets/" in str(word)}
        assert mounted <= set(service.get("secrets", [])), name


@pytest.mark.parametrize("answer", [200, 503, None])
def test_health(answer: int | None) -> None:
    import http.server
    import threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(answer or 0)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_port}/health"
        if answer is None:
            server.server_close()
        else:
            threading.Thread(target=server.handle_request, daemon=True).start()
        call = [sys.executable, str(DEPLOY / "health.py"), url]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if answer == 200 else 1)
    assert "Traceback" not in done.stderr
