"""Which state a store is in, for whoever waits for the next: told by a few stat(2), no row is read."""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path

from streamkernel.blobs import blobs_at, generation_of, is_url, local_path
from streamkernel.manifest import COMPLETE

__all__ = ["table_generation"]

_ARRAY_METADATA = ("zarr.json", ".zarray")

# What is written anew when rows are added, by us (a folder of its own for every generation) or by others in place.
_METADATA = (*(prefix + name for name in _ARRAY_METADATA for prefix in ("", "X/", "y/")), COMPLETE)


def table_generation(store: str | os.PathLike[str]) -> Hashable | None:
    """What tells one state of the store at a path or URL from those with other rows; None where there is no store.

    An append to an ingested table changes it once, when all is there; one to a foreign array when its metadata says so,
    which may be before its chunks are written.

    Raises
    ------
    StoreError
        Of an object store that does not answer.
    """
    if not is_url(store):
        folder = local_path(store)
        whole = _identity(folder)
        return None if whole is None else (whole[:2], *(_identity(folder / name) for name in _METADATA))
    generation = generation_of(store)
    blobs = blobs_at(store)
    if generation is None or not blobs.listable:
        return generation
    # Arrays of others may grow in a group that stays as it is; their chunks, a level deeper, are not listed.
    stamps = {**blobs.level("X/").stamps, **blobs.level("y/").stamps}
    metadata = {key: stamp for key, stamp in stamps.items() if key.rpartition("/")[2] in _ARRAY_METADATA}
    return (generation, tuple(sorted((key, tuple(stamp)) for key, stamp in metadata.items())))


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
