"""Clusters of real processes, started by the code of `scripts/cluster`: as deploy/ has them, or bare."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# What lies there calls its neighbours by name, as scripts do.
sys.path.insert(0, str(ROOT / "scripts"))

from _processes import Patience, Process, Processes, StartError, wait_until  # noqa: E402
from _topology import BUCKET, Topology, held_port  # noqa: E402

__all__ = [
    "BUCKET",
    "HANG",
    "ROOT",
    "Cluster",
    "Patience",
    "Process",
    "StartError",
    "held_port",
    "topology",
    "until",
    "wait_until",
]

# Seconds after which what has not come is a hang: of thirty processes on two cores a job of a second took more than 60.
HANG = 180.0

_THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def until(what: Callable[[], Any], seconds: float = HANG) -> Any:
    """The first true value."""
    patience = Patience(seconds)
    while not (value := what()):
        assert not patience.is_over(), "it did not come to that"
        time.sleep(0.02)
    return value


def topology(folder: Path, **options: Any) -> Topology:
    """Not started yet: a context manager that brings all up, and ends it."""
    return Topology(folder, **options)


class Cluster:
    """A scheduler and workers on loopback, a process each: without nannies, what is killed stays away."""

    def __init__(self, folder: Path, *, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            **_THREADS,
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "60s",
            "DASK_DISTRIBUTED__SCHEDULER__ACTIVE_MEMORY_MANAGER__START": "False",
            # Before they begin their work, rather than in the middle of it: see docs/jobs.md.
            "DASK_DISTRIBUTED__SCHEDULER__PRELOAD": "streamkernel.engine.cluster",
            "DASK_DISTRIBUTED__WORKER__PRELOAD": "streamkernel.jobs._driver",
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "3",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
            **(environment or {}),
        }
        self.address = ""
        self.scheduler: Process
        self.workers: list[Process] = []
        self._processes = Processes(folder)

    def start(self, *, workers: int = 1, threads: int = 1, port: int = 0) -> None:
        self.scheduler = self._process("scheduler", "--port", str(port))
        self.address = self._said(self.scheduler, rb"Scheduler at:\s+(tcp://\S+)")
        self.add_workers(workers, threads=threads)

    def add_workers(self, number: int, *, threads: int = 1) -> None:
        """So many more, registered when this returns."""
        given = ["--nthreads", str(threads), "--memory-limit", "2GB", "--local-directory", str(self.folder)]
        added = [self._process("worker", self.address, "--no-nanny", *given) for _ in range(number)]
        self.workers += added
        for worker in added:
            self._said(worker, rb"(Registered to)")

    def worker_of(self, pid: int) -> Process:
        return next(worker for worker in self.workers if worker.pid == pid)

    def kill(self, process: Process) -> None:
        os.kill(process.pid, signal.SIGKILL)

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            if process.alive:
                self.kill(process)
        self._processes.stop()
        self.workers.clear()

    def logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')}" for path in self.folder.glob("*.log"))

    def _process(self, role: str, *options: str) -> Process:
        command = [sys.executable, "-W", "ignore", "-m", f"distributed.cli.dask_{role}", *options]
        command += ["--host", "127.0.0.1", "--no-dashboard"]
        name = f"{len(list(self.folder.glob('*.log'))):02d}-{role}"
        return self._processes.start(name, command, self.environment)

    @staticmethod
    def _said(process: Process, pattern: bytes) -> str:
        def said() -> str | None:
            found = re.search(pattern, Path(process.log).read_bytes())
            return found and found[1].decode()

        return str(wait_until(f"the {process.name[3:]}", process, said, HANG))
