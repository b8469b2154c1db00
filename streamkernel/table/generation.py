"""The state of a store, for processes that wait for the next one: a few calls of stat(2), no row is read."""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path

from streamkernel.blobs import blobs_at, generation_of, is_url, local_path
from streamkernel.manifest import COMPLETE

_ARRAY_METADATA = ("zarr.json", ".zarray")

# Files that an append writes anew: `ingest` makes a folder for every generation, other writers change them in place.
_METADATA = (*(prefix + name for name in _ARRAY_METADATA for prefix in ("", "X/", "y/")), COMPLETE)


def table_generation(store: str | os.PathLike[str]) -> Hashable | None:
    """A value that differs between states of the store with other rows; None where there is no store.

    An append to an ingested table changes it once, when the append is complete. An append to a foreign array changes it
    with the array's metadata, which may be before its chunks are written.

    Raises
    ------
    StoreError
        An object store does not answer.
    """
    if not is_url(store):
        folder = local_path(store)
        whole = _identity(folder)
        return None if whole is None else (whole[:2], *(_identity(folder / name) for name in _METADATA))
    generation = generation_of(store)
    blobs = blobs_at(store)
    if generation is None or not blobs.listable:
        return generation
    # Foreign arrays may grow while the metadata of their group stays. Their chunks, a level deeper, are not listed.
    stamps = {**blobs.level("X/").stamps, **blobs.level("y/").stamps}
    metadata = {key: stamp for key, stamp in stamps.items() if key.rpartition("/")[2] in _ARRAY_METADATA}
    return (generation, tuple(sorted((key, tuple(stamp)) for key, stamp in metadata.items())))


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
