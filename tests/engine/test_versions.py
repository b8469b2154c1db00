"""A cluster of other versions is refused in one line, by whatever goes to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import data_sets
import pytest
from clusters import Cluster
from distributed import Client
from distributed.protocol.pickle import dumps
from problems import zarr_of_chunks
from thread_clients import thread_client

import streamkernel
from streamkernel import KernelRidge, open_table
from streamkernel.cli import main
from streamkernel.engine import Session
from streamkernel.engine.cluster import ClusterExecutor, connect
from streamkernel.engine.cluster.versions import _asked, check_versions, source_digest
from streamkernel.engine.progress import Silent
from streamkernel.errors import ClusterError
from streamkernel.fits import fit_ridge
from streamkernel.settings import RidgeSettings

pytestmark = pytest.mark.filterwarnings("ignore::distributed.versions.VersionMismatchWarning")

SAME = {
    "python": "3.11.7.final.0",
    "dask": "2026.8.0",
    "distributed": "2026.8.0",
    "numpy": "2.3.0",
    "scipy": "1.16.0",
    "numba": "0.62.0",
    "streamkernel": "0.1.0",
}

NUMBERS = ("numpy", "scipy", "numba")  # which a scheduler need not have


class Told:
    """A client that was told so."""

    def __init__(self) -> None:
        self.client, self.scheduler = {"packages": dict(SAME)}, {"packages": dict(SAME)}
        self.workers = {name: {"packages": dict(SAME)} for name in ("tls://b:1", "tls://a:1")}
        self.sources: dict[str, object] = {}  # of processes with another build

    def get_versions(self, packages: list[str]) -> dict[str, Any]:
        assert set(packages) == {"streamkernel", "numpy", "scipy", "numba"}
        return deepcopy({"client": self.client, "scheduler": self.scheduler, "workers": self.workers})

    def run_on_scheduler(self, function: Callable[[], str | None]) -> object:
        return self.sources.get("scheduler", function())

    def run(self, function: Callable[[], str | None], on_error: str) -> dict[str, object]:
        assert on_error == "return"
        return {name: self.sources.get(name, function()) for name in self.workers}


def check(told: Told) -> None:
    check_versions(told)  # type: ignore[arg-type]  # all that is asked of a client


@pytest.mark.parametrize("name", SAME)
def test_what_a_worker_has(name: str) -> None:
    told = Told()
    check(told)
    told.workers["tls://a:1"]["packages"][name] = "3.10.2" if name == "python" else "0.0.9"
    with pytest.raises(
        ClusterError, match=rf"^the worker tls://a:1 has other versions: {name} \S+ here and \S+ there; "
    ):
        check(told)
    told.workers["tls://b:1"]["packages"].pop(name)
    with pytest.raises(ClusterError, match=r"a:1 \(and 1 more of its processes\)"):
        check(told)


@pytest.mark.parametrize("name", [name for name in SAME if name not in NUMBERS])
def test_what_a_scheduler_has(name: str) -> None:
    told = Told()
    for each in NUMBERS:
        told.scheduler["packages"].pop(each)
    told.workers = {}
    check(told)
    told.scheduler["packages"].pop(name)
    with pytest.raises(ClusterError, match=rf"^the scheduler has other versions: {name} \S+ here and none there; "):
        check(told)


def test_a_patch_of_python_is_the_same() -> None:
    told = Told()
    told.scheduler["packages"]["python"] = "3.11.9.final.0"
    check(told)


@pytest.mark.parametrize("found", ["9f" * 32, None, AttributeError("a module of another build")], ids=str)
def test_another_build_of_the_same_version(found: object) -> None:
    told, mine = Told(), source_digest()[:12]
    there = "9f9f9f9f9f9f" if isinstance(found, str) else "that of an earlier release"
    words = f"has another build of streamkernel 0.1.0: the digest of its source is {mine} here and {there} there; "
    told.sources["tls://b:1"] = found
    with pytest.raises(ClusterError, match=f"^the worker tls://b:1 {words}"):
        check(told)
    told.sources["scheduler"] = found
    with pytest.raises(ClusterError, match=rf"^the scheduler \(and 1 more of its processes\) {words}"):
        check(told)


def test_a_worker_that_is_gone_is_not_asked() -> None:
    told = Told()
    told.sources["tls://b:1"] = OSError("the connection is closed")
    check(told)


@pytest.mark.parametrize("build", ["edited", "without it"])
def test_a_process_with_another_build_answers(build: str, tmp_path: Path) -> None:
    """The question is pickled by value: another build can read it, and answers with its digest or with None."""
    package = Path(streamkernel.__file__).parent
    if build == "edited":
        shutil.copytree(package, tmp_path / "streamkernel", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("streamkernel", "streamkernel/engine"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "__init__.py").write_text("")
    (tmp_path / "asked").write_bytes(dumps(_asked()))
    read = "import pickle, pathlib; print(pickle.loads(pathlib.Path('asked').read_bytes())())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", read], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert (said == "None") if build == "without it" else (len(said) == 64 and said != source_digest())


def test_a_worker_that_joins_in_mid_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked before the sums are used to which it may have added; those that were asked are not asked again."""
    data = data_sets.friedman(400, 5)
    real, asked = Client.get_versions, []

    def late(client: Client, **options: Any) -> Any:
        found = real(client, **options)
        asked.append(sorted(found["workers"]))
        for name in asked[-1][2:]:
            found["workers"][name]["packages"]["numba"] = "0.0.9"
        return found

    monkeypatch.setattr(Client, "get_versions", late)
    with thread_client() as client:

        class Joins(Silent):
            sweeps = 0

            def advance(self, rows: int) -> None:
                self.sweeps += 1
                if self.sweeps == 2:
                    client.cluster.scale(3)
                    client.wait_for_workers(3, timeout=30)

        session = Session(ClusterExecutor(client), progress=Joins())
        with pytest.raises(ClusterError, match=r"the worker \S+ has other versions: numba \S+ here and 0\.0\.9 there"):
            fit_ridge(open_table(data.X, data.y), RidgeSettings(n_components=20), session)
        assert [len(each) for each in asked] == [2, 3]
        assert len(session.records) == 1, "the sums of the second sweep were used"


