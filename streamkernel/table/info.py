"""The description of a stored table: the result of `ingest` and of `streamkernel info STORE`."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from zarr.abc.store import Store
from zarr.storage import LocalStore

from streamkernel.table._sparse_rows import SparseRows
from streamkernel.table.open import open_table
from streamkernel.table.rows import RowArray
from streamkernel.table.stored.blob_store import BlobStore
from streamkernel.table.stored.location import open_node
from streamkernel.table.stored.metadata import join, node_kind
from streamkernel.table.stored.zarr_rows import ZarrRows
from streamkernel.table.synthetic.rows import SyntheticRows
from streamkernel.table.table import Table
from streamkernel.type_aliases import Fields


@dataclass(frozen=True)
class TableInfo:
    """A table at a location, in numbers.

    Attributes
    ----------
    path, ingested
        Path or URL; True for a store that `ingest` made.
    rows, features, targets
        Sizes m, p, d; `targets` is the number of classes for class labels.
    columns, target_names, classes
        Names; sorted labels or None.
    dtype, chunk_rows, chunks
        dtype, rows per chunk and number of chunks of X.
    bytes_decoded, bytes_stored
        Sizes of X, y and w; `bytes_stored` is None where the store cannot list its objects, and 0 for a table that is
        made when it is read.
    checksummed
        True where checksums or digests find a flipped bit.
    statistics
        Per column count, mean, std, min, max, or None for foreign stores.
    source, seed
        Name of the source, or generator and version; seed of the shuffle (None: stored in the source's order).
    fingerprint
        Digest of the pinned content.
    seconds
        Duration of the ingest; None otherwise.
    left_out
        Parts of the source that the table has not.
    weight
        Name of the column that is the row weights; None where every row counts once.
    entries
        Number of entries of all rows, where these are sparse; else None.
    schema
        What the columns of the source were, where they were not all numbers.
    appended
        Of an append, the number of rows that it added, 0 where these were appended before; None otherwise.
    """

    path: str
    ingested: bool
    rows: int
    features: int
    targets: int
    columns: tuple[str, ...]
    target_names: tuple[str, ...]
    classes: tuple[Any, ...] | None
    dtype: str
    chunk_rows: int
    chunks: int
    bytes_decoded: int
    bytes_stored: int | None
    checksummed: bool
    statistics: Fields | None
    source: str | None
    seed: int | None
    fingerprint: str
    seconds: float | None = None
    left_out: tuple[str, ...] = ()
    weight: str | None = None
    entries: int | None = None
    schema: Fields | None = None
    appended: int | None = None

    @classmethod
    def of(cls, path: str | os.PathLike[str], seconds: float | None = None) -> TableInfo:
        """The table at `path`, opened with every check."""
        table = open_table(path, sparse=True)
        attributes, bytes_stored = _description(path, table)
        features = table.features
        targets = [] if table.targets is None else [table.targets.rows]
        arrays = [features, *targets, *([] if table.weights is None else [table.weights])]
        return cls(
            path=os.fspath(path),
            ingested=table.statistics is not None,
            rows=table.n_rows,
            features=table.n_features,
            targets=len(table.target_names),
            columns=table.columns,
            target_names=table.target_names,
            classes=None if table.classes is None else tuple(table.classes.tolist()),
            dtype=str(features.parts.data.dtype if isinstance(features, SparseRows) else features.dtype),
            chunk_rows=table.chunk_rows,
            chunks=-(-table.n_rows // table.chunk_rows),
            bytes_decoded=sum(map(_decoded_bytes, arrays)),
            bytes_stored=bytes_stored,
            checksummed=all(rows.checksummed if isinstance(rows, ZarrRows) else rows.proved for rows in arrays),
            statistics=None if table.statistics is None else table.statistics.to_config(),
            source=attributes.get("source"),
            seed=attributes.get("seed"),
            fingerprint=table.fingerprint,
            seconds=seconds,
            left_out=tuple(str(part) for part in attributes.get("left_out", ())),
            weight=None if table.weights is None else weight_name(attributes),
            entries=features.entries if isinstance(features, SparseRows) else None,
            schema=table.schema,
        )

    def to_config(self) -> Fields:
        """Plain JSON."""
        config = asdict(self)
        for name in ("columns", "target_names", "classes", "left_out"):
            config[name] = None if config[name] is None else list(config[name])
        return config


def _decoded_bytes(rows: RowArray) -> int:
    """Bytes of all its numbers."""
    if isinstance(rows, SparseRows):
        parts = rows.parts
        return sum(part.n_rows * part.dtype.itemsize for part in (parts.indptr, parts.indices, parts.data))
    return rows.n_rows * rows.width * rows.dtype.itemsize


def weight_name(attributes: Fields) -> str:
    """Name of the column that became the row weights of a stored table that has some."""
    return str(attributes.get("weight") or "w")


def stored_weight(table: Table, path: str | os.PathLike[str]) -> str | None:
    """`weight_name` of the table that is stored at `path`; None where it has no row weights."""
    return None if table.weights is None else weight_name(node_kind(*open_node(path))[1])


def _description(path: str | os.PathLike[str], table: Table) -> tuple[Fields, int | None]:
    """The attributes of the table at a location, and its stored bytes."""
    made = table.features
    if isinstance(made, SyntheticRows):
        return {"source": f"{made.table.generator} {made.table.maker.version}"}, 0
    store, inner = open_node(path)
    return node_kind(store, inner)[1], _bytes_stored(store, inner)


def _bytes_stored(store: Store, path: str) -> int | None:
    """Bytes of all its files or objects; None where the store cannot list them."""
    if isinstance(store, LocalStore):
        return sum(file.stat().st_size for file in (store.root / path).rglob("*") if file.is_file())
    if isinstance(store, BlobStore) and store.listable:
        return sum(stamp.size for stamp in store.stamps(join(path, "")).values())
    return None


def table_info(path: str | os.PathLike[str]) -> Fields:
    """The output of `streamkernel info STORE`: `TableInfo` as plain JSON."""
    return TableInfo.of(path).to_config()
