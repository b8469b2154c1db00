"""Everything that this package writes, small: how each is made, and what a reader gets from it.

`write` makes the archives beside this file; `tests/test_frozen.py` reads them with the package as it is now.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import warnings
from pathlib import Path

import numpy as np
from checkout import with_this_package
from frozen.models import MODELS
from frozen.places import PLACES
from frozen.rows import Arrays, Frozen

from streamkernel.errors import StreamKernelWarning

__all__ = ["FROZEN", "HERE", "unpacked", "write"]

HERE = Path(__file__).parent
_EXPECTED = "expected.npz"

FROZEN: dict[str, Frozen] = {**MODELS, **PLACES}


def unpacked(archive: Path, folder: Path) -> tuple[Path, Arrays]:
    """(the folder as it was written, what a reader got from it then)."""
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    with np.load(folder / _EXPECTED) as expected:
        values = dict(expected)
    (folder / _EXPECTED).unlink()
    return folder, values


def write(name: str, archive: Path) -> None:
    """Write one of `FROZEN`, and what a reader gets from it, as an archive."""
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamKernelWarning)
        folder = Path(place, name)
        folder.mkdir()
        FROZEN[name].make(folder)
        values = {key: np.asarray(value) for key, value in FROZEN[name].read(folder).items()}
        np.savez(folder / _EXPECTED, **values)
        with tarfile.open(archive, "w:xz") as opened:
            for path in sorted(folder.rglob("*")):
                opened.add(path, path.relative_to(folder), recursive=False, filter=_nobody)


def _nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """An entry that says nothing of who wrote it, and when."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    with_this_package()
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for each in sys.argv[2:] or FROZEN:
        write(each, target / f"{each}.tar.xz")
        print(each, (target / f"{each}.tar.xz").stat().st_size)
