"""Errors of the operating system as errors of ours, which name the action, the path and the remedy."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamkernel.errors import StoreAccessError, StoreError, StoreNotFoundError

_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def translated_os_errors(path: str | Path, doing: str, state: str = "") -> Iterator[None]:
    """Turn the operating system's errors into ours, which name the action, the path and the remedy.

    `state` says in the message what became of the path.
    """
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        found = store_error(error, path, doing)
        if state:
            found = type(found)(f"{found.what} ({state})", remedy=found.remedy)
        raise found from error


def store_error(error: OSError, path: str | Path, doing: str) -> StoreError:
    """Our error for an error of the operating system; see `translated_os_errors`."""
    name = error.filename or path
    if isinstance(error, PermissionError):
        return StoreAccessError(f"no permission for {name} while {doing} {path}", remedy="ask its owner")
    if error.errno == errno.ELOOP:
        return StoreAccessError(
            f"{name} is a link, or has another name besides, and nothing is written through links while {doing} {path}",
            remedy="remove it",
        )
    if error.errno == errno.EROFS:
        return StoreAccessError(
            f"the file system is read-only while {doing} {path}",
            remedy="choose a path on another one, or have it mounted for writing",
        )
    if error.errno in _DISK_FULL:
        return StoreError(
            f"no space left while {doing} {path} ({error.strerror})",
            remedy="free some or use another disk, then run again",
        )
    if error.errno == errno.ENAMETOOLONG:
        # The whole path would fill the terminal.
        return StoreError(
            f"{str(name)[:100]}... is a longer path, or has a longer name in it, than this system takes",
            remedy="choose a shorter one",
        )
    if isinstance(error, FileNotFoundError):
        return StoreNotFoundError(f"{name} vanished while {doing} {path}", remedy="is another process removing it?")
    return StoreError(f"input/output error while {doing} {path}: {error.strerror or error}", remedy="run again")


def is_disk_full(error: StoreError) -> bool:
    """Whether an error of ours says that a disk, or the user's share of it, is full."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _DISK_FULL


def check_link(path: Path) -> None:
    """Refuse a symbolic link that leads nowhere: what it names is not there, or is this link again.

    Raises
    ------
    StoreNotFoundError
        It says where the link points.
    """
    try:
        path.stat()
    except OSError as error:
        why = {errno.ELOOP: "and leads back to itself", errno.ENOENT: "and nothing is there"}.get(error.errno or 0)
        if why is not None and path.is_symlink():
            raise StoreNotFoundError(
                f"{path} is a symbolic link to {os.readlink(path)}, {why}",
                remedy="mend the link, or give another path",
            ) from error


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without unprintable characters and not too long; its class if it has none."""
    lines = str(error).strip().splitlines()
    if not lines:  # drivers give timeouts no text, each a class of its own
        return "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
    # An answer of S3 goes on with its page of XML.
    line = lines[0].partition(": <?xml")[0][:200]
    return "".join(letter for letter in line if letter.isprintable())
