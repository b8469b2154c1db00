"""deploy/slurm on a SLURM of three shell scripts: the workers' jobs run here, with certificates, and all ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from clusters import ROOT

SLURM = ROOT / "deploy" / "slurm"
COMMANDS = {
    # The script that it is given is gone when it returns.
    "sbatch": 'cp "$1" "$FAKE/job.$$"; setsid sh -c "echo \\$\\$ >> $FAKE/jobs; exec bash $FAKE/job.$$" '
    '>> "$FAKE/jobs.log" 2>&1 & echo "Submitted batch job $!"',
    "scancel": 'kill -TERM -- "-$1" 2>/dev/null; echo "$1" >> "$FAKE/cancelled"',
    "scontrol": 'echo "$@" >> "$FAKE/requeued"',
}


@pytest.fixture
def slurm(tmp_path: Path, foreign: Path) -> dict[str, str]:
    """Environment of a job: SLURM's commands, and the interpreter of these tests as `python`."""
    fake = tmp_path / "fake"
    fake.mkdir()
    for name, body in COMMANDS.items():
        (fake / name).write_text(f"#!/bin/sh\n{body}\n")
        (fake / name).chmod(0o755)
    path = os.pathsep.join([str(fake), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "FAKE": str(fake), "STREAMKERNEL_TLS_FOLDER": str(foreign)}


@pytest.fixture
def deploy(tmp_path: Path) -> Path:
    """The folder as an operator edits it: smaller workers, and on this machine."""
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "dask.yaml").write_text((ROOT / "deploy" / "dask.yaml").read_text())
    folder = tmp_path / "deploy" / "slurm"
    folder.mkdir()
    for name in ("with_workers.py", "fit.sbatch"):
        (folder / name).write_text((SLURM / name).read_text())
    asked: dict[str, Any] = yaml.safe_load((SLURM / "jobqueue.yaml").read_text())
    asked["jobqueue"]["slurm"] |= {"cores": 1, "memory": "2GiB", "local-directory": str(tmp_path / "scratch")}
    # Compiled loops are where other tests have them.
    prologue = asked["jobqueue"]["slurm"]["job-script-prologue"]
    asked["jobqueue"]["slurm"]["job-script-prologue"] = [line for line in prologue if "NUMBA_CACHE_DIR" not in line]
    asked["jobqueue"]["slurm"]["worker-extra-args"] += ["--host", "127.0.0.1"]
    asked["jobqueue"]["slurm"]["scheduler-options"] |= {"host": "127.0.0.1"}
    (folder / "jobqueue.yaml").write_text(yaml.safe_dump(asked))
    return folder


def workers(slurm: dict[str, str]) -> list[psutil.Process]:
    """Processes of the jobs that were submitted."""
    jobs = Path(slurm["FAKE"]) / "jobs"
    leaders = {int(word) for word in jobs.read_text().split()} if jobs.exists() else set()
    found = []
    for one in psutil.process_iter():
        try:
            if os.getpgid(one.pid) in leaders and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except (OSError, psutil.Error):
            pass
    return found


def gone(slurm: dict[str, str]) -> bool:
    deadline = time.monotonic() + 20
    while workers(slurm) and time.monotonic() < deadline:
        time.sleep(0.2)
    return not workers(slurm)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_fit_with_workers_of_slurm(slurm: dict[str, str], deploy: Path, store: Path, tmp_path: Path) -> None:
    fit = ["streamkernel", "fit", str(store), "--basis", "40", "--json", "--quiet"]
    call = [sys.executable, str(deploy / "with_workers.py"), "--jobs", "2", "--patience", "60s"]
    done = subprocess.run([*call, *fit, str(tmp_path / "m")], env=slurm, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + (Path(slurm["FAKE"]) / "jobs.log").read_text()
    threads = subprocess.run(
        [*fit, str(tmp_path / "t"), "--scheduler", "threads"], env=slurm, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["digest"] == json.loads(threads.stdout)["digest"]
    assert gone(slurm)
    assert (Path(slurm["FAKE"]) / "jobs").read_text().split()
    assert "tls://127.0.0.1" in (Path(slurm["FAKE"]) / "jobs.log").read_text()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_stopped_before_the_walltime_and_queued_again(
    slurm: dict[str, str], deploy: Path, store: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    call = ["bash", str(deploy / "fit.sbatch"), str(store), str(model), "--basis", "400", "--objective", "trace"]
    job = {**slurm, "SLURM_JOB_ID": "77", "STREAMKERNEL_DEPLOY": str(deploy), "STREAMKERNEL_WORKERS": "1"}
    with subprocess.Popen([*call, "--quiet"], env=job, text=True, stdout=subprocess.PIPE) as process:
        while not list(tmp_path.glob(".model.run/[0-9]*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert "queued again" in out
    assert (Path(slurm["FAKE"]) / "requeued").read_text() == "requeue 77\n"
    assert not model.exists()
    assert gone(slurm)

    again = {**job, "SLURM_RESTART_COUNT": "1"}
    done = subprocess.run([*call, "--json"], env=again, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["resumed_sweeps"] >= 1
    assert gone(slurm)

    # The node fails between the model and the job's end.
    done = subprocess.run([*call, "--json"], env=again, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "is there already" in done.stdout


def test_without_certificates_nothing_is_started(slurm: dict[str, str], deploy: Path, tmp_path: Path) -> None:
    call = [sys.executable, str(deploy / "with_workers.py"), "--tls", str(tmp_path / "none"), "true"]
    done = subprocess.run(call, env=slurm, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "make them with deploy/tls.sh" in done.stderr
    assert not (Path(slurm["FAKE"]) / "jobs").exists()


def test_array_hands_each_task_its_line(slurm: dict[str, str], tmp_path: Path) -> None:
    driver = tmp_path / "scripts" / "batch" / "fit_many.py"
    driver.parent.mkdir(parents=True)
    driver.write_text("import json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    (tmp_path / "tables.txt").write_text("a.zarr\nb c.zarr\n")
    array = ROOT / "scripts" / "batch" / "array.sbatch"
    job = {**slurm, "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_CPUS_PER_TASK": "4", "SLURM_MEM_PER_NODE": "16000"}
    call = ["bash", str(array), str(tmp_path / "tables.txt"), "models", "--basis", "50"]
    done = subprocess.run(call, env={**job, "SLURM_ARRAY_TASK_ID": "2"}, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout) == [
        "b c.zarr", "--out", "models/2", "--scheduler", "local", "--workers", "4", "--memory", "14400MiB",
        "--basis", "50",
    ]  # fmt: skip
    done = subprocess.run(call, env={**job, "SLURM_ARRAY_TASK_ID": "3"}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "has no line 3" in done.stderr
