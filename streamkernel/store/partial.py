"""Where an output is built before it gets its name: `.NAME.xxxxxxxx.partial` beside it, locked by its builder.

A builder that dies (kill -9, power) leaves its folder behind, but not its lock: the next builder of the same output
sees that nobody holds the folder and removes it. A folder that someone still builds in is left alone.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from streamkernel.atomic import partial_sibling, publish_folder
from streamkernel.blobs import is_url, local_path
from streamkernel.errors import StoreAccessError, StoreError, StoreExistsError, StoreNotFoundError
from streamkernel.manifest import ROWS_FORMAT
from streamkernel.store.lock import HeldLock
from streamkernel.store.objects import check_url

__all__ = ["PartialFolder", "check_target", "publish", "remove_stray_partials", "translated_os_errors"]

_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def translated_os_errors(path: str | Path, doing: str) -> Iterator[None]:
    """Turn the operating system's errors into ours: what was being done, to which path, what helps."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        name = error.filename or path
        if isinstance(error, PermissionError):
            raise StoreAccessError(f"no permission for {name} while {doing} {path}; ask its owner") from error
        if error.errno in _DISK_FULL:
            raise StoreError(
                f"no space left while {doing} {path} ({error.strerror}); free some or use another disk, then run again"
            ) from error
        if isinstance(error, FileNotFoundError):
            raise StoreNotFoundError(
                f"{name} vanished while {doing} {path}; is another process removing it?"
            ) from error
        raise StoreError(f"input/output error while {doing} {path}: {error.strerror or error}; run again") from error


def check_target(
    path: str | os.PathLike[str], *, overwrite: bool = False, kind: Literal["bundle", "rows"] = "bundle"
) -> str | Path:
    """Refuse an output path or URL before any work starts; return it as an absolute path, or as text.

    Parameters
    ----------
    path
        Where the output shall be. Missing parent folders are no error; nothing is created here.
    overwrite
        Whether an existing output may be replaced. An empty folder may always be.
    kind
        What the output is: only an output of the same kind is ever replaced, so that a mistyped path costs no data.

    Raises
    ------
    StoreExistsError
        Something is there and `overwrite` is false, or it is no output of this kind.
    StoreAccessError
        The folder that would hold it may not be written.
    """
    if is_url(path):
        return check_url(os.fspath(path), overwrite=overwrite, kind=kind)
    target = local_path(path)
    with translated_os_errors(target, "checking"):
        if os.path.lexists(target) and not _is_empty_folder(target):
            if not overwrite:
                raise StoreExistsError(f"{target} exists; choose another path or ask for overwrite")
            if not _is_output(target, kind):
                what = "a saved model or state" if kind == "bundle" else "an output of rows"
                raise StoreExistsError(f"{target} exists and is not {what}; remove it yourself or choose another path")
        parent = next(folder for folder in target.parents if folder.exists())
        if not parent.is_dir():
            raise StoreError(f"{parent} is a file, so {target} cannot be made in it; choose another path")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise StoreAccessError(f"no permission to write in {parent}; choose another path or ask its owner")
    return target


class PartialFolder:
    """A folder to build `target` in, locked meanwhile; `publish` gives it its name, `abandon` removes it."""

    def __init__(self, target: Path) -> None:
        self.target = target
        with translated_os_errors(target, "creating"):
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_stray_partials(target.parent, target.name)
            self.path = partial_sibling(target)
            # Locked before it has the name under which others look for strays: no moment in which it looks abandoned.
            unnamed = self.path.with_suffix(".new")
            unnamed.mkdir()
            self._lock: HeldLock | None = None
            with suppress(OSError):
                # Without locks (some network file systems) a stray folder stays; that is all.
                self._lock = HeldLock.acquire(unnamed)
            os.rename(unnamed, self.path)

    def publish(self, *, overwrite: bool = False) -> None:
        """Give the finished folder its name; `overwrite` replaces what has it now, in one step."""
        publish(self.path, self.target, overwrite=overwrite)
        self._release()

    def abandon(self) -> None:
        """Remove what was built so far; nothing happens after `publish`."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()


def publish(folder: Path, target: Path, *, overwrite: bool = False) -> None:
    """Move a finished folder to its name, which an empty folder may have; `overwrite` replaces what has it now."""
    with translated_os_errors(target, "publishing"):
        if not overwrite and _is_empty_folder(target):
            with suppress(OSError):
                target.rmdir()
        try:
            publish_folder(folder, target, overwrite=overwrite)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or isinstance(error, StoreError):
                raise
            # Another writer published between the look and the rename.
            publish_folder(folder, target, overwrite=overwrite)


def remove_stray_partials(folder: Path, name: str | None = None) -> None:
    """Remove partial folders (of the output `name`, or of any) whose builders are gone."""
    stray = re.compile(rf"\.{re.escape(name) if name else '.+'}\.[0-9a-f]{{8}}\.partial")
    for path in folder.iterdir():
        if stray.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            with suppress(OSError):
                lock = HeldLock.acquire(path)
                if lock is not None:
                    shutil.rmtree(path, ignore_errors=True)
                    lock.release()


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def _is_output(path: Path, kind: str) -> bool:
    if kind == "bundle":
        return (path / "config.json").is_file()
    try:
        with open(path / "zarr.json", "rb") as handle:
            return f'"{ROWS_FORMAT}"'.encode() in handle.read(2**16)
    except OSError:
        return False