def test_a_real_cluster(dask_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    data = data_sets.friedman(200, 5)
    rows, address = zarr_of_chunks(tmp_path / "rows.zarr", data.X, data.y, 100), dask_cluster.address
    with connect(address), streamkernel.connect(address):
        pass
    real, mine = Client.get_versions, ["9.9"]

    def other(client: Client, **options: Any) -> Any:
        found: Any = real(client, **options)
        assert found["client"]["packages"]["streamkernel"] == "0.1.0"
        return {**found, "client": {"packages": {**found["client"]["packages"], "streamkernel": mine[0]}}}

    monkeypatch.setattr(Client, "get_versions", other)
    match = "the scheduler .*other versions: streamkernel 9.9 here and 0.1.0 there"
    with Client(address, set_as_default=False) as client:
        fits: list[Callable[[], object]] = [
            lambda: connect(address).__enter__(),
            lambda: streamkernel.connect(address),
            lambda: KernelRidge(10, client=client).fit(rows),
        ]
        for fit in fits:
            with pytest.raises(ClusterError, match=match):
                fit()
    for command in (["fit", rows, "m"], ["submit", rows, "m"]):
        refused(capsys, *command, "--scheduler", address)
        assert not (tmp_path / ".jobs").exists()


@pytest.mark.slow
def test_other_commands(dask_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    data = data_sets.friedman(200, 5)
    rows, model = zarr_of_chunks(tmp_path / "rows.zarr", data.X, data.y, 100), str(tmp_path / "model")
    assert main(["fit", rows, model, "--basis", "10", "--rows", "0:100", "--scheduler", "threads"]) == 0
    real = Client.get_versions

    def other(client: Client, **options: Any) -> Any:
        found: Any = real(client, **options)
        return {**found, "client": {"packages": {**found["client"]["packages"], "streamkernel": "9.9"}}}

    monkeypatch.setattr(Client, "get_versions", other)
    at = ["--scheduler", dask_cluster.address]
    refused(capsys, "evaluate", model, rows, *at)
    refused(capsys, "follow", rows, model, "--once", "--patience", "0", *at)


def refused(capsys: Any, *command: str) -> None:
    capsys.readouterr()
    assert main(list(command)) == 1
    said = capsys.readouterr().err.splitlines()
    assert "other versions: streamkernel 9.9 here" in said[-1]
    assert said[-1].startswith("error: ")
