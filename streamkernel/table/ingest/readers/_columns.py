"""Parquet and Arrow: the rows of one file or of several of the same columns, read in record batches."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from streamkernel.errors import DTypeError, EmptyDataError, SourceFormatError
from streamkernel.table.columns import first_repeated
from streamkernel.table.ingest.readers._column_files import column_file
from streamkernel.table.ingest.readers._partitions import Partitions
from streamkernel.table.ingest.readers.arrow_values import floats, text_labels
from streamkernel.table.ingest.readers.files import SourceFile, check_same_columns
from streamkernel.table.ingest.readers.options import SourceOptions
from streamkernel.table.ingest.readers.reader import BATCH_BYTES, FILLING, Batch, Reader
from streamkernel.table.ingest.readers.streams import NO_MARKS, ColumnStream
from streamkernel.table.schema.arrow_types import is_numeric, is_text, plain_batch, plain_type, words_of_type
from streamkernel.type_aliases import AnyDType, Untyped
from streamkernel.wording import option

# The name that pandas gives to an index that has none.
_INDEX = re.compile(r"__index_level_\d+__")


class TypedStream(ColumnStream):
    """Columns of Parquet or Arrow files, one after the other: those of the first file, found by name in the others.

    A number may have another type there. The index of a frame of pandas is no column, but when it is named as one.
    """

    def __init__(self, files: Sequence[SourceFile], place: str, used: Collection[str | int | None] = ()) -> None:
        self._files = [column_file(file) for file in files]
        first = self._files[0]
        names = list(first.schema.names)
        again = first_repeated(names)
        if again is not None:
            raise SourceFormatError(f"{first.file}: column name {names[again]!r} is there twice; rename one")
        self._starts = [0]
        for each in self._files:
            check_same_columns(each.file, each.schema.names, first.file, names)
            if len(each.schema.names) != len(names):
                raise SourceFormatError(f"{each.file}: a column name is there twice; rename one")
            self._starts.append(self._starts[-1] + each.n_rows)
        self.n_rows = self.estimated_rows = self.total = self._starts[-1]
        if not self.n_rows:
            raise EmptyDataError(f"{place} has no rows; give at least one")
        of_pandas = _pandas_index(first.schema) - {*used}
        self.partitions = Partitions(files, names)
        self.names = [*(name for name in names if name not in of_pandas), *self.partitions.names]
        self.unnamed = tuple(
            f"column {name!r} (the index of the rows in pandas: make it a column, reset_index)"
            for name in sorted(of_pandas)
        )

    def arrow_type(self, name: str) -> Untyped | None:
        text = self.partitions.is_text(name)
        if text is not None:
            return pa.string() if text else pa.float64()
        return plain_type(self._files[0].schema.field(name).type)

    def float_type(self, name: str, *, is_target: bool) -> AnyDType | None:
        """The float type for a column of all files; None for text, which is allowed only for a target."""
        text = self.partitions.is_text(name)
        if text is not None:
            return None if text else np.dtype(np.float64)
        first = self._files[0]
        found = [_numeric(each.schema.field(name), each.file, is_target) for each in self._files]
        for each, kind in zip(self._files, found, strict=True):
            if (kind is None) != (found[0] is None):
                raise SourceFormatError(
                    f"{each.file}: column {name!r} holds {words_of_type(each.schema.field(name).type)}, and in "
                    f"{first.file} {words_of_type(first.schema.field(name).type)}; give files of one schema"
                )
        return None if found[0] is None else np.result_type(*found)

    def batches(
        self, names: Sequence[str], text: Collection[str], missing: Mapping[str, Collection[str]] = NO_MARKS
    ) -> Iterator[tuple[Untyped, int]]:
        rows = max(1, BATCH_BYTES // (8 * len(names)))
        for each in self._files:
            before = 0
            for batch in each.batches(rows):
                if batch.num_rows:
                    whole = self.partitions.extended(batch, each.file, before, text)
                    yield plain_batch(whole.select(list(names))), batch.num_rows
                    before += batch.num_rows

    def where(self, row: int) -> str:
        index = min(max(0, bisect_right(self._starts, row) - 1), len(self._files) - 1)
        return f"{self._files[index].file} (row {row - self._starts[index]} of the file)"


class ColumnsReader(Reader):
    """Rows of Parquet or Arrow files whose features are numbers."""

    unit = "rows"

    def __init__(self, stream: TypedStream, place: str, options: SourceOptions) -> None:
        self.filling = FILLING
        self._place, self._stream = place, stream
        self.n_rows = self.estimated_rows = self.total = stream.n_rows
        names, left_out = stream.partitions.as_numbers(stream.names, options.target)
        self._names = self._choose_of(names, options, place)
        self.left_out = (*left_out, *stream.unnamed, *options.left_out)
        types = [stream.float_type(name, is_target=name in self.target_names) for name in self._names]
        if self._target is not None:
            self.labelled = types[self._target] is None
        kinds = [types[index] for index in self._features(len(types))]
        self.dtype = np.result_type(*kinds)

    def batches(self) -> Iterator[Batch]:
        for batch, rows in self._stream.batches(self._names, ()):
            yield self._batch(batch.columns, rows)

    def _batch(self, columns: Sequence[Untyped], rows: int) -> Batch:
        X = np.empty((rows, len(self.columns)), dtype=self.dtype)
        for position, index in enumerate(self._features(len(self._names))):
            X[:, position] = floats(columns[index])
        w = None if self._weight is None else floats(columns[self._weight]).astype(np.float64)
        if self._target is None:
            return Batch(X, None, None, rows, w)
        column = columns[self._target]
        if not self.labelled:
            return Batch(X, floats(column).astype(np.float64).reshape(-1, 1), None, rows, w)
        return Batch(X, *text_labels(column), rows, w)

    def where(self, row: int) -> str:
        return self._stream.where(row)


def _pandas_index(schema: Untyped) -> set[str]:
    """Columns that are the index of the frame of pandas that was written."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        names = {name for name in index if isinstance(name, str)}
    except (KeyError, TypeError, ValueError):  # written by others, or not as pandas does
        names = set()
    return {name for name in schema.names if name in names or _INDEX.fullmatch(name)}


def _numeric(field: Untyped, file: SourceFile, is_target: bool) -> AnyDType | None:
    """The float type for a column; None for text, which is allowed only for a target."""
    kind = plain_type(field.type)
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        return np.dtype(np.float32)
    if is_numeric(kind):
        return np.dtype(np.float64)
    if is_target and is_text(kind):
        return None
    if pa.types.is_null(kind):
        raise DTypeError(
            f"{file}: column {field.name!r} has no value in any row (type null); leave it out of the file, or write it "
            "with values and a type"
        )
    raise DTypeError(
        f"{file}: column {field.name!r} holds {words_of_type(kind)}; leave it out by {option('drop')}, name it among "
        f"{option('categories')} or {option('dates')} or as {option('target')}, or by {option('id')} where it tells "
        f"which row it is, or let {option('schema', 'auto')} look at the rows"
    )
