"""`scripts/demo`, the first command that a reader of the README runs, on fewer rows."""

from __future__ import annotations

import io
import re
import runpy
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from clusters import ROOT

from streamkernel.cli import main
from streamkernel.engine import resident_bytes


def test_the_demo_runs_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "demo"
    began: list[str] = []

    def here(command: list[str], *, cwd: Path, **given: Any) -> subprocess.CompletedProcess[str]:
        """A command of the demo in this process: a process of its own, of which there are five, takes a second more."""
        assert command[:3] == [sys.executable, "-m", "streamkernel"]
        began.append(command[3])
        with monkeypatch.context() as inside, redirect_stdout(io.StringIO()) as out:
            inside.chdir(cwd)
            status = main(command[3:])
        return subprocess.CompletedProcess(command, status, out.getvalue())

    monkeypatch.setattr(subprocess, "run", here)
    # The workers of each command would take longer to start than its work: tests/cli has the local cluster.
    monkeypatch.setenv("STREAMKERNEL_SCHEDULER", "threads")
    # The program behind the script, which first makes an environment.
    program = str(ROOT / "scripts" / "_demo.py")
    # What this process and the clusters of other tests hold counts, too: gigabytes late in a run.
    memory = str(resident_bytes() + 2_500_000_000)
    given = ["--rows", "6000", "--basis", "50", "--memory", memory, "--folder", str(folder)]
    monkeypatch.setattr(sys, "argv", [program, *given])
    runpy.run_path(program, run_name="__main__")
    said = capsys.readouterr().out
    assert began == ["ingest", "fit", "evaluate", "predict", "report"]
    for name in ("model.zarr", "predictions.zarr", "report.html", "report.png"):
        assert (folder / name).exists(), name
    error = re.search(r"error on held-out rows \(root mean square\)\s+(\d\.\d+)", said)
    noise_free = re.search(r"error against the noise-free function\s+(\d\.\d+)", said)
    assert error is not None
    assert noise_free is not None
    # Noise of deviation 1 on 600 rows; the function itself is known far better.
    assert 0.9 < float(error[1]) < 1.2
    assert float(noise_free[1]) < 0.5
    assert "600 in" in said
