"""Exclusive locks that vanish with their holder, kill -9 included: flock(2) on an open file or folder."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path

__all__ = ["HeldLock"]


class HeldLock:
    """A lock that is held until `release`, until this object is collected, or until the process is gone."""

    __slots__ = ("__weakref__", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        _held.add(self)

    @classmethod
    def acquire(cls, path: Path, *, create: bool = False) -> HeldLock | None:
        """Lock a file or folder without waiting; None if another holds it, OSError where there are no locks."""
        flags = os.O_RDWR | os.O_CREAT if create else os.O_RDONLY
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def still_at(self, path: Path) -> bool:
        """Whether `path` is still what was locked, not a later file of that name."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), os.stat(path))
        except OSError:
            return False

    def release(self) -> None:
        """Let go; a second call does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.release()


_held: weakref.WeakSet[HeldLock] = weakref.WeakSet()


def _release_inherited() -> None:
    # A forked child shares the lock, and would keep it after its parent's death; closing its copy lets nothing go.
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_release_inherited)
