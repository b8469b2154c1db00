"""Columns that stand in the names of folders, as Hive and Spark write them: ``year=2020/part.parquet``.

They come after the columns of the files. Folders count that lie below the folder, the fixed part of the pattern, or the
common folder of the files that the user gave.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from streamkernel.errors import SourceFormatError
from streamkernel.table.ingest.readers.arrow_values import floats, text_labels
from streamkernel.table.ingest.readers.csv.records import MISSING, is_number
from streamkernel.table.ingest.readers.files import SourceFile
from streamkernel.table.schema.arrow_types import is_moment, is_text
from streamkernel.table.schema.values import WrongValueError, dates
from streamkernel.table.targets import label_form
from streamkernel.type_aliases import Float, Untyped

# Hive's name for a missing value.
_MISSING = "__HIVE_DEFAULT_PARTITION__"


class Partitions:
    """The columns in the names of the folders of some files.

    Attributes
    ----------
    names, inside
        Names of the columns that the files do not have, and of those that they have, too.

    Raises
    ------
    SourceFormatError
        A file lies in no folder of a name that others have.
    """

    def __init__(self, files: Sequence[SourceFile], inside: Sequence[str]) -> None:
        self._values = {file: _values(file) for file in files}
        first = files[0]
        names = list(self._values[first])
        for file, values in self._values.items():
            for name in {*names} ^ {*values}:
                having, lacking = (first, file) if name in names else (file, first)
                raise SourceFormatError(
                    f"{lacking} lies in no folder {name}=..., and {having} does; give files of the same columns"
                )
        self.inside = [name for name in names if name in inside]
        self.names = [name for name in names if name not in inside]
        self._text = {
            name for name in self.names if not all(is_number(values[name]) for values in self._values.values())
        }

    def is_text(self, name: str) -> bool | None:
        """Whether a column is text; None for a column of the files."""
        return name in self._text if name in self.names else None

    def as_numbers(self, names: Sequence[str], target: str | int | None) -> tuple[list[str], tuple[str, ...]]:
        """The columns that can be numbers or the target, and the other columns as text for `Reader.left_out`."""
        left_out = [name for name in names if name in self._text and name != target]
        # This text stands in the table, and no front end words it: it names no option.
        return [name for name in names if name not in left_out], tuple(
            f"column {name!r} of the folders {name}=... (text; a category would be a feature)" for name in left_out
        )

    def extended(self, batch: Untyped, file: SourceFile, before: int, text: Collection[str] = ()) -> Untyped:
        """A record batch of a file, which begins with row `before` of it, and the columns of its folders.

        Parameters
        ----------
        text : names of columns that stay text even where they are numbers.

        Raises
        ------
        SourceFormatError
            A column of the file has another value than its folder.
        """
        values = self._values[file]
        for name in self.inside:
            row = _first_other(batch.column(name), values[name])
            if row is not None:
                raise SourceFormatError(
                    f"{file}: column {name!r} of its row {before + row} is {batch.column(name)[row].as_py()!r}, and "
                    f"its folder is {name}={values[name]}; correct one of them"
                )
        if not self.names:
            return batch
        added = [_repeated(values[name], name in self._text or name in text, batch.num_rows) for name in self.names]
        return pa.RecordBatch.from_arrays([*batch.columns, *added], names=[*batch.schema.names, *self.names])


def _values(file: SourceFile) -> dict[str, str]:
    """The text of each column of the folders of a file; that of a missing value is empty."""
    found: dict[str, str] = {}
    for folder in file.folders:
        name, mark, text = folder.partition("=")
        if mark and name:
            name, text = unquote(name), unquote(text)
            if name in found:
                raise SourceFormatError(f"{file} lies in two folders {name}=...; rename one")
            found[name] = "" if text == _MISSING else text
    return found


def _repeated(text: str, is_text: bool, rows: int) -> Untyped:
    if is_text:
        return pa.repeat(pa.scalar(text, pa.string()), rows)
    return pa.array(np.full(rows, _number(text)))


def _number(text: str) -> float:
    return np.nan if text in MISSING else float(text)


def _days(values: Untyped) -> Float:
    """Days since 1970 of dates; NaN where a text is none."""
    try:
        return dates(values, None)
    except WrongValueError:
        return np.full(len(values), np.nan)


def _first_other(column: Untyped, text: str) -> int | None:
    """Position of the first value of a column that is not the one of the folder; a missing one is none."""
    if is_moment(column.type):
        days = _days(column)
        other = ~np.isnan(days) & (days != _days(pa.array([text])))
    elif is_text(column.type) or pa.types.is_boolean(column.type):
        codes, labels = text_labels(column)
        form = label_form(text)
        other = np.isin(codes, [code for code, label in enumerate(labels) if label != form]) & (codes >= 0)
    else:
        values = floats(column)
        other = ~np.isnan(values) & (values != (_number(text) if is_number(text) else np.nan))
    found = np.flatnonzero(other)
    return int(found[0]) if found.size else None
