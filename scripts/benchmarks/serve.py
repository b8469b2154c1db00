"""Serve: single predictions and batches a second over HTTP, with a reload in the middle; the load on the same machine.

A ridge model of 1,000 functions on 20 features. Single rows: JSON over 32 connections, 60 s, the model replaced after
30 s; batches: NPY of 10,000 rows over 2 connections. Every answer is compared with the model's own `predict`, to the
last bit, so that a lost, doubled or exchanged one is seen.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from _report import as_asked, at_least, at_most, in_fresh_process, main

from streamkernel import KernelRidge

N, P, ROWS, BATCH, CONNECTIONS = 1000, 20, 20_000, 10_000, 32
FLOOR_SINGLE, FLOOR_P99_MS, FLOOR_ROWS = 3_000.0, 100.0, 150_000.0


def run(quick: bool = False, workers: int = 1) -> dict[str, Any]:
    """The table and the claims."""
    n, seconds = (100, 4.0) if quick else (N, 60.0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, P))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(ROWS)
    first, second = (KernelRidge(n, lengthscale=5.0, alpha=alpha).fit(X, y) for alpha in (1e-3, 1e-1))
    with tempfile.TemporaryDirectory() as folder:
        models, work = Path(folder, "models"), Path(folder)
        models.mkdir()
        first.save(models / "bench")
        single = X[:512]
        # A row's answer has the bits of `predict` of that row alone.
        alone = [np.concatenate([model.predict(row[None]) for row in single]) for model in (first, second)]
        np.savez(work / "single.npz", X=single, predictions=np.stack(alone))
        np.savez(work / "batch.npz", X=X[:BATCH], predictions=first.predict(X[:BATCH])[None])
        with Server(models, workers) as server:
            load = {"port": server.port, "model": "bench", "seconds": 2.0}
            one = {**load, "rows": str(work / "single.npz"), "connections": CONNECTIONS, "batch": False}
            many = {**load, "rows": str(work / "batch.npz"), "connections": 2, "batch": True}
            in_fresh_process("_load_once", one)
            batches = in_fresh_process("_load_once", {**many, "seconds": seconds / 3})
            before = server.cpu_seconds()
            replacing = threading.Timer(seconds / 2, lambda: second.save(models / "bench", overwrite=True))
            replacing.start()
            singles = in_fresh_process("_load_once", {**one, "seconds": seconds})
            server_seconds = server.cpu_seconds() - before
            replacing.join()
    rows = [
        ["single rows", CONNECTIONS, *_shown(singles, 1)],
        [f"batches of {BATCH:,}", 2, *_shown(batches, BATCH)],
    ]
    claims = [
        at_least("single-row predictions a second", singles["per_second"], FLOOR_SINGLE),
        at_most("99th percentile, ms", singles["p99_ms"], FLOOR_P99_MS),
        at_least("rows a second in batches", batches["per_second"] * BATCH, FLOOR_ROWS),
        at_most("answers lost or wrong", singles["lost"] + singles["wrong"] + batches["lost"] + batches["wrong"], 0),
        at_least("answers of the model before the reload", singles["answered"][0], 1),
        at_least("answers of the model after it", singles["answered"][1], 1),
    ]
    return {
        "title": f"Predictions over HTTP: {n} functions, {P} features, {workers} process(es), load on the same cores",
        "columns": ["what", "connections", "requests", "rows / s", "median ms", "p99 ms", "worst ms", "lost", "wrong"],
        "rows": rows,
        "claims": as_asked(claims, quick, workers=(workers, 1)),
        "server_microseconds_per_single": round(1e6 * server_seconds / max(singles["sent"], 1), 1),
        "details": {"single": singles, "batch": batches},
    }


def _shown(found: dict[str, Any], rows: int) -> list[Any]:
    times = [round(found[name], 2) for name in ("median_ms", "p99_ms", "worst_ms")]
    return [found["sent"], round(found["per_second"] * rows), *times, found["lost"], found["wrong"]]


class Server:
    """`streamkernel serve` on a free port, while the block runs."""

    def __init__(self, models: Path, workers: int) -> None:
        command = [sys.executable, "-m", "streamkernel", "serve", str(models), "--port", "0", "--quiet", "--json"]
        self._process = subprocess.Popen([*command, "--workers", str(workers)], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline())
        self.port = int(told["url"].rpartition(":")[2])

    def cpu_seconds(self) -> float:
        parent = psutil.Process(self._process.pid)
        return sum(sum(each.cpu_times()[:2]) for each in (parent, *parent.children(recursive=True)))

    def __enter__(self) -> Server:
        time.sleep(0.5)
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait(20)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, default=1, help="processes of the service")


if __name__ == "__main__":
    main(run, __doc__, _arguments)
