"""The disk fills up under a fit: what was there stays valid, and the fit goes on once there is room."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
# A small file system of its own, gone with the process; not everybody may mount one.
MOUNTED = 'mount -t tmpfs -o size=4m none "$0" && exec "$@"'


def run(what: str, store: str, folder: Path) -> dict[str, Any]:
    disk, room = folder / "disk", folder / "room"
    disk.mkdir()
    room.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)])}
    command = [sys.executable, str(HERE / "full_disk.py"), what, store, str(disk), str(room)]
    unshare = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    try:
        can = subprocess.run([*unshare, MOUNTED, str(disk), "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        can = False
    mounted = [*unshare, MOUNTED, str(disk), *command] if can else command
    done = subprocess.run(mounted, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(found: dict[str, Any], whole: Any, left: list[str]) -> None:
    assert "no space left" in found["error"]
    assert found["former is valid"]
    assert found["digest"] == whole.digest
    assert found["left"] == left
    assert found["seconds"] <= 5.0


@pytest.mark.slow
@pytest.mark.fault("full output")
def test_output(store: str, whole: Any, tmp_path: Path, figure: Any) -> None:
    found = run("output", store, tmp_path)
    check(found, whole, ["model"])
    figure(f"error in {found['seconds']:.1f} s, equal")


@pytest.mark.fault("full checkpoint")
@pytest.mark.slow
def test_checkpoint(store: str, whole: Any, tmp_path: Path, figure: Any) -> None:
    found = run("checkpoint", store, tmp_path)
    check(found, whole, ["model", "run"])
    # The sweep whose state found no room was the last.
    assert found["kept"] == found["sweeps begun"] - 1 == 3
    figure(f"error in {found['seconds']:.1f} s, equal")
