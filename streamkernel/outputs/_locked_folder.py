"""Folders that are locked as long as their maker lives, so that other processes know which ones were left behind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from streamkernel.atomic import HeldLock
from streamkernel.errors import StoreError

# Suffix of a folder that has no lock yet. It is empty, so that whoever looks for strays removes it, whoever made it.
UNNAMED = ".new"
_TRIES = 100


def locked_folder(new_path: Callable[[], Path], *, mode: int = 0o777) -> tuple[Path, HeldLock | None]:
    """Make a folder, and lock it before it gets the name by which other processes look for strays.

    Until then it is empty, and another process may remove it; then this makes another one.

    Parameters
    ----------
    new_path : function that gives a path that nobody else has; its suffix is replaced by `UNNAMED` at first.
    mode : permissions of the folder.

    Returns
    -------
    The folder, and its lock: None where the file system has no locks (some network ones). There a stray folder stays;
    it does no other harm.
    """
    for _ in range(_TRIES):
        path = new_path()
        unnamed = path.with_suffix(UNNAMED)
        unnamed.mkdir(mode=mode)
        lock: HeldLock | None = None
        try:
            with suppress(OSError):
                lock = HeldLock.acquire(unnamed)
            unnamed.rename(path)
        except FileNotFoundError:
            if lock is not None:
                lock.release()
            continue
        return path, lock
    raise StoreError(f"no folder can be made in {path.parent}: another process removes it each time; stop that one")
