"""Folders among the temporary files: `streamkernel-HOST-xxxxxxxx.work`, each locked by the process that uses it.

A process that dies (kill -9, no memory) leaves its folder, but not its lock. The next process of the same user and
machine that makes such a folder finds the other one unlocked and removes it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from streamkernel.atomic import HeldLock
from streamkernel.outputs._locked_folder import UNNAMED, locked_folder

_IN_USE, _NO_LOCKS = ".work", ".unlocked"


class TemporaryFolder:
    """A new folder among the temporary files, gone after `remove` or the block; first the folders of dead processes go.

    Attributes
    ----------
    path : the folder.

    Raises
    ------
    OSError
        No folder can be made there.
    """

    def __init__(self) -> None:
        around = Path(tempfile.gettempdir())
        _remove_abandoned(around)
        # Rows of the user are in it, and others may look around among the temporary files.
        self.path, self._lock = locked_folder(lambda: around / _new_name(), mode=0o700)
        if self._lock is None:
            # It has a name of its own, so that nobody removes it should there be locks later.
            self.path = self.path.rename(self.path.with_suffix(_NO_LOCKS))

    def remove(self) -> None:
        """Remove the folder; a second call has no effect."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def _new_name() -> str:
    return f"{_prefix()}{uuid.uuid4().hex[:8]}{_IN_USE}"


def _prefix() -> str:
    # Locks do not reach from one machine to another on every file system that machines share.
    return f"streamkernel-{re.sub(r'[^A-Za-z0-9]+', '-', os.uname().nodename)[:60]}-"


def _remove_abandoned(around: Path) -> None:
    """Remove the folders of this user and machine that no process has locked."""
    with suppress(OSError), os.scandir(around) as entries:
        for entry in entries:
            if not (entry.name.startswith(_prefix()) and entry.name.endswith((_IN_USE, UNNAMED))):
                continue
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid != os.getuid() or not entry.is_dir(follow_symlinks=False):
                    continue
                if entry.name.endswith(UNNAMED):
                    os.rmdir(entry.path)  # where it is empty
                else:
                    _remove_if_unlocked(Path(entry.path))


def _remove_if_unlocked(folder: Path) -> None:
    lock = HeldLock.acquire(folder)
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
