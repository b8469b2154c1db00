"""Folders to an object store and back, several objects at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from streamkernel.blobs.blobs import Blobs
from streamkernel.errors import CorruptMetadataError, StoreNotFoundError

# Four at a time need 64 MiB at most: a chunk of a model has 16 MiB at most.
_AT_ONCE = 4

T = TypeVar("T")
R = TypeVar("R")


def at_once(action: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """``[action(item) for item in items]``, up to four at a time; the first error is raised."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="streamkernel-objects") as pool:
        futures = [pool.submit(action, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def upload(folder: Path, blobs: Blobs, prefix: str) -> None:
    """Write every file of a folder below `prefix`."""
    names = [(Path(path) / name).relative_to(folder).as_posix() for path, _, files in os.walk(folder) for name in files]
    at_once(lambda name: blobs.write(prefix + name, (folder / name).read_bytes()), names)


def download(blobs: Blobs, keys: Iterable[str], prefix: str, folder: Path) -> None:
    """Write the values of keys, which all begin with `prefix`, to files of a folder.

    Raises
    ------
    CorruptMetadataError
        A key leads out of the folder.
    StoreNotFoundError
        A key is gone.
    """

    def fetch(key: str) -> None:
        parts = key.removeprefix(prefix).split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise CorruptMetadataError(f"{blobs.location}/{key} is no name of ours", remedy="remove it")
        content = blobs.read(key)
        if content is None:
            raise StoreNotFoundError(f"{blobs.location}/{key} vanished while it was read", remedy="run again")
        file = folder.joinpath(*parts)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    at_once(fetch, keys)
