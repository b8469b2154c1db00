"""An array that is read by rows, one chunk at a time: the common interface of all inputs."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamkernel.atomic import array_digest, text_digest
from streamkernel.pairs import plain_entries
from streamkernel.table.row_keys import NO_ROUNDING, Keys, RowRounding
from streamkernel.type_aliases import AnyArray, AnyDType, Int


class RowArray(ABC):
    """m rows of some width, read through one operation: load the chunk that holds row i.

    Attributes
    ----------
    name
        "X" or "y", for messages.
    shape
        (m, p), or (m,) for one target.
    dtype
        dtype as stored.
    chunk_rows
        Rows of the largest chunk.
    in_memory
        True where reading costs nothing.
    proved
        Whether every read is compared with a pinned digest.
    in_pairs
        Whether `load` gives sparse rows in pairs of columns and values (`streamkernel.pairs`).
    """

    name: str
    shape: tuple[int, ...]
    dtype: AnyDType
    chunk_rows: int
    in_memory: bool = False
    proved: bool = False
    in_pairs: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return self.shape[0]

    @property
    def width(self) -> int:
        """Values in a row."""
        return self.shape[1] if len(self.shape) > 1 else 1

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Digest of the pinned content; equal data at another place has the same digest."""

    @property
    def stamp(self) -> str:
        """Digest of size and time of every chunk file where `fingerprint` does not tell the content; else empty."""
        return ""

    def chunk_span(self, row: int) -> tuple[int, int]:
        """Half-open rows of the chunk that holds `row`."""
        first = row // self.chunk_rows * self.chunk_rows
        return first, min(first + self.chunk_rows, self.n_rows)

    @abstractmethod
    def load(self, first: int, last: int) -> AnyArray:
        """Decode the chunk of rows [first, last), which must be a result of `chunk_span`."""

    def keys(self, values: AnyArray, rounding: RowRounding = NO_ROUNDING) -> Keys:
        """(b,) `row_keys` of rows as `load` gives them; sparse rows have those of their dense copies."""
        return rounding.sparse_keys(values, self.shape[1]) if self.in_pairs else rounding.keys(values)

    def cuts(self, start: int, stop: int) -> Int:
        """Increasing row numbers from `start` to `stop`: the borders of the chunks, clipped to this range."""
        step = self.chunk_rows
        inner = np.arange((start // step + 1) * step, stop, step, dtype=np.int64)
        return np.concatenate(([start], inner, [stop])).astype(np.int64)

    def digest_known(self, first: int, last: int) -> bool:
        """Whether the digest of rows [first, last) is available without reading them from a disk."""
        return self.in_memory

    def digest(self, first: int, last: int) -> str:
        """Digest of the values of rows [first, last) as stored; shape and dtype are not part of it.

        That of sparse rows is of their entries that are not 0.
        """
        values = RowReader(self).read(first, last)
        return values_digest(plain_entries(values) if self.in_pairs else values)

    def where(self, row: int) -> str:
        """Name of the array or chunk that holds `row`, for messages."""
        return f"the {self.name} array"

    def check_unchanged(self) -> None:
        """Raise where the input has changed since it was pinned; rows in memory need no check."""
        return

    @property
    def as_stored(self) -> tuple[RowArray, NDArray[np.intp] | None]:
        """The rows whose chunks are decoded, and the positions of these columns in them; None for all, in order."""
        return self, None


class RowReader:
    """Reads any rows of a `RowArray` while holding one decoded chunk, so that a pass decodes each chunk once.

    Columns are reordered block by block, so that there is no second copy of a chunk.
    """

    def __init__(self, rows: RowArray) -> None:
        self._rows, self._order = rows.as_stored
        self._first = self._last = 0
        self._values: AnyArray | None = None

    def read_beside(self, start: int, stop: int, columns: Sequence[int]) -> tuple[AnyArray, AnyArray]:
        """Rows [start, stop), and these columns (b, k) of the rows as stored, from the same chunks."""
        beside = np.empty((stop - start, len(columns)), dtype=self._rows.dtype)
        return self.read(start, stop, (list(columns), beside)), beside

    def read(self, start: int, stop: int, beside: tuple[list[int], AnyArray] | None = None) -> AnyArray:
        """Rows [start, stop) as stored; a view where one chunk holds them all.

        Parameters
        ----------
        beside
            Columns of the rows as stored, and an array (b, k) to fill with them.
        """
        first = self._take(start)
        if beside is not None and stop <= self._last:
            beside[1][:] = first[start - self._first : stop - self._first][:, beside[0]]
            beside = None
        if stop <= self._last and self._order is None:
            return first[start - self._first : stop - self._first]
        width = first.shape[1:] if self._order is None else (len(self._order),)
        out = np.empty((stop - start, *width), dtype=first.dtype)
        del first  # two chunks must never be held at once
        row = start
        while row < stop:
            chunk = self._take(row)
            end = min(stop, self._last)
            part = chunk[row - self._first : end - self._first]
            if part.dtype.kind == "U" and part.dtype > out.dtype:  # longer texts than in the first chunk
                out = out.astype(part.dtype)
            into = out[row - start : end - start]
            if self._order is None:
                into[:] = part
            else:
                np.take(part, self._order, axis=1, out=into, mode="clip")  # other modes make a copy of `out`
            if beside is not None:
                beside[1][row - start : end - start] = part[:, beside[0]]
            del chunk, part
            row = end
        return out

    def _take(self, row: int) -> AnyArray:
        if self._values is None or not self._first <= row < self._last:
            self._values = None
            first, last = self._rows.chunk_span(row)
            self._values = self._rows.load(first, last)
            self._first, self._last = first, last
        return self._values


class NumpyRows(RowArray):
    """Rows that are in memory already; chunks are 1,024 rows, so that spans are fine and equal on any machine."""

    CHUNK_ROWS = chunk_rows = 1024
    in_memory = True

    def __init__(self, values: AnyArray, name: str) -> None:
        self.name = name
        self.shape = values.shape
        self.dtype = values.dtype
        self._values = values
        self._fingerprint: str | None = None

    @property
    def fingerprint(self) -> str:
        """Digest of the values, computed at the first call: hashing 1 GB takes almost a second."""
        if self._fingerprint is None:
            self._fingerprint = content_digest(self._values)
        return self._fingerprint

    def chunk_span(self, row: int) -> tuple[int, int]:
        """All rows: slicing an array in memory needs no chunk."""
        return 0, self.n_rows

    def load(self, first: int, last: int) -> AnyArray:
        return self._values[first:last]


class ConstantRows(RowArray):
    """m times the same number; nothing of m is held."""

    chunk_rows = 4096
    in_memory = True

    def __init__(self, value: float, n_rows: int, name: str) -> None:
        self.name, self.shape, self.dtype = name, (n_rows,), np.dtype(np.float64)
        self._value = value

    @property
    def fingerprint(self) -> str:
        return text_digest(f"{self._value!r} in all of {self.n_rows} rows")

    def load(self, first: int, last: int) -> AnyArray:
        return np.full(last - first, self._value)


class GuidedRows(RowArray):
    """Rows that are cut into chunks as other rows are: the `guide`, which also names the places of rows."""

    def __init__(self, guide: RowArray, name: str, width: int, dtype: AnyDType) -> None:
        self.guide, self.name, self.shape, self.dtype = guide, name, (guide.n_rows, width), dtype
        self.chunk_rows, self.in_memory = guide.chunk_rows, guide.in_memory

    @property
    def stamp(self) -> str:
        return self.guide.stamp

    def chunk_span(self, row: int) -> tuple[int, int]:
        return self.guide.chunk_span(row)

    def cuts(self, start: int, stop: int) -> Int:
        return self.guide.cuts(start, stop)

    def where(self, row: int) -> str:
        return self.guide.where(row)

    def check_unchanged(self) -> None:
        self.guide.check_unchanged()


class OrderedRows(GuidedRows):
    """Rows whose column j is column ``order[j]`` as stored; chunks, checks and names are those of the stored rows.

    `RowReader` reorders each block as it cuts it from a chunk, so that memory never holds a second chunk.
    """

    def __init__(self, stored: RowArray, order: Sequence[int]) -> None:
        super().__init__(stored, stored.name, len(order), stored.dtype)
        self.order = np.asarray(order, dtype=np.intp)

    @property
    def as_stored(self) -> tuple[RowArray, NDArray[np.intp] | None]:
        rows, before = self.guide.as_stored
        return rows, self.order if before is None else before[self.order]

    @property
    def fingerprint(self) -> str:
        return text_digest(f"{self.guide.fingerprint}/{self.order.tolist()}")

    def load(self, first: int, last: int) -> AnyArray:
        return np.take(self.guide.load(first, last), self.order, axis=1)


class NumbersBeside(GuidedRows):
    """Numbers (m,) that may follow from the features of their rows and a few columns beside these.

    A block of a table then has them from the chunks that its features are read from, which are decoded once.
    """

    @abstractmethod
    def columns_beside(self, features: RowArray) -> list[int] | None:
        """Columns of the chunks of these features that the numbers need; None where they need other reads."""

    @abstractmethod
    def of_block(self, features: AnyArray, beside: AnyArray, start: int) -> AnyArray:
        """The numbers (b,) of rows with these features (b, p) and columns (b, k), of which `start` is the first."""


class ColumnRows(NumbersBeside):
    """One column of other rows, as numbers (m,); nothing is copied."""

    def __init__(self, stored: RowArray, column: int, name: str) -> None:
        super().__init__(stored, name, 1, stored.dtype)
        self.shape, self.column = (stored.n_rows,), column

    @property
    def fingerprint(self) -> str:
        return text_digest(f"{self.guide.fingerprint}/column {self.column}")

    def load(self, first: int, last: int) -> AnyArray:
        return self.guide.load(first, last)[:, self.column].copy()

    def columns_beside(self, features: RowArray) -> list[int] | None:
        return [self.column] if self.guide is features.as_stored[0] else None

    def of_block(self, features: AnyArray, beside: AnyArray, start: int) -> AnyArray:
        return beside[:, 0]


def content_digest(values: AnyArray) -> str:
    """SHA-256 of shape, dtype and the digests of pieces of the values, without a second copy of a large array."""
    native = values.dtype.newbyteorder("<") if values.dtype.kind in "biufc" else values.dtype
    state = hashlib.sha256(f"{values.shape}{native.str}".encode())
    step = max(1, (1 << 24) // max(1, values.itemsize * int(np.prod(values.shape[1:]))))
    for first in range(0, values.shape[0], step):
        state.update(values_digest(values[first : first + step]).encode())
    return state.hexdigest()


def values_digest(values: AnyArray) -> str:
    """Digest of numbers, or of text."""
    if values.dtype.kind in "biufc":
        return array_digest(values)
    return hashlib.sha256("\0".join(str(value) for value in values.ravel()).encode()).hexdigest()
