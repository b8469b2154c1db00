"""Peers that are too heavy or too old for our environment: each has its own, `.venv-NAME`, made when asked for."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
_TORCH = ("gpytorch==1.15.2", "numpy>=2")
# Packages of each peer. A second choice is for indexes that have no build for processors alone.
PEERS = {
    "peers": (("torch==2.13.0+cpu", *_TORCH), ("torch==2.13.0", *_TORCH)),
    # EigenPro is on no index; xRFM's package has it, by its authors.
    "eigenpro": (
        ("torch==2.13.0+cpu", "xrfm==0.4.5", "numpy>=2"),
        ("torch==2.13.0", "xrfm==0.4.5", "numpy>=2"),
    ),
    "thundersvm": (("thundersvm-cpu==0.3.3", "numpy>=2", "scipy>=1.15", "scikit-learn>=1.6"),),
}


def peer_python(name: str = "peers", *, install: bool) -> Path | None:
    """The interpreter that has a peer; None where it cannot be had.

    Parameters
    ----------
    install : whether a peer that is not there is installed, which may take gigabytes: not by `--quick`.
    """
    folder = HERE.parents[1] / f".venv-{name}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        if not install:
            return None
        print(f"installing {', '.join(PEERS[name][0])} into {folder.name} (once)", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        for packages in PEERS[name]:
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
