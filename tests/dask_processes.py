"""A scheduler and workers, each a process of its own, as an operator starts them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

__all__ = ["Cluster"]

_THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


class Cluster:
    """Processes of ``dask scheduler`` and ``dask worker`` on loopback; those that are left are killed in the end."""

    def __init__(self, folder: Path, *, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            **_THREADS,
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "60s",
            # Before they begin their work, rather than in the middle of it: see docs/jobs.md.
            "DASK_DISTRIBUTED__SCHEDULER__PRELOAD": "streamkernel.engine.cluster",
            "DASK_DISTRIBUTED__WORKER__PRELOAD": "streamkernel.jobs.driver",
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "3",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
            **(environment or {}),
        }
        self.address = ""
        self.scheduler: subprocess.Popen[bytes]
        self.workers: list[subprocess.Popen[bytes]] = []
        self._count = 0

    def start(self, *, workers: int = 1, threads: int = 1, port: int = 0, worker_options: Any = ()) -> None:
        """A scheduler, and workers of it without a nanny: a process each."""
        log = self._log("scheduler")
        command = ["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        self.scheduler = self._process(command, log)
        self.address = self._wait(log, rb"Scheduler at:\s+(tcp://\S+)", self.scheduler)
        started = [self._add_worker(threads, worker_options) for _ in range(workers)]
        for each in started:
            self._wait(*each)

    def add_worker(self, *, threads: int = 1, options: Any = ()) -> subprocess.Popen[bytes]:
        """One more, registered when this returns."""
        log, pattern, worker = self._add_worker(threads, options)
        self._wait(log, pattern, worker)
        return worker

    def _add_worker(self, threads: int, options: Any) -> tuple[Path, bytes, subprocess.Popen[bytes]]:
        log = self._log("worker")
        command = ["worker", self.address, "--nthreads", str(threads), "--no-nanny", "--no-dashboard"]
        command += ["--host", "127.0.0.1", "--memory-limit", "2GB", *options]
        worker = self._process(command, log)
        self.workers.append(worker)
        return log, rb"(Registered to)", worker

    def worker_of(self, pid: int) -> subprocess.Popen[bytes]:
        return next(worker for worker in self.workers if worker.pid == pid)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            with suppress(psutil.Error, ProcessLookupError):
                process.kill()
            process.wait()
        self.workers.clear()

    def logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')}" for path in self.folder.glob("*.log"))

    def _log(self, name: str) -> Path:
        self._count += 1
        return self.folder / f"{self._count:02d}-{name}.log"

    def _process(self, command: list[str], log: Path) -> subprocess.Popen[bytes]:
        with open(log, "wb") as output:
            return subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "distributed.cli.dask_" + command[0], *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=self.folder,
            )

    def _wait(self, log: Path, pattern: bytes, process: subprocess.Popen[bytes]) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            found = re.search(pattern, log.read_bytes())
            if found:
                return found[1].decode()
            time.sleep(0.05)
        raise AssertionError(f"it did not start:\n{log.read_text(errors='replace')}")
