"""scripts/cluster: everything comes up, tells where it is, and nothing is left behind, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from clusters import ROOT, StartError, topology

SCRIPT = [sys.executable, str(ROOT / "scripts" / "_cluster.py")]
FEW = ["--no-service", "--workers", "1"]


def of_folder(folder: Path) -> list[psutil.Process]:
    """Processes that name the folder, or whose log lies in it."""
    found = []
    for process in psutil.process_iter(["cmdline", "pid"]):
        words = process.info["cmdline"] or []
        if process.info["pid"] != os.getpid() and any(str(folder) in word for word in words):
            found.append(process)
    return found


def lives(pid: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def gone(folder: Path, pids: set[int], seconds: float = 15.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not of_folder(folder) and not any(map(lives, pids)):
            return True
        time.sleep(0.1)
    return False


def family(pid: int) -> set[int]:
    return {child.pid for child in psutil.Process(pid).children(recursive=True)}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], set[int]]]:
    """A cluster whose command only waits."""
    ready = tmp_path / "ready"
    command = [*SCRIPT, "run", *FEW, "--folder", str(tmp_path / "c"), "sh", "-c", f"touch {ready}; sleep 600"]
    with subprocess.Popen(command, text=True, stderr=subprocess.PIPE) as process:
        try:
            while not ready.exists():
                assert process.poll() is None, process.stderr.read()  # type: ignore[union-attr]
                time.sleep(0.05)
            yield process, family(process.pid)
        finally:
            process.kill()


@pytest.mark.slow
def test_run_gives_the_command_its_addresses_and_status(tmp_path: Path) -> None:
    code = """
import json, os, sys
import boto3
from distributed import Client
with Client(os.environ["STREAMKERNEL_SCHEDULER"]) as client:
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    seen = client.submit(os.getenv, "AWS_ENDPOINT_URL").result()
    threads = client.submit(os.getenv, "NUMBA_NUM_THREADS").result()
boto3.client("s3").put_object(Bucket="streamkernel", Key="a", Body=b"b")
json.dump({"workers": len(workers), "s3": seen, "threads": threads}, open(sys.argv[1], "w"))
sys.exit(7)
"""
    told, folder = tmp_path / "told.json", tmp_path / "c"
    command = [*SCRIPT, "run", "--no-service", "--folder", str(folder), "--", sys.executable, "-c", code, str(told)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    found = json.loads(told.read_text())
    assert found["workers"] == 2
    assert found["s3"].startswith("http://127.0.0.1:")
    assert found["threads"] == "1"  # deploy/dask.yaml reached the nanny
    assert {path.name for path in folder.glob("*.log")} == {"scheduler.log", "worker-0.log", "worker-1.log", "s3.log"}
    assert gone(folder, set())


@pytest.mark.slow
def test_the_whole_topology_with_tls(tmp_path: Path) -> None:
    code = """
import json, os, ssl, sys, urllib.request
import boto3
from streamkernel.engine.security import connect_client
with connect_client(os.environ["STREAMKERNEL_SCHEDULER"]) as client:
    client.wait_for_workers(2, timeout=30)
boto3.client("s3").put_object(Bucket="streamkernel", Key="a", Body=b"b")
token = open(os.environ["STREAMKERNEL_TOKEN_FILE"]).read().strip()
context = ssl.create_default_context(cafile=os.environ["STREAMKERNEL_TLS_CA"])
def ask(path, **headers):
    request = urllib.request.Request(os.environ["STREAMKERNEL_SERVICE"] + path, headers=headers)
    try:
        return urllib.request.urlopen(request, context=context, timeout=10).status
    except urllib.error.HTTPError as error:
        return error.code
print(ask("/healthz"), ask("/metrics"), ask("/metrics", Authorization=f"Bearer {token}"))
"""
    folder = tmp_path / "c"
    command = [*SCRIPT, "run", "--tls", "--folder", str(folder), "--", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "200 401 200\n", done.stderr
    assert done.returncode == 0
    for name in ("token", "tls/client-key.pem"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    assert gone(folder, set())


SLOW = [pytest.param(number, marks=pytest.mark.slow) for number in (signal.SIGINT, signal.SIGHUP)]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, *SLOW])
def test_a_signal_ends_all(running: tuple[Any, set[int]], tmp_path: Path, number: signal.Signals) -> None:
    process, pids = running
    assert len(pids) >= 4  # the command, the scheduler, a nanny, its worker, S3
    if number == signal.SIGINT:
        # As a terminal does: to the whole foreground.
        for one in psutil.Process(process.pid).children(recursive=True):
            if one.name() in ("sh", "sleep"):
                one.send_signal(number)
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    assert gone(tmp_path / "c", pids)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a child learns of its parent's death on Linux only")
def test_even_kill_9_leaves_no_cluster(running: tuple[Any, set[int]], tmp_path: Path) -> None:
    process, pids = running
    sleeping = [one for one in psutil.Process(process.pid).children(recursive=True) if one.name() == "sleep"]
    process.kill()
    try:
        # What the command itself started, a shell's child, nobody tells.
        assert gone(tmp_path / "c", pids - {one.pid for one in sleeping})
    finally:
        for one in sleeping:
            one.kill()


@pytest.mark.slow
def test_up_status_down(tmp_path: Path) -> None:
    folder = ["--folder", str(tmp_path / "c")]
    up = subprocess.run([*SCRIPT, "up", *FEW, "--no-s3", *folder], capture_output=True, text=True, check=False)
    try:
        assert up.returncode == 0, up.stderr
        exported = dict(line.removeprefix("export ").split("=", 1) for line in up.stdout.splitlines()[1:])
        assert exported["STREAMKERNEL_SCHEDULER"].startswith("tcp://127.0.0.1:")
        state = tmp_path / "c" / "cluster.json"
        assert state.stat().st_mode & 0o777 == 0o600  # it holds the token and the keys of the store
        pids = {one["pid"] for one in json.loads(state.read_text())["processes"]}
        again = subprocess.run([*SCRIPT, "up", *folder], capture_output=True, text=True, check=False)
        assert again.returncode == 1
        assert "runs in" in again.stderr
        status = subprocess.run([*SCRIPT, "status", *folder], capture_output=True, text=True, check=False)
        assert status.returncode == 0
        assert len(status.stdout.splitlines()) == 2
        os.kill(max(pids), signal.SIGKILL)
        status = subprocess.run([*SCRIPT, "status", *folder], capture_output=True, text=True, check=False)
        assert status.returncode == 1
        assert "ENDED" in status.stdout
    finally:
        down = subprocess.run([*SCRIPT, "down", *folder], capture_output=True, text=True, check=False)
    assert down.returncode == 0, down.stderr
    assert gone(tmp_path / "c", pids)
    assert subprocess.run([*SCRIPT, "status", *folder], capture_output=True, check=False).returncode == 1


@pytest.mark.slow
def test_what_does_not_come_up_is_told_and_ended(tmp_path: Path) -> None:
    cluster = topology(tmp_path / "c", s3=False, service=False, workers=1, memory="much")
    with pytest.raises(StartError, match=r"(?s)the workers ended while .*worker-0\.log ends with:.*much"):
        cluster.start()
    assert cluster.processes.running == []
    assert gone(tmp_path / "c", set())


@pytest.mark.slow
def test_no_such_command(tmp_path: Path) -> None:
    command = [*SCRIPT, "run", *FEW, "--no-s3", "--folder", str(tmp_path / "c"), "no-such-command"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert done.stderr == "error: there is no command no-such-command\n"
    assert gone(tmp_path / "c", set())
