"""The writer of a table with sparse rows: CSR in three arrays, whose chunks are of rows, and of entries."""

from __future__ import annotations

import numpy as np

from streamkernel.manifest import SPARSE_VERSION
from streamkernel.outputs import Building
from streamkernel.pairs import csr_parts
from streamkernel.table._sparse_rows import SPARSE_ARRAYS, column_dtype
from streamkernel.table.ingest.writers._written_array import WrittenArray
from streamkernel.table.ingest.writers.writer import ChunkWriter
from streamkernel.table.statistics import ColumnStatistics
from streamkernel.type_aliases import AnyArray, AnyDType, Fields, Float, Int

# Of a chunk: 0.5 or 1 MiB of values. A chunk of rows decodes those that it begins and ends in, too.
_ENTRIES = 1 << 17
_POINTERS = 1 << 16  # of a chunk of indptr


class SparseWriter(ChunkWriter):
    """A store of sparse rows under construction; `append` takes them in pairs (`streamkernel.pairs`) of any width.

    A chunk that is being filled is held in CSR, so that a very full row takes no room in the others.

    ::

        STORE/indptr (m + 1,)      the entries of row i are those from indptr[i] to indptr[i + 1]
        STORE/indices (entries,)   their columns, ascending in each row
        STORE/data (entries,)      their values
        STORE/statistics (4, d)    mean, deviation, minimum and maximum of each column

    The group's attribute `sparse` has the number of columns, the most entries of a row, and the rows of a chunk.

    Parameters
    ----------
    most : most entries of a row.
    others : as of `ChunkWriter`; `n_features` is the number of columns d, `dtype` that of the values.
    """

    def __init__(
        self,
        building: Building,
        n_features: int,
        n_targets: int,
        dtype: AnyDType,
        chunk_rows: int,
        *,
        most: int,
        coded: bool,
        weighted: bool = False,
    ) -> None:
        self._most = most
        self._parts: dict[str, list[AnyArray]] = {"indptr": [np.zeros(1, np.int64)], "indices": [], "data": []}
        self._written = dict.fromkeys(self._parts, 0)  # numbers of each array
        self._entries = 0
        super().__init__(building, n_features, n_targets, dtype, chunk_rows, coded=coded, weighted=weighted)

    def _begin(self) -> dict[str, WrittenArray]:
        self._digests |= {name: [] for name in SPARSE_ARRAYS}
        self._version = SPARSE_VERSION
        return super()._begin()

    def _create_features(self, n_features: int) -> dict[str, WrittenArray]:
        # A number that is lost is read as the fill value, which no row has.
        return {
            "indptr": self._create("indptr", (), np.dtype(np.int64), -1, _POINTERS),
            "indices": self._create("indices", (), column_dtype(n_features), -1, _ENTRIES),
            "data": self._create("data", (), self._dtype, np.nan, _ENTRIES),
            "statistics": self._create("statistics", (n_features,), np.dtype(np.float64), np.nan, 1),
        }

    def _begin_features(self) -> None:
        self._rows: list[tuple[Int, Int, Float]] = []

    def _hold_features(self, X: AnyArray) -> None:
        self._rows.append(csr_parts(X))

    def _held_features(self) -> tuple[Int, Int, Float]:
        counts, columns, values = zip(*((np.diff(indptr), c, v) for indptr, c, v in self._rows), strict=True)
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts))])
        return indptr, np.concatenate(columns), np.concatenate(values)

    def _write_features(self, start: int, X: tuple[Int, Int, Float], w: Float | None) -> None:
        indptr, columns, values = X
        self._add("indptr", self._entries + indptr[1:])
        self._add("indices", columns)
        self._add("data", values)
        self._entries += len(values)
        first = max(0, self._counted - start)
        after, w = indptr[first], None if w is None else w[first:]
        part = ColumnStatistics.of_csr(indptr[first:], columns[after:], values[after:], self._widths[0], w)
        self._merge("X", part)

    def _add(self, name: str, numbers: AnyArray, *, last: bool = False) -> None:
        """Add numbers to an array, and write the chunks that are full; the last call also writes the rest."""
        array, parts = self._arrays[name], self._parts[name]
        parts.append(numbers.astype(array.dtype))
        size = array.chunks[0]
        if sum(map(len, parts)) < size and not last:
            return
        held = np.concatenate(parts)
        end = len(held) if last else len(held) // size * size
        for first in range(0, end, size):
            piece, start = held[first : min(first + size, end)], self._written[name]
            self._digests[name].append(array.write(start, piece))
            self._building.send(array.key(start))
            self._written[name] += len(piece)
        self._parts[name] = [held[end:]]

    def _described(self, statistics: ColumnStatistics) -> Fields:
        for name in self._parts:
            self._add(name, np.zeros(0, self._arrays[name].dtype), last=True)
        for row, values in enumerate((statistics.mean, statistics.std, statistics.minimum, statistics.maximum)):
            self._write_chunk("statistics", row, values[None, :])
        of_rows: Fields = {"count": statistics.count}
        if statistics.weight is not None:
            of_rows["weight"] = statistics.weight
        y = self._statistics["y"]
        return {
            "statistics": {"X": of_rows, "y": None if y is None else y.to_config()},
            "sparse": {
                "columns": self._widths[0],
                "most_entries": self._most,
                "chunk_rows": self._chunk_rows,
            },
        }
