"""`plan --workers`, and `calibrate`, which measures what it computes with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel.cli.commands import calibrate as command
from streamkernel.timing import BUILT_IN, read_rates, write_rates
from streamkernel.timing.rates import PLACE, VERSION

PLAIN = ("--basis", 100, "--kernel", "gaussian", "--metric", "none")
FIELDS = {
    "workers", "threads", "cores", "seconds", "efficiency", "sweep_seconds", "rough_seconds", "network_bytes",
    "worker_bytes", "driver_bytes", "bound",
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of the machine that runs the tests."""
    monkeypatch.delenv(PLACE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_several_numbers_of_workers(cli: Callable, store: Path) -> None:
    plan = cli("plan", store, *PLAIN, "--workers", "1,4,16,64,256,1000", "--json").result
    rows = plan["scaling"]
    assert [row["workers"] for row in rows] == [1, 4, 16, 64, 256, 1000]
    assert all(row.keys() == FIELDS for row in rows)
    assert rows[0]["efficiency"] == 1.0
    assert all(row["cores"] is None for row in rows)
    assert plan["seconds"] > 0.0
    assert plan["rates"] is None
    assert plan["seconds"] == pytest.approx(sum(step["seconds"] for step in plan["steps"]))
    shared = cli("plan", store, *PLAIN, "--workers", "1,64", "--cores", 2, "--json").result["scaling"]
    assert [row["cores"] for row in shared] == [2, 2]
    shown = cli("plan", store, *PLAIN, "--workers", "1,64")
    assert "efficiency" in shown.out
    assert "streamkernel calibrate" in shown.err


def test_this_machine_without_numbers(cli: Callable, store: Path) -> None:
    for given, workers in (((), None), (("--workers", 3), 3), (("--scheduler", "threads"), 0)):
        plan = cli("plan", store, *PLAIN, *given, "--json").result
        [row] = plan["scaling"]
        assert row["workers"] == plan["workers"] == (plan["workers"] if workers is None else workers)
        assert row["seconds"] == pytest.approx(plan["seconds"])
        assert plan["efficiency"] == row["efficiency"]
        assert row["cores"] >= 1
        assert row["worker_bytes"] == plan["worker_bytes"]


def test_workers_of_a_remote_scheduler_that_nobody_asks(cli: Callable, store: Path) -> None:
    plan = cli("plan", store, *PLAIN, "--scheduler", "tcp://127.0.0.1:1", "--workers", 8, "--json").result
    assert [row["workers"] for row in plan["scaling"]] == [8]
    assert plan["scaling"][0]["cores"] is None


@pytest.mark.parametrize("given", ["0", "-1", "1,0", "a", "1,,4", "4,4", "1.5", ""])
def test_bad_numbers_of_workers(cli: Callable, store: Path, given: str) -> None:
    found = cli("plan", store, *PLAIN, f"--workers={given}")
    assert found.status in (1, 2)
    assert "--workers" in found.err


def test_numbers_that_do_not_fit_together(cli: Callable, store: Path) -> None:
    found = cli("plan", store, *PLAIN, "--cores", 2)
    assert (found.status, "--cores is of several --workers" in found.err) == (1, True)
    found = cli("plan", store, *PLAIN, "--workers", 2, "--scheduler", "threads")
    assert (found.status, "--workers is for the local cluster" in found.err) == (1, True)


def test_rates_of_a_file(cli: Callable, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write_rates(BUILT_IN.changed(measured="today, here", task_seconds=1.0), tmp_path / "rates.json")
    local = [*PLAIN, "--scheduler", "local"]  # threads wait for no scheduler
    slow = cli("plan", store, *local, "--rates", place, "--json")
    assert slow.result["rates"] == "today, here"
    assert slow.err == ""
    assert slow.result["seconds"] > cli("plan", store, *local, "--json").result["seconds"]
    monkeypatch.setenv(PLACE, str(place))
    assert cli("plan", store, *PLAIN, "--json").result["rates"] == "today, here"
    place.write_text(json.dumps({**BUILT_IN.to_config(), "version": VERSION + 1}))
    found = cli("plan", store, *PLAIN, "--rates", place)
    assert found.status == 1
    assert f"--rates {place} has version {VERSION + 1}" in found.err
    assert "streamkernel calibrate" in found.err
    assert cli("plan", store, *PLAIN, "--rates", tmp_path / "none").status == 1


def test_calibrate_writes_what_plan_reads(
    cli: Callable, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def measured(executor: Any, given: str | None, tell: Any) -> Any:
        asked.append((executor.name, given))
        return BUILT_IN.changed(measured="now, here")

    monkeypatch.setattr(command, "calibrate", measured)
    found = cli("calibrate", "--scheduler", "threads", "--json").result
    assert found["rates_file"] == str(tmp_path / "cache" / "streamkernel" / "rates.json")
    assert read_rates().measured == found["measured"] == "now, here"
    assert cli("plan", store, *PLAIN, "--json").result["rates"] == "now, here"
    place = tmp_path / "mine.json"
    assert "task on the scheduler" in cli("calibrate", "--scheduler", "threads", "--store", store, "--rates", place).out
    assert place.is_file()
    assert asked == [("threads", None), ("threads", str(store))]
    # Nothing is measured where it could not be written.
    place.write_text("mine")
    found = cli("calibrate", "--scheduler", "threads", "--rates", place)
    assert (found.status, len(asked)) == (1, 2)
    assert "no file of rates" in found.err
