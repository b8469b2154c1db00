"""CSV, plain or gzipped, streamed by pyarrow in blocks of 1 MiB, for a file of any size."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from streamkernel.errors import SourceFormatError
from streamkernel.table.columns import first_repeated
from streamkernel.table.ingest._csv_locate import data_lines, fields_of, first_problem, is_number, open_plain
from streamkernel.table.ingest._reader import Batch, Reader, text_labels
from streamkernel.type_aliases import AnyArray, Untyped

# The parser holds some dozens of these blocks; 4 MiB would cost twice the memory and is not faster.
_BLOCK_BYTES = 1 << 20
_SAMPLE_ROWS = 1000
_SAMPLE_BYTES = 1 << 18


class CsvReader(Reader):
    """Rows of a CSV file (UTF-8; comma, semicolon or tab).

    If every field of the first line is a number (except the target's, when it is given by index), the line is data, and
    the columns are named x0, x1, ... A target whose first 1,000 values are not all numbers is read as text labels.
    """

    unit = "bytes"

    def __init__(self, path: Path, target: str | int | None, weight: str | int | None = None) -> None:
        self._path = path
        self.total = path.stat().st_size
        _refuse_other_encodings(path)
        head = list(islice(data_lines(path), _SAMPLE_ROWS + 1))
        if not head:
            raise SourceFormatError(f"{path}:1:1: the file is empty; give a header and rows, or rows of numbers")
        first = head[0][1]
        self._delimiter = next((mark for mark in ",;\t" if mark in first), ",")
        names = fields_of(first, self._delimiter, f"{path}:{head[0][0]}")
        self._header = self.named = not _is_data(names, target)
        if self._header:
            self._names = [name.strip() or f"x{index}" for index, name in enumerate(names)]
            again = first_repeated(self._names)
            if again is not None:
                raise SourceFormatError(
                    f"{path}:{head[0][0]}:{again + 1}: column name {self._names[again]!r} is already that of column "
                    f"{self._names.index(self._names[again]) + 1}; rename one"
                )
            if len(head) == 1:
                raise SourceFormatError(
                    f"{path}:{head[0][0] + 1}:1: there are no rows after the header; give at least one"
                )
        else:
            self._names = [f"x{index}" for index in range(len(names))]
        # A line longer than a block cannot be parsed.
        self._block_bytes = max(_BLOCK_BYTES, 8 * len(first))
        self._skip_lines = head[0][0] if self._header else 0
        self._choose(self._names, target, weight, path)
        sample = [fields_of(text, self._delimiter, f"{path}:{number}") for number, text in head[self._header :]]
        if self._target is not None:
            self.labelled = not all(is_number(row[self._target]) for row in sample if len(row) > self._target)
        self.estimated_rows = self._estimate()

    def _estimate(self) -> int:
        with open_plain(self._path) as handle:
            sample = handle.read(_SAMPLE_BYTES)
            whole = not handle.read(1)
        lines = sum(1 for line in sample.splitlines() if line)
        if whole:
            return max(1, lines - self._header)
        # gzip compresses text of numbers to about 0.45 of its size.
        size = (self.total or 0) * (2.2 if self._path.suffix == ".gz" else 1.0)
        return max(1, int(size * lines / len(sample)))

    def batches(self) -> Iterator[Batch]:
        rows = 0
        types = {name: pa.float64() for name in self._names}
        if self.labelled:
            types[self.target_names[0]] = pa.string()
        try:
            with open(self._path, "rb") as raw, ExitStack() as stack:
                # Python's gzip, unlike Arrow's, refuses a file that was cut off or whose checksum is wrong.
                plain = stack.enter_context(gzip.open(raw)) if self._path.suffix == ".gz" else raw
                parsed = pa_csv.open_csv(
                    pa.PythonFile(plain, mode="r"),
                    read_options=pa_csv.ReadOptions(
                        block_size=self._block_bytes, column_names=self._names, skip_rows=self._skip_lines
                    ),
                    parse_options=pa_csv.ParseOptions(delimiter=self._delimiter),
                    convert_options=pa_csv.ConvertOptions(column_types=types, strings_can_be_null=False),
                )
                position = 0
                for batch in parsed:
                    if batch.num_rows:
                        now = min(raw.tell(), self.total or 0)
                        yield self._batch(batch, now - position)
                        position = now
                        rows += batch.num_rows
        except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise self._explain(error, rows) from error

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

    def _explain(self, error: Exception, rows: int) -> SourceFormatError:
        """The error for pyarrow's exception, with file, line and column."""
        text_column = self._target if self.labelled else None
        try:
            first_problem(self._path, self._delimiter, self._names, text_column, rows + self._header)
        except SourceFormatError as found:
            return found
        message = str(error).splitlines()[0][:200]
        return SourceFormatError(f"{self._path}: {message} (after row {rows}); mend the file")

    def where(self, row: int) -> str:
        found = next(islice(data_lines(self._path, row + self._header), 1), None)
        return f"{self._path}:{found[0]}" if found else str(self._path)


def _is_data(fields: list[str], target: str | int | None) -> bool:
    """True where a first line is data, not names."""
    skip: int | None = None
    if target is not None:
        try:
            skip = int(target) % len(fields)
        except ValueError:
            return False
        if str(target) in fields and not all(is_number(field) for field in fields):
            return False
    return all(is_number(field) for index, field in enumerate(fields) if index != skip) and len(fields) > (
        skip is not None
    )


def _refuse_other_encodings(path: Path) -> None:
    with open_plain(path) as handle:
        start = handle.read(4)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SourceFormatError(f"{path}:1:1: the file is UTF-16, not UTF-8; convert it (iconv -f UTF-16 -t UTF-8)")
    if b"\x00" in start:
        raise SourceFormatError(f"{path}:1:1: the file holds zero bytes, not text; give a UTF-8 CSV file")
