"""What processes may hold: one number for all of them, or what each machine has."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import data_sets
import numpy as np
import pytest
from distributed import Client, LocalCluster
from problems import zarr_of_chunks

from streamkernel import KernelRidge, open_table
from streamkernel.cli import main
from streamkernel.cli.execution import ExecutionTarget
from streamkernel.engine import (
    Machine,
    MemoryLimits,
    Session,
    ThreadExecutor,
    check_memory,
    limits,
    machine_of,
    memory_limits,
    peak_memory,
    total_memory,
)
from streamkernel.engine.cluster import ClusterExecutor, _clusters, connect, local_cluster
from streamkernel.engine.peak_memory import forget_peak, peak_resident_bytes
from streamkernel.engine.plan import WORKER_BYTES, Plan
from streamkernel.errors import ClusterError, ResourceLimitError
from streamkernel.fits import fit_ridge, plan_ridge
from streamkernel.settings import RidgeSettings

DATA = data_sets.friedman(1500, 5)
TABLE = open_table(DATA.X, DATA.y)
SETTINGS = RidgeSettings(n_components=20)
LITTLE = 300_000_000


def plan_of(n: int, machine: Machine) -> Plan:
    return plan_ridge(TABLE, SETTINGS, machine, n)


def clients(workers: int, **options: Any) -> Iterator[Client]:
    """Workers that nobody ends or pauses: what loading the libraries takes depends on machines and caches.

    Where all that they are asked is what they may hold, threads of this process do: ``processes=False``.
    """
    shares = ("target", "spill", "pause", "terminate")
    with (
        dask.config.set({f"distributed.worker.memory.{share}": False for share in shares}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.ERROR,
            **options,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(workers, timeout=60)
        yield client


@pytest.fixture(scope="module")
def little() -> Iterator[Client]:
    """A worker that may hold less than an empty one is promised."""
    yield from clients(1, memory_limit=LITTLE, processes=False, protocol="tcp")


@pytest.fixture(scope="module")
def enough() -> Iterator[Client]:
    yield from clients(2, memory_limit=900_000_000)


class TestArithmetic:
    PLAN = plan_of(20, Machine(3, 1))

    @pytest.mark.parametrize(
        ("which", "planned", "said"),
        [
            ("total", PLAN.memory_bytes, r"projected memory \(.*: driver .* \+ 3 x worker .*\)"),
            ("worker", PLAN.worker_bytes, r"projected memory of each worker \(.*\)"),
            ("driver", PLAN.driver_bytes, r"projected memory of the driver \(.*\)"),
        ],
    )
    def test_each_limit_is_held_against_its_own_share(self, which: str, planned: int, said: str) -> None:
        assert MemoryLimits(**{which: planned}).exceeded(self.PLAN) is None
        exceeded = MemoryLimits(**{which: planned - 1}).exceeded(self.PLAN)
        assert exceeded is not None
        assert len(re.findall(said + r" exceeds allowed memory \(", exceeded)) == 1

    def test_the_remedy_fits_the_limit_that_was_exceeded(self) -> None:
        machine = Machine(3, 1)
        limit = plan_of(300, machine).worker_bytes
        with pytest.raises(ResourceLimitError, match=r"of each worker .* n_components=\d+ would fit") as caught:
            check_memory(plan_of(1500, machine), MemoryLimits(worker=limit), lambda n: plan_of(n, machine), 1500)
        size = int(str(caught.value).rpartition("n_components=")[2].split()[0])
        assert 250 <= size <= 310
        assert plan_of(size, machine).worker_bytes <= limit


def test_threads_and_local_workers_share_this_machine() -> None:
    assert memory_limits(ThreadExecutor(1), None) == MemoryLimits(total=total_memory())
    assert memory_limits(ThreadExecutor(1), 5) == MemoryLimits(total=5)
    with local_cluster(1, memory_limit=800_000_000) as executor:
        assert machine_of(executor) == ExecutionTarget("local", 1).machine(), "`plan` says what `fit` will say"
        assert memory_limits(executor, None) == MemoryLimits(total=total_memory(), worker=800_000_000)


def test_remote_workers_have_their_own_limits(enough: Client) -> None:
    executor = ClusterExecutor(enough)
    assert machine_of(executor) == Machine(2, 1, worker_base=WORKER_BYTES)
    assert memory_limits(executor, None) == MemoryLimits(driver=total_memory(), worker=900_000_000)
    assert memory_limits(executor, 5) == MemoryLimits(total=5, worker=900_000_000)


def test_workers_need_not_fit_into_the_drivers_machine(enough: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = ClusterExecutor(enough)
    plan = plan_of(20, Machine(2, 1))
    monkeypatch.setattr(limits, "total_memory", lambda: plan.driver_bytes + WORKER_BYTES // 2)
    model = fit_ridge(TABLE, SETTINGS, Session(executor))
    assert model.config["run"]["planned_memory_bytes"] == plan.memory_bytes
    monkeypatch.setattr(limits, "total_memory", lambda: plan.driver_bytes - 1)
    with pytest.raises(ResourceLimitError, match="of the driver"):
        fit_ridge(TABLE, SETTINGS, Session(executor))


@pytest.mark.parametrize("asked", [None, "100GB"])
def test_a_worker_that_could_not_hold_its_share(little: Client, asked: str | None) -> None:
    """Also with a limit for all: beyond its own Dask ends a worker."""
    said = r"projected memory of each worker \(4\d\d MB\) exceeds allowed memory \(300 MB\); no basis fits: use fewer"
    with pytest.raises(ResourceLimitError, match=said):
        KernelRidge(20, client=little, memory_limit=asked).fit(DATA.X, DATA.y)


def test_a_worker_that_could_not_even_load_the_libraries() -> None:
    for client in clients(1, memory_limit=150_000_000, processes=False, protocol="tcp"):
        said = r"may hold 150 MB, less than the libraries take"
        with pytest.raises(ResourceLimitError, match=said), connect(client.scheduler.address):
            pass


class TestCommands:
    @pytest.fixture
    def store(self, tmp_path: Path) -> str:
        return zarr_of_chunks(tmp_path / "rows.zarr", DATA.X, DATA.y, 500)

    def run(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([*map(str, arguments), "--json", "--quiet"])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    def test_the_default_is_what_the_workers_have(
        self, little: Client, enough: Client, store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        few, many = (("--scheduler", client.scheduler.address) for client in (little, enough))
        model = tmp_path / "model"
        status, _, error = self.run(capsys, "fit", store, model, "--basis", 20, *few)
        assert status == 1
        assert "of each worker" in error
        assert "exceeds allowed memory (300 MB)" in error
        assert [path.name for path in tmp_path.iterdir()] == ["rows.zarr"]
        status, out, error = self.run(capsys, "fit", store, model, "--basis", 20, *many)
        assert status == 0, error
        assert json.loads(out)["planned_memory_bytes"] > 2 * WORKER_BYTES
        assert self.run(capsys, "evaluate", model, store, *many)[0] == 0
        for command in (("evaluate", model, store), ("predict", model, store, tmp_path / "out")):
            status, _, error = self.run(capsys, *command, *few)
            assert status == 1
            assert "exceeds allowed memory (300 MB)" in error
        assert not (tmp_path / "out").exists()

    def test_a_plan_says_the_limit_where_it_is_known(self, store: str, capsys: pytest.CaptureFixture[str]) -> None:
        _, out, _ = self.run(capsys, "plan", store, "--scheduler", "threads")
        assert json.loads(out)["memory_limit_bytes"] == total_memory()
        _, out, _ = self.run(capsys, "plan", store, "--scheduler", "tcp://127.0.0.1:1")
        assert json.loads(out)["memory_limit_bytes"] is None
        assert main(["plan", store, "--scheduler", "tcp://127.0.0.1:1"]) == 0
        status, _, error = self.run(capsys, "plan", store, "--scheduler", "tcp://127.0.0.1:1", "--memory", "100MB")
        assert status == 1
        assert "exceeds allowed memory (100 MB)" in error


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="VmHWM is Linux's")
def test_a_peak_is_not_that_of_the_process_that_started_it() -> None:
    """ru_maxrss outlives fork and exec; what the parent held is none of the worker's."""
    program = f"import runpy; print(runpy.run_path({peak_memory.__file__!r})['peak_resident_bytes']())"
    held = np.ones(60_000_000)
    mine = peak_resident_bytes()
    assert mine >= held.nbytes
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, close_fds=False)
    assert 5_000_000 < int(child.stdout) < held.nbytes


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="clear_refs is Linux's")
def test_a_peak_is_not_that_of_an_earlier_fit() -> None:
    """A worker outlives fits, and tells the peak of each."""
    forget_peak()
    np.ones(30_000_000).sum()
    peak = peak_resident_bytes()
    forget_peak()
    assert peak_resident_bytes() < peak - 150_000_000


def test_local_workers_that_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: Any, **__: Any) -> None:
        raise TimeoutError("Only 0/1 workers arrived\nafter 120")

    monkeypatch.setattr(LocalCluster, "scale", lambda *_: None)
    monkeypatch.setattr(_clusters, "_PATIENCE", 0.2)
    monkeypatch.setattr(Client, "wait_for_workers", late)
    said = r"1 workers of the local cluster did not start \(TimeoutError: Only 0/1 workers arrived after 120\); use"
    with pytest.raises(ClusterError, match=said), local_cluster(1):
        pass


def test_local_workers_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not waited for."""
    broken = {**_clusters.DASK_CONFIG, "distributed.nanny.pre-spawn-environ.PYTHONHOME": "/nowhere"}
    monkeypatch.setattr(_clusters, "DASK_CONFIG", broken)
    # Dask sets it here while it starts a process, and leaves it where that fails: it is unset when the test ends.
    monkeypatch.setenv("PYTHONHOME", "")
    monkeypatch.delenv("PYTHONHOME")
    with pytest.raises(ClusterError, match="a worker process ended before it was ready"), local_cluster(1):
        pass
