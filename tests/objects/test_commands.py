"""Every command with URLs gives what it gives with local paths: same digests, same bits."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from s3_server import S3Server

from streamkernel import KernelRidge
from streamkernel.blobs import blobs_at, joined
from streamkernel.cli import main
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.engine.cluster import local_cluster
from streamkernel.factors import Factor
from streamkernel.fits.ridge.ridge import fit_ridge
from streamkernel.models import RidgeModel
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.store import Bundle, RowSink, write_bundle
from streamkernel.table import open_table
from streamkernel.table.ingest import ingest

Run = Callable[..., dict[str, Any]]
# A rule of one look: fewer sweeps, and all that is read and written in each.
FIT = ("--basis", 30, "--rule", "uniform", "--scheduler", "threads", "--seed", 3)


def everything(run: Run, root: str, first: Path, second: Path) -> dict[str, Any]:
    """What all commands make below `root`, and say of it."""
    table, model, out, factor = (joined(root, name) for name in ("table", "model", "out", "factor"))
    found: dict[str, Any] = {"ingested": run("ingest", first, table, "--chunk-rows", 512)["fingerprint"]}
    found["planned"] = run("plan", table, *FIT)["planned_memory_bytes"]
    found["fitted"] = run("fit", table, model, "--rows", ":1200", *FIT)["digest"]
    found["told"] = run("info", model)["digest"]
    run("predict", model, table, out, "--scheduler", "threads")
    found["predicted"] = np.asarray(open_table(table, joined(out, "prediction")).read(0, 1500).Y).tobytes()
    found["fingerprint"] = open_table(table, out).targets.rows.fingerprint  # type: ignore[union-attr]
    found["scores"] = run("evaluate", model, table, "--rows", "1200:", "--scheduler", "threads")
    found["factor"] = run("factor", table, factor, *FIT)["digest"]
    G = Factor.load(factor).rows.table
    found["G"] = G.read(0, G.n_rows).X.tobytes()
    assert run("report", model, joined(root, "page.html"), "--data", table)["bytes"] > 10_000  # type: ignore[operator]
    found["appended"] = run("ingest", second, table, "--append")["fingerprint"]
    update = run("update", model, table, "--scheduler", "threads")
    found["updated"] = update["digest"], update["rows_folded"]
    assert run("update", model, table, "--scheduler", "threads")["rows_folded"] == 0
    # With rows that were appended, and fewer than a search for a metric needs.
    found["overwritten"] = run("fit", table, model, "--rows", ":1900", *FIT, "--overwrite")["digest"]
    return found


@pytest.fixture(scope="module")
def local(run: Run, sources: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same in a local folder."""
    return everything(run, str(tmp_path_factory.mktemp("local")), *sources)


@pytest.mark.parametrize("scheme", [pytest.param("s3", marks=pytest.mark.slow), "memory"])
def test_the_same_from_a_folder_and_from_urls(
    run: Run, sources: tuple[Path, Path], local: dict[str, Any], scheme: str, request: pytest.FixtureRequest
) -> None:
    url = f"{request.getfixturevalue('s3')}/a/b" if scheme == "s3" else f"memory://{uuid.uuid4().hex}/b"
    assert everything(run, url, *sources) == local
    # Nothing is left of runs that are over but who had the lease.
    keys = blobs_at(url).keys()
    left = {key.split("/")[0] for key in keys}
    assert left == {"table", "model", "out", "factor", "page.html", ".model.run", ".model.update", ".factor.run"}
    assert all("/lock/" in key for key in keys if key.startswith("."))


@pytest.mark.slow
def test_workers_read_and_write_urls(sources: tuple[Path, Path], tmp_path: Path, s3: str) -> None:
    digests, written = set(), set()
    with local_cluster(1) as cluster:
        for executor, root, out in (
            (ThreadExecutor(2), str(tmp_path), f"{s3}/there"),
            (cluster, s3, f"{s3}/here"),
            (ThreadExecutor(2), s3, str(tmp_path)),
        ):
            ingest(sources[0], f"{root}/t", chunk_rows=512, overwrite=True)
            table = open_table(f"{root}/t")
            model = fit_ridge(table, RidgeSettings(n_components=20, seed=1), Session(executor))
            model.save(f"{out}/m")
            model = RidgeModel.load(f"{out}/m")
            digests.add(model.digest)
            work = model.outputs()
            sink = RowSink.create(f"{out}/p", table.n_rows, work.columns, 512)
            Session(executor).write(work, model.prepare(table.without_targets()), sink, "predict")
            block = open_table(table, f"{out}/p").read(0, 1500)
            assert block.Y is not None
            written.add(block.Y.tobytes())
    assert (len(digests), len(written)) == (1, 1)


def test_python(url: str, sources: tuple[Path, Path]) -> None:
    with np.load(sources[0]) as arrays:
        model = KernelRidge(n_components=20, random_state=0).fit(arrays["X"], arrays["y"])
        model.save(joined(url, "m"))
        again = KernelRidge.load(joined(url, "m"))
        np.testing.assert_array_equal(again.predict(arrays["X"]), model.predict(arrays["X"]))
    with pytest.raises(FileExistsError, match="overwrite"):
        model.save(joined(url, "m"))
    model.save(joined(url, "m"), overwrite=True)


@pytest.fixture(scope="module")
def filled(s3_server: S3Server, run: Run, sources: tuple[Path, Path]) -> str:
    """A bucket with a table, a model and somebody's notes. Not to be changed."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment().items():
            patch.setenv(name, value)
        url = s3_server.bucket()
        run("ingest", sources[0], f"{url}/t")
        write_bundle(f"{url}/m", Bundle("model", 1))
        blobs_at(f"{url}/other").write("notes.txt", b"somebody's")
    return url


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("info", "{s3}/none"), "nothing at|holds no Zarr"),
        (("fit", "{s3}/none", "{s3}/new"), "holds no Zarr"),
        (("info", "s3://no-such-bucket-of-ours/t"), "no bucket"),
        (("fit", "{s3}/t", "{s3}/t", "--basis", "5"), "exists"),
        (("fit", "{s3}/t", "{s3}/t", "--basis", "5", "--overwrite"), "not a saved model"),
        (("fit", "{s3}/t", "{s3}", "--basis", "5"), "whole bucket"),
        (("ingest", "{source}", "{s3}/t"), "exists"),
        (("ingest", "{source}", "{s3}/other", "--overwrite"), "not a Zarr store"),
        (("ingest", "{source}", "{s3}/m", "--overwrite"), "m is a saved model or state, not a table"),
        (("predict", "{s3}/t", "{s3}/t", "{s3}/p"), "not a saved model|holds a"),
        (("info", "nosuchscheme://bucket/t"), "driver"),
    ],
)
def test_mistakes_are_said_in_one_line(
    s3: str, filled: str, sources: tuple[Path, Path], capsys: pytest.CaptureFixture[str], command: Any, says: str
) -> None:
    words = [word.format(s3=filled, source=sources[0]) for word in command]
    before = blobs_at(filled).keys()
    assert main(words) == 1
    message = capsys.readouterr().err.strip()
    assert message.startswith("error: ")
    assert "\n" not in message
    assert re.search(says, message), message
    assert blobs_at(filled).keys() == before
