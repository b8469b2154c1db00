"""Planned and measured memory of a fit, in a process of its own, and what a block of this one allocates."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
from problems import zarr_of_chunks

__all__ = ["Traced", "measured", "measured_from", "traced"]

PROGRAM = """
import sys, json, re
from contextlib import nullcontext
import streamkernel
from streamkernel.engine import Session, ThreadExecutor, resident_bytes
from streamkernel.engine.cluster import local_cluster
from streamkernel.kinds import PREDICTORS
from streamkernel.table import open_table
name, store, options, workers = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
kind = PREDICTORS[name]
table = open_table(store, classify=kind.classify)
before = resident_bytes()
with local_cluster(workers) if workers else nullcontext(ThreadExecutor(2)) as executor:
    run = kind.fit(table, kind.settings(**options), Session(executor), estimator=name).config["run"]
# Not getrusage's ru_maxrss, which begins with the size of the process that started this one.
own_peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
print(json.dumps({**run, "before": before, "own_peak": own_peak}))
"""


def measured(folder: Path, estimator: str, rows: int, *, classes: int = 0, **options: Any) -> tuple[int, int]:
    """Planned and measured peak of a fit to Friedman's function; of whole numbers where there are classes."""
    planned, peak, _ = measured_from(folder, estimator, rows, classes=classes, **options)
    return planned, peak


def measured_from(
    folder: Path, estimator: str, rows: int, *, classes: int = 0, features: int = 8, workers: int = 0, **options: Any
) -> tuple[int, int, int]:
    """As `measured`, and what the process held before the fit; on so many workers, or on two threads."""
    data = data_sets.friedman(rows, features)
    y = np.digitize(data.y, np.quantile(data.y, np.arange(1, classes) / classes)) if classes else np.abs(data.y)
    store = zarr_of_chunks(
        folder / "rows.zarr", data.X.astype(np.float32), y.astype(np.float64), max(512, 15_000 * 8 // features)
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, estimator, store, json.dumps(options), str(workers)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    return run["planned_memory_bytes"], max(run["peak_memory_bytes"], run["own_peak"]), run["before"]


class Traced:
    """Peak of the bytes that a block of code allocated."""

    peak = 0


@contextmanager
def traced() -> Iterator[Traced]:
    found = Traced()
    gc.collect()
    tracemalloc.start()
    try:
        yield found
    finally:
        found.peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
