"""The lock of the one writer of a place: on a file or folder of this machine, or a lease at a URL.

It is checked before anything is published: a writer that was stopped for long may have lost it to another one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from streamkernel.atomic import HeldLock
from streamkernel.blobs.blobs import Blobs
from streamkernel.blobs.lease import Lease
from streamkernel.errors import RunLockedError, StreamKernelError

# Time to live of a lease: a silent writer counts as alive for that long.
LEASE_SECONDS = 15.0


class Lock(Protocol):
    """A `Lease` or a `PathLock`."""

    def check(self) -> None:
        """Raise `RunLockedError` unless the lock is still held."""

    def release(self) -> None:
        """Release the lock; a second call does nothing."""

    def abandon(self) -> None:
        """Release the lock without a request to a place that does not answer."""


class PathLock:
    """A held lock on a file or folder; it counts as lost when `path` is no longer that file or folder.

    Parameters
    ----------
    held, path : the lock, and the locked path.
    lost, error : message and class of the error for a lock that is no longer held.
    """

    def __init__(self, held: HeldLock, path: Path, lost: str, error: type[StreamKernelError] = RunLockedError) -> None:
        self.held, self.path, self._lost, self._error = held, path, lost, error

    def check(self) -> None:
        """Raise the error unless the lock is still held."""
        if not self.held.still_at(self.path):
            raise self._error(self._lost)

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        self.held.release()

    abandon = release


def lease_of(blobs: Blobs, name: str, busy: str) -> Lease:
    """The lease of this name. If another process has it, this watches up to 16.5 s whether that one renews it.

    Raises
    ------
    RunLockedError
        The other process is alive; `busy` is the message.
    """
    lease = Lease.acquire(blobs, name, ttl=LEASE_SECONDS, wait=1.1 * LEASE_SECONDS, while_silent=True)
    if lease is None:
        raise RunLockedError(busy)
    return lease
