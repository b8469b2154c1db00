"""Rows with their columns in another order than stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamkernel.atomic import text_digest
from streamkernel.table.rows import RowArray
from streamkernel.type_aliases import AnyArray, Int


class OrderedRows(RowArray):
    """Rows whose column j is column ``order[j]`` as stored; chunks, checks and names are those of the stored rows.

    `RowReader` reorders each block as it cuts it from a chunk, so that memory never holds a second chunk.
    """

    def __init__(self, stored: RowArray, order: Sequence[int]) -> None:
        self.name = stored.name
        self.shape = (stored.n_rows, len(order))
        self.dtype = stored.dtype
        self.stored = stored
        self.order = np.asarray(order, dtype=np.intp)

    @property
    def as_stored(self) -> tuple[RowArray, NDArray[np.intp] | None]:
        """The stored rows and the order."""
        rows, before = self.stored.as_stored
        return rows, self.order if before is None else before[self.order]

    @property
    def in_memory(self) -> bool:
        """Whether the stored rows are in memory."""
        return self.stored.in_memory

    @property
    def chunk_rows(self) -> int:
        """Rows of a stored chunk."""
        return self.stored.chunk_rows

    @property
    def fingerprint(self) -> str:
        """Digest of the stored rows' fingerprint and of the order."""
        return text_digest(f"{self.stored.fingerprint}/{self.order.tolist()}")

    def chunk_span(self, row: int) -> tuple[int, int]:
        """Rows of the stored chunk that holds `row`."""
        return self.stored.chunk_span(row)

    def cuts(self, start: int, stop: int) -> Int:
        """Cuts of the stored rows: sweeps are cut as if the columns were stored in this order."""
        return self.stored.cuts(start, stop)

    def where(self, row: int) -> str:
        """Place of `row` in the stored rows, for messages."""
        return self.stored.where(row)

    def check_unchanged(self) -> None:
        """Raise where the stored rows have changed since they were pinned."""
        self.stored.check_unchanged()

    def load(self, first: int, last: int) -> AnyArray:
        """A chunk in this order."""
        return np.take(self.stored.load(first, last), self.order, axis=1)
