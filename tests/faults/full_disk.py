"""A fit on a disk that fills up; prints what became of it as JSON.

python full_disk.py WHAT STORE DISK ROOM    WHAT: "output", "checkpoint"; DISK is a small file system, or where there is
                                            none, a limit on the size of files stands for it; ROOM is on another disk
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

from runs import At, fit, run_of, settings

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import StoreError
from streamkernel.fits import fit_ridge
from streamkernel.models import RidgeModel
from streamkernel.table import open_table

_LEFT = 8192


def fill(disk: Path) -> None:
    """Leave room for metadata, not for an array."""
    if not os.path.ismount(disk):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (_LEFT, resource.RLIM_INFINITY))
        return
    with open(disk / "ballast", "wb", buffering=0) as ballast:
        while (free := os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - _LEFT) > 0:
            ballast.write(bytes(min(free, 1 << 16)))


def empty(disk: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    (disk / "ballast").unlink(missing_ok=True)


def main(what: str, store: str, disk: Path, room: Path) -> dict[str, object]:
    model, folder = disk / "model", (disk if what == "checkpoint" else room) / "run"
    former = fit_ridge(open_table(store), settings(16), Session(ThreadExecutor(1)))
    former.save(model)
    full = [0.0]

    def run_full() -> None:
        fill(disk)
        full[0] = time.monotonic()

    watcher = At(3, run_full, 0)
    error = ""
    try:
        with run_of(store, folder) as checkpoints:
            fitted = fit(store, checkpoints=checkpoints, progress=watcher)
            full[0] = time.monotonic()
            fitted.save(model, overwrite=True)
    except StoreError as caught:
        error = str(caught)
    seconds = time.monotonic() - full[0]
    valid = RidgeModel.load(model).digest == former.digest
    kept = sorted(path.name[:4] for path in folder.glob("[0-9]*"))
    empty(disk)
    with run_of(store, folder) as checkpoints:
        resumed = fit(store, checkpoints=checkpoints)
        resumed.save(model, overwrite=True)
    return {
        "error": error,
        "seconds": seconds,
        "former is valid": valid,
        "kept": len(kept),
        "sweeps begun": len(watcher.begun),
        "digest": RidgeModel.load(model).digest,
        "left": sorted(path.name for path in disk.iterdir()),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
