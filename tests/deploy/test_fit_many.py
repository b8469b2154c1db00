"""scripts/batch/fit_many.py: killed in the middle and started again it ends with what a quiet night gives."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import psutil
import pytest
from clusters import ROOT
from problems import zarr_of_chunks

SCRIPT = [sys.executable, str(ROOT / "scripts" / "batch" / "fit_many.py")]
FIT = ["--basis", "120", "--scheduler", "threads"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The second is none; the third is long enough to be killed in."""
    folder = tmp_path_factory.mktemp("tables")
    for name, rows in (("a", 3_000), ("c", 300_000)):
        data = data_sets.friedman(rows, 5, 0.5, 1)
        zarr_of_chunks(folder / f"{name}.zarr", data.X.astype(np.float32), data.y, rows // 10)
    return [str(folder / f"{name}.zarr") for name in "abc"]


def run(tables: list[str], out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [*SCRIPT, *tables, "--out", str(out), *FIT, *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def checkpoints(out: Path, name: str) -> int:
    run_folder = out / f".{name}.model.run"
    return len(list(run_folder.glob("[0-9]*"))) if run_folder.exists() else 0


@pytest.fixture(scope="module")
def quiet(tables: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Digests of a batch that nothing interrupted."""
    out = tmp_path_factory.mktemp("quiet")
    done = run(tables, out)
    found = lines_of(done.stdout)
    assert done.returncode == 1
    assert [line["status"] for line in found] == ["fitted", "failed", "fitted"]
    assert "there is no store at" in found[1]["error"]
    assert done.stderr.splitlines()[-1] == "3 tables: 2 fitted, 0 skipped, 1 failed, 0 interrupted"
    assert lines_of((out / "fits.jsonl").read_text()) == found
    return {Path(line["store"]).name: line["digest"] for line in found if line["status"] == "fitted"}


def killed_in_c(tables: list[str], out: Path, number: signal.Signals) -> tuple[int, str]:
    with subprocess.Popen([*SCRIPT, *tables, "--out", str(out), *FIT], text=True, stderr=subprocess.PIPE) as process:
        while not checkpoints(out, "c"):
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        fits = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        _, err = process.communicate()
    assert fits
    psutil.wait_procs(fits, timeout=10)
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in fits)
    return process.returncode, err


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_stopped_in_the_middle_and_started_again(
    tables: list[str], quiet: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    status, err = killed_in_c(tables, tmp_path, number)
    if number == signal.SIGTERM:
        assert status == 128 + number
        assert err.splitlines()[-1] == "3 tables: 1 fitted, 0 skipped, 1 failed, 1 interrupted"
    assert not (tmp_path / "c.model").exists()
    done = run(tables, tmp_path)
    found = lines_of(done.stdout)
    assert [line["status"] for line in found] == ["skipped", "failed", "fitted"], found
    assert found[2]["resumed_sweeps"] >= 1
    assert done.returncode == 1
    logged = lines_of((tmp_path / "fits.jsonl").read_text())
    assert {Path(line["store"]).name: line["digest"] for line in logged if line["status"] == "fitted"} == quiet
    assert checkpoints(tmp_path, "c") == 0


@pytest.mark.slow
def test_all_are_there(tables: list[str], tmp_path: Path) -> None:
    assert run(tables[:1], tmp_path).returncode == 0
    again = run(tables[:1], tmp_path)
    assert again.returncode == 0
    assert [line["status"] for line in lines_of(again.stdout)] == ["skipped"]


@pytest.mark.slow
def test_a_line_that_was_cut_off_spoils_no_other(tables: list[str], tmp_path: Path) -> None:
    (tmp_path / "fits.jsonl").write_text('{"store": "x')
    assert run(tables[:1], tmp_path).returncode == 0
    torn, whole = (tmp_path / "fits.jsonl").read_text().splitlines()
    assert torn == '{"store": "x'
    assert json.loads(whole)["status"] == "fitted"


@pytest.mark.slow
def test_what_is_no_model_is_not_taken_for_one(tables: list[str], tmp_path: Path) -> None:
    shutil.copytree(tables[0], tmp_path / "a.model")
    (tmp_path / "c.model").mkdir()
    done = run([tables[0], tables[2]], tmp_path)
    assert [line["status"] for line in lines_of(done.stdout)] == ["failed", "failed"]
    assert not os.listdir(tmp_path / "c.model")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["a.zarr"], "--out FOLDER is needed"),
        (["a.zarr", "x/a.zarr", "--out", "o"], "two tables are called a"),
        (["a.zarr", "--out", "s3://bucket/models"], "must be a local one"),
        (["--basis", "3", "a.zarr", "--out", "o"], "--basis: options of the fit come behind"),
        (["--out", "o"], "name tables"),
        (["a.zarr", "--out", "o", "--overwrite"], "--overwrite is said by this script"),
    ],
)
def test_usage(arguments: list[str], told: str, tmp_path: Path) -> None:
    done = subprocess.run([*SCRIPT, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert not list(tmp_path.iterdir())
