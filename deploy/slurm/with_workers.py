"""Run a command with a cluster of SLURM jobs: python with_workers.py --jobs 8 streamkernel fit STORE MODEL --resume

The scheduler runs here, in the job that called; the workers are SLURM jobs of their own, as jobqueue.yaml beside this
file describes them, and are replaced when their lifetime ends. The command finds the scheduler by its environment.
Certificates are those that deploy/tls.sh made, in a folder that all nodes see.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
from dask_jobqueue import SLURMCluster
from distributed import Client
from distributed.security import Security

_HERE = Path(__file__).resolve().parent
_FILES = {"ca": "ca.pem", "cert": "client.pem", "key": "client-key.pem"}


def security_of(tls: Path) -> Security:
    """What scheduler, workers and this process show each other."""
    roles = {
        f"tls_{role}_{what}": str(tls / f"{role}{suffix}.pem")
        for role in ("scheduler", "worker", "client")
        for what, suffix in (("cert", ""), ("key", "-key"))
    }
    return Security(require_encryption=True, tls_ca_file=str(tls / "ca.pem"), **roles)


def settings(path: Path) -> None:
    """Dask's settings: ours, then those of `path`."""
    ours = _HERE.parent / "dask.yaml"
    for one in dask.config.collect_yaml([str(ours), str(path)]):
        dask.config.update(dask.config.config, one, priority="new")


def cluster_of(tls: Path) -> SLURMCluster:
    return SLURMCluster(security=security_of(tls), protocol="tls://")


def run(command: list[str], cluster: SLURMCluster, tls: Path) -> int:
    """The command's exit status; SIGTERM goes on to it, so that it can keep what it has."""
    given = {f"STREAMKERNEL_TLS_{what.upper()}": str(tls / file) for what, file in _FILES.items()}
    environment = {**os.environ, **given, "STREAMKERNEL_SCHEDULER": cluster.scheduler_address}
    with subprocess.Popen(command, env=environment) as process:

        def pass_on(number: int, frame: Any) -> None:
            process.send_signal(number)

        signal.signal(signal.SIGTERM, pass_on)
        status = process.wait()
    return status if status >= 0 else 128 - status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=4, help="workers, a SLURM job each [4]")
    parser.add_argument("--config", type=Path, default=_HERE / "jobqueue.yaml")
    parser.add_argument("--tls", type=Path, default=Path(os.environ.get("STREAMKERNEL_TLS_FOLDER", "tls")))
    parser.add_argument("--patience", default="1h", help="to wait for the first worker in SLURM's queue [1h]")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("run what?")
    if not (options.tls / "ca.pem").is_file():
        parser.error(
            f"there are no certificates in {options.tls}; make them with deploy/tls.sh and name them with --tls"
        )
    # While it waits in the queue nothing is to be kept, but the workers' jobs are to be cancelled.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    settings(options.config)
    tls = options.tls.resolve()
    with cluster_of(tls) as cluster:
        # Those whose lifetime has ended are replaced.
        cluster.adapt(minimum_jobs=options.jobs, maximum_jobs=options.jobs)
        with Client(cluster, security=security_of(tls)) as client:
            client.wait_for_workers(1, timeout=options.patience)
        return run(options.command, cluster, tls)


if __name__ == "__main__":
    sys.exit(main())
