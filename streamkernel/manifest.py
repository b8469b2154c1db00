"""COMPLETE: the last file a writer of rows makes. It says that the store is whole, its digests that it still is.

Level 0: `table/` writes it for ingested tables, `store/` for values per row, and `table/` reads either.

::

    STORE/zarr.json        group; its attribute `format` is that of a table or of an output of rows
    STORE/X/, STORE/y/     arrays, cut into chunks along the rows
    STORE/COMPLETE         this manifest (JSON)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamkernel.atomic import text_digest, write_json
from streamkernel.errors import CorruptMetadataError

__all__ = [
    "COMPLETE",
    "ROWS_FORMAT",
    "TABLE_FORMAT",
    "VERSION",
    "ArrayManifest",
    "Manifest",
    "parse_manifest",
    "write_manifest",
]

COMPLETE = "COMPLETE"
# What a group's attributes say it is; its manifest has the table's name in both.
TABLE_FORMAT = "streamkernel.table"
ROWS_FORMAT = "streamkernel.rows"
VERSION = 2


@dataclass(frozen=True)
class ArrayManifest:
    """Grid, dtype (such as ``"<f4"``) and the digest of every chunk's decoded values (clipped to the array)."""

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
    """Manifests of the arrays, the digests of the metadata files they were written with, and the digest of itself.

    Both are by the array's name in the group; ``metadata[""]`` is the group's own.
    """

    arrays: dict[str, ArrayManifest]
    metadata: dict[str, str]
    digest: str


def write_manifest(folder: Path, arrays: Mapping[str, ArrayManifest]) -> None:
    """Write COMPLETE for these members of the group in `folder`, whose other files must all be there."""
    metadata = {name: text_digest((folder / name / "zarr.json").read_text("utf-8")) for name in ("", *arrays)}
    write_json(
        folder / COMPLETE,
        {
            "format": TABLE_FORMAT,
            "version": VERSION,
            "metadata": metadata,
            "arrays": {name: array.to_config() for name, array in arrays.items()},
        },
    )


def parse_manifest(text: str, path: str) -> Manifest:
    """The manifest in `text`, read from `path`; anything else than what we write is corrupt."""
    try:
        config = json.loads(text)
        if config["format"] != TABLE_FORMAT or config["version"] != VERSION:
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
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise CorruptMetadataError(f"{path} is not a streamkernel manifest ({error}); write the store again") from error
    return Manifest(arrays, metadata, text_digest(text))
