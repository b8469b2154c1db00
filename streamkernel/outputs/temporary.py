"""Folders among the temporary files: `streamkernel-HOST-xxxxxxxx.work`, each locked by the process that uses it.

A process that dies (kill -9, no memory) leaves its folder, but not its lock. The next process of the same user and
machine that makes such a folder finds the other one unlocked and removes it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from streamkernel.atomic import HeldLock

_IN_USE = ".work"


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
        # Locked before it has the name by which other processes look.
        self.path = Path(tempfile.mkdtemp(prefix=_prefix(), suffix=".new", dir=around))
        self._lock: HeldLock | None = None
        # Without locks (some network file systems) the folder keeps its first name, and nobody else removes it.
        with suppress(OSError):
            self._lock = HeldLock.acquire(self.path)
        if self._lock is not None:
            self.path = self.path.rename(self.path.with_suffix(_IN_USE))

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


def _prefix() -> str:
    # Locks do not reach from one machine to another on every file system that machines share.
    return f"streamkernel-{re.sub(r'[^A-Za-z0-9]+', '-', os.uname().nodename)[:60]}-"


def _remove_abandoned(around: Path) -> None:
    """Remove the folders of this user and machine that no process has locked."""
    with suppress(OSError), os.scandir(around) as entries:
        for entry in entries:
            if not (entry.name.startswith(_prefix()) and entry.name.endswith(_IN_USE)):
                continue
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid == os.getuid() and entry.is_dir(follow_symlinks=False):
                    _remove_if_unlocked(Path(entry.path))


def _remove_if_unlocked(folder: Path) -> None:
    lock = HeldLock.acquire(folder)
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
