"""The reader for a source, chosen by its type, then by its suffix."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from streamkernel.blobs import display_form
from streamkernel.errors import StoreNotFoundError
from streamkernel.table.info import stored_weight
from streamkernel.table.ingest._columns import ColumnsReader
from streamkernel.table.ingest._csv import CsvReader
from streamkernel.table.ingest._files import SourceFile, is_zarr, several_sources, source_files
from streamkernel.table.ingest._libsvm import LibsvmReader
from streamkernel.table.ingest._numpy_files import NpyReader, NpzReader
from streamkernel.table.ingest._options import SourceOptions
from streamkernel.table.ingest._reader import Reader
from streamkernel.table.ingest._standard_input import LABEL, is_standard_input
from streamkernel.table.ingest._tables import TableReader
from streamkernel.table.open import open_table
from streamkernel.table.synthetic import is_synthetic, normal_form
from streamkernel.type_aliases import Unchecked

# Readers of one file.
_ONE_FILE: dict[str, Callable[[Path, str | int | None, str | int | None], Reader]] = {
    "NPZ": NpzReader,
    "NPY": NpyReader,
    "libsvm": LibsvmReader,
}


def open_reader(source: Unchecked, options: SourceOptions) -> Reader:
    """The reader for rows in memory, a store, a file, a folder, a pattern, a list of paths, or a copy of CSV."""
    target, weight = options.target, options.weight
    if isinstance(source, SourceFile):
        return CsvReader([source], str(source), options)
    several = several_sources(source)
    if not several and (not isinstance(source, (str, os.PathLike)) or is_synthetic(source)):
        options.refuse_csv(name_of(source))
    if not several and not isinstance(source, (str, os.PathLike)):
        table = open_table(source) if not hasattr(source, "data_vars") else open_table(source, target=target)
        wanted, name = None if hasattr(source, "data_vars") else target, table.weight_column or "w"
        return TableReader(table, wanted, weight, type(source).__name__, name)
    if not several and is_synthetic(source):
        return TableReader(open_table(source), target, weight, os.fsdecode(source))
    sources = list(source) if several else [source]
    place = display_form(sources[0])
    if len(sources) == 1 and is_zarr(place):
        options.refuse_csv(str(place))
        return _zarr_reader(place, target, weight, os.fsdecode(sources[0]))
    files = source_files(sources)
    kind, named = files[0].kind, str(place) if len(sources) == 1 else f"{files[0]} and {len(files) - 1} more"
    if kind != "CSV":
        options.refuse_csv(named)
    if kind in _ONE_FILE:
        return _ONE_FILE[kind](files[0].path, target, weight)
    return (CsvReader if kind == "CSV" else ColumnsReader)(files, named, options)


def name_of(source: Unchecked) -> str:
    """What the attributes of a table say that its rows are of."""
    if several_sources(source):
        names = [os.path.basename(os.path.normpath(os.fsdecode(one))) for one in source]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    if not isinstance(source, (str, os.PathLike)):
        return type(source).__name__
    if is_standard_input(source):
        return LABEL
    return normal_form(source) if is_synthetic(source) else os.path.basename(os.fspath(source))


def _zarr_reader(path: str | Path, target: str | int | None, weight: str | int | None, place: str) -> Reader:
    """The reader of a Zarr array or group, where `weight` may name an array of the group besides X and y."""
    table = open_table(path)
    stored = stored_weight(table, path)
    if stored is None and isinstance(weight, str) and weight not in (*table.columns, "X", "y"):
        with suppress(StoreNotFoundError):
            weights = open_table(table, weights=f"{path}/{weight}")
            return TableReader(weights, target, None, place, weight)
    return TableReader(table, target, weight, place, stored or "w")
