"""CSV: the rows of one file or of several, which have one header."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence

from streamkernel.errors import SourceFormatError
from streamkernel.table.ingest.readers._partitions import Partitions
from streamkernel.table.ingest.readers.arrow_values import text_labels
from streamkernel.table.ingest.readers.csv._file import CsvFile
from streamkernel.table.ingest.readers.csv.format import CsvFormat
from streamkernel.table.ingest.readers.csv.records import is_number
from streamkernel.table.ingest.readers.files import SourceFile, check_same_columns
from streamkernel.table.ingest.readers.options import SourceOptions
from streamkernel.table.ingest.readers.reader import FILLING, Batch, Reader
from streamkernel.table.ingest.readers.streams import NO_MARKS, ColumnStream
from streamkernel.type_aliases import AnyArray, Untyped


class CsvStream(ColumnStream):
    """Columns of CSV files, one after the other: those of the first file, found by name in the others."""

    unit = "bytes"

    def __init__(self, files: Sequence[SourceFile], form: CsvFormat, target: str | int | None = None) -> None:
        self._files = [CsvFile(file, form, target) for file in files]
        first = self._files[0]
        for each in self._files[1:]:
            _check_headers(each, first)
        if not any(each.sample for each in self._files):
            raise SourceFormatError(
                f"{first.file}:{first.begin}:1: there are no rows after the header; give at least one"
            )
        self.named, self.separator = first.header, first.separator
        self.partitions = Partitions(files, first.names)
        self.names = [*first.names, *self.partitions.names]
        self.total = sum(each.total for each in self._files)
        self.estimated_rows = sum(each.estimated_rows for each in self._files)
        self._starts = [0]

    @property
    def row_numbers(self) -> str | None:
        """The name given to a first column without one that has another whole number in each row, as pandas' index."""
        first = self._files[0]
        found = [row[0] for row in first.sample if row]
        if not first.header or first.first_has_name or len(found) < 2 or len({*found}) < len(found):
            return None
        return first.names[0] if all(text.isdecimal() for text in found) else None

    def arrow_type(self, name: str) -> Untyped | None:
        return None

    def has_text(self, name: str) -> bool:
        """Whether a column is text in the first rows of some file."""
        text = self.partitions.is_text(name)
        return any(each.has_text(name) for each in self._files) if text is None else text

    def batches(
        self, names: Sequence[str], text: Collection[str], missing: Mapping[str, Collection[str]] = NO_MARKS
    ) -> Iterator[tuple[Untyped, int]]:
        # Columns of the files that are not parsed may hold anything.
        wanted = {*names, *self.partitions.inside}
        read = [name for name in self._files[0].names if name in wanted]
        self._starts = []
        rows = 0
        for each in self._files:
            self._starts.append(rows)
            for batch, done in each.batches(read, text, missing):
                whole = self.partitions.extended(batch, each.file, rows - self._starts[-1], text)
                yield whole.select(list(names)), done
                rows += batch.num_rows

    def where(self, row: int) -> str:
        index = max(0, bisect_right(self._starts, row) - 1)
        return self._files[index].where(row - self._starts[index])


class CsvReader(Reader):
    """Rows of CSV files whose features are numbers.

    A target whose first 1,000 values in each file are not all numbers is read as text labels.
    """

    unit = "bytes"

    def __init__(self, stream: CsvStream, place: str, options: SourceOptions) -> None:
        self.filling = FILLING
        self._place, self._stream, self.named = place, stream, stream.named
        names, self.left_out = stream.partitions.as_numbers(stream.names, options.target)
        self.left_out += options.left_out
        self._names = self._choose_of(names, options, place)
        if self._target is not None:
            self.labelled = stream.has_text(self._names[self._target])
        self.total, self.estimated_rows = stream.total, stream.estimated_rows

    def batches(self) -> Iterator[Batch]:
        for batch, done in self._stream.batches(self._names, self.target_names if self.labelled else ()):
            yield self._batch(batch, done)

    def _batch(self, batch: Untyped, done: int) -> Batch:
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
        return self._stream.where(row)


def _check_headers(each: CsvFile, first: CsvFile) -> None:
    """Refuse a file without the header of the first one."""
    # Where the target has a name, every first line is taken for a header.
    numeric = {file.file: not file.header or all(map(is_number, file.names)) for file in (each, first)}
    if each.header != first.header or (numeric[each.file] != numeric[first.file]):
        having, lacking = (first.file, each.file) if numeric[each.file] else (each.file, first.file)
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
