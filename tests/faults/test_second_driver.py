"""A run has one driver: a second one is refused at once and writes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import At, fit, run_of

HERE = Path(__file__).parent


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_ino) for path in sorted(folder.rglob("*"))}


@pytest.mark.slow
@pytest.mark.fault("second driver")
def test_it_is_refused(store: str, whole: Any, tmp_path: Path, figure: Any) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)])}
    command = [sys.executable, str(HERE / "runs.py"), store, str(tmp_path / "run"), "99"]
    found: list[Any] = []

    def drive_too() -> None:
        before = stamps(tmp_path)
        assert before
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        found.extend([done, before == stamps(tmp_path)])

    # Between two sweeps: the first one writes nothing meanwhile.
    with run_of(store, tmp_path / "run") as checkpoints:
        assert fit(store, checkpoints=checkpoints, progress=At(3, drive_too, 0)).digest == whole.digest
    loser, unchanged = found
    assert loser.returncode == 1
    assert "RunLockedError: the run in " in loser.stderr
    assert f"is being driven by process {os.getpid()}" in loser.stderr
    assert unchanged
    figure("one loser, 0 writes")
