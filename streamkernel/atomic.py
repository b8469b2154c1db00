"""Files and folders that are there whole or not at all: temp, fsync, rename, fsync of the folder; and locks on them.

Level 0: both `table/` and `store/` publish what they write through these few functions, so that no reader
ever takes something half-written for whole (docs/reliability.md, rules 3 and 5).
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
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from streamkernel.errors import StoreExistsError

__all__ = [
    "HeldLock",
    "RepeatedNameError",
    "array_digest",
    "canonical_json",
    "folder_generation",
    "fsync_path",
    "parsed_json",
    "partial_sibling",
    "publish_folder",
    "read_file",
    "refuse_other_names",
    "text_digest",
    "write_json",
]

_MANY_FOLDERS = 64
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


def folder_generation(folder: Path) -> tuple[int, int, int] | None:
    """What tells one generation of the folder at a path from the next; None where there is none."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parsed_json(text: str | bytes, **options: Any) -> Any:
    """The value in a JSON text, in which no object may have a name twice: of two values one would be lost.

    Raises
    ------
    RepeatedNameError
        An object has a name twice.
    ValueError
        It is no JSON.
    """
    return json.loads(text, object_pairs_hook=_of_pairs, **options)


class RepeatedNameError(ValueError):
    """An object of a JSON text has a name twice."""


def _of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise RepeatedNameError(f"{twice[:50]!r} is there twice")
    return found


def text_digest(text: str) -> str:
    """SHA-256 of a text, in hex; a path may hold bytes that are no text, which Python writes as surrogates."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def array_digest(array: NDArray[Any]) -> str:
    """XXH3 (128 bits) of an array's values (C order, little endian), in hex; shape and dtype are not part of it.

    It tells what was damaged or replaced by mistake; it is no defence against forgery. SHA-256 would take as long as
    writing the values to a fast disk.
    """
    values = np.ascontiguousarray(array)
    if values.dtype.byteorder == ">":
        values = values.astype(values.dtype.newbyteorder("<"))
    return xxhash.xxh3_128_hexdigest(values.reshape(-1).view(np.uint8).data if values.size else b"")


def read_file(path: Path, most: int = -1) -> bytes:
    """All bytes of a file, or the first `most`.

    An `OSError` for what is no file, in whose place a pipe or a device would be read for ever.
    """
    # Without waiting for whoever writes into a pipe.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as handle:
        if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return handle.read(most)


def refuse_other_names(descriptor: int, path: Path) -> None:
    """Close what was opened to be written, with an `OSError`, unless it is a file that has this name alone."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.ELOOP, "not a file of its own", str(path))


def write_json(path: Path, value: Any) -> None:
    """Replace the file at `path` by `value` as JSON: a reader sees the old text or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        # A new file: whatever has its name already is not written.
        with open(temporary, "x", encoding="utf-8") as handle:
            json.dump(value, handle, indent=1, allow_nan=False)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync_path(path.parent)


def partial_sibling(target: Path) -> Path:
    """A fresh path beside `target` to build in: same file system, so that a rename is atomic."""
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")


def publish_folder(
    partial: Path, target: Path, remove: Callable[[Path, Path], None], *, overwrite: bool = False
) -> None:
    """Move a finished folder to its name. An existing one is exchanged in one step, then removed.

    Parameters
    ----------
    remove
        Called with what had the name before, under the one that it has now, and with `target`.

    Raises
    ------
    StoreExistsError
        `target` exists and `overwrite` is false; `partial` is left where it is.
    """
    _fsync_tree(partial)
    if not os.path.lexists(target):
        # rename(2) would silently replace an empty folder made meanwhile; that is harmless.
        os.rename(partial, target)
    elif not overwrite:
        raise StoreExistsError(f"{target} exists; choose another path or ask for overwrite")
    else:
        if not _exchange(partial, target):
            # Should this be the end, the former one is no stray: whoever looks for it can give it its name back.
            aside = partial_sibling(target).with_suffix(".former")
            os.rename(target, aside)
            os.rename(partial, target)
            partial = aside
        fsync_path(target.parent)
        # What it held has its successor already: being unable to clear it away is no failure of the publishing.
        with suppress(OSError):
            remove(partial, target)
    fsync_path(target.parent)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two names in one step (Linux renameat2); False where the system or file system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    if renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(second))


def fsync_path(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
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
            # A link to a file of the generation before is on the disk since that was published.
            if os.stat(file, follow_symlinks=False).st_nlink == 1:
                fsync_path(file)
        folders.append(Path(path))
    if len(folders) > _MANY_FOLDERS and _syncfs(folder):
        return
    for inner in folders:
        fsync_path(inner)


def _syncfs(folder: Path) -> bool:
    """Wait for the whole file system (Linux syncfs), which is quicker than for thousands of folders; False if not."""
    try:
        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (AttributeError, OSError):
        return False
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return bool(syncfs(descriptor) == 0)
    finally:
        os.close(descriptor)


class HeldLock:
    """An exclusive lock, flock(2) on an open file or folder.

    It is held until `release`, until this object is collected, or until the process is gone, kill -9 included.
    """

    __slots__ = ("__weakref__", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        _held.add(self)

    @classmethod
    def acquire(cls, path: Path, *, create: bool = False) -> HeldLock | None:
        """Lock a file or folder without waiting; None if another holds it, OSError where there are no locks.

        A link in its place is not followed (ELOOP), and a file that has another name besides is none of ours.
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

    def write(self, content: bytes) -> None:
        """Replace what the locked file says: by its descriptor, so that nothing that has its name now is written."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, content, 0)

    def still_at(self, path: Path) -> bool:
        """Whether `path` is still what was locked, not a later file of that name."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), os.lstat(path))
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
