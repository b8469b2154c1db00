"""The topology of deploy/compose.yaml as processes of this machine: scheduler, workers, S3 server, service."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _processes import Process, Processes, StartError, wait_until

__all__ = ["BUCKET", "Topology", "held_port"]

ROOT = Path(__file__).resolve().parent.parent
BUCKET = "streamkernel"
_SECONDS = 180.0  # to come up: a few, and a hundred where twenty others share the cores; a hang must end


@dataclass
class Topology:
    """What is to run, and after `start` where it is.

    Parameters
    ----------
    folder : for logs, certificates, tables, the service's models, its token and the records of jobs.
    workers, threads, memory : worker processes, threads of each, and their memory limit as Dask reads it.
    tls : certificates on the scheduler's and the workers' ports, and HTTPS for the service.
    s3, service : whether these run too.
    lasting : whether the processes go on when this one has ended.
    dask : Dask's configuration as environment variables, such as a shorter worker-ttl.

    Attributes
    ----------
    environment : what a client needs: addresses, certificates, credentials, the service's token.
    """

    folder: Path
    workers: int = 2
    threads: int = 1
    memory: str = "auto"
    tls: bool = False
    s3: bool = True
    service: bool = True
    lasting: bool = False
    dask: Mapping[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict, init=False)
    processes: Processes = field(init=False)

    def __post_init__(self) -> None:
        self.folder = self.folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.processes = Processes(self.folder, self.lasting)

    # --- start and stop ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Bring all up, side by side; what was started is ended if one does not come."""
        with self.processes.stopped_on_error():
            if self.tls:
                self._make_certificates()
            with held_port() as port:
                s3 = self._start_s3(port.getsockname()[1]) if self.s3 else None
                scheduler = self.start_scheduler()
                for number in range(self.workers):
                    self.start_worker(number)
                if s3 is not None:
                    self._make_bucket(s3)
            self._wait_for_scheduler(scheduler)
            service = self._start_service() if self.service else None
            self._wait_for_workers()
            if service is not None:
                wait_until("the service", service, lambda: self._answers(service), _SECONDS)

    def stop(self) -> None:
        self.processes.stop()

    def __enter__(self) -> Topology:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def process(self, name: str) -> Process:
        """The latest of that name: `scheduler`, `worker-0`, `s3`, `service`."""
        return next(one for one in reversed(self.processes.running) if one.name == name)

    def save(self, path: Path) -> None:
        """For another process to look at or to end: `status`, `down`."""
        running = [vars(process) for process in self.processes.running]
        path.write_text(json.dumps({"processes": running, "environment": self.environment}, indent=2) + "\n")
        path.chmod(0o600)

    # --- the processes -----------------------------------------------------------------------------------------------

    def _own_environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DASK_", "STREAMK"))}
        configured = {"DASK_CONFIG": str(ROOT / "deploy" / "dask.yaml"), **self.dask}
        return {**inherited, **configured, **self.environment, "PYTHONUNBUFFERED": "1"}

    def _start(self, name: str, *command: str) -> Process:
        return self.processes.start(name, [sys.executable, "-m", *command], self._own_environment())

    def _tls_options(self, role: str) -> list[str]:
        if not self.tls:
            return []
        files = {"ca-file": "ca.pem", "cert": f"{role}.pem", "key": f"{role}-key.pem"}
        return [word for name, file in files.items() for word in (f"--tls-{name}", str(self.folder / "tls" / file))]

    @property
    def _protocol(self) -> str:
        return "tls" if self.tls else "tcp"

    def _make_certificates(self) -> None:
        tls = self.folder / "tls"
        shutil.rmtree(tls, ignore_errors=True)
        made = subprocess.run([str(ROOT / "deploy" / "tls.sh"), str(tls)], capture_output=True, text=True, check=False)
        if made.returncode:
            raise StartError(made.stderr.strip())
        for what in ("ca", "cert", "key"):
            file = {"ca": "ca.pem", "cert": "client.pem", "key": "client-key.pem"}[what]
            self.environment[f"STREAMKERNEL_TLS_{what.upper()}"] = str(tls / file)

    def start_scheduler(self, port: int = 0) -> Process:
        """At a free port, or again at the one that it had."""
        self._file.unlink(missing_ok=True)
        return self._start(
            "scheduler", "dask", "scheduler", "--protocol", self._protocol, "--host", "127.0.0.1", "--port", str(port),
            "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(self._file),
            *self._tls_options("scheduler"),
        )  # fmt: skip

    def start_worker(self, number: int) -> Process:
        scratch = self.folder / "scratch"
        return self._start(
            f"worker-{number}", "dask", "worker", "--protocol", self._protocol, "--host", "127.0.0.1",
            "--nworkers", "1", "--nthreads", str(self.threads), "--memory-limit", self.memory, "--name", str(number),
            "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--local-directory", str(scratch),
            "--scheduler-file", str(self._file), *self._tls_options("worker"),
        )  # fmt: skip

    def _start_s3(self, port: int) -> Process:
        self.environment |= {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "streamkernel",
            "AWS_SECRET_ACCESS_KEY": secrets.token_urlsafe(16),
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "STREAMKERNEL_S3": f"s3://{BUCKET}",
        }
        return self._start("s3", "moto.server", "-H", "127.0.0.1", "-p", str(port))

    def _make_bucket(self, s3: Process) -> None:
        address = f"{self.environment['AWS_ENDPOINT_URL']}/{BUCKET}"
        request = urllib.request.Request(address, method="PUT")
        wait_until("the S3 server", s3, lambda: _fetch(request) is not None, _SECONDS)

    def _start_service(self) -> Process:
        models, tables, jobs = (self.folder / name for name in ("models", "tables", "jobs"))
        for one in (models, tables, jobs):
            one.mkdir(exist_ok=True)
        token, file = secrets.token_urlsafe(24), self.folder / "token"
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
            output.write(token + "\n")
        self.environment |= {
            "STREAMKERNEL_MODELS": str(models),
            "STREAMKERNEL_TABLES": str(tables),
            "STREAMKERNEL_JOBS": str(jobs),  # where the page looks, so what a client submits is seen there
            "STREAMKERNEL_TOKEN_FILE": str(file),
        }
        roots = [str(tables), *([f"s3://{BUCKET}"] if self.s3 else [])]
        files = self.folder / "tls"
        https = ["--tls-cert", str(files / "service.pem"), "--tls-key", str(files / "service-key.pem")]
        return self._start(
            "service", "streamkernel", "serve", str(models), "--host", "127.0.0.1", "--port", "0",
            "--token-file", str(file), "--json", "--jobs", str(jobs),
            "--scheduler", self.environment["STREAMKERNEL_SCHEDULER"],
            *(word for root in roots for word in ("--data-root", root)), *(https if self.tls else []),
        )  # fmt: skip

    # --- whether they are there --------------------------------------------------------------------------------------

    @property
    def _file(self) -> Path:
        return self.folder / "scheduler.json"

    def _identity(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return None
        return found

    def _wait_for_scheduler(self, scheduler: Process) -> None:
        identity = wait_until("the scheduler", scheduler, self._identity, _SECONDS)
        self.environment["STREAMKERNEL_SCHEDULER"] = identity["address"]
        self._counts = f"http://127.0.0.1:{identity['services']['dashboard']}/json/counts.json"

    def _wait_for_workers(self) -> None:
        for number in range(self.workers):
            wait_until("the workers", self.process(f"worker-{number}"), self._all_workers, _SECONDS)

    def _all_workers(self) -> bool:
        counts = _fetch(urllib.request.Request(self._counts))
        return counts is not None and json.loads(counts)["workers"] >= self.workers

    def _answers(self, service: Process) -> bool:
        # It says its address, as it takes a free port; what an earlier one said stands above.
        said = re.findall(r'^\{"url": "([^"]+)"', Path(service.log).read_text(errors="replace"), re.MULTILINE)
        if not said:
            return False
        self.environment["STREAMKERNEL_SERVICE"] = said[-1].rstrip("/")
        context = ssl.create_default_context(cafile=str(self.folder / "tls" / "ca.pem")) if self.tls else None
        return _fetch(urllib.request.Request(said[-1].rstrip("/") + "/healthz"), context) is not None


def _fetch(request: urllib.request.Request, context: ssl.SSLContext | None = None) -> bytes | None:
    handlers: list[Any] = [urllib.request.ProxyHandler({})]  # nobody's proxy lies between two ports of this machine
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=5.0) as answer:
            return bytes(answer.read())
    except OSError:
        return None


def held_port() -> socket.socket:
    """A socket at a free port that nobody else gets until it is closed, but a server with `SO_REUSEADDR`.

    It does not listen. A server takes seconds to load, and what the system gives to others meanwhile may be its port.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held
