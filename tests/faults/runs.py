"""The fit of this folder's tests, on rows of twenty chunks; also run as a program that is killed.

python runs.py STORE RUN [SWEEP [ROWS]]    kill -9 itself after sweep SWEEP, or ROWS rows later
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import psutil
from clusters import until
from problems import zarr_of_chunks

from streamkernel.engine import Session, Silent, ThreadExecutor
from streamkernel.fits import fit_ridge
from streamkernel.models import RidgeModel
from streamkernel.settings import RidgeSettings
from streamkernel.store import Checkpoints
from streamkernel.table import open_table

__all__ = ["CHUNK", "ROWS", "At", "Cluster", "Counter", "fit", "make_store", "run_of", "settings", "until"]

ROWS, CHUNK = 40_000, 2_000
_HERE = Path(__file__).parent
_ODD = "STREAMKERNEL_ODD"


def settings(n: int = 64) -> RidgeSettings:
    """Some ten short sweeps, so that there is something to interrupt."""
    return RidgeSettings(n_components=n, seed=3, rule="rpcholesky", rule_options={"block": 16}, lengthscale=3.0)


def make_store(path: Any) -> str:
    data = data_sets.friedman(ROWS, 5, seed=1)
    return zarr_of_chunks(path, data.X.astype(np.float32), data.y, CHUNK)


def fit(store: str, executor: Any = None, **session: Any) -> RidgeModel:
    return fit_ridge(open_table(store), settings(), Session(executor or ThreadExecutor(1), **session))


def run_of(store: str, folder: Any) -> Checkpoints:
    config = {"table": open_table(store).fingerprint, "settings": settings().to_config()}
    return Checkpoints(folder, config)


class Counter(Silent):
    """Which sweeps were begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self.begun.append(name)


class At(Counter):
    """Does something in the middle of a sweep, once: after so many of its rows; or after its end, where rows is 0."""

    def __init__(self, sweep: int, action: Callable[[], Any], rows: int = 1) -> None:
        super().__init__()
        self.sweep, self.action, self.rows, self.seen, self.done = sweep, action, rows, 0, False

    def begin(self, name: str, rows: int, tasks: int) -> None:
        super().begin(name, rows, tasks)
        self.seen = 0

    def advance(self, rows: int) -> None:
        self.seen += rows
        self._act(self.rows > 0 and self.seen >= self.rows)

    def end(self, seconds: float) -> None:
        self._act(self.rows == 0)

    def _act(self, now: bool) -> None:
        if now and len(self.begun) == self.sweep and not self.done:
            self.done = True
            self.action()


class Cluster:
    """Scheduler and workers of `scripts/cluster`, whose tasks do odd things where a file says so (oddities.py)."""

    def __init__(self, topology: Any, odd: Path) -> None:
        self.topology, self._odd = topology, odd

    @classmethod
    @contextmanager
    def started(cls, topology: Any, folder: Path, workers: int = 2) -> Iterator[Cluster]:
        odd = folder / "odd.json"
        preload = json.dumps(["streamkernel.jobs._driver", str(_HERE / "oddities.py")])
        dask = {
            "DASK_DISTRIBUTED__WORKER__PRELOAD": preload,
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "6s",
            _ODD: str(odd),
        }
        made = topology(folder, workers=workers, memory="1GB", s3=False, service=False, dask=dask)
        with made:
            yield cls(made, odd)

    @property
    def address(self) -> str:
        return str(self.topology.environment["STREAMKERNEL_SCHEDULER"])

    def behave(self, **oddly: Any) -> None:
        """What tasks shall do beside their work, from the next one on; nothing if nothing is said."""
        partial = self._odd.with_suffix(".partial")
        partial.write_text(json.dumps(oddly))
        partial.replace(self._odd)

    def workers(self) -> list[psutil.Process]:
        """The processes that run tasks, one a nanny."""
        nannies = [one for one in self.topology.processes.running if one.name.startswith("worker") and one.alive]
        children = [child for nanny in nannies for child in psutil.Process(nanny.pid).children()]
        return [child for child in children if any("spawn_main" in word for word in child.cmdline())]

    def wait_for_workers(self, count: int) -> None:
        from streamkernel.engine.security import connect_client

        with connect_client(self.address) as client:
            until(lambda: len(client.nthreads()) == count)


if __name__ == "__main__":
    store, folder, sweep, *rows = sys.argv[1:]

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with run_of(store, folder) as checkpoints:
        watcher = At(int(sweep), die, int(rows[0]) if rows else 0)
        fit(store, progress=watcher, checkpoints=checkpoints)
