"""COMPLETE: the last file a writer makes. Its presence says that the store is whole, its digests that it still is.

::

    STORE/zarr.json        group; attributes: format, version, columns, targets, classes, statistics, source, seed
    STORE/X/, STORE/y/     arrays
    STORE/COMPLETE         this manifest (JSON)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from streamkernel.atomic import text_digest
from streamkernel.errors import CorruptMetadataError

__all__ = ["COMPLETE", "FORMAT", "VERSION", "ArrayManifest", "Manifest", "parse_manifest"]

FORMAT = "streamkernel.table"
VERSION = 1
COMPLETE = "COMPLETE"


@dataclass(frozen=True)
class ArrayManifest:
    """Grid, dtype and the SHA-256 of every chunk's decoded values (clipped to the array), in row order."""

    shape: tuple[int, ...]
    chunk_rows: int
    dtype: str
    digests: tuple[str, ...]

    def to_config(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "shape": list(self.shape),
            "chunk_rows": self.chunk_rows,
            "dtype": self.dtype,
            "digests": list(self.digests),
        }


@dataclass(frozen=True)
class Manifest:
    """Manifests of the arrays, the digests of the metadata files they were written with, and the digest of itself."""

    arrays: dict[str, ArrayManifest]
    metadata: dict[str, str]
    digest: str

    @staticmethod
    def config(arrays: dict[str, ArrayManifest], metadata: dict[str, str]) -> dict[str, Any]:
        """What is written to the file."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "metadata": metadata,
            "arrays": {name: array.to_config() for name, array in arrays.items()},
        }


def parse_manifest(text: str, path: str) -> Manifest:
    """The manifest in `text`, read from `path`; anything else than what we write is corrupt."""
    try:
        config = json.loads(text)
        if config["format"] != FORMAT or config["version"] != VERSION:
            raise ValueError(f"format {config['format']!r} version {config['version']!r}")
        arrays = {
            name: ArrayManifest(
                tuple(int(n) for n in array["shape"]),
                int(array["chunk_rows"]),
                str(array["dtype"]),
                tuple(str(digest) for digest in array["digests"]),
            )
            for name, array in config["arrays"].items()
        }
        for array in arrays.values():
            if len(array.digests) != -(-array.shape[0] // array.chunk_rows):
                raise ValueError("the number of digests is not the number of chunks")
        metadata = {str(name): str(digest) for name, digest in config["metadata"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise CorruptMetadataError(
            f"{path} is not a streamkernel manifest ({error}); ingest the table again"
        ) from error
    return Manifest(arrays, metadata, text_digest(text))
