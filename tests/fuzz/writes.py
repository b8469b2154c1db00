"""What a process is about to write, told by Python itself: also what lies outside of the folder that is looked at."""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["written_outside"]

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Events of functions that change a path: where in their arguments it is, and the folder that it is relative to.
_CHANGING = {
    "os.mkdir": [(0, 2)], "os.rmdir": [(0, 1)], "os.remove": [(0, 1)], "os.truncate": [(0, None)],
    "os.rename": [(0, 2), (1, 3)], "os.link": [(1, 3)], "os.symlink": [(1, 2)], "os.chmod": [(0, 2)],
}  # fmt: skip
_NOWHERE = ("/dev/null", "/dev/tty")
# Of compilers.
_CACHES = ("__pycache__", ".nbi", ".nbc", ".pyc")

_listening: list[list[str]] = []
_installed: list[bool] = []


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if not _listening:
        return
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, (str, bytes)) and isinstance(flags, int) and flags & _WRITING:
            _listening[-1].append(os.path.realpath(os.fsdecode(path)))
    elif event in _CHANGING:
        for at, folder in _CHANGING[event]:
            path, base = arguments[at], -1 if folder is None else arguments[folder]
            if not isinstance(path, (str, bytes)):
                continue
            if base != -1 and base is not None:
                path = os.path.join(os.readlink(f"/proc/self/fd/{base}"), os.fsdecode(path))
            # The entry itself, be it a link.
            around, name = os.path.split(os.path.abspath(os.fsdecode(path)))
            _listening[-1].append(os.path.join(os.path.realpath(around), name))


@contextmanager
def written_outside(folder: Path) -> Iterator[list[str]]:
    """Paths that were opened for writing, made, renamed or removed, in the end those that are not below `folder`."""
    if not _installed:
        # Audit hooks stay as long as the process.
        sys.addaudithook(_heard)
        _installed.append(True)
    roots = (os.path.realpath(folder), os.path.realpath(tempfile.gettempdir()), sysconfig.get_path("purelib"))
    _listening.append([])
    try:
        yield (found := [])
    finally:
        found += [
            path
            for path in dict.fromkeys(_listening.pop())
            if not any(path == root or path.startswith(f"{root}/") for root in roots)
            and path not in _NOWHERE
            and not any(word in path for word in _CACHES)
        ]
