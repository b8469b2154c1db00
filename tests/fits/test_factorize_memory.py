"""Memory of a factor: what was promised, whatever the rule, and nothing that grows with the rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import dask.array as da
import data_sets
import numpy as np
import pytest
from problems import zarr_of_chunks
from rule_table import RULES_OF_ROWS

from streamkernel.engine import Machine, Session, ThreadExecutor
from streamkernel.errors import ResourceLimitError
from streamkernel.fits.factor import factor as module
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Table, open_table

HERE = Path(__file__).parent
IN_MEMORY = ("csi-lookahead", "matching-pursuit-kpca")  # rules that hold all rows, as they say
FROM_DISK: list[dict[str, Any]] = [
    {"objective": "trace"},
    {"objective": "prediction"},
    {"rule": "sgma"},
    {"rule": "sgma", "rule_options": {"pool": "shared", "candidates": 8}},
    {"rule": "incomplete-cholesky", "rule_options": {"exact": False}},
    *({"rule": rule} for rule in RULES_OF_ROWS if rule not in ("few-sweep", "sgma", *IN_MEMORY)),
]
# The more rows, the more states wait for their neighbours, to the logarithm: here these are to be small.
SMALL_STATES = [
    {**options, "rule_options": {"candidates": 5, "picks": 4}} if options.get("rule") == "csi" else options
    for options in FROM_DISK
]


def settings_of(options: dict[str, Any], n: int) -> BasisSettings:
    return BasisSettings(**{"n_components": n, "objective": "trace", "lengthscale": 1.0, "scale": "none", **options})


# ---------------------------------------------------------------------------------------------------------- the promise
def shaped(rows: int) -> Table:
    """A table without its rows: plans need shapes only."""
    return open_table(da.zeros((rows, 20), chunks=(65_536, -1), dtype=np.float32), da.zeros(rows, chunks=65_536))


@pytest.mark.parametrize("columns", ["G", pytest.param("none", marks=pytest.mark.slow)])
@pytest.mark.parametrize("options", FROM_DISK, ids=str)
def test_the_promise_does_not_grow_with_the_rows(options: dict[str, Any], columns: str) -> None:
    for stop in ("trace", "bound"):
        few, many = (
            module.plan_of_factor(
                shaped(m), settings_of(options, 500), Machine(0, 2), 500, columns=columns, dtype="float32", stop=stop
            )
            for m in (250_000, 4_000_000)
        )
        assert many.memory_bytes < 1.1 * few.memory_bytes
        assert many.disk_bytes > 15 * few.disk_bytes or columns == "none"


@pytest.mark.parametrize("rule", IN_MEMORY)
def test_rules_that_hold_all_rows_are_refused_before_they_do(rule: str) -> None:
    with pytest.raises(ResourceLimitError, match="exceeds allowed memory"):
        module.make_factor(
            shaped(4_000_000), settings_of({"rule": rule}, 500), Session(ThreadExecutor(2)), None, memory_limit=2 << 30
        )


# --------------------------------------------------------------------------------------------------------- what is held
def held(path: Path, m: int, options: dict[str, Any]) -> int:
    """Most bytes that were held at once to make a factor of m rows, on one thread."""
    X = np.random.default_rng(0).standard_normal((m, 2), dtype=np.float32)
    table = open_table(zarr_of_chunks(path / f"{m}.zarr", X, np.sin(X[:, 0]).astype(np.float64), 25_000))
    tracemalloc.start()
    session = Session(ThreadExecutor(1))
    module.make_factor(table, settings_of(options, 6), session, path / f"{m}", columns="G", dtype="float32")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize(
    "options",
    [SMALL_STATES[1], *(pytest.param(some, marks=pytest.mark.slow) for some in SMALL_STATES[:1] + SMALL_STATES[2:])],
    ids=str,
)
def test_nothing_of_the_size_of_the_rows_is_held(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even one number for each of them."""
    monkeypatch.setattr(module, "_CHUNK_BYTES", 25_000 * 6 * 4)
    held(tmp_path, 3_000, options)  # what is compiled or loaded once
    few, many = (held(tmp_path, m, options) for m in (50_000, 200_000))
    assert many < few + 4 * 150_000


PROGRAM = """
import sys, json, re
import streamkernel
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.settings.basis import BasisSettings
from streamkernel.fits.factor.factor import make_factor
from streamkernel.table import open_table
store, folder, options, threads = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
table, session = open_table(store), Session(ThreadExecutor(threads))
run = make_factor(table, BasisSettings(**options), session, folder).config["run"]
# Not getrusage's ru_maxrss, which begins with the size of the process that started this one.
own_peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
print(json.dumps({**run, "own_peak": own_peak}))
"""


def measured(path: Path, m: int, *, features: int = 10, threads: int = 2, **options: Any) -> tuple[int, int]:
    """Planned and measured peak of a factor in a process of its own."""
    data = data_sets.friedman(m, features)
    store = zarr_of_chunks(path / "rows.zarr", data.X.astype(np.float32), data.y, 20_000)
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    environment.pop("OPENBLAS_NUM_THREADS", None)  # scripts/test sets it; users do not
    asked = json.dumps({"objective": "trace", **options})
    command = [sys.executable, "-c", PROGRAM, store, str(path / "F"), asked, str(threads)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    return run["planned_memory_bytes"], max(run["peak_memory_bytes"], run["own_peak"])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="VmHWM is Linux's")
def test_the_promise_is_kept(tmp_path: Path) -> None:
    planned, peak = measured(tmp_path, 50_000, n_components=300)
    assert peak <= planned
    assert planned < 3 * peak  # a promise that means something


@pytest.mark.slow
@pytest.mark.parametrize("options", FROM_DISK, ids=str)
def test_the_promise_is_kept_by_every_rule(tmp_path: Path, options: dict[str, Any]) -> None:
    n = 60 if options.get("rule") in ("sgma", "csi", "gp-posterior") else 400
    planned, peak = measured(tmp_path, 60_000, features=20, n_components=n, **options)
    assert peak <= planned


@pytest.mark.slow
def test_measured_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    peaks = []
    for m in (200_000, 1_000_000):
        folder = tmp_path / str(m)
        folder.mkdir()
        planned, peak = measured(folder, m, n_components=100)
        assert peak <= planned
        peaks.append(peak)
    assert peaks[1] < 1.1 * peaks[0]
