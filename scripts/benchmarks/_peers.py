"""Peers that are too heavy for our environment: they have one of their own, `.venv-peers`, made when asked for."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / ".venv-peers"
WANTED = ("torch==2.13.0+cpu", "gpytorch==1.15.2", "numpy>=2")
# Where the index has no build for processors alone.
WITHOUT_BUILD = ("torch==2.13.0", *WANTED[1:])


def peer_python() -> Path | None:
    """The interpreter that has GPyTorch; None where it cannot be had."""
    python, ready = FOLDER / "bin" / "python", FOLDER / "ready"
    if not ready.exists():
        print(f"installing {', '.join(WANTED)} into {FOLDER.name} (once)", file=sys.stderr)
        venv.create(FOLDER, with_pip=True, clear=True)
        for packages in (WANTED, WITHOUT_BUILD):
            command = [str(python), "-m", "pip", "install", "--quiet", *packages]
            if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0:
                ready.touch()
                break
        else:
            return None
    return python


def in_peer_process(python: Path, code: str, argument: str) -> dict[str, Any]:
    """The line of JSON that the private module `code` beside this file prints."""
    command = [str(python), str(HERE / f"{code}.py"), argument]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{code} ended with status {done.returncode}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
