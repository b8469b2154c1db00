"""All other URLs, through fsspec's drivers."""

from __future__ import annotations

import datetime as dt
import errno

import fsspec

from streamkernel.blobs._remote import RemoteBlobs, version_number
from streamkernel.blobs.blobs import Level, Stamp
from streamkernel.blobs.os_errors import first_line
from streamkernel.blobs.retries import CONNECT_SECONDS, REQUEST_SECONDS, http_status_passes
from streamkernel.errors import ParameterError
from streamkernel.type_aliases import Fields, Untyped

_IN_TRANSIT = frozenset(
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


class FilesystemBlobs(RemoteBlobs):
    """Files below a URL. `create` is as atomic as the driver's ``pipe_file(mode="create")``."""

    failures = (Exception,)  # the drivers' classes share no base

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.listable = url.partition("://")[0].lower() not in ("http", "https")
        try:
            self._files, root = fsspec.core.url_to_fs(url, **({} if self.listable else _http_options()))
        except Exception as error:  # the drivers' classes share no base
            raise ParameterError(
                f"{url} cannot be opened ({first_line(error)}); install fsspec's driver for this scheme"
            ) from error
        self._root = str(root).rstrip("/")

    def read(self, key: str, first: int = 0, last: int | None = None) -> bytes | None:
        part = {} if first == 0 and last is None else {"start": first, "end": last}
        content = self._request("reading", key, lambda: bytes(self._files.cat_file(self._path(key), **part)))
        if content is None or (last is None and first >= 0):
            return content
        # A simple HTTP server knows no parts, and answers with the whole value.
        wanted = -first if last is None else last - first
        return content if len(content) <= wanted else content[first:last]

    def write(self, key: str, value: bytes) -> None:
        self._request("writing", key, lambda: self._files.pipe_file(self._path_in_folder(key), value))

    def _create(self, key: str, value: bytes) -> bool:
        def put() -> bool:
            # Outside of the `try`: a file in place of the folder does not mean that the object exists.
            path = self._path_in_folder(key)
            try:
                self._files.pipe_file(path, value, mode="create")
            except FileExistsError:
                return False
            return True

        return bool(self._request("creating", key, put))

    def _path_in_folder(self, key: str) -> str:
        """The path of a key, whose folder is made."""
        path = self._path(key)
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        return path

    def stamps(self, prefix: str = "") -> dict[str, Stamp]:
        folder = prefix.rpartition("/")[0]

        def listed() -> Untyped:
            self._files.invalidate_cache()
            return self._files.find(self._path(folder) if folder else self._root or "/", detail=True)

        found = self._request("listing", prefix, listed) or {}
        start = len(self._root) + 1
        return {path[start:]: _stamp(entry) for path, entry in found.items() if path[start:].startswith(prefix)}

    def level(self, prefix: str = "") -> Level:
        def listed() -> Untyped:
            self._files.invalidate_cache()
            return self._files.ls(self._path(prefix).rstrip("/"), detail=True)

        start, prefixes, stamps = len(self._root) + 1, [], {}
        for entry in self._request("listing", prefix, listed) or ():
            key = str(entry["name"]).rstrip("/")[start:]
            # An entry equal to the prefix is a value with the name of the place, or the mark of an empty folder.
            if key.startswith(prefix) and key != prefix:
                if entry["type"] == "directory":
                    prefixes.append(f"{key}/")
                else:
                    stamps[key] = _stamp(entry)
        return Level(sorted(prefixes), stamps)

    def size(self, key: str) -> int:
        size = self._request("reading", key, lambda: int(self._files.size(self._path(key))))
        return -1 if size is None else size

    def remove(self, key: str) -> None:
        self._request("removing", key, lambda: self._files.rm_file(self._path(key)))

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _may_pass(self, error: BaseException) -> bool:
        if isinstance(error, (ConnectionError, TimeoutError)) or getattr(error, "errno", None) in _IN_TRANSIT:
            return True
        status = getattr(error, "status", None)  # aiohttp's
        return isinstance(status, int) and http_status_passes(status)


def _http_options() -> Fields:
    """Limits of a silence: a server that takes connections and never answers would be waited for five minutes a try."""
    import aiohttp

    return {
        "client_kwargs": {"timeout": aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=REQUEST_SECONDS)}
    }


def _stamp(entry: Fields) -> Stamp:
    """The stamp of a file from a driver's entry; every driver has its own names for time and version."""
    times = [
        entry[name] for name in ("mtime", "LastModified", "last_modified", "updated", "created") if entry.get(name)
    ]
    version = next((entry[name] for name in ("ETag", "etag", "md5", "ino") if entry.get(name)), None)
    return Stamp(
        int(entry.get("size") or 0),
        _nanoseconds(times[0]) if times else 0,
        0 if version is None else version_number(str(version)),
    )


def _nanoseconds(time: Untyped) -> int:
    if isinstance(time, dt.datetime):
        return int(time.timestamp() * 1e6) * 1000
    return int(time * 1e9) if isinstance(time, (int, float)) else version_number(str(time))
