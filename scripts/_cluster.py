"""Run scheduler, workers, an S3 server and the service on this machine: the topology of deploy/compose.yaml.

`run` exports the addresses, runs a command and ends everything, also upon SIGINT and SIGTERM; `up` leaves all running
until `down`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import psutil
from _processes import Process, Processes, StartError, end_with_parent
from _topology import ROOT, Topology

_FOLDER = ROOT / ".cluster"
_PATIENCE = 10.0  # seconds for the command to end by itself


def _topology(options: argparse.Namespace, folder: Path, *, lasting: bool) -> Topology:
    return Topology(
        folder,
        workers=options.workers,
        threads=options.threads,
        memory=options.memory,
        tls=options.tls,
        s3=not options.no_s3,
        service=not options.no_service,
        lasting=lasting,
    )


class _Ended(BaseException):
    """SIGTERM or SIGINT reached us."""

    def __init__(self, number: int) -> None:
        self.number = number


def _raise_ended(number: int, frame: Any) -> None:
    # Once is enough: what ends the processes is not to be interrupted.
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    raise _Ended(number)


def run(options: argparse.Namespace) -> int:
    """Bring all up, run the command with the addresses in its environment, take all down; its exit status."""
    folder = options.folder or Path(tempfile.mkdtemp(prefix="streamkernel-cluster-"))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _raise_ended)
    topology = _topology(options, folder, lasting=False)
    command: subprocess.Popen[bytes] | None = None
    try:
        with topology:
            environment = {**topology._own_environment(), **topology.environment}
            command = subprocess.Popen(options.command, env=environment, preexec_fn=end_with_parent)
            return command.wait()
    except _Ended as ended:
        if command is not None:
            _end(command, ended.number)
        return 128 + ended.number
    except FileNotFoundError as error:
        return _fail(f"there is no command {error.filename}", 127)
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def _end(command: subprocess.Popen[bytes], number: int) -> None:
    """End the command and what it started, with some patience."""
    family = Process.of(command, "command", "").family()
    # Our Ctrl-C is theirs already; a SIGTERM is not.
    if number != signal.SIGINT:
        for one in family:
            with contextlib.suppress(psutil.Error):
                one.send_signal(number)
    waiter = threading.Thread(target=command.wait, daemon=True)
    waiter.start()
    _, alive = psutil.wait_procs(family, timeout=_PATIENCE)
    for one in alive:
        with contextlib.suppress(psutil.Error):
            one.kill()
    waiter.join()


def _state(folder: Path) -> Path:
    return folder / "cluster.json"


def _running(folder: Path) -> list[Process]:
    try:
        return [Process(**one) for one in json.loads(_state(folder).read_text())["processes"]]
    except FileNotFoundError:
        return []


def up(options: argparse.Namespace) -> int:
    folder = options.folder or _FOLDER
    if any(process.alive for process in _running(folder)):
        return _fail(f"a cluster runs in {folder} already; scripts/cluster down ends it")
    topology = _topology(options, folder, lasting=True)
    began = time.perf_counter()
    topology.start()
    topology.save(_state(folder))
    print(f"# up in {time.perf_counter() - began:.1f} s; logs in {folder}; end it with scripts/cluster down")
    for name, value in topology.environment.items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def down(options: argparse.Namespace) -> int:
    folder = options.folder or _FOLDER
    running = _running(folder)
    Processes(folder, lasting=True, running=running).stop()
    _state(folder).unlink(missing_ok=True)
    return 0


def status(options: argparse.Namespace) -> int:
    running = _running(options.folder or _FOLDER)
    for process in running:
        print(f"{process.name:<10} {'running' if process.alive else 'ENDED':<8} {process.pid:>8}  {process.log}")
    if not running:
        print("no cluster")
    return 0 if running and all(process.alive for process in running) else 1


def _fail(message: str, status: int = 1) -> int:
    print(f"error: {message}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/cluster", description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, told in {
        "run": "bring all up, run a command with the addresses in its environment, take all down",
        "up": 'bring all up and print the environment of clients: eval "$(scripts/cluster up)"',
        "down": "end what `up` started",
        "status": "what of it is running",
    }.items():
        one = verbs.add_parser(verb, help=told, description=told)
        one.add_argument("--folder", type=Path, help="logs, certificates, models [.cluster; of run: temporary]")
        if verb in ("run", "up"):
            one.add_argument("--workers", type=int, default=2)
            one.add_argument("--threads", type=int, default=1, help="of each worker [1]")
            one.add_argument("--memory", default="auto", help="limit of each worker, as 2GB")
            one.add_argument("--tls", action="store_true", help="certificates on every port, as outside one machine")
            one.add_argument("--no-s3", action="store_true")
            one.add_argument("--no-service", action="store_true")
        if verb == "run":
            one.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    return parser


def main() -> int:
    parser = _parser()
    options = parser.parse_args()
    if options.verb == "run" and options.command[:1] == ["--"]:
        del options.command[0]
    if options.verb == "run" and not options.command:
        parser.error("run what?")
    if options.verb in ("run", "up") and (options.workers < 1 or options.threads < 1):
        parser.error("--workers and --threads must be at least 1")
    try:
        return {"run": run, "up": up, "down": down, "status": status}[options.verb](options)
    except StartError as error:
        return _fail(str(error))


if __name__ == "__main__":
    sys.exit(main())
