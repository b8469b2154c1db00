"""A local folder (or one on a shared disk) that holds byte strings as files."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from streamkernel.atomic import HeldLock, fsync_path, read_file
from streamkernel.blobs.blobs import Blobs, Level, Stamp
from streamkernel.blobs.direct_file import Bytes, write_file
from streamkernel.blobs.os_errors import translated_os_errors
from streamkernel.errors import StoreAccessError

_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_PARTIAL = re.compile(r"\..*\.[0-9a-f]{8}\.partial")
_STRAY_SECONDS = 3600.0  # a writer locks its file, where files can be locked, in the moment after it makes it


class LocalBlobs(Blobs):
    """Files below `folder`, which need not exist before the first write.

    Network file systems are good enough, because neither locks nor the order of directory entries are used. `create`
    is link(2), and these file systems promise that link(2) is atomic.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(os.path.abspath(folder))
        self.location = str(self.folder)

    def read(self, key: str, first: int = 0, last: int | None = None) -> bytes | None:
        with self._errors("reading", key):
            try:
                return read_file(self.folder / key, first, last)
            except _ABSENT:
                return None

    def write(self, key: str, value: bytes) -> None:
        with self._errors("writing", key), self._written(key, value) as (temporary, path):
            os.replace(temporary, path)
            fsync_path(path.parent)
            with suppress(OSError):
                _remove_strays_beside(path)

    def write_pieces(self, key: str, pieces: Iterable[Bytes], *, durable: bool) -> None:
        with self._errors("writing", key):
            self._refuse_links((self.folder / key).parent)
            write_file(self.folder / key, pieces, durable=durable)

    def create(self, key: str, value: bytes) -> bool:
        with self._errors("creating", key), self._written(key, value) as (temporary, path):
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            fsync_path(path.parent)
            with suppress(OSError):
                _remove_strays_beside(path)
            return True

    def stamps(self, prefix: str = "") -> dict[str, Stamp]:
        base = prefix.rpartition("/")[0]
        found = {}
        with self._errors("listing", prefix):
            for folder, _, names in os.walk(self.folder / base):
                inner = Path(folder).relative_to(self.folder)
                for name in names:
                    key = str(inner / name)
                    if key.startswith(prefix) and not _PARTIAL.fullmatch(name):
                        with suppress(FileNotFoundError):
                            found[key] = _stamp(self.folder / key)
        return found

    def level(self, prefix: str = "") -> Level:
        prefixes, found = [], {}
        with self._errors("listing", prefix):
            try:
                with os.scandir(self.folder / prefix) as listed:
                    entries = sorted(listed, key=lambda entry: entry.name)
            except _ABSENT:
                return Level([], {})
            for entry in entries:
                # A link to a folder can lead out of the place, so it is not followed.
                if entry.is_dir():
                    prefixes += [] if entry.is_symlink() else [f"{prefix}{entry.name}/"]
                elif not _PARTIAL.fullmatch(entry.name):
                    with suppress(FileNotFoundError):
                        found[prefix + entry.name] = _stamp(Path(entry.path))
        return Level(prefixes, found)

    def exists(self) -> bool:
        return self.folder.is_dir()

    def remove(self, key: str) -> None:
        with self._errors("removing", key), suppress(FileNotFoundError, NotADirectoryError):
            (self.folder / key).unlink()

    def remove_below(self, prefix: str = "") -> None:
        # Also folders, and files that killed writers left half-written; what cannot be removed stays.
        shutil.rmtree(self.folder / prefix, ignore_errors=True)

    def size(self, key: str) -> int:
        with self._errors("reading", key):
            try:
                return (self.folder / key).stat().st_size
            except _ABSENT:
                return -1

    @contextmanager
    def _written(self, key: str, value: bytes) -> Iterator[tuple[Path, Path]]:
        """Write the value to a temporary file on the disk; remove this file at the end if it still has that name."""
        path = self.folder / key
        self._refuse_links(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
        try:
            with open(temporary, "xb") as handle:
                with suppress(OSError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                handle.write(value)
                handle.flush()
                os.fsync(handle.fileno())
                yield temporary, path
        finally:
            with suppress(OSError):
                temporary.unlink()

    def _refuse_links(self, parent: Path) -> None:
        """Refuse symbolic links between `self.folder` and `parent`; `self.folder` may be a link: the user named it."""
        for folder in (parent, *parent.parents):
            if folder == self.folder:
                return
            if folder.is_symlink():
                raise StoreAccessError(
                    f"{folder} is a symbolic link, and nothing is written through links", remedy="remove it"
                )

    def _errors(self, doing: str, key: str) -> AbstractContextManager[None]:
        return translated_os_errors(self.folder / key, doing)


def _remove_strays_beside(written: Path) -> None:
    """Remove the temporary files of writers that were killed: they are old, and nobody holds them.

    Their age is measured from the file that was just written: the clock of a shared disk can differ from ours.
    """
    now = written.stat().st_mtime
    for path in [each for each in written.parent.iterdir() if _PARTIAL.fullmatch(each.name)]:
        # Links cannot be locked, and folders not be unlinked: neither is ours. Another process may remove it now.
        with suppress(OSError):
            lock = HeldLock.acquire_current(path) if now - path.stat().st_mtime > _STRAY_SECONDS else None
            if lock is not None:
                try:
                    path.unlink()
                finally:
                    lock.release()


def _stamp(file: Path) -> Stamp:
    status = os.stat(file)
    # Some file systems use all 64 bits for inode numbers; 63 bits fit a signed integer.
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino & (2**63 - 1))
