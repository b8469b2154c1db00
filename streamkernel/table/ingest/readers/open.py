"""The reader for a source, chosen by its type, then by its suffix."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from streamkernel.blobs import display_form
from streamkernel.errors import ParameterError, warn_user
from streamkernel.table.frames import is_pandas
from streamkernel.table.ingest._encoded import EncodedReader
from streamkernel.table.ingest.readers._columns import ColumnsReader, TypedStream
from streamkernel.table.ingest.readers._datasets import dataset_reader
from streamkernel.table.ingest.readers._libsvm import LibsvmReader
from streamkernel.table.ingest.readers._numpy_files import NpyReader, NpzReader, arrays_of_npz
from streamkernel.table.ingest.readers._pandas_columns import is_array_with_names
from streamkernel.table.ingest.readers._tables import TableReader
from streamkernel.table.ingest.readers._zarr import arrays_of_group, zarr_reader
from streamkernel.table.ingest.readers.csv.rows import CsvReader, CsvStream
from streamkernel.table.ingest.readers.files import SourceFile, is_zarr, several_sources, source_files
from streamkernel.table.ingest.readers.frames import frame_stream, is_frame
from streamkernel.table.ingest.readers.options import SourceOptions
from streamkernel.table.ingest.readers.reader import Reader
from streamkernel.table.ingest.readers.standard_input import LABEL, is_standard_input
from streamkernel.table.ingest.readers.streams import ColumnStream
from streamkernel.table.open import open_table
from streamkernel.table.synthetic import is_synthetic, normal_form
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

# Readers of one file.
_ONE_FILE: dict[str, Callable[[Path, SourceOptions], Reader]] = {
    "NPZ": NpzReader,
    "NPY": NpyReader,
    "libsvm": LibsvmReader,
}


def open_reader(source: Unchecked, options: SourceOptions) -> Reader:
    """The reader for rows in memory, a store, a file, a folder, a pattern, a list of paths, or a copy of CSV."""
    target, weight = options.target, options.weight
    if isinstance(source, SourceFile):
        options.refuse_sparse(str(source))
        return _of_columns(CsvStream([source], options.csv, target), str(source), options)
    several = several_sources(source)
    if not several and is_frame(source) and not (is_pandas(source) and _is_array(source, options)):
        options.refuse_csv(name_of(source))
        options.refuse_names(name_of(source), "has none")
        options.refuse_sparse(name_of(source))
        return EncodedReader(frame_stream(source, name_of(source)), name_of(source), options)
    if not several and (not isinstance(source, (str, os.PathLike)) or is_synthetic(source)):
        options.refuse_csv(name_of(source))
        options.refuse_columns(name_of(source))
        options.refuse_schema(name_of(source))
    if not several and hasattr(source, "data_vars"):
        options.refuse_sparse(type(source).__name__)
        return dataset_reader(source, options, type(source).__name__)
    if not several and not isinstance(source, (str, os.PathLike)):
        options.refuse_names(f"a {type(source).__name__}", "has none")
        table = open_table(source, sparse=True)
        options.refuse_sparse(f"a {type(source).__name__}", sparse=table.sparse)
        table = table.as_sparse(False) if options.sparse is False else table
        return TableReader(table, target, weight, type(source).__name__, table.weight_column or "w")
    if not several and is_synthetic(source):
        options.refuse_names(os.fsdecode(source), "has none")
        options.refuse_sparse(os.fsdecode(source))
        return TableReader(open_table(source), target, weight, os.fsdecode(source))
    sources = list(source) if several else [source]
    place = display_form(sources[0])
    if len(sources) == 1 and is_zarr(place):
        options.refuse_csv(str(place))
        options.refuse_columns(str(place))
        options.refuse_schema(str(place))
        return zarr_reader(place, options, os.fsdecode(sources[0]))
    files = source_files(sources)
    kind, named = files[0].kind, str(place) if len(sources) == 1 else f"{files[0]} and {len(files) - 1} more"
    if kind != "CSV":
        options.refuse_csv(named)
    if kind != "libsvm":
        options.refuse_sparse(named)
    if kind != "NPZ":
        options.refuse_names(named, "is none")
    if kind in _ONE_FILE:
        options.refuse_columns(named)
        options.refuse_schema(named)
        return _ONE_FILE[kind](files[0].path, options)
    if kind == "CSV":
        return _of_columns(CsvStream(files, options.csv, target), named, options)
    return _of_columns(TypedStream(files, named, (*options.targets, weight)), named, options)


def column_stream(source: Unchecked, options: SourceOptions) -> ColumnStream:
    """The columns of CSV, Parquet or Arrow files or of a frame.

    Raises
    ------
    ParameterError
        The source is another one.
    """
    place, several = name_of(source), several_sources(source)
    if isinstance(source, SourceFile):
        return CsvStream([source], options.csv, options.target)
    if not has_columns(source):
        raise ParameterError(
            f"{place} has no columns of different kinds: its rows are numbers, which need no schema; give CSV, Parquet "
            "or Arrow files, or a frame"
        )
    if not several and is_frame(source):
        return frame_stream(source, place)
    files = source_files(list(source) if several else [source])
    if files[0].kind == "CSV":
        return CsvStream(files, options.csv, options.target)
    return TypedStream(files, place, (*options.targets, options.weight))


def has_columns(source: Unchecked) -> bool:
    """Whether the rows have columns of different kinds: CSV, Parquet and Arrow files, and frames."""
    several = several_sources(source)
    if isinstance(source, SourceFile) or (not several and is_frame(source)):
        return True
    if not several and (not isinstance(source, (str, os.PathLike)) or is_synthetic(source)):
        return False
    sources = list(source) if several else [source]
    if len(sources) == 1 and is_zarr(display_form(sources[0])):
        return False
    return source_files(sources)[0].kind not in _ONE_FILE


def choice_of_arrays(source: str) -> dict[str, str]:
    """The options of `ingest` that name the arrays of an NPZ file or a Zarr group without X; other files need none.

    NAME stands for a name that only the user knows.

    Raises
    ------
    SourceFormatError
        It is called an NPZ file, and is none.
    """
    place = display_form(source)
    if is_zarr(place):
        return arrays_of_group(place)
    [file] = source_files([source])
    return arrays_of_npz(file.path) if file.kind == "NPZ" else {}


def _is_array(frame: Unchecked, options: SourceOptions) -> bool:
    """Whether a frame of pandas is an array with names: all columns are numbers, and nothing more is said of them."""
    return not (options.described or options.drop or options.keep is not None) and is_array_with_names(frame)


def _of_columns(stream: CsvStream | TypedStream, place: str, options: SourceOptions) -> Reader:
    if isinstance(stream, CsvStream) and (name := stream.row_numbers) is not None and options.takes_unasked(name):
        warn_user(
            f"{place}: the first column has no name and another whole number in each row, as the index that pandas "
            f"writes; it is the feature {name!r}; leave it out by {option('drop', [name])}"
        )
    if options.described:
        return EncodedReader(stream, place, options)
    if isinstance(stream, CsvStream):
        return CsvReader(stream, place, options)
    return ColumnsReader(stream, place, options)


def name_of(source: Unchecked) -> str:
    """What the attributes of a table say that its rows are of."""
    if several_sources(source):
        names = [os.path.basename(os.path.normpath(os.fsdecode(one))) for one in source]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    if isinstance(source, SourceFile):
        return str(source)
    if not isinstance(source, (str, os.PathLike)):
        return type(source).__name__
    if is_standard_input(source):
        return LABEL
    return normal_form(source) if is_synthetic(source) else os.path.basename(os.fspath(source))
