"""One CSV file, plain or compressed, streamed by pyarrow in blocks of 1 MiB, for a file of any size."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import islice
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from streamkernel.errors import SourceFormatError
from streamkernel.table.columns import default_position, first_repeated
from streamkernel.table.ingest.readers._plain_bytes import COMPRESSIONS, TYPICAL_RATIO, plain_bytes
from streamkernel.table.ingest.readers.csv.format import CsvFormat
from streamkernel.table.ingest.readers.csv.records import MISSING, first_problem, is_number, records, text_lines
from streamkernel.table.ingest.readers.files import SourceFile
from streamkernel.table.ingest.readers.streams import NO_MARKS
from streamkernel.table.schema.values import WrongValueError, numbers
from streamkernel.type_aliases import Untyped
from streamkernel.wording import option

# The parser holds some dozens of these blocks; 4 MiB would cost twice the memory and is not faster.
_BLOCK_BYTES = 1 << 20
_SAMPLE_ROWS = 1000
_SAMPLE_BYTES = 1 << 18


class CsvFile:
    """A CSV file, with what its first rows tell.

    If every field of the first row is a number (except the target's, when it is given by index), the row is data, and
    the columns are named x0, x1, ...

    Attributes
    ----------
    names, header, first_has_name
        Names of the columns; whether they stand in the file, and that of the first one, too.
    separator
        The letter between fields.
    sample
        Fields of the first 1,000 rows.
    begin
        Line in which the rows begin.
    total, estimated_rows
        Bytes of the file; estimated number of rows.
    """

    def __init__(self, file: SourceFile, form: CsvFormat, target: str | int | None) -> None:
        self.file = file
        self.total = file.path.stat().st_size
        _refuse_other_encodings(file, form.encoding)
        first = next((line for line in text_lines(file, form.encoding) if line.strip("\r\n")), None)
        if first is None:
            raise SourceFormatError(f"{file}:1:1: the file is empty; give a header and rows, or rows of numbers")
        if first[:4].lower() == "sep=":
            raise SourceFormatError(
                f"{file}:1:1: the line {first.strip()[:20]!r} is Excel's, not a header; remove it, and name the "
                f"separator by {option('separator')} where it is not found"
            )
        form = replace(form, separator=form.separator_of(first, tabs=file.suffix == ".tsv"))
        self._form, self.separator = form, form.separator
        head = list(islice(records(file, form), _SAMPLE_ROWS + 1))
        line, last, names = head[0]
        self.header = not _is_data(names, target, form.decimal)
        self.first_has_name = bool(names[0].strip())
        self.sample = [fields for _, _, fields in head[self.header :]]
        if self.header:
            self.names = [name.strip() or f"x{index}" for index, name in enumerate(names)]
            again = first_repeated(self.names)
            if again is not None and all(is_number(name, form.decimal) for name in names):
                raise SourceFormatError(
                    f"{file}:{line}:1: the first line is numbers, and the target has a name; write the names of the "
                    f"columns before it, or give {option('target')} as an index, such as -1"
                )
            if again is not None:
                raise SourceFormatError(
                    f"{file}:{line}:{again + 1}: column name {self.names[again]!r} is already that of column "
                    f"{self.names.index(self.names[again]) + 1}; rename one"
                )
        else:
            self.names = [f"x{index}" for index in range(len(names))]
        # A line longer than a block cannot be parsed.
        self._block_bytes = max(_BLOCK_BYTES, 8 * len(first))
        self._skip_lines = last if self.header else 0
        self.begin = self._skip_lines + 1
        self.estimated_rows = self._estimate() if self.sample else 0

    def _plain(self) -> AbstractContextManager[tuple[BinaryIO, BinaryIO]]:
        return plain_bytes(self.file.path, str(self.file), self._form.encoding)

    def _estimate(self) -> int:
        with self._plain() as (plain, _):
            sample = plain.read(_SAMPLE_BYTES)
            whole = not plain.read(1)
        lines = sum(1 for line in sample.splitlines() if line)
        if whole:
            return max(1, lines - self.header)
        ratio = TYPICAL_RATIO if self.file.path.suffix.lower() in COMPRESSIONS else 1.0
        return max(1, int(self.total * ratio * lines / len(sample)))

    def has_text(self, name: str) -> bool:
        """Whether a column has text in the first rows."""
        column = self.names.index(name)
        return not all(is_number(row[column], self._form.decimal) for row in self.sample if len(row) > column)

    def batches(
        self, columns: Sequence[str], text: Collection[str], missing: Mapping[str, Collection[str]] = NO_MARKS
    ) -> Iterator[tuple[Untyped, int]]:
        """Record batches with the columns in this order, and the bytes that were read for each.

        Parameters
        ----------
        text : names of the columns that are text; the others are numbers.
        missing : by column, texts that stand for a missing number, beside `MISSING`.
        """
        rows = position = 0
        # Arrow has one list of missing values for all columns.
        marked = {name: missing[name] for name in columns if missing.get(name) and name not in text}
        types = {name: pa.string() if name in text or name in marked else pa.float64() for name in columns}
        try:
            with self._plain() as (plain, raw):
                parsed = pa_csv.open_csv(
                    pa.PythonFile(plain, mode="r"),
                    read_options=pa_csv.ReadOptions(
                        block_size=self._block_bytes, column_names=self.names, skip_rows=self._skip_lines
                    ),
                    parse_options=pa_csv.ParseOptions(delimiter=self._form.separator, newlines_in_values=True),
                    convert_options=pa_csv.ConvertOptions(
                        column_types=types,
                        include_columns=list(columns),
                        null_values=[*MISSING],
                        strings_can_be_null=False,
                        decimal_point=self._form.decimal,
                    ),
                )
                for batch in parsed:
                    self._refuse_zero_bytes(batch, text, rows)
                    if batch.num_rows:
                        now = min(raw.tell(), self.total)
                        yield self._parsed(batch, marked), now - position
                        position = now
                        rows += batch.num_rows
        except (pa.ArrowException, SourceFormatError, WrongValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise self._explain(error, rows, {*columns} - {*text}, missing) from error

    def _refuse_zero_bytes(self, batch: Untyped, text: Collection[str], rows: int) -> None:
        """Refuse zero bytes in text, which a disk may leave after a crash; numbers with them are none."""
        for name in batch.schema.names:
            if name in text:
                row = pc.index(pc.match_substring(batch.column(name), "\0"), value=True).as_py()
                if row >= 0:
                    raise SourceFormatError(
                        f"{self.where(rows + row)}:{self.names.index(name) + 1}: a zero byte in column {name!r}; the "
                        "file is damaged, or not all of it is text: mend it"
                    )

    def _parsed(self, batch: Untyped, marked: Mapping[str, Collection[str]]) -> Untyped:
        """The batch with numbers in the columns that have marks of their own for what is missing."""
        for name, marks in marked.items():
            values = pa.array(numbers(batch.column(name), marks, self._form.decimal), from_pandas=True)
            batch = batch.set_column(batch.schema.names.index(name), name, values)
        return batch

    def _explain(
        self, error: Exception, rows: int, numeric: Collection[str], missing: Mapping[str, Collection[str]]
    ) -> SourceFormatError:
        """The error for the parser's exception, with file, line and column."""
        try:
            first_problem(self.file, self._form, self.names, numeric, rows + self.header, missing)
        except SourceFormatError as found:
            return found
        if isinstance(error, SourceFormatError):
            return error
        message = str(error).splitlines()[0][:200]
        return SourceFormatError(f"{self.file}: {message} (after row {rows}); mend the file")

    def where(self, row: int) -> str:
        """File and line of a row."""
        found = next(records(self.file, self._form, row + self.header), None)
        return f"{self.file}:{found[0]}" if found else str(self.file)


def _is_data(fields: list[str], target: str | int | None, decimal: str) -> bool:
    """True where a first row is data, not names."""
    skip: int | None = None
    if target is not None:
        # A name such as x3 is that of a column without a name, too, where none has it.
        place = None if target in fields else default_position(target)
        try:
            skip = int(target) % len(fields) if place is None else place
        except ValueError:
            return False
        if skip >= len(fields):
            return False
        if str(target) in fields and not all(is_number(field, decimal) for field in fields):
            return False
    return all(is_number(field, decimal) for index, field in enumerate(fields) if index != skip) and len(fields) > (
        skip is not None
    )


def _refuse_other_encodings(file: SourceFile, encoding: str) -> None:
    with plain_bytes(file.path, str(file), encoding) as (plain, _):
        start = plain.read(4)
    if start in (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"):
        raise SourceFormatError(f"{file}:1:1: the file is UTF-32, not UTF-8; give {option('encoding', 'utf-32')}")
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SourceFormatError(f"{file}:1:1: the file is UTF-16, not UTF-8; give {option('encoding', 'utf-16')}")
    if b"\x00" in start:
        raise SourceFormatError(
            f"{file}:1:1: the file holds zero bytes, not text of {encoding}; give a CSV file, or its encoding"
        )
