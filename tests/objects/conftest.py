"""A small table, and places for what is made of it: a local folder, a bucket, a URL of fsspec's."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from objects.flaky_proxy import FlakyProxy, flaky
from s3_server import S3Server

from streamkernel.cli import main

M, P = 1500, 4


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two sources with the same columns."""
    folder = tmp_path_factory.mktemp("sources")
    rng = np.random.default_rng(7)
    made = []
    for name, rows in (("first", M), ("second", 700)):
        X = rng.normal(size=(rows, P))
        np.savez(folder / f"{name}.npz", X=X, y=np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=rows))
        made.append(folder / f"{name}.npz")
    return made[0], made[1]


@pytest.fixture(params=["s3", pytest.param("memory", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest) -> str:
    """A new place, in a bucket or in fsspec's memory."""
    if request.param == "s3":
        return f"{request.getfixturevalue('s3')}/some/where"
    return f"memory://{uuid.uuid4().hex}/where"


@pytest.fixture
def proxy(s3: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlakyProxy]:
    """A proxy before the server, which the environment names."""
    with flaky(s3_server.endpoint) as made:
        monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
        yield made


@pytest.fixture(scope="session")
def run() -> Callable[..., dict[str, object]]:
    """The command line in this process: its JSON."""

    def call(*arguments: object) -> dict[str, object]:
        printed, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(printed), redirect_stderr(errors):
            status = main([*map(str, arguments), "--json", "--quiet"])
        assert status == 0, errors.getvalue()
        found: dict[str, object] = json.loads(printed.getvalue())
        return found

    return call
