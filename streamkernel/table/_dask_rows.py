"""Rows of a Dask array, by duck typing: the array needs `.chunks`, slicing and `.compute`; dask is not imported."""

from __future__ import annotations

import numpy as np

from streamkernel.atomic import text_digest
from streamkernel.errors import ShapeError
from streamkernel.table.rows import RowArray
from streamkernel.table.values import unmasked
from streamkernel.type_aliases import AnyArray, Int, Unchecked


def is_dask(value: object) -> bool:
    """True for a Dask array."""
    return type(value).__module__.split(".")[0] == "dask" and hasattr(value, "chunks") and hasattr(value, "compute")


class DaskRows(RowArray):
    """One block of Dask rows at a time, computed in this thread: tasks must not start tasks."""

    def __init__(self, array: Unchecked, name: str) -> None:
        if any(not np.isfinite(n) for n in array.shape):
            raise ShapeError(f"the Dask array {name} has unknown chunk sizes; call compute_chunk_sizes() on it first")
        self.name = name
        self.shape = tuple(int(n) for n in array.shape)
        self.dtype = np.dtype(array.dtype)
        self._array = array
        sizes = [int(n) for n in array.chunks[0] if n > 0] if self.shape else []
        self._ends = np.cumsum(sizes, dtype=np.int64)
        self._largest = max(sizes, default=1)

    @property
    def chunk_rows(self) -> int:
        """Rows of the largest chunk."""
        return self._largest

    @property
    def fingerprint(self) -> str:
        """Digest of the array's name, which Dask derives from its graph, shape and chunks."""
        return text_digest(f"{self._array.name}{self.shape}{self.dtype.str}{self._array.chunks}")

    def chunk_span(self, row: int) -> tuple[int, int]:
        """Rows of the block that holds `row`."""
        index = int(np.searchsorted(self._ends, row, side="right"))
        return (int(self._ends[index - 1]) if index else 0), int(self._ends[index])

    def cuts(self, start: int, stop: int) -> Int:
        """Block boundaries between `start` and `stop`."""
        inner = self._ends[(self._ends > start) & (self._ends < stop)]
        return np.concatenate(([start], inner, [stop])).astype(np.int64)

    def where(self, row: int) -> str:
        """The block that holds `row`."""
        return f"Dask block {int(np.searchsorted(self._ends, row, side='right'))} of {self.name}"

    def load(self, first: int, last: int) -> AnyArray:
        """Compute one row of blocks."""
        block = self._array[first:last].compute(scheduler="synchronous")
        return np.asarray(unmasked(block, self.name, self.where(first), first))
