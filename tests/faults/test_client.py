"""The client of a fit is ended: kill -9 leaves a good checkpoint, SIGTERM ends the sweep and then the process."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import ROWS, Counter, fit, run_of

from streamkernel.cli import main
from streamkernel.models import RidgeModel

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.fault("client killed")
@pytest.mark.parametrize(
    "when", [pytest.param((2,), id="after a sweep", marks=pytest.mark.slow), pytest.param((3, ROWS // 2), id="in one")]
)
def test_killed(store: str, whole: Any, tmp_path: Path, figure: Any, when: tuple[int, ...]) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)])}
    command = [sys.executable, str(HERE / "runs.py"), store, str(tmp_path / "run"), *map(str, when)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    counter, undisturbed = Counter(), Counter()
    with run_of(store, tmp_path / "run") as checkpoints:
        assert fit(store, checkpoints=checkpoints, progress=counter).digest == whole.digest
    fit(store, progress=undisturbed)
    # What was finished is not done again.
    assert counter.begun == undisturbed.begun[2:]
    figure("equal")


def is_sweep(line: str) -> bool:
    return re.match(r"\d+\. .* rows in ", line) is not None


def options(store: str, model: Path, *more: str) -> list[str]:
    chosen = ["--basis", "64", "--rule", "rpcholesky", "--rule-option", "block=8", "--lengthscale", "3"]
    return ["fit", store, str(model), *chosen, "--scheduler", "threads", *more]


@pytest.mark.slow
@pytest.mark.fault("client ended")
def test_ended(store: str, tmp_path: Path, figure: Any) -> None:
    assert main(options(store, tmp_path / "undisturbed", "--quiet")) == 0
    command = [sys.executable, "-m", "streamkernel", *options(store, tmp_path / "model")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        # A line for every sweep that has ended; it is told within the next one.
        said: list[str] = []
        while sum(map(is_sweep, said)) < 2:
            said.append(process.stderr.readline())
            assert said[-1], said
        process.send_signal(signal.SIGTERM)
        said += process.stderr.readlines()
    assert process.returncode == 128 + signal.SIGTERM, said
    again = shlex.join(["streamkernel", *options(store, tmp_path / "model"), "--resume"])
    assert said[-1] == f"error: ended by SIGTERM between two sweeps; go on with: {again}\n"
    ended = sum(map(is_sweep, said))
    kept = [path for path in (tmp_path / ".model.run").iterdir() if re.match(r"\d{4}-", path.name)]
    # The sweep that was at work when it was told was ended, and kept.
    assert len(kept) == ended >= 2, "".join([*said, *map(str, kept)])
    assert not (tmp_path / "model").exists()
    assert main(options(store, tmp_path / "model", "--resume", "--quiet")) == 0
    model, undisturbed = (RidgeModel.load(tmp_path / name) for name in ("model", "undisturbed"))
    assert model.digest == undisturbed.digest
    assert [record["resumed"] for record in model.config["run"]["sweeps"]].count(True) == ended
    figure(f"equal, {ended} sweeps kept")
