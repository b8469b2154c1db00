"""All other URLs, through fsspec's drivers."""

from __future__ import annotations

import datetime as dt
import errno
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import fsspec

from streamkernel.blobs._exclusive_create import TestedBlobs
from streamkernel.blobs.blobs import Level, Stamp
from streamkernel.blobs.retries import http_status_passes, with_retries
from streamkernel.errors import ParameterError, StoreAccessError, StoreError
from streamkernel.type_aliases import Fields, Untyped

_ON_ITS_WAY = frozenset(
    {
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTUNREACH,
        errno.ENETRESET,
        errno.ENETUNREACH,
        errno.EPIPE,
        errno.ETIMEDOUT,
    }
)

T = TypeVar("T")


class FilesystemBlobs(TestedBlobs):
    """Files below a URL. `create` is as atomic as the driver's ``pipe_file(mode="create")``."""

    def __init__(self, url: str) -> None:
        self.location = url
        self.listable = url.partition("://")[0].lower() not in ("http", "https")
        try:
            self._files, self._root = _opened(url)
        except Exception as error:  # the drivers' classes share no base
            raise ParameterError(
                f"{url} cannot be opened ({str(error).splitlines()[0]}); install fsspec's driver for this scheme"
            ) from error

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.location,)

    def read(self, key: str) -> bytes | None:
        with self._errors("reading", key):
            try:
                return bytes(self._asked(lambda: self._files.cat_file(self._path(key))))
            except (FileNotFoundError, IsADirectoryError):
                return None

    def write(self, key: str, value: bytes) -> None:
        with self._errors("writing", key):
            self._asked(lambda: self._make_folder(key))
            self._asked(lambda: self._files.pipe_file(self._path(key), value))

    def _create(self, key: str, value: bytes) -> bool:
        with self._errors("creating", key):
            self._asked(lambda: self._make_folder(key))
            try:
                self._asked(lambda: self._files.pipe_file(self._path(key), value, mode="create"))
            except FileExistsError:
                return False
            return True

    def stamps(self, prefix: str = "") -> dict[str, Stamp]:
        folder = prefix.rpartition("/")[0]
        with self._errors("listing", prefix):
            self._files.invalidate_cache()
            try:
                found = self._asked(lambda: self._files.find(self._path(folder) if folder else self._root, detail=True))
            except FileNotFoundError:
                return {}
        start = len(self._root.rstrip("/")) + 1
        return {path[start:]: _stamp(entry) for path, entry in found.items() if path[start:].startswith(prefix)}

    def level(self, prefix: str = "") -> Level:
        with self._errors("listing", prefix):
            self._files.invalidate_cache()
            try:
                found = self._asked(lambda: self._files.ls(self._path(prefix).rstrip("/"), detail=True))
            except (FileNotFoundError, NotADirectoryError):
                return Level([], {})
        start, prefixes, stamps = len(self._root.rstrip("/")) + 1, [], {}
        for entry in found:
            key = str(entry["name"]).rstrip("/")[start:]
            # An entry equal to the prefix is a value with the name of the place, or the mark of an empty folder.
            if key.startswith(prefix) and key != prefix:
                if entry["type"] == "directory":
                    prefixes.append(f"{key}/")
                else:
                    stamps[key] = _stamp(entry)
        return Level(sorted(prefixes), stamps)

    def read_part(self, key: str, first: int, last: int | None) -> bytes | None:
        with self._errors("reading", key):
            try:
                return bytes(self._asked(lambda: self._files.cat_file(self._path(key), start=first, end=last)))
            except (FileNotFoundError, IsADirectoryError):
                return None

    def size(self, key: str) -> int:
        with self._errors("reading", key):
            try:
                return int(self._asked(lambda: self._files.size(self._path(key))))
            except (FileNotFoundError, IsADirectoryError):
                return -1

    def remove(self, key: str) -> None:
        with self._errors("removing", key):
            try:
                self._asked(lambda: self._files.rm_file(self._path(key)))
            except FileNotFoundError:
                return

    @staticmethod
    def _asked(request: Callable[[], T]) -> T:
        return with_retries(request, _may_pass)

    def _path(self, key: str) -> str:
        return f"{self._root.rstrip('/')}/{key}"

    def _make_folder(self, key: str) -> None:
        self._files.makedirs(self._path(key).rpartition("/")[0], exist_ok=True)

    @contextmanager
    def _errors(self, doing: str, key: str) -> Iterator[None]:
        what = key or "it"
        try:
            yield
        except StoreError:
            raise
        except PermissionError as error:
            raise StoreAccessError(
                f"{self.location} may not be used ({doing} {what} was refused); check the credentials"
            ) from error
        except Exception as error:  # the drivers' classes share no base
            lines = str(error).splitlines() or [type(error).__name__]
            raise StoreError(
                f"{self.location} failed while {doing} {what} ({lines[0][:200]}); check the endpoint and run again"
            ) from error


def _may_pass(error: BaseException) -> bool:
    """Whether a request failed in transit, or the server refused it for now, as far as the driver's error shows it."""
    if isinstance(error, (ConnectionError, TimeoutError)) or getattr(error, "errno", None) in _ON_ITS_WAY:
        return True
    status = getattr(error, "status", None)  # aiohttp's
    return isinstance(status, int) and http_status_passes(status)


def _opened(url: str) -> tuple[Untyped, str]:
    files, root = fsspec.core.url_to_fs(url)
    return files, str(root)


def _stamp(entry: Fields) -> Stamp:
    """The stamp of a file from a driver's entry; every driver has its own names for time and version."""
    told = [entry[name] for name in ("mtime", "LastModified", "last_modified", "updated", "created") if entry.get(name)]
    version = next((entry[name] for name in ("ETag", "etag", "md5", "ino") if entry.get(name)), None)
    return Stamp(int(entry.get("size") or 0), _nanoseconds(told[0]) if told else 0, _number(version))


def _nanoseconds(time: Untyped) -> int:
    if isinstance(time, dt.datetime):
        return int(time.timestamp() * 1e6) * 1000
    return int(time * 1e9) if isinstance(time, (int, float)) else _number(time)


def _number(version: Untyped) -> int:
    if version is None:
        return 0
    return int.from_bytes(hashlib.sha256(str(version).encode()).digest()[:7], "big")
