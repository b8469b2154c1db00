"""An object store that stumbles is asked again, with equal results; one that is down or refuses is said to be so."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from objects.flaky_proxy import FlakyProxy, every
from s3_server import S3Server

from streamkernel import KernelRidge
from streamkernel.blobs import blobs_at
from streamkernel.blobs import retries as patience
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import StoreAccessError, StoreError, StoreNotFoundError
from streamkernel.fits.ridge.ridge import fit_ridge
from streamkernel.models import RidgeModel
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.store import Bundle, Checkpoints, RowSink, read_bundle, write_bundle
from streamkernel.table import open_table
from streamkernel.table.ingest import append_rows, ingest

BUNDLE = Bundle("model", 1, {"a": 1}, {"v": np.arange(5.0)})


def chunks(method: str, path: str) -> bool:
    """Reading of chunks."""
    return method == "GET" and "/c/" in path


def fitted(table: str, model: str) -> str:
    """Digest of a fit from a table, saved, read back, with its checkpoints beside it."""
    with Checkpoints(f"{model}.run", {"fit": 1}, fresh=True) as checkpoints:
        session = Session(ThreadExecutor(2), checkpoints=checkpoints)
        fit_ridge(open_table(table), RidgeSettings(n_components=20, seed=1), session).save(model, overwrite=True)
        checkpoints.discard()
    return RidgeModel.load(model).digest


def sink_rows(out: str) -> bytes:
    """Values that were written below `out`, as they are read back."""
    values = np.arange(300.0).reshape(100, 3)
    with RowSink.create(out, 100, {"v": (3, "f8")}, 32, overwrite=True, fingerprint="x") as sink:
        sink.finish(sink.write("v", 0, values))
    return open_table(out).read(0, 100).X.tobytes()


def everything(root: str, sources: tuple[Path, Path]) -> list[object]:
    """What is made below `root`."""
    made: list[object] = [ingest(sources[0], f"{root}/t", chunk_rows=512).fingerprint]
    made += [fitted(f"{root}/t", f"{root}/m"), sink_rows(f"{root}/out")]
    return [*made, append_rows(sources[1], f"{root}/t").fingerprint]


@pytest.fixture(scope="module")
def undisturbed(sources: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """The same on a disk."""
    return everything(str(tmp_path_factory.mktemp("local")), sources)


@pytest.mark.parametrize(
    "fault", ["503", *(pytest.param(fault, marks=pytest.mark.slow) for fault in ("reset", "truncated", "slow"))]
)
def test_what_passes_is_tried_again(
    proxy: FlakyProxy,
    s3: str,
    sources: tuple[Path, Path],
    undisturbed: list[object],
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy.delay = 0.05
    monkeypatch.setattr(patience, "PAUSES", (0.01,) * 5)
    # Only answers have bodies that can be torn.
    proxy.fault = every(8, fault, lambda method, path: fault != "truncated" or method == "GET")
    assert everything(s3, sources) == undisturbed
    assert proxy.faults > 10


USES: dict[str, Callable[[str, Path], object]] = {
    "open a table": lambda root, source: open_table(f"{root}/t"),
    "read a table": lambda root, source: open_table(f"{root}/t").read(0, 1500),
    "ingest": lambda root, source: ingest(source, f"{root}/new"),
    "append": lambda root, source: append_rows(source, f"{root}/t"),
    "load a model": lambda root, source: read_bundle(f"{root}/m", "model"),
    "load an estimator": lambda root, source: KernelRidge.load(f"{root}/m"),
    "save a model": lambda root, source: write_bundle(f"{root}/m2", BUNDLE),
    "write rows": lambda root, source: RowSink.create(f"{root}/o", 9, {"v": (None, "f8")}, 3, fingerprint="x"),
    "checkpoints": lambda root, source: Checkpoints(f"{root}/.run", {}),
}


@pytest.fixture(scope="module")
def bucket(s3_server: S3Server, sources: tuple[Path, Path]) -> str:
    """A bucket with a table and a model, which none of these tests changes."""
    made = s3_server.bucket()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment().items():
            patch.setenv(name, value)
        ingest(sources[0], f"{made}/t", chunk_rows=512)
        write_bundle(f"{made}/m", BUNDLE)
    return made


@pytest.fixture
def filled(bucket: str, s3: str) -> str:
    """The same, with what the environment needs."""
    return bucket


@pytest.mark.timeout(30)
@pytest.mark.parametrize("use", USES)
def test_an_endpoint_that_is_down(
    filled: str, sources: tuple[Path, Path], use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How long users wait is for `test_storms.py` to say.
    monkeypatch.setattr(patience, "PAUSES", (0.1,))
    # Bound and not listening: nobody else gets the port meanwhile, and whoever calls is refused.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(StoreError, match="check the endpoint") as caught:
            USES[use](filled, sources[0])
    assert type(caught.value) is StoreError
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("use", USES)
def test_a_refusal(proxy: FlakyProxy, filled: str, sources: tuple[Path, Path], use: str) -> None:
    proxy.fault = lambda method, path: "403"
    with pytest.raises(StoreAccessError, match="credentials"):
        USES[use](filled, sources[0])
    assert proxy.faults <= 3, "a refusal is not asked for again"


@pytest.mark.parametrize("use", [use for use in USES if not use.endswith("estimator")])
def test_a_bucket_that_is_not_there(s3: str, sources: tuple[Path, Path], use: str) -> None:
    with pytest.raises(StoreNotFoundError, match=r"no bucket"):
        USES[use](f"{s3}-with-a-slip/x", sources[0])


def test_writes_that_are_refused_leave_what_was_there(
    proxy: FlakyProxy, filled: str, sources: tuple[Path, Path]
) -> None:
    before = open_table(f"{filled}/t").fingerprint
    for refused in ("/c/", "CURRENT/"):
        proxy.fault = lambda method, path, part=refused: "403" if method == "PUT" and part in path else None  # type: ignore[misc]
        for use in (
            lambda: ingest(sources[1], f"{filled}/t", overwrite=True),
            lambda: append_rows(sources[1], f"{filled}/t"),
            lambda: write_bundle(f"{filled}/m", Bundle("model", 1, {"a": 2}, BUNDLE.arrays), overwrite=True),
        ):
            with pytest.raises(StoreAccessError):
                use()
        proxy.fault = lambda method, path: None
        assert open_table(f"{filled}/t").fingerprint == before
        assert read_bundle(f"{filled}/m", "model").config == {"a": 1}
        # Nothing is left behind but the generations that are current.
        keys = blobs_at(filled).keys()
        assert len({key.split("/")[2] for key in keys if "/generations/" in key}) == 2


@pytest.mark.timeout(60)
@pytest.mark.parametrize("fault", ["503", "reset", pytest.param("truncated", marks=pytest.mark.slow)])
def test_chunks_that_cannot_be_read_are_never_fill(
    proxy: FlakyProxy, filled: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PAUSES", (0.1,))
    table = open_table(f"{filled}/t")
    proxy.fault = every(1, fault, chunks)
    with pytest.raises(StoreError, match="failed while reading"):
        table.read(0, 500)


@pytest.mark.slow
@pytest.mark.timeout(45)
@pytest.mark.parametrize("use", ["open a table", "read a table", "load a model", "save a model", "ingest"])
def test_an_endpoint_that_never_answers(proxy: FlakyProxy, filled: str, sources: tuple[Path, Path], use: str) -> None:
    proxy.fault = lambda method, path: "silent"
    with pytest.raises(StoreError, match="check the endpoint"):
        USES[use](filled, sources[0])
