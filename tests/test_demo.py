"""`scripts/demo`, the first command that a reader of the README runs, on fewer rows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from clusters import ROOT


def test_the_demo_runs_from_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    # The program behind the script, which first makes an environment.
    command = [sys.executable, str(ROOT / "scripts" / "_demo.py"), "--rows", "6000", "--basis", "50"]
    # The workers of each command would take longer to start than its work: tests/cli has the local cluster.
    threads = {**os.environ, "STREAMKERNEL_SCHEDULER": "threads"}
    given = [*command, "--folder", str(folder)]
    done = subprocess.run(given, env=threads, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("model.zarr", "predictions.zarr", "report.html", "report.png"):
        assert (folder / name).exists(), name
    error = re.search(r"error on held-out rows \(root mean square\)\s+(\d\.\d+)", done.stdout)
    noise_free = re.search(r"error against the noise-free function\s+(\d\.\d+)", done.stdout)
    assert error is not None
    assert noise_free is not None
    # Noise of deviation 1 on 600 rows; the function itself is known far better.
    assert 0.9 < float(error[1]) < 1.2
    assert float(noise_free[1]) < 0.5
    assert "600 in" in done.stdout
