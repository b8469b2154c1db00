"""A location as the parts of a table: an ingested store, values per row, a foreign Zarr group with X[, y], an array, or
a table that is made when it is read."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.storage import LocalStore

from streamkernel.atomic import text_digest
from streamkernel.blobs import MOST_FOLLOWED, parent_of, shown
from streamkernel.errors import (
    CorruptMetadataError,
    DataError,
    IncompleteStoreError,
    ParameterError,
    StoreError,
    StoreNotFoundError,
    StreamKernelError,
)
from streamkernel.manifest import (
    COMPLETE,
    GROWN_SPARSE_VERSION,
    ROWS_FORMAT,
    SPARSE_VERSION,
    TABLE_FORMAT,
    TABLE_VERSIONS,
    VERSION,
    WEIGHTED_VERSION,
    Manifest,
    parse_manifest,
    table_content,
)
from streamkernel.table._sparse_rows import SPARSE_ARRAYS, CSRParts, SparseRows
from streamkernel.table.columns import are_real
from streamkernel.table.rows import RowArray, RowReader
from streamkernel.table.statistics import ColumnStatistics, TableStatistics
from streamkernel.table.stored.blob_store import BlobStore
from streamkernel.table.stored.metadata import ZarrArray, join, node_kind, open_store, place, read_bytes
from streamkernel.table.stored.zarr_rows import ZarrRows
from streamkernel.table.synthetic import is_synthetic, normal_form, parse
from streamkernel.table.synthetic.rows import SyntheticRows, SyntheticTargets
from streamkernel.type_aliases import AnyArray, Fields, Unchecked


@dataclass
class Opened:
    """The parts of an input: rows, names and, where it has them, targets, labels, row weights and statistics."""

    X: RowArray
    columns: tuple[str, ...] = ()
    y: RowArray | None = None
    target_names: tuple[str, ...] = ()
    classes: AnyArray | None = None
    coded: bool = False
    statistics: TableStatistics | None = None
    named: bool = True  # whether `columns` are real names
    w: RowArray | None = None
    schema: Fields | None = None
    ids: RowArray | None = None


def open_node(path: str | os.PathLike[str]) -> tuple[Store, str]:
    """A read-only store and the path in it of the node at a local path or URL; for an array, its group's store.

    In an object store, only an output's own record says which of its generations is current.
    """
    store = open_store(path)
    if not isinstance(store, BlobStore) or store.generation.record is not None:
        return store, ""
    try:
        around, name = parent_of(store.url)
    except ParameterError:  # a whole bucket
        return store, ""
    group = BlobStore(around)
    return (store, "") if group.generation.record is None and read_bytes(group, "zarr.json") is None else (group, name)


def open_stored(path: str | os.PathLike[str], name: str = "X") -> Opened:
    """Open the store at a path or URL; `name` ("X" or "y") is the role of a bare array."""
    if is_synthetic(path):
        return _made(os.fsdecode(path), name)
    return _open_settled(*open_node(path), name)


def _made(url: str, name: str) -> Opened:
    """A table that is made when it is read."""
    if name != "X":
        raise ParameterError(f"{shown(url)} is a table, not one array; give an array or the path of one as {name}")
    table, url = parse(url), normal_form(url)
    classes = table.maker.classes(table.options)
    return Opened(
        SyntheticRows(table, url),
        tuple(f"x{column + 1}" for column in range(table.features)),
        SyntheticTargets(table, url),
        ("y",),
        classes,
        coded=classes is not None,
    )


def open_zarr_array(node: ZarrArray | zarr.Group, name: str) -> Opened:
    """Open a zarr Array or Group again from its store, because the object's metadata in memory may be older."""
    return _open_settled(node.store, node.path, name)


def _open_settled(store: Store, path: str, name: str) -> Opened:
    """Open all parts in one generation; if rows are appended meanwhile, open the new one."""
    if not isinstance(store, (BlobStore, LocalStore)):
        return _open_node(store, path, name)
    for _ in range(MOST_FOLLOWED):
        before = _identity(store)
        try:
            opened = _open_node(store, path, name)
        except (DataError, StoreError) as error:
            if isinstance(store, BlobStore) and type(error) is StoreError:  # the store does not answer
                raise
            if _identity(store) == before and not (isinstance(store, BlobStore) and store.follow()):
                raise
        else:
            if _identity(store) == before:
                return opened
    return _open_node(store, path, name)


