"""The slow second pass over a CSV file that the fast parser refused: it finds line, column and kind of the error.

pyarrow reports that a conversion failed, but not in which line. This pass is slow (a Python loop), and starts after the
rows that were read without an error.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from pyarrow.csv import ConvertOptions

from streamkernel.errors import SourceFormatError

# Text that pyarrow reads as a missing value; the finite check then names the row.
MISSING = frozenset(ConvertOptions().null_values)
_NUMBER = re.compile(
    r"[ \t]*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)[ \t]*\Z", re.IGNORECASE | re.ASCII
)


def is_number(text: str) -> bool:
    """True for text that is parsed as a number, infinity included, and for missing values."""
    return text in MISSING or _NUMBER.match(text) is not None


@contextmanager
def open_plain(path: Path) -> Iterator[BinaryIO]:
    """The bytes of the file, decompressed for .gz; damage found while reading raises `SourceFormatError`."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as zipped:
                yield cast(BinaryIO, zipped)
        else:
            with open(path, "rb") as plain:
                yield plain
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceFormatError(f"{path}: the compressed file is damaged ({error}); fetch it again") from error


def fields_of(text: str, delimiter: str, where: str) -> list[str]:
    """Fields of one line; `where` is its place, for messages.

    Raises
    ------
    SourceFormatError
        A field has more than 128 KiB, or there is a carriage return inside the line.
    """
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error as error:
        what = "a carriage return within the line; end lines with a newline" if "\r" in text else f"{error}; mend it"
        raise SourceFormatError(f"{where}:1: {what}") from error


def data_lines(path: Path, skip: int = 0) -> Iterator[tuple[int, str]]:
    """(line number from 1, text) of the lines that are not empty, after the first `skip` of them.

    Raises
    ------
    SourceFormatError
        A line is not UTF-8.
    """
    with open_plain(path) as handle:
        for number, line in enumerate(handle, 1):
            stripped = line.rstrip(b"\r\n")
            if not stripped:
                continue
            if skip:
                skip -= 1
                continue
            try:
                text = stripped.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                column = stripped[: error.start].count(b",") + 1
                raise SourceFormatError(
                    f"{path}:{number}:{column}: byte 0x{stripped[error.start]:02x} is not UTF-8; convert the file "
                    "(iconv -t UTF-8)"
                ) from error
            yield number, text


def first_problem(path: Path, delimiter: str, columns: Sequence[str], text_column: int | None, skip: int) -> None:
    """Raise for the first line, after `skip` non-empty ones, with a wrong number of fields or text for a number."""
    for number, line in data_lines(path, skip):
        fields = fields_of(line, delimiter, f"{path}:{number}")
        if len(fields) != len(columns):
            column = min(len(fields), len(columns)) + (len(fields) > len(columns))
            raise SourceFormatError(
                f"{path}:{number}:{column}: {len(fields)} fields where the table has {len(columns)} columns; mend "
                "this line"
            )
        for index, field in enumerate(fields):
            if index != text_column and not is_number(field):
                raise SourceFormatError(
                    f"{path}:{number}:{index + 1}: {field[:60]!r} in column {columns[index]!r} is not a number; "
                    "mend it, or leave the column out (text is kept only as class labels of the target, if they are "
                    "text from the first rows on)"
                )
