"""Zarr arrays and groups: tables of ours, groups with arrays X and y or of other names, Datasets of xarray."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import zarr
from zarr.abc.store import Store

from streamkernel.atomic import parsed_json
from streamkernel.errors import ParameterError, SourceFormatError, StoreNotFoundError
from streamkernel.table.info import stored_weight
from streamkernel.table.ingest.readers._datasets import dataset_reader, stored_dataset
from streamkernel.table.ingest.readers._numpy_files import arrays_by_shape
from streamkernel.table.ingest.readers._tables import TableReader
from streamkernel.table.ingest.readers.options import SourceOptions
from streamkernel.table.ingest.readers.reader import Reader
from streamkernel.table.open import open_table
from streamkernel.table.stored.location import open_node
from streamkernel.table.stored.metadata import join, node_kind
from streamkernel.table.stored.zarr_rows import ZarrRows
from streamkernel.table.table import Table
from streamkernel.wording import option

# Attributes by which xarray, as the CF conventions say, stores other numbers than those that are meant.
_PACKED = {"scale_factor", "add_offset"}


def zarr_reader(path: str | Path, options: SourceOptions, place: str) -> Reader:
    """The reader of a store; `options.weight` may name an array of a group besides X and y.

    xarray reads a group if it wrote it and arrays are chosen, if there is no array X, or if one of them is packed.
    """
    store, inner = open_node(path)
    kind, attributes, _ = node_kind(store, inner)
    ours = str(attributes.get("format", "")).startswith("streamkernel.")
    chosen = options.X is not None or options.y is not None
    if chosen and (ours or kind == "array"):
        options.refuse_names(place, "has no arrays to choose from")
    if kind == "group" and not ours:
        X = _array_metadata(store, join(inner, options.X or "X"))
        others = [name for name in (options.y or "y", options.weight) if isinstance(name, str)]
        found = [X, *(_array_metadata(store, join(inner, name)) for name in others)]
        if X is None or (chosen and X[1]) or any(each is not None and each[0] & _PACKED for each in found):
            options.refuse_sparse(str(path))
            dataset = None
            try:
                dataset = stored_dataset(store, inner, place)
            except SourceFormatError:
                if X is not None:
                    raise
            # xarray reads a group of groups as a Dataset without variables.
            if dataset is None or not dataset.variables:
                raise StoreNotFoundError(
                    f"the Zarr group {place} has no array {options.X or 'X'}, and is no Dataset of xarray; name its "
                    f"arrays by {option('X')} and {option('y')}, or give the path of a 2-d array in it"
                )
            return dataset_reader(dataset, options, place)
    table = _named_table(path, store, inner, options) if chosen else open_table(path, sparse=True)
    options.refuse_sparse(str(path), sparse=table.sparse)
    table = table.as_sparse(False) if options.sparse is False else table
    # A table that has its target takes no other.
    target = None if chosen and table.targets is not None else options.target
    stored = None if chosen else stored_weight(table, path)
    weight, used = options.weight, (options.X or "X", options.y or "y")
    if stored is None and isinstance(weight, str) and weight not in (*table.columns, *used):
        with suppress(StoreNotFoundError):
            weights = open_table(table, weights=f"{path}/{weight}", sparse=True)
            return TableReader(weights, target, None, place, weight)
    return TableReader(table, target, weight, place, stored or "w")


def arrays_of_group(path: str | Path) -> dict[str, str]:
    """The options that name the arrays of a group without X: X and y by `arrays_by_shape`; the target of columns."""
    store, inner = open_node(path)
    shapes = {name: array.shape for name, array in zarr.open_group(store, path=inner, mode="r").arrays()}
    # Variables of one dimension are the columns of a Dataset.
    columns = len(shapes) > 1 and all(len(shape) == 1 for shape in shapes.values())
    return {"target": "NAME"} if columns else arrays_by_shape(shapes)


def _named_table(path: str | Path, store: Store, inner: str, options: SourceOptions) -> Table:
    """The table of the chosen arrays of a group."""
    X, y = f"{path}/{options.X or 'X'}", options.y or "y"
    there = _array_metadata(store, join(inner, y)) is not None
    if options.y is not None and not there:
        raise ParameterError(f"{path}: there is no array {y!r}; choose another {option('y')}")
    if not there or options.target not in (None, "y") or y == options.X:
        return open_table(X)
    text = ZarrRows(store, join(inner, y), "y").dtype.kind in "UTO"
    table = open_table(X, f"{path}/{y}", classify=text)
    assert table.targets is not None
    names = tuple(name.replace("y", y, 1) for name in table.targets.names)
    return replace(table, targets=replace(table.targets, names=names))


def _array_metadata(store: Store, path: str) -> tuple[set[str], bool] | None:
    """Names of the attributes of an array, and whether its dimensions have names; None if there is no array."""
    try:
        kind, attributes, content = node_kind(store, path)
    except StoreNotFoundError:
        return None
    if kind != "array":
        return None
    named = "_ARRAY_DIMENSIONS" in attributes or bool(parsed_json(content).get("dimension_names"))
    return set(attributes), named