def _identity(store: BlobStore | LocalStore) -> Hashable:
    """Identity of the generation: the inode of the store's folder, which differs for every generation."""
    if isinstance(store, BlobStore):
        return store.generation.identity
    try:
        status = os.stat(store.root)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _open_node(store: Store, path: str, name: str) -> Opened:
    kind, attributes, content = node_kind(store, path)
    if kind == "array":
        return Opened(_array(store, path, name))
    ours = attributes.get("format")
    if ours == TABLE_FORMAT:
        return _open_ingested(store, path, attributes, content)
    if ours == ROWS_FORMAT:
        return _open_values(store, path, attributes, content, name)
    if isinstance(ours, str) and ours.startswith("streamkernel."):
        raise ParameterError(f"{place(store, path)} is a {ours}, not a table; give the path of a table")
    if name == "y":
        raise ParameterError(f"{place(store, path)} is a Zarr group; for y give the path of one array in it")
    if not _holds(store, join(path, "X")):
        raise StoreNotFoundError(
            f"the Zarr group {place(store, path)} has no array X; give the path of a 2-d array in it, or a group "
            "with X and y"
        )
    opened = Opened(ZarrRows(store, join(path, "X"), "X"))
    if _holds(store, join(path, "y")):
        opened.y, opened.target_names = ZarrRows(store, join(path, "y"), "y"), ("y",)
    return opened


