"""Reading from a plain HTTP server, which cannot list and knows no parts of a file."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
import zarr
from zarr.codecs import Crc32cCodec

from streamkernel.blobs import blobs_at
from streamkernel.errors import StoreError
from streamkernel.table import open_table

pytest.importorskip("aiohttp")


class Quiet(SimpleHTTPRequestHandler):
    """Python's own server: it answers a request for a part with the whole file."""

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def served_by(handler: Callable[..., Any]) -> Iterator[str]:
    """The URL of a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The URL of `tmp_path`."""
    with served_by(partial(Quiet, directory=str(tmp_path))) as url:
        yield url


def test_parts_of_a_value(served: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    place = blobs_at(served)
    assert place.read("a") == b"0123456789"
    assert place.read("a", 2, 5) == b"234"
    assert place.read("a", 0, 4) == b"0123"
    assert place.read("a", -3) == b"789"
    assert place.read("a", -30) == place.read("a", 0, 30) == b"0123456789"
    assert place.read("none", 2, 5) is None


def test_a_table_in_shards(served: str, tmp_path: Path) -> None:
    """zarr reads the index at the end of a shard, and then single chunks from its middle."""
    X = np.random.default_rng(0).normal(size=(47, 3))
    array = zarr.create_array(
        tmp_path / "X", shape=X.shape, dtype="f8", chunks=(5, 3), shards=(10, 3), compressors=[Crc32cCodec()]
    )
    array[:] = X
    table = open_table(f"{served}/X")
    np.testing.assert_array_equal(np.concatenate([table.read(at, min(at + 7, 47)).X for at in range(0, 47, 7)]), X)


@pytest.mark.parametrize("key", ["a", "folder/a"])
def test_a_server_that_never_answers_is_given_up(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections: each try ends when nothing has come for so long, and not after five minutes."""
    monkeypatch.setattr("streamkernel.blobs._filesystem.REQUEST_SECONDS", 0.2)
    monkeypatch.setattr("streamkernel.blobs.retries.PAUSES", (0.01,))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = blobs_at(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(StoreError, match=r"failed while reading .*a \(no answer in time\); check the endpoint"):
            place.read(key)


def test_a_slow_answer_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than the limit in all, and never pauses for as long."""
    monkeypatch.setattr("streamkernel.blobs._filesystem.REQUEST_SECONDS", 0.5)

    class Slow(Quiet):
        def copyfile(self, source: BinaryIO, outputfile: BinaryIO) -> None:
            for byte in iter(lambda: source.read(1), b""):
                time.sleep(0.1)
                outputfile.write(byte)

    (tmp_path / "a").write_bytes(b"0123456789")
    with served_by(partial(Slow, directory=str(tmp_path))) as url:
        assert blobs_at(url).read("a") == b"0123456789"
