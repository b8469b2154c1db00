"""A bucket whose server stumbles: errors that pass are tried again; those that stay are errors, and never fill."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from objects.flaky_proxy import FlakyProxy, every, flaky
from runs import fit
from s3_server import S3Server

from streamkernel.blobs import blobs_at, retries
from streamkernel.errors import StoreAccessError, StoreError


@pytest.fixture
def proxy(s3: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlakyProxy]:
    with flaky(s3_server.endpoint) as made:
        monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
        yield made


@pytest.fixture
def rows(store: str, s3: str, proxy: FlakyProxy) -> str:
    """The table in a bucket behind the proxy."""
    for path in sorted(Path(store).rglob("*")):
        if path.is_file():
            blobs_at(f"{s3}/rows.zarr").write(str(path.relative_to(store)), path.read_bytes())
    return f"{s3}/rows.zarr"


def chunks(method: str, path: str) -> bool:
    return method == "GET" and "/c/" in path


@pytest.mark.slow
@pytest.mark.fault("transient")
@pytest.mark.parametrize("fault", ["reset", "503", "truncated"])
def test_what_passes(proxy: FlakyProxy, rows: str, whole: Any, figure: Any, fault: str) -> None:
    proxy.fault = every(19, fault, chunks)
    assert fit(rows).digest == whole.digest
    assert proxy.faults >= 10
    figure(f"{fault}: equal, {proxy.faults} errors")


@pytest.mark.fault("permanent")
@pytest.mark.parametrize(("fault", "kind"), [("503", StoreError), ("403", StoreAccessError)])
def test_what_stays(
    proxy: FlakyProxy, rows: str, figure: Any, fault: str, kind: type[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The pauses are left out, and counted in the end.
    pauses = 1.2 * sum(retries.PAUSES)
    monkeypatch.setattr(retries, "PAUSES", (0.01,) * len(retries.PAUSES))
    # One chunk of forty.
    proxy.fault = every(1, fault, lambda method, path: method == "GET" and "/X/c/11/" in path)
    began = time.monotonic()
    with pytest.raises(kind) as caught:
        fit(rows)
    seconds = time.monotonic() - began + (pauses if fault == "503" else 0.0)
    assert "X/c/11/0" in str(caught.value)
    assert seconds <= 30.0
    figure(f"{fault}: {kind.__name__} in {seconds:.1f} s")
