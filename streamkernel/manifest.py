"""COMPLETE: the last file a writer of rows makes. It says that the store is whole, its digests that it still is.

Level 0: `table/` writes it for ingested tables, `store/` for values per row, and `table/` reads either.

::

    STORE/zarr.json        group; its attribute `format` is that of a table or of an output of rows
    STORE/X/, STORE/y/     arrays, cut into chunks along the rows
    STORE/COMPLETE         this manifest (JSON)

Rows are appended in a new generation of the folder, whose manifest keeps what its ancestors' readers have pinned and
what of theirs was written anew: the digest of a last chunk that was not full. All other chunks are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamkernel.atomic import parsed_json, text_digest, write_json
from streamkernel.errors import CorruptMetadataError

__all__ = [
    "BUNDLE_FORMAT",
    "COMPLETE",
    "ROWS_FORMAT",
    "TABLE_FORMAT",
    "VERSION",
    "Ancestor",
    "ArrayManifest",
    "Manifest",
    "parse_manifest",
    "write_manifest",
]

COMPLETE = "COMPLETE"
# What a group's attributes say it is; its manifest has the table's name in both.
TABLE_FORMAT = "streamkernel.table"
ROWS_FORMAT = "streamkernel.rows"
BUNDLE_FORMAT = "streamkernel.bundle"
VERSION = 2
# Whoever opened a store more appends ago than this has to open it again.
KEPT_GENERATIONS = 64


@dataclass(frozen=True)
class ArrayManifest:
    """Grid, dtype (such as ``"<f4"``) and the digest of every chunk's decoded values (clipped to the array)."""

    shape: tuple[int, ...]
    chunk_rows: int
    dtype: str
    digests: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Rows of the array."""
        return self.shape[0]

    def first(self, rows: int, last: str | None) -> ArrayManifest:
        """As it was when it had so many rows; `last` is the digest of its last chunk then, where that was not full."""
        whole = self.digests[: rows // self.chunk_rows]
        digests = whole if last is None else (*whole, last)
        return ArrayManifest((rows, *self.shape[1:]), self.chunk_rows, self.dtype, digests)

    def to_config(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "shape": list(self.shape),
            "chunk_rows": self.chunk_rows,
            "dtype": self.dtype,
            "digests": list(self.digests),
        }


@dataclass(frozen=True)
class Ancestor:
    """A generation of the store to which rows were appended since.

    Attributes
    ----------
    digest : of its manifest.
    rows : of its arrays.
    metadata : digests of its metadata files.
    last : by the array's name, the digest of its last chunk; empty where that was full and is so still.
    """

    digest: str
    rows: int
    metadata: dict[str, str]
    last: dict[str, str]

    @classmethod
    def of(cls, manifest: Manifest) -> Ancestor:
        """The generation of a manifest, as those after it will know it."""
        partial = {
            name: array.digests[-1] for name, array in manifest.arrays.items() if array.n_rows % array.chunk_rows
        }
        return cls(manifest.digest, max(a.n_rows for a in manifest.arrays.values()), manifest.metadata, partial)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Ancestor:
        """The one that `to_config` wrote."""
        metadata, last = ({str(name): str(d) for name, d in config[key].items()} for key in ("metadata", "last"))
        return cls(str(config["digest"]), int(config["rows"]), metadata, last)

    def to_config(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"digest": self.digest, "rows": self.rows, "metadata": self.metadata, "last": self.last}


@dataclass(frozen=True)
class Manifest:
    """Manifests of the arrays, the digests of the metadata files they were written with, and the digest of itself.

    Both are by the array's name in the group; ``metadata[""]`` is the group's own. `history` holds the latest
    generations before this one, the oldest first.
    """

    arrays: dict[str, ArrayManifest]
    metadata: dict[str, str]
    digest: str
    history: tuple[Ancestor, ...] = field(default=())

    def at(self, digest: str) -> Manifest | None:
        """The manifest with this digest: this one, or one of the history; None for any other."""
        if digest == self.digest:
            return self
        for ancestor in self.history:
            if ancestor.digest == digest:
                arrays = {
                    name: array.first(ancestor.rows, ancestor.last.get(name)) for name, array in self.arrays.items()
                }
                return Manifest(arrays, ancestor.metadata, digest)
        return None


def write_manifest(folder: Path, arrays: Mapping[str, ArrayManifest], history: Sequence[Ancestor] = ()) -> None:
    """Write COMPLETE for these members of the group in `folder`, whose other files must all be there."""
    metadata = {name: text_digest((folder / name / "zarr.json").read_text("utf-8")) for name in ("", *arrays)}
    config: dict[str, Any] = {
        "format": TABLE_FORMAT,
        "version": VERSION,
        "metadata": metadata,
        "arrays": {name: array.to_config() for name, array in arrays.items()},
    }
    if history:
        config["history"] = [ancestor.to_config() for ancestor in history[-KEPT_GENERATIONS:]]
    write_json(folder / COMPLETE, config)


def parse_manifest(text: str, path: str) -> Manifest:
    """The manifest in `text`, read from `path`; anything else than what we write is corrupt."""
    try:
        config = parsed_json(text)
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
        history = tuple(Ancestor.from_config(entry) for entry in config.get("history", []))
        for ancestor in history:
            if any(ancestor.rows > array.n_rows for array in arrays.values()):
                raise ValueError("an earlier generation has more rows")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise CorruptMetadataError(f"{path} is not a streamkernel manifest ({error}); write the store again") from error
    return Manifest(arrays, metadata, text_digest(text), history)
