"""A store on which two writers would both win is told before any work, and each place is tried once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from objects.flaky_proxy import FlakyProxy, flaky
from s3_server import S3Server

from streamkernel import ingest
from streamkernel.blobs import Lease, RecordLog, blobs_at
from streamkernel.blobs import _remote as proof
from streamkernel.errors import StoreAccessError, StoreError
from streamkernel.store import Bundle, Checkpoints, RowSink, check_target, write_bundle

X = np.ones((32, 2))


@pytest.fixture(autouse=True)
def _untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "_proved", set())


@pytest.fixture
def proxy(s3: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> FlakyProxy:
    with flaky(s3_server.endpoint) as made:
        monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
        yield made


def test_a_store_that_ignores_the_condition(s3: str, proxy: FlakyProxy) -> None:
    proxy.left_out.add("if-none-match")
    begun = {
        "ingest": lambda: ingest(X, f"{s3}/t", chunk_rows=16),
        "check": lambda: check_target(f"{s3}/m"),
        "model": lambda: write_bundle(f"{s3}/m", Bundle("kernel-ridge", 1, {}, {"w": X})),
        "rows": lambda: RowSink.create(f"{s3}/r", 32, {"p": (None, "f8")}, 16),
        "run": lambda: Checkpoints(f"{s3}/.m.run", {}),
        "lease": lambda: Lease.acquire(blobs_at(f"{s3}/l"), keep_alive=False),
        "record": lambda: RecordLog(blobs_at(f"{s3}/l"), "log").append({}, after=None),
    }
    for name, begin in begun.items():
        with pytest.raises(StoreError, match=r"^s3://b-\w+ cannot hold outputs: .* two writers would both win"):
            pytest.fail(f"{name}: {begin()}")
    # Nothing was begun, and nothing of the trials is left.
    assert blobs_at(s3).keys() == []
    assert all(path.partition("?")[0].split("/")[-2] == "PROBE" for method, path in proxy.seen if method == "PUT")


def test_a_place_is_tried_once(s3: str, proxy: FlakyProxy, tmp_path: Path) -> None:
    for name in ("a", "b/c"):
        check_target(f"{s3}/{name}")
        assert blobs_at(f"{s3}/{name}").create("key", b"1")
        assert not blobs_at(f"{s3}/{name}").create("key", b"2")
    assert sum("PROBE" in path for method, path in proxy.seen if method == "PUT") == 2
    assert blobs_at(s3).keys() == ["a/key", "b/c/key"]
    # At another endpoint it is another place.
    proxy.left_out.add("if-none-match")
    proof._proved.clear()
    with pytest.raises(StoreError, match="cannot hold outputs"):
        check_target(f"{s3}/a2")


def test_who_may_not_write_is_told_before_the_work(s3: str, proxy: FlakyProxy) -> None:
    proxy.fault = lambda method, path: "403" if method == "PUT" else None
    with pytest.raises(StoreAccessError, match="may not be used"):
        check_target(f"{s3}/m")


def test_a_driver_that_ignores_the_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    def pipe_file(self: MemoryFileSystem, path: str, value: bytes, mode: str = "overwrite", **more: object) -> None:
        with self.open(path, "wb") as handle:
            handle.write(value)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", pipe_file)
    with pytest.raises(StoreError, match="memory://place cannot hold outputs"):
        check_target("memory://place/m")
