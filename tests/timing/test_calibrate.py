"""Rates that are measured: each of them, on threads and on workers, from a table that is given and from our own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thread_clients import thread_client

from streamkernel import ingest, open_table
from streamkernel.engine import ThreadExecutor
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.errors import StoreNotFoundError
from streamkernel.timing import _measure as measure
from streamkernel.timing import calibrate as calibration
from streamkernel.timing import read_rates, write_rates
from streamkernel.timing.calibrate import calibrate


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes for a test: whether it runs, not what it finds."""
    for name, value in {
        "FAMILIES": ("gaussian", "linear"),
        "_POINTS": 20,
        "_ROWS": 64,
        "_COLUMNS": (10, 20),
        "_SINGLE_COLUMNS": (5, 15),
    }.items():
        monkeypatch.setattr(measure, name, value)
    for name, value in {"_STATE": 1000, "_ALGEBRA": 20, "_REPETITIONS": 1}.items():
        monkeypatch.setattr(measure, name, value)
    for name, value in {
        "_ROWS": 2000,
        "_CHUNK": 500,
        "_LEAVES": 8,
        "_SENT": 1000,
        "_PROBE": 0.01,
        "_READ": 0.01,
    }.items():
        monkeypatch.setattr(calibration, name, value)


@pytest.fixture
def store(tmp_path: Path) -> str:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).standard_normal((3000, 4)))
    ingest(tmp_path / "rows.npy", tmp_path / "rows.zarr", target=3, chunk_rows=500)
    return str(tmp_path / "rows.zarr")


@pytest.fixture
def workers() -> Iterator[ClusterExecutor]:
    with thread_client() as client:
        yield ClusterExecutor(client, remote=False)


def test_threads(tmp_path: Path, store: str) -> None:
    lines: list[str] = []
    for given in (None, store):
        rates = calibrate(ThreadExecutor(2), given, lines.append)
        assert read_rates(write_rates(rates, tmp_path / "rates.json")) == rates
        assert rates.measured is not None
        assert {rate.family for rate in rates.kernels} == {"gaussian", "linear"}
        assert rates.task_seconds == 0.0  # no scheduler
        assert rates.busy >= 1.0
        assert [(rate.columns, rate.dtype) for rate in rates.single_sums] == [(5, "float32"), (15, "float32")]
        assert rates.check_seconds > 0.0
    assert "reading" in lines


def test_workers(store: str, workers: ClusterExecutor) -> None:
    rates = calibrate(workers, store)
    assert rates.task_seconds > 0.0
    assert rates.sweep_seconds > rates.thread_sweep_seconds
    assert rates.network_bytes > 0.0


def test_what_is_read_is_counted(store: str) -> None:
    count, wall, cpu = measure.read_rate(open_table(store), 0.0)
    assert count == 500 * (3 * 4 + 8)  # one chunk
    assert wall > 0.0
    assert cpu >= 0.0
    # After the last chunk the first one comes.
    assert measure.read_rate(open_table(store), 0.0, first=6)[0] == count


class Readers:
    """Stands for threads that read a storage of this many bytes a second, with 100 bytes a second for each."""

    size = 2

    def __init__(self, limit: float, cpu: float) -> None:
        self.limit, self.cpu = limit, cpu

    def one(self, function: Any, *arguments: Any) -> Any:
        return 100, 1.0, self.cpu

    def all(self, calls: list[Any]) -> list[Any]:
        count = min(100.0, self.limit / len(calls))
        return [(count, 1.0, self.cpu * count / 100.0)] * len(calls)


def test_the_limit_of_a_storage_is_what_readers_get_together(store: str) -> None:
    def found(limit: float, cpu: float) -> float | None:
        readers: Any = Readers(limit, cpu)
        value: float | None = calibration._reading(readers, open_table(store), 2)["storage_bytes"]
        return value

    assert found(120.0, 0.1) == pytest.approx(120.0)
    assert found(1e9, 0.1) is None  # two readers get twice as much
    assert found(120.0, 2.0) is None  # the cores are the limit


def test_no_more_workers_than_cores_are_measured_together(
    workers: ClusterExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share the cores in the plan: a core's rate must not have that in it already."""
    asked: list[int] = []
    every = calibration._Workers.all

    def noted(self: Any, calls: list[Any]) -> list[Any]:
        asked.append(len(calls))
        return every(self, calls)

    monkeypatch.setattr(calibration._Workers, "all", noted)
    monkeypatch.setattr(measure, "available_cpus", lambda: 1)
    assert calibrate(workers).cores == 1
    assert asked == [1]
    # Workers elsewhere have cores that nobody knows here.
    workers.remote = True
    calibrate(workers)
    assert asked == [1, 2]


def test_a_table_that_is_not_there_is_an_error_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "core_rates", lambda: pytest.fail("something was measured"))
    with pytest.raises(StoreNotFoundError):
        calibrate(ThreadExecutor(1), str(tmp_path / "none"))
