"""Read the lines and fields of a CSV file in Python: the first rows, and the row that the fast parser refused.

pyarrow reports that a conversion failed, but not in which line. This pass is slow (a Python loop), and starts after the
rows that were read without an error.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from pyarrow.csv import ConvertOptions

from streamkernel.errors import SourceFormatError
from streamkernel.table.ingest.readers._plain_bytes import plain_bytes
from streamkernel.table.ingest.readers.csv.format import CsvFormat
from streamkernel.table.ingest.readers.files import SourceFile
from streamkernel.table.schema.encoder import of_identifiers
from streamkernel.table.schema.suggest import have_signs, with_comma
from streamkernel.table.schema.values import is_identifier
from streamkernel.wording import option

# Text that pyarrow reads as a missing value; the finite check then names the row.
MISSING = frozenset(ConvertOptions().null_values)
_NUMBER = re.compile(
    r"[ \t]*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)[ \t]*\Z", re.IGNORECASE | re.ASCII
)
_SEPARATORS = re.compile(rb"[,;\t]")


def is_number(text: str, decimal: str = ".") -> bool:
    """True for text that is parsed as a number, infinity included, and for missing values."""
    if text in MISSING:
        return True
    if decimal != ".":
        text = text.translate({ord("."): decimal, ord(decimal): "."})
    return _NUMBER.match(text) is not None


def text_lines(file: SourceFile, encoding: str) -> Iterator[str]:
    """The lines of a file, with their ends.

    Raises
    ------
    SourceFormatError
        A line is not in this encoding.
    """
    with plain_bytes(file.path, str(file), encoding) as (plain, _):
        for number, line in enumerate(plain, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                column = len(_SEPARATORS.findall(line[: error.start])) + 1
                raise SourceFormatError(
                    f"{file}:{number}:{column}: byte 0x{line[error.start]:02x} is not UTF-8; name the encoding of the "
                    f"file, such as {option('encoding', 'latin-1')}"
                ) from error


def records(file: SourceFile, form: CsvFormat, skip: int = 0) -> Iterator[tuple[int, int, list[str]]]:
    """(first line, last line, fields) of the rows after the first `skip`; empty lines are no rows.

    Lines count from 1. A row has several where a quoted field goes on in the next line. The separator of `form` is
    known.

    Raises
    ------
    SourceFormatError
        A field has more than 128 KiB, or there is a carriage return inside a line.
    """
    reader = csv.reader(text_lines(file, form.encoding), delimiter=form.separator or ",")
    while True:
        first = reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            inside = "new-line character" in str(error)
            what = "a carriage return within the line; end lines with a newline" if inside else f"{error}; mend it"
            raise SourceFormatError(f"{file}:{first}:1: {what}") from error
        if fields is None:
            return
        if fields and skip:
            skip -= 1
        elif fields:
            yield first, reader.line_num, fields


def first_problem(
    file: SourceFile,
    form: CsvFormat,
    columns: Sequence[str],
    numbers: Collection[str],
    skip: int,
    missing: Mapping[str, Collection[str]],
) -> None:
    """Raise for the first row, after `skip` ones, with a wrong number of fields or text for a number.

    Parameters
    ----------
    numbers : names of the columns that are numbers.
    missing : by column, texts that stand for a missing number.
    """
    for line, last, fields in records(file, form, skip):
        if len(fields) != len(columns):
            column = min(len(fields), len(columns)) + (len(fields) > len(columns))
            found = f"{len(fields)} field{'' if len(fields) == 1 else 's'} where the table has {len(columns)} columns"
            quoted = f", in a row that goes on to line {last}: is a quote not closed?" if last > line else ""
            raise SourceFormatError(f"{file}:{line}:{column}: {found}{quoted or ';'} mend this line")
        for index, field in enumerate(fields):
            marks = missing.get(columns[index], ())
            if columns[index] in numbers and field.strip() not in marks and not is_number(field, form.decimal):
                what = f"{file}:{line}:{index + 1}: {field[:60]!r} in column {columns[index]!r} is"
                if form.decimal == "." and is_number(field, ","):
                    raise SourceFormatError(f"{what} {with_comma(field, form.separator)}")
                if form.decimal == "," and is_number(field):
                    raise SourceFormatError(
                        f"{what} a number with a point; where it separates thousands, leave it out, and where it is "
                        f"decimal, leave {option('decimal', ',')} out"
                    )
                if have_signs([field]):
                    raise SourceFormatError(
                        f"{what} a number with other signs; write numbers alone, such as 1234{form.decimal}5"
                    )
                if is_identifier(field):
                    raise SourceFormatError(f"{what} an identifier, not a number; {of_identifiers(columns[index])}")
                raise SourceFormatError(
                    f"{what} not a number; mend it, leave the column out by {option('drop')}, name it among "
                    f"{option('categories')} or {option('dates')}, or let {option('schema', 'auto')} look at the rows "
                    "(of a target, text is kept as class labels, if it is text from the first rows on)"
                )
