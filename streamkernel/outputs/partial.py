"""The folder in which an output is built: `.NAME.xxxxxxxx.partial` beside its target, locked by its builder.

A builder that dies (kill -9, power failure) leaves its folder, but not its lock. The next builder of the same output
finds the folder unlocked and removes it. A folder in which another process still builds is left alone. So it is with
the former output, `.NAME.xxxxxxxx.former`, where the file system cannot exchange two names.
"""

from __future__ import annotations

import errno
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

from streamkernel.atomic import HeldLock, partial_sibling, publish_folder
from streamkernel.blobs import LocalBlobs, translated_os_errors
from streamkernel.errors import InputChangedError, StoreError
from streamkernel.manifest import COMPLETE
from streamkernel.outputs._locked_folder import UNNAMED, locked_folder
from streamkernel.outputs.building import Building
from streamkernel.outputs.complete import Kind
from streamkernel.outputs.replace import check_output, is_empty_folder, is_only_ours, remove_former, whole_in

# How long a former output, locked by another process, is waited for.
_CLEAR_SECONDS = 2.0


class PartialFolder(Building):
    """A locked folder in which `target` is built; `publish` gives it its name, `abandon` removes it.

    Parameters
    ----------
    target : path of the output.
    kind : kind of the output, which decides what it may replace; None for a place of our own, where it replaces all.
    grown : whether it is the next generation of the output, which also has the files in it that are not ours. The
        caller holds the lock of the generation that is there now.
    """

    target: Path
    prefix = ""

    def __init__(self, target: Path, kind: Kind | None, *, grown: bool = False) -> None:
        self.target, self.kind = target, kind
        with translated_os_errors(target, "creating"):
            self._former = target.stat().st_ino if grown else None
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_stray_partials(target.parent, target.name)
            _remove_replaced(target)
            self.folder, self._lock = locked_folder(lambda: partial_sibling(target))
        self.blobs = LocalBlobs(self.folder)

    def publish(self, complete: bytes, *, overwrite: bool = False) -> None:
        self.blobs.write(COMPLETE, complete)
        if self._former is not None:
            # The caller holds the lock of the former generation, so it is not waited for.
            if not publish_folder(self.folder, self.target, remove_former, overwrite=True, former=self._former):
                raise InputChangedError(
                    f"{self.target} was replaced while rows were being appended to it; nothing was appended: run again"
                )
        else:
            publish(self.folder, self.target, self.kind, overwrite=overwrite)
        self._release()

    def abandon(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()


def publish(folder: Path, target: Path, kind: Kind | None, *, overwrite: bool = False) -> None:
    """Rename a finished folder to its target, which may be an empty folder; `overwrite` replaces an existing output."""
    with translated_os_errors(target, "publishing"):
        if kind is not None and overwrite:
            # The first check was before the work began, which may be hours ago.
            check_output(target, kind, overwrite=True)
        if is_empty_folder(target):
            with suppress(OSError):
                target.rmdir()
        former = _clear if kind is not None else lambda folder, successor: remove_any(folder)
        try:
            publish_folder(folder, target, former, overwrite=overwrite)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or isinstance(error, StoreError):
                raise
            # Another writer published between the check and the rename.
            publish_folder(folder, target, former, overwrite=overwrite)


def _clear(folder: Path, successor: Path) -> None:
    """Remove a former output, unless another builder took it for a stray and is removing it now.

    Its own builder may still hold its lock, between publishing and release, and another builder for the moment in
    which it looks for strays. So the lock is waited for; a folder left after that is a stray of the next builder.
    """
    until = time.monotonic() + _CLEAR_SECONDS
    lock: HeldLock | None = None
    try:
        while (lock := HeldLock.acquire_current(folder)) is None:
            if time.monotonic() > until:
                return
            time.sleep(0.005)
    except FileNotFoundError:
        return
    except OSError:
        pass  # no locks here
    try:
        remove_former(folder, successor)
    finally:
        if lock is not None:
            lock.release()


def _remove_replaced(target: Path) -> None:
    """Remove whole outputs that `target` replaced by two renames, whose process was killed after them.

    Where there is no whole target, it was killed between them: the former output is to be renamed back. What somebody
    added to it makes that an output of theirs, too.
    """
    replaced = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.former", re.DOTALL)
    found = [path for path in target.parent.iterdir() if replaced.fullmatch(path.name)]
    if not found or whole_in(target) is None:
        return
    for path in found:
        if not is_only_ours(path):
            continue
        with suppress(OSError):  # of a link, too, which cannot be locked
            lock = HeldLock.acquire_current(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                lock.release()


def remove_any(path: Path) -> None:
    """Remove what is at a place of our own: a folder, a file, or a link, which is not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_stray_partials(folder: Path, name: str | None = None) -> None:
    """Remove partial folders (of the output `name`, or of any output) whose builders have died."""
    pattern = rf"\.{re.escape(name) if name else '.+'}\.[0-9a-f]{{8}}(\.partial|{re.escape(UNNAMED)})"
    stray = re.compile(pattern, re.DOTALL)
    for path in folder.iterdir():
        found = stray.fullmatch(path.name)
        if not found or not path.is_dir() or path.is_symlink():
            continue
        with suppress(OSError):
            if found[1] == UNNAMED:
                path.rmdir()
                continue
            # Without `current`, the lock may be that of a folder which was exchanged for this one since it was opened.
            lock = HeldLock.acquire_current(path)
            if lock is None:
                continue
            try:
                # A whole output here was the target until its replacement was published; then that builder died.
                if whole_in(path) is not None:
                    remove_former(path, folder / name if name else None)
                else:
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                lock.release()
