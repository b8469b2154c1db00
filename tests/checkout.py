"""Scripts of the tests that write files of this checkout: what they write is to be by its package, and no other."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import streamkernel

ROOT = Path(__file__).resolve().parents[1]


def with_this_package() -> None:
    """Run the script again with the package of this checkout, where Python has found another one.

    Python looks for packages beside a script, and then among the installed ones, whatever the folder it is called from.
    """
    if Path(streamkernel.__file__).resolve().parents[1] == ROOT:
        return
    first, *others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if first == str(ROOT):
        raise SystemExit(f"{streamkernel.__file__} stands before the package of {ROOT}")
    path = os.pathsep.join(filter(None, [str(ROOT), first, *others]))
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONPATH": path})
