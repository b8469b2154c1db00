"""Parquet: one file, or a folder of files of one schema, read in record batches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamkernel.blobs import first_line
from streamkernel.errors import DTypeError, EmptyDataError, SourceFormatError
from streamkernel.table.columns import first_repeated
from streamkernel.table.ingest._reader import BATCH_BYTES, Batch, Reader, text_labels
from streamkernel.type_aliases import AnyArray, AnyDType, Untyped
from streamkernel.wording import option

# The name that pandas gives to an index that has none.
_INDEX = re.compile(r"__index_level_\d+__")


class ParquetReader(Reader):
    """Rows of Parquet files. In a folder every *.parquet below it is taken, in the order of the paths; names that begin
    with "_" or "." are left out. Folder names are no columns: a partition's ``name=value`` is said to be left out, and
    so is the index of a frame of pandas, which is no column of it."""

    unit = "rows"

    def __init__(self, path: Path, target: str | int | None, weight: str | int | None = None) -> None:
        self._path = path
        self._files = [path] if path.is_file() else _files_below(path)
        if not self._files:
            raise SourceFormatError(
                f"{path} holds no .parquet file and is no Zarr store; give a folder of Parquet files"
            )
        schema, rows = _open_schema(self._files[0])
        of_pandas = _pandas_index(schema)
        schema = schema.remove_metadata()
        self._starts = [0]
        for file in self._files:
            other, count = (schema, rows) if file == self._files[0] else _open_schema(file)
            other = other.remove_metadata()
            if not other.equals(schema):
                differs = next(
                    (f for f in other if schema.get_field_index(f.name) < 0 or schema.field(f.name).type != f.type),
                    None,
                )
                what = (
                    f"column {differs.name!r} ({differs.type})"
                    if differs is not None
                    else "the order or number of its columns"
                )
                raise SourceFormatError(f"{file}: {what} differs from {self._files[0].name}; give files of one schema")
            self._starts.append(self._starts[-1] + count)
        self.n_rows = self.estimated_rows = self.total = self._starts[-1]
        names = list(schema.names)
        again = first_repeated(names)
        if again is not None:
            raise SourceFormatError(f"{self._files[0]}: column name {names[again]!r} is there twice; rename one")
        if not self.n_rows:
            raise EmptyDataError(f"{path} has no rows; give at least one")
        of_pandas = of_pandas - {target, weight}
        self._places = [place for place, name in enumerate(names) if name not in of_pandas]
        names = [names[place] for place in self._places]
        self._names = names
        self._choose(names, target, weight, path)
        self.left_out = (
            *_partitions(path, self._files, names),
            *(
                f"column {name!r} (the index of the rows in pandas: make it a column, reset_index)"
                for name in sorted(of_pandas)
            ),
        )
        types = [_numeric(schema.field(place), path, at == self._target) for at, place in enumerate(self._places)]
        if self._target is not None:
            self.labelled = types[self._target] is None
        kinds = [types[index] for index in self._features(len(types))]
        self.dtype = np.result_type(*kinds)

    def batches(self) -> Iterator[Batch]:
        rows = max(1, BATCH_BYTES // (8 * len(self._names)))
        for file in self._files:
            done = 0
            try:
                with pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20) as source:
                    for batch in source.iter_batches(batch_size=rows):
                        if batch.num_rows:
                            yield self._batch(batch)
                            done += batch.num_rows
            except (pa.ArrowException, OSError) as error:
                if (
                    isinstance(error, OSError) and error.errno is not None
                ):  # pyarrow raises a bare one for damaged pages
                    raise
                raise SourceFormatError(
                    f"{file}: damaged after its row {done} ({first_line(error)}); fetch it again"
                ) from error

    def _batch(self, batch: Untyped) -> Batch:
        X = np.empty((batch.num_rows, len(self.columns)), dtype=self.dtype)
        for position, index in enumerate(self._features(len(self._names))):
            X[:, position] = _floats(batch.column(self._places[index]))
        w = None
        if self._weight is not None:
            w = _floats(batch.column(self._places[self._weight])).astype(np.float64)
        if self._target is None:
            return Batch(X, None, None, batch.num_rows, w)
        column = batch.column(self._places[self._target])
        if not self.labelled:
            return Batch(X, _floats(column).astype(np.float64).reshape(-1, 1), None, batch.num_rows, w)
        return Batch(X, *text_labels(column), batch.num_rows, w)

    def where(self, row: int) -> str:
        index = max(0, int(np.searchsorted(self._starts, row, side="right")) - 1)
        return f"{self._files[min(index, len(self._files) - 1)]} (row {row - self._starts[index]} of the file)"


def _files_below(folder: Path) -> list[Path]:
    found = (path for path in sorted(folder.rglob("*")) if path.suffix in (".parquet", ".pq") and path.is_file())
    return [path for path in found if not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)]


def _open_schema(path: Path) -> tuple[Untyped, int]:
    try:
        with pq.ParquetFile(path) as source:
            return source.schema_arrow, int(source.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # pyarrow raises a bare one for a damaged footer
            raise
        raise SourceFormatError(
            f"{path} is not a Parquet file ({first_line(error)}); check or fetch it again"
        ) from error


def _pandas_index(schema: Untyped) -> set[str]:
    """Columns that are the index of the frame of pandas that was written."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        names = {name for name in index if isinstance(name, str)}
    except (KeyError, TypeError, ValueError):  # written by others, or not as pandas does
        names = set()
    return {name for name in schema.names if name in names or _INDEX.fullmatch(name)}


def _numeric(field: Untyped, path: Path, is_target: bool) -> AnyDType | None:
    """The float type for a column; None for text, which is allowed only for a target."""
    kind = field.type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        return np.dtype(np.float32)
    if (
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    ):
        return np.dtype(np.float64)
    if is_target and (pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value)):
        return None
    if pa.types.is_null(kind):
        raise DTypeError(
            f"{path}: column {field.name!r} has no value in any row (type null); leave it out of the file, or write it "
            "with values and a type"
        )
    raise DTypeError(
        f"{path}: column {field.name!r} holds {kind}; leave it out, encode it as numbers, or name it as "
        f"{option('target')}"
    )


def _floats(column: Untyped) -> AnyArray:
    """Numbers of a column; a missing value becomes NaN, which the finite check then names."""
    if pa.types.is_boolean(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    return values.astype(np.float64) if values.dtype.kind != "f" else values


def _partitions(path: Path, files: list[Path], names: list[str]) -> tuple[str, ...]:
    """Columns that exist only in the names of folders (Hive's ``name=value``), as text for `left_out`."""
    keys: dict[str, int] = {}
    for file in files:
        for part in file.relative_to(path).parts[:-1] if file != path else ():
            key, mark, _ = part.partition("=")
            if mark and key and key not in names:
                keys[key] = keys.get(key, 0) + 1
    return tuple(f"column {key!r} of the folders {key}=... (in no file: write it into the files)" for key in keys)
