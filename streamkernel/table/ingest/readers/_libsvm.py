"""libsvm text: ``label index:value index:value ...``, in two passes.

The first finds the largest index, and whether rows stay sparse or are made dense.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from streamkernel.errors import EmptyDataError, ParameterError, SourceFormatError
from streamkernel.pairs import pairs_of
from streamkernel.table.columns import default_names
from streamkernel.table.ingest.readers.options import SourceOptions
from streamkernel.table.ingest.readers.reader import BATCH_BYTES, Batch, Reader
from streamkernel.wording import option

_BLOCK_BYTES = 1 << 22
_LEAST_SPARSE_COLUMNS, _MOST_DENSITY = 1000, 0.05
# Each column has a name, statistics and a place in several blocks of rows: at least about so many bytes.
_COLUMN_BYTES = 1000
_FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z|[+-]?(?:inf(?:inity)?|nan)\Z", re.IGNORECASE)


class LibsvmReader(Reader):
    """Rows of a libsvm file. Indices count from 1; a file that uses index 0 anywhere counts from 0."""

    unit = "bytes"
    target_names = ("y",)

    def __init__(self, path: Path, options: SourceOptions) -> None:
        if options.weight is not None:
            raise ParameterError(
                f"{path}: a libsvm file has no column of row weights; leave {option('weight')} out, or ingest the rows "
                "from a file of columns"
            )
        if options.target not in (None, "y"):
            raise ParameterError(f"{path}: a libsvm file has its target in front (y); leave {option('target')} out")
        self._path = path
        self._whose = "of the table" if options.appended else f"({option('columns')})"
        self.total = path.stat().st_size
        rows, lowest, highest, entries, most = 0, None, -1, 0, 0
        for X, _, _ in self._blocks(None):
            rows += X.shape[0]
            entries += X.nnz
            if X.nnz:
                most = max(most, int(X.getnnz(axis=1).max()))
                low = int(X.indices.min())
                lowest = low if lowest is None else min(lowest, low)
                highest = max(highest, int(X.indices.max()))
        if rows == 0:
            raise SourceFormatError(f"{path}:1:1: the file has no rows; give lines `label index:value ...`")
        if lowest is None:
            raise EmptyDataError(f"{path} has no column: no line holds an index:value; give at least one")
        self.n_rows = self.estimated_rows = rows
        self._shift = 0 if lowest == 0 else 1
        found, declared = highest + 1 - self._shift, options.columns
        if declared is not None and found > declared:
            raise self._explain(OverflowError("an index is too large"), declared - 1 + self._shift)
        if highest > _most_index():
            raise self._explain(OverflowError("an index is too large"))
        columns = found if declared is None else declared
        self._width = columns + self._shift
        self.columns, self.named = default_names(columns), False
        sparse = stays_sparse(rows, columns, entries, most) if options.sparse is None else options.sparse
        self.most_entries = most if sparse else None

    def _blocks(self, width: int | None) -> Iterator[tuple[Any, Any, int]]:
        """(sparse X with indices as written, y, bytes) of about 4 MiB of lines each."""
        # scikit-learn takes a second to load: only for such a file.
        datasets = import_module("sklearn.datasets")
        with open(self._path, "rb") as handle:
            while content := handle.read(_BLOCK_BYTES):
                content += handle.readline()  # whole lines only
                try:
                    X, y = datasets.load_svmlight_file(io.BytesIO(content), n_features=width, zero_based=True)
                except (ValueError, UnicodeDecodeError, OverflowError, IndexError) as error:
                    raise self._explain(error) from error
                if X.shape[0]:
                    yield X, y, len(content)

    def batches(self) -> Iterator[Batch]:
        most = self.most_entries
        step = max(1, BATCH_BYTES // (8 * (self._width if most is None else 2 * most)))
        for X, y, size in self._blocks(self._width):
            rows = X.shape[0]
            for first in range(0, rows, step):
                last = min(first + step, rows)
                part = X[first:last]
                if most is None:
                    features = part.toarray()[:, self._shift :]
                else:
                    part.eliminate_zeros()
                    features = pairs_of(part.indptr, part.indices - self._shift, part.data, most)
                yield Batch(features, y[first:last].reshape(-1, 1), None, size * last // rows - size * first // rows)

    def _explain(self, error: Exception, largest: int | None = None) -> SourceFormatError:
        """file:line:column of the first token that is not `label` or a rising `index:value`.

        Parameters
        ----------
        largest : largest index, where the number of columns is given.
        """
        with open(self._path, "rb") as handle:
            for number, raw in enumerate(handle, 1):
                try:
                    line = raw.decode("utf-8").split("#", 1)[0]
                except UnicodeDecodeError as bad:
                    return SourceFormatError(
                        f"{self._path}:{number}:{bad.start + 1}: byte 0x{raw[bad.start]:02x} is not UTF-8 text"
                    )
                before = -1
                for position, token in enumerate(re.finditer(r"\S+", line)):
                    problem, before = _token_problem(position, token.group(), before, largest, self._whose)
                    if problem:
                        return SourceFormatError(
                            f"{self._path}:{number}:{token.start() + 1}: {problem}; mend this line"
                        )
        return SourceFormatError(
            f"{self._path}: {str(error).splitlines()[0][:200]}; give lines `label index:value ...`"
        )

    def where(self, row: int) -> str:
        with open(self._path, "rb") as handle:
            for number, raw in enumerate(handle, 1):
                if raw.split(b"#", 1)[0].strip():
                    row -= 1
                if row < 0:
                    return f"{self._path}:{number}"
        return str(self._path)


def _most_index() -> int:
    """The largest index of a column: what this machine's memory holds, and the parser of these files can count to."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(memory // _COLUMN_BYTES, 2**31 - 2)


def stays_sparse(rows: int, columns: int, entries: int, most: int) -> bool:
    """Whether rows are stored sparse where nobody says: wide ones with few entries, of which none is half full.

    An entry takes four times the memory of a dense number, and narrow rows have more choices where they are dense.
    """
    return columns > _LEAST_SPARSE_COLUMNS and entries < _MOST_DENSITY * rows * columns and 4 * most <= columns


def _token_problem(position: int, token: str, before: int, largest: int | None, whose: str) -> tuple[str | None, int]:
    if position == 0:
        return (None, before) if _FLOAT.match(token) else (f"the label {token[:40]!r} is not a number", before)
    index, colon, value = token.partition(":")
    if colon and index == "qid":
        return None, before
    if not colon or not re.match(r"\d+\Z", index) or not _FLOAT.match(value):
        return f"{token[:40]!r} is not index:value", before
    digits = index.lstrip("0") or "0"
    if largest is not None and (len(digits) > 10 or int(digits) > largest):
        return f"index {index[:40]} is beyond {largest}, the last of the columns {whose}", before
    if len(digits) > 10 or int(digits) > _most_index():
        return (
            f"index {index[:40]} is beyond {_most_index()}, the most columns that rows here can have (each has a name "
            "and statistics)"
        ), before
    if int(digits) <= before:
        return f"index {index} does not rise (before it: {before})", before
    return None, int(digits)
