"""COMPLETE: the manifest of a store of rows, and the last file that its writer creates.

Its presence shows that the store is complete, and its digests that the store is undamaged. `table/` writes it for
ingested tables, `store/` for values per row, and `table/` reads both.

::

    STORE/zarr.json        group; its attribute `format` is that of a table or of an output of rows
    STORE/X/, STORE/y/     arrays, cut into chunks along the rows; STORE/w/ where a table has row weights
    STORE/indptr/, STORE/indices/, STORE/data/, STORE/statistics/    in place of X, where rows are sparse (CSR)
    STORE/COMPLETE         this manifest (JSON)

An append of rows creates a new generation of the folder. Its manifest stores what readers of earlier generations need:
the digest of each earlier manifest, and the digest of its last chunk if this was not full, because an append rewrites
that chunk. All other chunks stay the same; but the statistics of sparse rows, which are read once, are written anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamkernel.atomic import json_content, parsed_json, text_digest
from streamkernel.errors import CorruptMetadataError
from streamkernel.type_aliases import Fields, FieldsView

COMPLETE = "COMPLETE"
# Formats in the attributes of a group. The manifest has TABLE_FORMAT for tables and for rows.
TABLE_FORMAT = "streamkernel.table"
ROWS_FORMAT = "streamkernel.rows"
BUNDLE_FORMAT = "streamkernel.bundle"
VERSION = 2
# The version of a table with row weights, which a release that does not know them must not read as one without.
WEIGHTED_VERSION = 3
# The version of a table with sparse rows, with or without row weights.
SPARSE_VERSION = 4
# That of one to which rows were appended: its arrays have lengths of their own, also those of earlier generations.
GROWN_SPARSE_VERSION = 5
TABLE_VERSIONS = (VERSION, WEIGHTED_VERSION, SPARSE_VERSION, GROWN_SPARSE_VERSION)
# Attributes of a table that tell where its rows came from and in which file format they are: no part of `content`.
_PROVENANCE = frozenset({"format", "version", "source", "seed", "left_out", "appended"})
# Length of the history. A reader that opened the store more appends ago than this must open it again.
KEPT_GENERATIONS = 64


@dataclass(frozen=True)
class ArrayManifest:
    """Grid and dtype (such as ``"<f4"``) of an array, and the digest of the decoded values of each chunk.

    The values of the last chunk are clipped to the array. The fields, in this order, are the entry in COMPLETE.
    """

    shape: tuple[int, ...]
    chunk_rows: int
    dtype: str
    digests: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows of the array."""
        return self.shape[0]

    def first(self, rows: int, last: str | None) -> ArrayManifest:
        """The manifest at the time of `rows` rows; `last` is the digest of the last chunk then, if it was not full."""
        whole = self.digests[: rows // self.chunk_rows]
        digests = whole if last is None else (*whole, last)
        return ArrayManifest((rows, *self.shape[1:]), self.chunk_rows, self.dtype, digests)


@dataclass(frozen=True)
class Ancestor:
    """An earlier generation of the store, before rows were appended.

    Attributes
    ----------
    digest : digest of its manifest.
    rows : number of rows of its arrays.
    metadata : digests of its metadata files.
    last : digest of the last chunk of each array, by name; without arrays whose last chunk was full.
    sizes : numbers of rows of the arrays that have another one, by name: those of sparse rows.
    content : its `content`; "" for one that had none.
    """

    digest: str
    rows: int
    metadata: dict[str, str]
    last: dict[str, str]
    sizes: dict[str, int] = field(default_factory=dict)
    content: str = ""

    def rows_of(self, name: str) -> int:
        """Number of rows of an array."""
        return self.sizes.get(name, self.rows)

    @classmethod
    def of(cls, manifest: Manifest) -> Ancestor:
        """The entry for this manifest in the history of later ones."""
        partial = {
            name: array.digests[-1] for name, array in manifest.arrays.items() if array.n_rows % array.chunk_rows
        }
        rows = max(array.n_rows for array in manifest.arrays.values())
        sizes = {name: array.n_rows for name, array in manifest.arrays.items() if array.n_rows != rows}
        return cls(manifest.digest, rows, manifest.metadata, partial, sizes, manifest.content)

    @classmethod
    def from_config(cls, config: FieldsView) -> Ancestor:
        """The entry that `manifest_content` wrote."""
        metadata, last = ({str(name): str(d) for name, d in config[key].items()} for key in ("metadata", "last"))
        sizes = {str(name): int(rows) for name, rows in config.get("sizes", {}).items()}
        content = str(config.get("content", ""))
        return cls(str(config["digest"]), int(config["rows"]), metadata, last, sizes, content)

    def to_config(self) -> Fields:
        """Plain JSON; `sizes` and `content` only where there are some."""
        return {name: value for name, value in vars(self).items() if name not in ("sizes", "content") or value}


@dataclass(frozen=True)
class Manifest:
    """Manifests of the arrays, digests of their metadata files, and the digest of this manifest.

    `arrays` and `metadata` are by the name of the array in the group; ``metadata[""]`` is that of the group. `history`
    holds the latest earlier generations, the oldest first. `content` is what `table_content` gives; "" in tables of
    earlier releases, and in outputs of rows.
    """

    arrays: dict[str, ArrayManifest]
    metadata: dict[str, str]
    digest: str
    history: tuple[Ancestor, ...] = field(default=())
    content: str = ""

    def at(self, digest: str) -> Manifest | None:
        """The manifest with this digest: this one, or one from the history; None for another digest."""
        if digest == self.digest:
            return self
        for ancestor in self.history:
            if ancestor.digest == digest:
                arrays = {
                    name: array.first(ancestor.rows_of(name), ancestor.last.get(name))
                    for name, array in self.arrays.items()
                }
                return Manifest(arrays, ancestor.metadata, digest, content=ancestor.content)
        return None


def table_content(arrays: Mapping[str, ArrayManifest], attributes: FieldsView) -> str:
    """Digest of the rows and the schema of a table. The source does not count. The fingerprint contains this digest.

    Equal for equal chunks, columns, targets, classes, weights and statistics.
    """
    described = {name: value for name, value in attributes.items() if name not in _PROVENANCE}
    parts = {"arrays": {name: vars(array) for name, array in arrays.items()}, "attributes": described}
    # Statistics of huge numbers may be infinite.
    return text_digest(json.dumps(parts, sort_keys=True, separators=(",", ":")))


def manifest_content(
    arrays: Mapping[str, ArrayManifest],
    metadata: Mapping[str, bytes],
    history: Sequence[Ancestor] = (),
    version: int = VERSION,
    content: str = "",
) -> bytes:
    """The content of COMPLETE for these arrays of a group.

    `metadata` has the ``zarr.json`` of each array, and that of the group by the name ""; `version` is the
    group's, and `content` what `table_content` gives, of a table.
    """
    config: Fields = {
        "format": TABLE_FORMAT,
        "version": version,
        "metadata": {name: text_digest(metadata[name].decode()) for name in ("", *arrays)},
        "arrays": {name: vars(array) for name, array in arrays.items()},
    }
    if content:
        config["content"] = content
    if history:
        config["history"] = [ancestor.to_config() for ancestor in history[-KEPT_GENERATIONS:]]
    return json_content(config)


def parse_manifest(text: str, path: str) -> Manifest:
    """The manifest in `text`, which was read from `path`.

    Raises
    ------
    CorruptMetadataError
        The text is not a manifest of this version.
    """
    try:
        config = parsed_json(text)
        if config["format"] != TABLE_FORMAT or config["version"] not in TABLE_VERSIONS:
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
        # Without this a table whose y is missing in the list would be read as one that never had a y.
        if metadata.keys() != {"", *arrays}:
            raise ValueError("the listed arrays are not those whose metadata has a digest")
        history = tuple(Ancestor.from_config(entry) for entry in config.get("history", []))
        for ancestor in history:
            if any(ancestor.rows_of(name) > array.n_rows for name, array in arrays.items()):
                raise ValueError("an earlier generation has more rows")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise CorruptMetadataError(f"{path} is not a streamkernel manifest ({error}); write the store again") from error
    return Manifest(arrays, metadata, text_digest(text), history, str(config.get("content", "")))
