"""Atomic files and folders (temporary name, fsync, rename, fsync of the parent folder), and locks on them.

This is the lowest layer. `table/` and `store/` publish all files through these functions, so that no reader takes a
partly written file or folder for a complete one (docs/reliability.md, rules 3 and 5).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import json
import os
import stat
import uuid
import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import xxhash

from streamkernel.errors import StoreExistsError
from streamkernel.type_aliases import AnyArray, Fields, Unchecked
from streamkernel.wording import switch

_MANY_FOLDERS = 64
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


def folder_generation(folder: Path) -> tuple[int, int, int] | None:
    """Identifier of the current generation of the folder at a path; None if there is no folder."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


def canonical_json(value: Unchecked) -> str:
    """JSON text with sorted keys and no spaces: equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def json_content(value: Unchecked) -> bytes:
    """JSON as our files hold it, with lines for people."""
    return json.dumps(value, indent=1, allow_nan=False).encode()


def parsed_json(text: str | bytes, **options: Unchecked) -> Any:
    """The value of a JSON text. No object may have a name twice, because one of the two values would be lost.

    Raises
    ------
    RepeatedNameError
        An object has a name twice.
    ValueError
        The text is not JSON.
    """
    return json.loads(text, object_pairs_hook=_of_pairs, **options)


class RepeatedNameError(ValueError):
    """An object of a JSON text has a name twice."""


def _of_pairs(pairs: list[tuple[str, Any]]) -> Fields:
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise RepeatedNameError(f"{twice[:50]!r} is there twice")
    return found


def text_digest(text: str) -> str:
    """SHA-256 of a text, in hex. Surrogates are allowed: Python uses them for bytes of a path that are not text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def array_digest(array: AnyArray) -> str:
    """XXH3 (128 bits) of the values of an array (C order, little endian), in hex, without its shape and dtype.

    It detects damage and accidental replacement, but not forgery. SHA-256 would take as long as a write of the values
    to a fast disk.
    """
    values = np.ascontiguousarray(array)
    if values.dtype.byteorder == ">":
        values = values.astype(values.dtype.newbyteorder("<"))
    return xxhash.xxh3_128_hexdigest(values.reshape(-1).view(np.uint8).data if values.size else b"")


def read_file(path: Path, first: int = 0, last: int | None = None) -> bytes:
    """All bytes of a file, or bytes [first, last); a negative `first` counts from the end.

    Raises
    ------
    OSError
        The file cannot be read, or the path is not a regular file: a pipe or a device could block for ever.
    """
    # O_NONBLOCK: do not wait for a writer of a pipe.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as handle:
        if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        start = max(0, handle.seek(0, os.SEEK_END) + first) if first < 0 else handle.seek(first)
        return handle.read(-1 if last is None else max(0, last - start))