def lacks_rows(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a Zarr group of another program without an array X, so that its arrays must be named."""
    try:
        store, inner = open_node(path)
        kind, attributes, _ = node_kind(store, inner)
    except StoreError:  # told where it is opened
        return False
    ours = str(attributes.get("format", "")).startswith("streamkernel.")
    return kind == "group" and not ours and not _holds(store, join(inner, "X"))


def _holds(store: Store, path: str) -> bool:
    try:
        node_kind(store, path)
    except StoreNotFoundError:
        return False
    return True


def _array(store: Store, path: str, name: str) -> ZarrRows:
    """One array; if streamkernel wrote the group around it, that group's manifest checks the reads."""
    group_store = store
    group, _, entry = path.rpartition("/")
    if not path and isinstance(store, LocalStore):
        # The path leads to an array: its group is the folder around it.
        root = Path(os.path.abspath(store.root))
        group_store, entry = LocalStore(root.parent, read_only=True), root.name
    try:
        kind, attributes, content = node_kind(group_store, group)
    except StoreNotFoundError:
        return ZarrRows(store, path, name)
    if kind != "group" or attributes.get("format") not in (TABLE_FORMAT, ROWS_FORMAT):
        return ZarrRows(store, path, name)
    return ZarrRows(group_store, join(group, entry), name, *_manifest(group_store, group, attributes, content))


def _manifest(store: Store, path: str, attributes: Fields, content: bytes) -> tuple[str, Manifest]:
    """Key and content of the manifest of a group that streamkernel wrote, checked against the group's metadata."""
    where = place(store, path)
    key = join(path, COMPLETE)
    known = TABLE_VERSIONS if attributes.get("format") == TABLE_FORMAT else (VERSION,)
    if attributes.get("version") not in known:
        raise CorruptMetadataError(
            f"{where} is a {attributes.get('format')} of version {attributes.get('version')!r}, this streamkernel "
            f"reads version {' and '.join(map(str, known))}; write it again"
        )
    text = read_bytes(store, key)
    if text is None:
        again = "ingest the source again" if attributes.get("format") == TABLE_FORMAT else "write it again"
        raise IncompleteStoreError(f"{where} has no {COMPLETE} manifest: its writer did not finish; {again}")
    manifest = parse_manifest(text.decode("utf-8", "replace"), place(store, key))
    if manifest.metadata.get("") != text_digest(content.decode("utf-8", "replace")):
        raise CorruptMetadataError(
            f"{place(store, join(path, 'zarr.json'))} is not the file that {COMPLETE} was written with; "
            "write the store again"
        )
    if manifest.content and manifest.content != table_content(manifest.arrays, attributes):
        raise CorruptMetadataError(
            f"{place(store, key)} lists other digests than it was written with; write the store again"
        )
    return key, manifest


def _open_ingested(store: Store, path: str, attributes: Fields, content: bytes) -> Opened:
    key, manifest = _manifest(store, path, attributes, content)
    sparse = attributes["version"] in (SPARSE_VERSION, GROWN_SPARSE_VERSION)
    try:
        columns = () if sparse else tuple(str(name) for name in attributes["columns"])
        names = tuple(str(name) for name in attributes["target_names"])
        labels = None if attributes["classes"] is None else _labels(attributes["classes"])
        if sparse:
            X, statistics = _open_sparse(store, path, attributes, key, manifest)
        else:
            X = ZarrRows(store, join(path, "X"), "X", key, manifest)
            statistics = TableStatistics.from_config(attributes["statistics"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, StreamKernelError):
            raise
        raise CorruptMetadataError(
            f"{place(store, join(path, 'zarr.json'))} lacks a table's attributes ({error!r}); ingest again"
        ) from error
    named = False if sparse else bool(attributes.get("named", are_real(columns)))
    opened = Opened(X, columns, statistics=statistics, named=named)
    if "y" in manifest.arrays:
        opened.y, opened.target_names = ZarrRows(store, join(path, "y"), "y", key, manifest), names
        if labels is not None:
            opened.classes, opened.coded = labels, True
    weighted = "w" in manifest.arrays if sparse else attributes["version"] == WEIGHTED_VERSION
    if weighted != ("w" in manifest.arrays) or weighted != (statistics.X.weight is not None):
        raise CorruptMetadataError(
            f"{place(store, key)} and the attributes of the table do not agree on row weights; ingest again"
        )
    schema = attributes.get("schema")
    opened.schema = schema if isinstance(schema, dict) else None
    if "id" in manifest.arrays:
        opened.ids = ZarrRows(store, join(path, "id"), "y", key, manifest)
    if weighted:
        opened.w = ZarrRows(store, join(path, "w"), "weights", key, manifest)
    return opened


def _labels(stored: Unchecked) -> AnyArray:
    """The classes of y, as the attributes of a table list them."""
    labels = np.array(stored)
    if labels.ndim != 1 or labels.dtype == object:
        raise ValueError("classes that are no list of labels")
    return labels


def _open_sparse(
    store: Store, path: str, attributes: Fields, key: str, manifest: Manifest
) -> tuple[RowArray, TableStatistics]:
    """Sparse rows, and the statistics of their columns, which are an array: there may be very many."""
    sizes, counted = attributes["sparse"], attributes["statistics"]
    d, most, chunk_rows = (int(sizes[name]) for name in ("columns", "most_entries", "chunk_rows"))
    arrays = {name: ZarrRows(store, join(path, name), "X", key, manifest) for name in SPARSE_ARRAYS}
    of_columns = arrays.pop("statistics")
    if min(d, most, chunk_rows) < 1 or of_columns.shape != (4, d) or arrays["indices"].shape != arrays["data"].shape:
        raise ValueError("sizes of sparse rows that do not fit together")
    weight = counted["X"].get("weight")
    mean, std, low, high = np.array(RowReader(of_columns).read(0, 4), np.float64)
    count = int(counted["X"]["count"])
    statistics = ColumnStatistics(count, mean, std, low, high, None if weight is None else float(weight))
    y = counted.get("y")
    return (
        SparseRows(CSRParts(**arrays), d, most, chunk_rows),
        TableStatistics(statistics, None if y is None else ColumnStatistics.from_config(y)),
    )


def open_row_arrays(location: str | os.PathLike[str]) -> tuple[Fields, dict[str, RowArray]] | None:
    """Attributes and arrays of an output of rows; None where there is something else, or nothing."""
    if is_synthetic(location):
        return None
    store = open_store(location)
    try:
        kind, attributes, content = node_kind(store, "")
    except StoreNotFoundError:
        return None
    if kind != "group" or attributes.get("format") != ROWS_FORMAT:
        return None
    key, manifest = _manifest(store, "", attributes, content)
    return attributes, {name: ZarrRows(store, name, "y", key, manifest) for name in manifest.arrays}


def _open_values(store: Store, path: str, attributes: Fields, content: bytes, name: str) -> Opened:
    """Open the only array of an output with values per row (predictions, a factor); X must have columns."""
    key, manifest = _manifest(store, path, attributes, content)
    where = place(store, path)
    if len(manifest.arrays) != 1:
        paths = ", ".join(f"{where}/{entry}" for entry in manifest.arrays)
        raise ParameterError(f"{where} holds {len(manifest.arrays)} arrays; give the path of one: {paths}")
    [(entry, array)] = manifest.arrays.items()
    if name == "X" and len(array.shape) != 2:
        raise ParameterError(f"{where} holds one value a row ({entry}), not a table; it can be y")
    return Opened(ZarrRows(store, join(path, entry), name, key, manifest))
