"""The lock that allows one follower of a model at a time: a file beside the model, which names the follower.

::

    .MODEL.follow       {"process": 4711, "host": "a", "store": "/rows.zarr"}

The lock ends with the process that holds it, also after kill -9. A follower that ends removes the file; the file of a
killed one is removed by the next follower or update of the model. In an object store the lock is a lease: after a
follower was killed, the next one waits until the lease has expired.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from streamkernel.atomic import HeldLock, parsed_json
from streamkernel.blobs import Lease, beside, blobs_at, is_url
from streamkernel.blobs.lease import this_process
from streamkernel.blobs.records import RecordLog
from streamkernel.errors import RunLockedError, StoreError, StoreNotFoundError
from streamkernel.outputs import store_error
from streamkernel.type_aliases import Fields

_NAME = ".{}.follow"
_TTL = 15.0


@contextlib.contextmanager
def only_follower(model: str, store: str) -> Iterator[Callable[[], None]]:
    """Become the follower of a model; yields a function that raises `RunLockedError` once the lock is lost.

    Raises
    ------
    RunLockedError
        Another process follows the model; the message names it.
    StoreError
        There is no folder for the file, or it cannot be written.
    """
    if is_url(model):
        blobs = blobs_at(beside(model, _NAME))
        lease = Lease.acquire(blobs, ttl=_TTL, wait=1.2 * _TTL, about={"store": store})
        if lease is None:
            latest = RecordLog(blobs, "lease").latest()
            raise _refused(model, {} if latest is None else latest.value)
        with lease:
            yield lease.check
        return
    path = Path(beside(model, _NAME))
    with _translated(path, model):
        lock = _acquire(path, model)
        try:
            lock.write(json.dumps({**this_process(), "store": store}).encode() + b"\n")
        except OSError:
            _remove(path, lock)
            raise
    try:
        yield lambda: None
    finally:
        _remove(path, lock)


def remove_of_killed(model: Path) -> None:
    """Remove the file of a follower that was killed; the file of one that lives is locked, and stays."""
    path = Path(beside(model, _NAME))
    with contextlib.suppress(OSError):  # none, a link, or no locks
        lock = HeldLock.acquire_current(path)
        if lock is not None:
            _remove(path, lock)


def _remove(path: Path, lock: HeldLock) -> None:
    # Still locked: a process that opened the file meanwhile sees that it no longer has this name.
    with contextlib.suppress(OSError):
        path.unlink()
    lock.release()


def _acquire(path: Path, model: str) -> HeldLock:
    lock = HeldLock.acquire_current(path, create=True)
    if lock is not None:
        return lock
    try:
        raise _refused(model, parsed_json(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        # The other follower ends or begins at this moment.
        raise _refused(model, {}) from None


def _refused(model: str, holder: Fields) -> RunLockedError:
    known = {"process", "host", "store"} <= holder.keys()
    who = "process {process} on {host}, with the rows of {store}".format(**holder) if known else "another process"
    return RunLockedError(f"{model} is being followed by {who}; stop that one first")


@contextlib.contextmanager
def _translated(path: Path, model: str) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError as error:
        raise StoreNotFoundError(f"nothing at {model}; check the path") from error
    except OSError as error:
        raise store_error(error, path, "locking") from error
