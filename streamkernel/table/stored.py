"""Zarr on disk as the parts of a table: an ingested store, a foreign group with X[, y], or one bare array."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.store import Store

from streamkernel.atomic import text_digest
from streamkernel.errors import CorruptMetadataError, IncompleteStoreError, ParameterError, StoreNotFoundError
from streamkernel.table.manifest import COMPLETE, FORMAT, VERSION, parse_manifest
from streamkernel.table.rows import RowArray
from streamkernel.table.statistics import TableStatistics
from streamkernel.table.zarr_metadata import join, node_kind, open_store, place, read_bytes
from streamkernel.table.zarr_rows import ZarrRows

__all__ = ["Opened", "open_stored", "open_zarr_array"]


@dataclass
class Opened:
    """What an input brought: rows, names, and where it has them targets, labels and statistics."""

    X: RowArray
    columns: tuple[str, ...] = ()
    y: RowArray | None = None
    target_names: tuple[str, ...] = ()
    classes: NDArray[Any] | None = None
    coded: bool = False
    statistics: TableStatistics | None = None


def open_stored(path: str | os.PathLike[str], name: str = "X") -> Opened:
    """The store at a path or URL; `name` is what a bare array is taken for."""
    return _open_node(open_store(path), "", name)


def open_zarr_array(node: zarr.Array[Any] | zarr.Group, name: str) -> Opened:
    """An open zarr Array or Group, read again from its store: what it holds in memory may be older."""
    return _open_node(node.store, node.path, name)


def _open_node(store: Store, path: str, name: str) -> Opened:
    kind, attributes, content = node_kind(store, path)
    if kind == "array":
        return Opened(ZarrRows(store, path, name))
    ours = attributes.get("format")
    if ours == FORMAT:
        return _open_ingested(store, path, attributes, content)
    if isinstance(ours, str) and ours.startswith("streamkernel."):
        raise ParameterError(f"{place(store, path)} is a {ours}, not a table; give the path of a table")
    if name == "y":
        raise ParameterError(f"{place(store, path)} is a Zarr group; for y give the path of one array in it")
    try:
        node_kind(store, join(path, "X"))
    except StoreNotFoundError as error:
        raise StoreNotFoundError(
            f"the Zarr group {place(store, path)} has no array X; give the path of a 2-d array in it, or a group "
            "with X and y"
        ) from error
    opened = Opened(ZarrRows(store, join(path, "X"), "X"))
    try:
        node_kind(store, join(path, "y"))
    except StoreNotFoundError:
        return opened
    opened.y, opened.target_names = ZarrRows(store, join(path, "y"), "y"), ("y",)
    return opened


def _open_ingested(store: Store, path: str, attributes: dict[str, Any], content: bytes) -> Opened:
    where = place(store, path)
    key = join(path, COMPLETE)
    if attributes.get("version") != VERSION:
        raise CorruptMetadataError(
            f"{where} is a {FORMAT} of version {attributes.get('version')!r}, this streamkernel reads version "
            f"{VERSION}; ingest the source again"
        )
    text = read_bytes(store, key)
    if text is None:
        raise IncompleteStoreError(
            f"{where} has no {COMPLETE} manifest: its writer did not finish; ingest the source again"
        )
    manifest = parse_manifest(text.decode("utf-8", "replace"), place(store, key))
    if manifest.metadata.get("") != text_digest(content.decode("utf-8", "replace")):
        raise CorruptMetadataError(
            f"{place(store, join(path, 'zarr.json'))} is not the file that {COMPLETE} was written with; ingest again"
        )
    try:
        columns = tuple(str(name) for name in attributes["columns"])
        names = tuple(str(name) for name in attributes["target_names"])
        labels = attributes["classes"]
        statistics = TableStatistics.from_config(attributes["statistics"])
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptMetadataError(
            f"{place(store, join(path, 'zarr.json'))} lacks a table's attributes ({error!r}); ingest again"
        ) from error
    opened = Opened(ZarrRows(store, join(path, "X"), "X", key), columns, statistics=statistics)
    if "y" in manifest.arrays:
        opened.y, opened.target_names = ZarrRows(store, join(path, "y"), "y", key), names
        if labels is not None:
            opened.classes, opened.coded = np.array(labels), True
    return opened
