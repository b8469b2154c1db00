"""Any other URL that fsspec has a driver for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec

from streamkernel.blobs.blobs import Blobs
from streamkernel.errors import ParameterError, StoreAccessError, StoreError

__all__ = ["FilesystemBlobs"]


class FilesystemBlobs(Blobs):
    """Files below a URL. `create` is as atomic as the driver's ``pipe_file(mode="create")``."""

    def __init__(self, url: str) -> None:
        self.location = url
        try:
            self._files, self._root = _opened(url)
        except (ImportError, ValueError) as error:
            raise ParameterError(
                f"{url} cannot be opened ({str(error).splitlines()[0]}); install fsspec's driver for this scheme"
            ) from error

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.location,)

    def read(self, key: str) -> bytes | None:
        with self._errors("reading", key):
            try:
                return bytes(self._files.cat_file(self._path(key)))
            except (FileNotFoundError, IsADirectoryError):
                return None

    def write(self, key: str, value: bytes) -> None:
        with self._errors("writing", key):
            self._make_folder(key)
            self._files.pipe_file(self._path(key), value)

    def create(self, key: str, value: bytes) -> bool:
        with self._errors("creating", key):
            self._make_folder(key)
            try:
                self._files.pipe_file(self._path(key), value, mode="create")
            except FileExistsError:
                return False
            return True

    def keys(self, prefix: str = "") -> list[str]:
        folder = prefix.rpartition("/")[0]
        with self._errors("listing", prefix):
            self._files.invalidate_cache()
            try:
                found = self._files.find(self._path(folder) if folder else self._root)
            except FileNotFoundError:
                return []
        start = len(self._root.rstrip("/")) + 1
        return sorted(key for key in (path[start:] for path in found) if key.startswith(prefix))

    def remove(self, key: str) -> None:
        with self._errors("removing", key):
            try:
                self._files.rm_file(self._path(key))
            except FileNotFoundError:
                return

    def _path(self, key: str) -> str:
        return f"{self._root.rstrip('/')}/{key}"

    def _make_folder(self, key: str) -> None:
        self._files.makedirs(self._path(key).rpartition("/")[0], exist_ok=True)

    @contextmanager
    def _errors(self, doing: str, key: str) -> Iterator[None]:
        where = f"{self.location}/{key}"
        try:
            yield
        except StoreError:
            raise
        except PermissionError as error:
            raise StoreAccessError(
                f"{where} may not be used ({doing} it was refused); check the credentials"
            ) from error
        except Exception as error:  # the drivers' classes share no base
            lines = str(error).splitlines() or [type(error).__name__]
            raise StoreError(f"{lines[0][:200]} while {doing} {where}; check the endpoint and run again") from error


def _opened(url: str) -> tuple[Any, str]:
    files, root = fsspec.core.url_to_fs(url)
    return files, str(root)
