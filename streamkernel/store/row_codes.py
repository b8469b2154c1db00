"""Small whole numbers of every row, which one sweep writes and later ones read, while a run lasts.

::

    PLACE/DIGEST/c/0, c/1, ...    chunks of a Zarr array: the numbers, then their CRC32C

They are a memo and no result: what is absent, damaged or cannot be read is computed again, by whoever wants it. So
nothing is published, nothing is on the disk for certain, and a full disk costs time only. A task that runs twice writes
the same bytes twice.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamkernel.blobs import blobs_at
from streamkernel.store._arrays import chunk_key
from streamkernel.store._chunk import read_chunk, write_chunk
from streamkernel.type_aliases import AnyArray, AnyDType


@dataclass(frozen=True)
class RowCodes:
    """Vectors (m,) of one dtype. The name of each is a digest of its inputs.

    Parameters
    ----------
    place : folder that all tasks of the run share.
    chunk_rows : rows of a chunk.
    dtype : type of the numbers.
    """

    place: Path
    chunk_rows: int
    dtype: AnyDType

    def read(self, name: str, start: int, count: int) -> AnyArray | None:
        """Rows `start` .. `start + count - 1` of a vector, from the first row of a chunk on; None if one is absent."""
        blobs, parts = blobs_at(self.place), []
        for first in range(start, start + count, self.chunk_rows):
            values = None
            with suppress(OSError):
                values = read_chunk(blobs, self._key(name, first), (self.chunk_rows,), self.dtype)
            if values is None:
                return None
            parts.append(values)
        return np.concatenate(parts)[:count]

    def write(self, name: str, start: int, values: AnyArray) -> None:
        """Write rows from the first row of a chunk on: whole chunks, and the last rows of the table."""
        blobs = blobs_at(self.place)
        for first in range(0, len(values), self.chunk_rows):
            chunk = np.ascontiguousarray(values[first : first + self.chunk_rows], dtype=self.dtype)
            with suppress(OSError):
                write_chunk(blobs, self._key(name, start + first), chunk, (self.chunk_rows,), durable=False)

    def _key(self, name: str, row: int) -> str:
        return chunk_key(name, (row // self.chunk_rows,))
