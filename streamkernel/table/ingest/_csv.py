"""CSV: the rows of one file or of several, which have one header."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from streamkernel.errors import SourceFormatError
from streamkernel.table.ingest._arrow_values import text_labels
from streamkernel.table.ingest._csv_file import CsvFile
from streamkernel.table.ingest._files import SourceFile, check_same_columns
from streamkernel.table.ingest._options import SourceOptions
from streamkernel.table.ingest._partitions import Partitions
from streamkernel.table.ingest._reader import Batch, Reader
from streamkernel.type_aliases import AnyArray, Untyped


class CsvReader(Reader):
    """Rows of CSV files, one after the other. Columns are those of the first file, and found by name in the others.

    A target whose first 1,000 values in each file are not all numbers is read as text labels.
    """

    unit = "bytes"

    def __init__(self, files: Sequence[SourceFile], place: str, options: SourceOptions) -> None:
        self._place = place
        self._files = [CsvFile(file, options.csv, options.target) for file in files]
        first = self._files[0]
        for each in self._files[1:]:
            _check_headers(each, first)
        if not any(each.sample for each in self._files):
            raise SourceFormatError(
                f"{first.file}:{first.begin}:1: there are no rows after the header; give at least one"
            )
        self.named = first.header
        self._partitions = Partitions(files, first.names, options.target)
        self.left_out = (*self._partitions.left_out, *options.left_out)
        names = [*first.names, *self._partitions.names]
        self._names = self._choose_of(names, options, place)
        # Columns of the files that are not parsed may hold anything, such as text.
        read = {*self._names, *self._partitions.inside}
        self._read = [name for name in first.names if name in read]
        if self._target is not None:
            self.labelled = self._is_text(self._names[self._target])
        self.total = sum(each.total for each in self._files)
        self.estimated_rows = sum(each.estimated_rows for each in self._files)
        self._starts = [0]

    def _is_text(self, name: str) -> bool:
        text = self._partitions.is_text(name)
        return any(each.has_text(name) for each in self._files) if text is None else text

    def batches(self) -> Iterator[Batch]:
        text = self.target_names[0] if self.labelled else None
        self._starts = []
        rows = 0
        for each in self._files:
            self._starts.append(rows)
            for batch, done in each.batches(self._read, text):
                yield self._batch(self._partitions.extended(batch, each.file, rows - self._starts[-1]), done)
                rows += batch.num_rows

    def _batch(self, batch: Untyped, done: int) -> Batch:
        batch = batch.select(self._names)
        labels = None
        y: AnyArray | None = None
        w = None if self._weight is None else batch.column(self._weight).to_numpy(zero_copy_only=False)
        if self._target is not None:
            column = batch.column(self._target)
            if self.labelled:
                y, labels = text_labels(column)
            else:
                y = column.to_numpy(zero_copy_only=False).reshape(-1, 1)
        if len(self.columns) < len(self._names):
            batch = batch.select(self._features(len(self._names)))
        X = batch.to_tensor(null_to_nan=True, row_major=True).to_numpy()
        return Batch(X, y, labels, done, w)

    def where(self, row: int) -> str:
        index = max(0, bisect_right(self._starts, row) - 1)
        return self._files[index].where(row - self._starts[index])


def _check_headers(each: CsvFile, first: CsvFile) -> None:
    """Refuse a file without the header of the first one."""
    if each.header != first.header:
        having, lacking = (each.file, first.file) if each.header else (first.file, each.file)
        raise SourceFormatError(
            f"{lacking}:1:1: the first line is numbers, and {having} has a header; give all files the same header, "
            "or none"
        )
    if not each.header and len(each.names) != len(first.names):
        raise SourceFormatError(
            f"{each.file}:1:{min(len(each.names), len(first.names))}: {len(each.names)} columns without names, and "
            f"{first.file} has {len(first.names)}; give files of the same columns"
        )
    check_same_columns(each.file, each.names, first.file, first.names)