def refuse_other_names(descriptor: int, path: Path) -> None:
    """Check that a file opened for writing is a regular file with one name; close it and raise `OSError` otherwise."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.ELOOP, "not a file of its own", str(path))


def partial_sibling(target: Path) -> Path:
    """A new path beside `target` for a folder in preparation: on the same file system, so that the rename is atomic."""
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")


def publish_folder(
    partial: Path,
    target: Path,
    remove: Callable[[Path, Path], None],
    *,
    overwrite: bool = False,
    former: int | None = None,
) -> bool:
    """Rename a complete folder to its final name. An existing folder is exchanged in one step, and then removed.

    Returns False, with all as it was, if the folder there is not `former`: another writer has replaced it.

    Parameters
    ----------
    partial, target
        The complete folder, and its final name.
    remove
        Function that removes the former folder; it is called with the current path of that folder, and with `target`.
    overwrite
        True to replace an existing folder.
    former
        Number (inode) of the only folder that may be replaced; None for any.

    Raises
    ------
    StoreExistsError
        `target` exists and `overwrite` is false; `partial` is left where it is.
    """
    _fsync_tree(partial)
    ours = _number_of(partial)
    if former not in (None, _number_of(target)):
        return False
    if not os.path.lexists(target):
        # rename(2) silently replaces an empty folder that another process made in between; this is harmless.
        os.rename(partial, target)
    elif not overwrite:
        raise StoreExistsError(f"{target} exists; choose another path or {switch('overwrite')}")
    else:
        if not _exchange(partial, target):
            # If the process ends here, the suffix identifies the former folder, which can be renamed back.
            aside = partial_sibling(target).with_suffix(".former")
            os.rename(target, aside)
            if former not in (None, _number_of(aside)):
                os.rename(aside, target)
                return False
            os.rename(partial, target)
            partial = aside
        elif former not in (None, _number_of(partial)):
            # Another writer has exchanged between our look and ours.
            _exchange(partial, target)
            if _number_of(partial) != ours:
                # Yet another writer has replaced ours meanwhile: its folder stays.
                _exchange(partial, target)
            return False
        fsync_path(target.parent)
        # The new folder is already in place, so that a failed removal of the former one is not an error.
        with suppress(OSError):
            remove(partial, target)
    fsync_path(target.parent)
    return True


def _number_of(folder: Path) -> int | None:
    """The inode of a folder, which another one at its path does not have; None if there is none."""
    try:
        return os.stat(folder, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return None


def _exchange(first: Path, second: Path) -> bool:
    """Swap two names in one step (Linux renameat2); returns False if the system or file system does not support it."""
    renameat2 = _system_call("renameat2")
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(second))


def _system_call(name: str) -> Callable[..., int] | None:
    """A function of the C library that not every system has."""
    try:
        return cast(Callable[..., int], getattr(ctypes.CDLL(None, use_errno=True), name))
    except (AttributeError, OSError):
        return None


def fsync_path(path: Path) -> None:
    """Wait until the content of a file, or the list of names of a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fsync_tree(folder: Path) -> None:
    folders = []
    for path, _, names in os.walk(folder):
        for name in names:
            file = Path(path, name)
            # A hard link to a file of the previous generation is already on the disk.
            if os.stat(file, follow_symlinks=False).st_nlink == 1:
                fsync_path(file)
        folders.append(Path(path))
    if len(folders) > _MANY_FOLDERS and _syncfs(folder):
        return
    for inner in folders:
        fsync_path(inner)


def _syncfs(folder: Path) -> bool:
    """Sync the whole file system (Linux syncfs), faster than thousands of folders; returns False if not supported."""
    syncfs = _system_call("syncfs")
    if syncfs is None:
        return False
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return bool(syncfs(descriptor) == 0)
    finally:
        os.close(descriptor)


class HeldLock:
    """An exclusive lock: flock(2) on an open file or folder.

    It lasts until `release`, until this object is garbage-collected, or until the process ends, even by kill -9.

    Why not filelock (tried with 4.2): it cannot lock a folder, whose lock moves with it when it is renamed, and it
    locks a file that has a second name elsewhere.
    """

    __slots__ = ("__weakref__", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        _held.add(self)

    @classmethod
    def acquire(cls, path: Path, *, create: bool = False) -> HeldLock | None:
        """Lock a file or folder without waiting; returns None if another process or object holds the lock.

        Raises
        ------
        OSError
            The file system has no locks, the path is a symbolic link (ELOOP), or, with `create`, the file is not
            regular or has a second name.
        """
        flags = os.O_RDWR | os.O_CREAT if create else os.O_RDONLY
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        if create:
            refuse_other_names(descriptor, path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor)

    @classmethod
    def acquire_current(
        cls, path: Path, *, create: bool = False, prepare: Callable[[], None] | None = None
    ) -> HeldLock | None:
        """Like `acquire`, but the locked file or folder still has this name: another process may replace or remove it.

        `prepare` is called before each try, to make the folder in which or of which the lock is taken.
        """
        while True:
            if prepare is not None:
                prepare()
            try:
                lock = cls.acquire(path, create=create)
            except FileNotFoundError:
                if prepare is None:
                    raise
                continue  # removed since `prepare`
            if lock is None or lock.still_at(path):
                return lock
            lock.release()

    def write(self, content: bytes) -> None:
        """Replace the content of the locked file, by its descriptor: a later file with its name is not changed."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, content, 0)

    def still_at(self, path: Path) -> bool:
        """True if `path` is still the locked file, and not a later file with the same name."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), os.lstat(path))
        except OSError:
            return False

    def release(self) -> None:
        """Release the lock; a second call has no effect."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.release()


_held: weakref.WeakSet[HeldLock] = weakref.WeakSet()


def _release_inherited() -> None:
    # A forked child shares the lock, and would hold it after the end of its parent. The child closes its copy of the
    # descriptor, which does not release the lock of the parent.
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_release_inherited)
