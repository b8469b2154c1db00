"""kill -9 while the rows of a factor are written; the next life writes those that are missing, and no others."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamkernel import Factor
from streamkernel.cli import main
from streamkernel.fits.factor import factor as factorize

AFTER = 11
CHUNK_BYTES = 1 << 20
# In the middle of the writing of a chunk, of which there are more than twenty.
DYING = f"""
import os, signal, sys
import streamkernel.fits.factor.factor as factorize
import streamkernel.store.rows as rows
from streamkernel.cli import main
write, count = rows.write_chunk, iter(range(1000))
def dying(*arguments, **options):
    if next(count) == {AFTER}:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(*arguments, **options)
rows.write_chunk = dying
factorize._CHUNK_BYTES = {CHUNK_BYTES}
main(sys.argv[1:])
"""


def options(store: str, factor: Path, *more: str) -> list[str]:
    chosen = ["--basis", "128", "--rule", "uniform", "--lengthscale", "3", "--dtype", "float64"]
    return ["factor", store, str(factor), *chosen, "--scheduler", "threads", "--quiet", *more]


def chunks(folder: Path) -> dict[str, tuple[int, int]]:
    files = [path for path in folder.rglob("G/c/**/*") if path.is_file()]
    return {path.parent.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in files}


@pytest.mark.fault("factor")
@pytest.mark.slow
def test_it_is_gone_on_with(store: str, tmp_path: Path, figure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factorize, "_CHUNK_BYTES", CHUNK_BYTES)
    assert main(options(store, tmp_path / "undisturbed")) == 0
    command = [sys.executable, "-c", DYING, *options(store, tmp_path / "factor")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    notes = [line.split() for log in (tmp_path / "factor").rglob("*.log") for line in log.read_text().splitlines()]
    finished = {note[0].split("/")[2] for note in notes if note}
    before = {name: stamp for name, stamp in chunks(tmp_path / "factor").items() if name in finished}
    assert main(options(store, tmp_path / "factor", "--resume")) == 0
    after = chunks(tmp_path / "factor")
    assert len(after) >= 20
    assert len(before) == len(finished) >= AFTER - 2
    rewritten = sum(after[name] != stamp for name, stamp in before.items())
    factor, undisturbed = (Factor.load(tmp_path / name) for name in ("factor", "undisturbed"))
    assert factor.digest == undisturbed.digest
    same = [(tmp_path / name / "rows" / "COMPLETE").read_text() for name in ("factor", "undisturbed")]
    assert same[0] == same[1]
    assert rewritten == 0
    figure(f"digests equal, {len(before)} of {len(after)} were finished, rewritten {rewritten}")
