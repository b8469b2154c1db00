"""Single files and folders that are opened for writing, but never through a link that we did not make."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from streamkernel.atomic import read_file
from streamkernel.errors import StoreAccessError

# Our metadata have kilobytes; a manifest of ten million chunks has some hundred megabytes.
_MOST_BYTES = 512 * 2**20


def refuse_link(path: Path) -> None:
    """Refuse one of our file names if somebody has replaced the file by a link.

    Raises
    ------
    StoreAccessError
        The path is a symbolic link, or a file with a second name (a hard link).
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(status.st_mode):
        raise StoreAccessError(f"{path} is a symbolic link, and nothing is written through links; remove it")
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise StoreAccessError(f"{path} has another name besides (a hard link), and is not written; remove it")


def make_own_folder(path: Path) -> None:
    """Make a folder of ours, unless it is there; refuse a link in its place."""
    path.mkdir(parents=True, exist_ok=True)
    refuse_link(path)


def read_small(path: Path) -> bytes | None:
    """The content of a file that may be our metadata; None for anything else, such as a link or a large file."""
    try:
        status = os.lstat(path)
        return read_file(path) if stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_BYTES else None
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            raise
        return None


def mounted_at() -> frozenset[str]:
    """Paths of all mount points; empty if the system does not list them."""
    # Not psutil's list: it reads /etc/mtab where that is a file, which may be stale.
    try:
        with open("/proc/self/mountinfo", "rb") as lines:
            names = [line.split()[4] for line in lines]
    except (OSError, IndexError):
        return frozenset()
    return frozenset(os.fsdecode(_unescaped(name)) for name in names)


def _unescaped(name: bytes) -> bytes:
    for code in (b" ", b"\t", b"\n", b"\\"):
        name = name.replace(b"\\%03o" % code[0], code)
    return name
